"""Puts the names of things that are there into what schemathesis makes up, most of the time: others lead no further than 404."""

import itertools
import json
import os
import random
import re

import schemathesis

ID = re.compile("[a-z]+_[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")

with open(os.environ["OCC_FUZZ_THINGS"], encoding="utf-8") as file:
    THINGS = json.load(file)
NAMED = THINGS["named"]
IDS = {value.split("_")[0]: value for value in NAMED.values() if ID.fullmatch(value)}
# Texts whose form does not say of what they are.
WORDS = {
    "backendId": "chatgpt",
    "pluginId": "calendar@curated",
    "principalId": NAMED["person"],
    "roleId": NAMED["role"],
}
# What a source of the gateway's catalogue consists of.
SOURCE = {"type": "openai", "config": {}}
# The keys of objects that are words of a catalogue.
KEYS = {"secrets": "api_key", "plugins": "calendar@curated"}

chance = random.Random(1)
callers = itertools.count()


@schemathesis.hook
def before_call(context, case, kwargs):
    if isinstance(case.body, dict) and chance.random() < 0.75:
        body = named(case.body)
        case.body = {name: SOURCE.get(name, value) for name, value in body.items()}
    if THINGS["proxied"] and case.operation.path.startswith("/api/auth/oidc/"):
        # Another caller each time, of whom none tries too often.
        number = next(callers)
        caller = {"x-forwarded-for": f"10.0.{number // 250}.{number % 250 + 1}"}
        case.headers = {**(case.headers or {}), **caller}


def named(value, field=None):
    if isinstance(value, dict):
        if field in KEYS and value:
            return {KEYS[field]: named(next(iter(value.values())))}
        return {name: named(inner, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [named(inner, field) for inner in value]
    if isinstance(value, str) and field in WORDS:
        return WORDS[field]
    if isinstance(value, str) and ID.fullmatch(value):
        return IDS.get(value.split("_")[0], value)
    return value

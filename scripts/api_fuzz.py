"""Starts the API in memory and lets schemathesis test it: api_fuzz.py SCHEMATHESIS SERVER.

Twice: bare, with no driver that an Installation can do without, and with a double of every driver.
"""

import http.client
import json
import os
import subprocess
import sys
import tempfile
from urllib.parse import parse_qs, urlsplit

# What an answer must be, whatever was asked. That each refusal is the right one is for the tests in Rust.
CHECKS = [
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "unsupported_method",
    "ignored_auth",
]

# Long-lived answers, which no fuzzer waits for.
LONG = ["watchAgentDeployment"]

# Where drivers decide that the bare server lacks, and what leads there. The rest has been asked already.
DRIVEN = "/(credential-sources|service-accounts|plugins|agents|presets|backends|oidc)(/|$)"

# What takes things away is asked about spare ones, so that the others last.
TAKES_AWAY = ["stopAgent"]

HOOKS = os.path.join(os.path.dirname(os.path.realpath(__file__)), "api_fuzz_hooks.py")


def main() -> int:
    schemathesis, server = sys.argv[1:]
    bare = fuzz(schemathesis, [server])
    # The faults of both are worth seeing.
    every = fuzz(schemathesis, [server, "every-driver"])
    return bare or every


def fuzz(schemathesis: str, server: list[str]) -> int:
    print(f"\nfuzzing {' '.join(os.path.basename(word) for word in server)}", flush=True)
    with tempfile.TemporaryDirectory() as directory:
        log = os.path.join(directory, "log")
        with open(log, "wb") as errors:
            process = subprocess.Popen(server, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True)
        try:
            line = process.stdout.readline()
            code = run(schemathesis, json.loads(line), directory, len(server) > 1) if line else 1
        finally:
            process.stdin.close()
            try:
                ended = process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                ended = "not at all"
        # Whatever it answered, it must not have failed within.
        with open(log, encoding="utf-8", errors="replace") as lines:
            lines = lines.readlines()
        faults = [line for line in lines if "panicked" in line or "status=500" in line or " ERROR " in line]
        if ended != 0 or faults:
            print(f"the server ended with {ended} and logged:", *faults[:20], *lines[-20:], sep="\n")
            return 1
        print(f"{len(lines)} lines logged, and no panic and no 500 in them")
        return code


def run(schemathesis: str, started: dict, directory: str, driven: bool) -> int:
    things = os.path.join(directory, "things.json")
    with open(things, "w", encoding="utf-8") as file:
        json.dump(started, file)
    config = os.path.join(directory, "schemathesis.toml")
    with open(config, "w", encoding="utf-8") as file:
        file.write(configuration(started, driven))
    command = [schemathesis, "--config-file", config, "run", f"{started['api']}/openapi.json"]
    command += ["--header", f"x-api-key: {started['key']}"]
    command += ["--checks", ",".join(CHECKS), "--phases", "coverage,fuzzing"]
    command += ["--max-examples", os.environ.get("OCC_FUZZ_EXAMPLES", "20"), "--seed", "1"]
    command += ["--continue-on-failure", "--request-timeout", "30", "--warnings", "off", "--workers", "1"]
    command += ["--suppress-health-check", "all", "--generation-database", "none"]
    for operation in LONG:
        command += ["--exclude-operation-id", operation]
    if driven:
        command += ["--include-path-regex", DRIVEN]
    environment = {**os.environ, "OCC_FUZZ_THINGS": things, "SCHEMATHESIS_HOOKS": HOOKS}
    code = subprocess.run(command, cwd=directory, env=environment, check=False).returncode
    return code or verify(started)


def configuration(started: dict, driven: bool) -> str:
    named, spare = started["named"], started["spare"]
    lines = [
        "[parameters]",
        # Ids that exist, so that more than 404 is reached.
        *(f'"path.{name}" = {text(value)}' for name, value in named.items()),
        # A deployment that nobody drives is waited for as long as one may.
        '"query.wait" = "1s"',
        # The key is the one credential of a request: a session or a token beside it is refused.
        "[generation]",
        "with-security-parameters = false",
        # What a driver cannot do, or is not there for, is answered in the document's words. 500 never is.
        "[checks.not_a_server_error]",
        'expected-statuses = ["2xx", "3xx", "4xx", "501", "503", "504"]',
        "[[operations]]",
        'include-method = "DELETE"',
        'exclude-operation-id = "deleteNamespace"',
        f"parameters = {inline({f'path.{name}': value for name, value in spare.items() if name != 'namespace'})}",
        "[[operations]]",
        'include-operation-id = "deleteNamespace"',
        f"parameters = {inline({'path.namespace': spare['namespace']})}",
        "[[operations]]",
        f"include-operation-id = {json.dumps(TAKES_AWAY)}",
        f"parameters = {inline({'path.agent': spare['agent']})}",
    ]
    if driven:
        cookie, state, codes = sign_in(started["api"])
        lines += [
            "[[operations]]",
            'include-operation-id = "finishOidcSignIn"',
            f"headers = {inline({'cookie': cookie})}",
            "[operations.parameters]",
            f'"query.state" = {text(state)}',
            '"query.code" = { dictionary = "codes", probability = 0.6 }',
            "[dictionaries.codes]",
            f"values = {json.dumps(codes)}",
        ]
    return "\n".join(lines) + "\n"


def text(value: str) -> str:
    # A text of JSON is one of TOML.
    return json.dumps(value)


def inline(table: dict) -> str:
    return "{ " + ", ".join(f"{text(name)} = {text(value)}" for name, value in table.items()) + " }"


def sign_in(api: str) -> tuple[str, str, list[str]]:
    """An attempt to sign in: its cookie, its state, and codes with which the identity provider sent the browser back."""
    begun = get(f"{api}/api/auth/oidc/sign-in")
    cookie = begun["Set-Cookie"].split(";")[0]
    returned = [parse_qs(urlsplit(get(begun["Location"])["Location"]).query) for _ in range(40)]
    return cookie, returned[0]["state"][0], [query["code"][0] for query in returned]


def get(url: str) -> http.client.HTTPMessage:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=30)
    connection.request("GET", f"{parts.path}?{parts.query}" if parts.query else parts.path)
    return connection.getresponse().headers


def verify(started: dict) -> int:
    """Whether the audit is whole, after all that was asked."""
    connection = http.client.HTTPConnection(urlsplit(started["api"]).netloc, timeout=60)
    connection.request("POST", "/installation/audit/verification", headers={"x-api-key": started["key"]})
    found = json.load(connection.getresponse()).get("data", {})
    print(f"the audit: {found}")
    return 0 if found.get("intact") is True else 1


if __name__ == "__main__":
    sys.exit(main())

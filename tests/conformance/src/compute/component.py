"""What a version of the conformance kit runs: a gateway, the check of its model, and its native workspace setup."""

import hashlib
import http.server
import json
import os
import signal
import sys

FILES = ("AGENTS.md", "SOUL.md", "IDENTITY.md", "USER.md")
VERSION = os.environ["VERSION"]


def read(name):
    try:
        with open(name, encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return None


class Gateway(http.server.BaseHTTPRequestHandler):
    found = {}

    def do_GET(self):
        kind, _, name = self.path.lstrip("/").partition("/")
        if kind == "readyz":
            self.answer({"ready": True})
        elif kind == "version":
            self.answer({"version": VERSION})
        elif kind == "starts":
            self.answer({"starts": read("starts").split()})
        elif kind == "digest" and name in os.environ:
            self.answer({"sha256": hashlib.sha256(os.environ[name].encode()).hexdigest()})
        elif kind == "found" and self.found.get(name) is not None:
            self.answer({"content": self.found[name]})
        else:
            self.send_error(404)

    def answer(self, body):
        content = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        print("request", self.path, flush=True)


def gateway(port):
    print("version", VERSION, flush=True)
    with open("starts", "a", encoding="utf-8") as starts:
        starts.write(VERSION + "\n")
    for name in FILES:
        Gateway.found[name] = read(name)
        # Every version edits what it finds, as an Agent does: a replay of the original text would undo it.
        if Gateway.found[name] is not None:
            with open(name, "a", encoding="utf-8") as file:
                file.write("edited by " + VERSION + "\n")
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    http.server.ThreadingHTTPServer((os.environ["LISTEN"], int(port)), Gateway).serve_forever()


def check():
    usable = os.environ.get("CREDENTIAL") and os.environ["REFUSED"] == "no"
    print(json.dumps({"status": "ok" if usable else "auth"}))


def setup():
    for name in FILES:
        if read(name) is None:
            with open(name, "w", encoding="utf-8") as file:
                file.write("stock " + name + "\n")


if sys.argv[1] == "gateway":
    gateway(sys.argv[2])
elif sys.argv[1] == "check":
    check()
elif sys.argv[1] == "setup":
    setup()

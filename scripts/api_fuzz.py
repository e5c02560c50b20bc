"""Starts the API in memory and lets schemathesis test it: api_fuzz.py SCHEMATHESIS SERVER."""

import json
import os
import subprocess
import sys
import tempfile

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


def main() -> int:
    schemathesis, server = sys.argv[1:]
    with subprocess.Popen([server], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            started = json.loads(process.stdout.readline())
            return run(schemathesis, started)
        finally:
            process.stdin.close()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()


def run(schemathesis: str, started: dict) -> int:
    with tempfile.TemporaryDirectory() as directory:
        # Ids that exist, so that more than 404 is reached.
        config = os.path.join(directory, "schemathesis.toml")
        with open(config, "w", encoding="utf-8") as file:
            file.write(
                "[parameters]\n"
                f'"path.namespace" = "{started["namespace"]}"\n'
                f'"path.agent" = "{started["agent"]}"\n'
                f'"path.revision" = "{started["revision"]}"\n'
                f'"path.person" = "{started["person"]}"\n'
                # Nobody drives the deployment: whoever waits for its end waits as long as it may.
                '"query.wait" = "1s"\n'
                # The key is the one credential of a request: a session or a token beside it is refused.
                "[generation]\nwith-security-parameters = false\n"
                # What a driver cannot do, or is not there for, is answered in the document's words. 500 never is.
                "[checks.not_a_server_error]\n"
                'expected-statuses = ["2xx", "3xx", "4xx", "501", "503", "504"]\n'
            )
        command = [schemathesis, "--config-file", config, "run", f"{started['api']}/openapi.json"]
        command += ["--header", f"x-api-key: {started['key']}"]
        command += ["--checks", ",".join(CHECKS), "--phases", "coverage,fuzzing"]
        command += ["--max-examples", os.environ.get("OCC_FUZZ_EXAMPLES", "20"), "--seed", "1"]
        command += ["--continue-on-failure", "--request-timeout", "30", "--warnings", "off", "--workers", "1"]
        command += ["--suppress-health-check", "all", "--generation-database", "none"]
        for operation in LONG:
            command += ["--exclude-operation-id", operation]
        return subprocess.run(command, cwd=directory, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())

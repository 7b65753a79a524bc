"""Runs the SDKs' own test suites against a mock, directly and through a proxy, and writes the record of both.

usage: scripts/sdk-suites.sh PROXY [RECORD]
"""

import base64
import hashlib
import hmac
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter

import mock

SECRET = "sdk-suites-secret-0123456789abcdef0123456789abcdef"
HERE = pathlib.Path(__file__).parent


def token():
    """Returns a token of the run `suites` for an hour."""
    claim = f"suites|0|{int(time.time()) + 3600}"
    tag = hmac.new(SECRET.encode(), claim.encode(), hashlib.sha256).digest()
    return f"{claim}.{base64.urlsafe_b64encode(tag).decode().rstrip('=')}"


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def start_proxy(program, root, upstream, port):
    """Starts the proxy with one run on its shared listener, and waits until it answers."""
    for name, text in [("key", "sk-suites"), ("secrets", f"one:{SECRET}\n")]:
        (root / name).write_text(text)
        (root / name).chmod(0o600)
    (root / "sluice.toml").write_text(f"""
[upstream]
base_url = "http://127.0.0.1:{upstream}"
key_file = "{root}/key"
[proxy]
run_dir = "{root}/run"
state_dir = "{root}/state"
listen = "127.0.0.1:{port}"
listen_serves = "clients"
token_secrets_file = "{root}/secrets"
[runs.suites]
account = "suites"
""")
    environment = {"SLUICE_CONFIG": f"{root}/sluice.toml", "PATH": os.environ["PATH"]}
    log = open(root / "log", "w", encoding="utf-8")
    proxy = subprocess.Popen([program, "--config", f"{root}/sluice.toml"], env=environment, stdout=log, stderr=log)
    for _ in range(100):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return proxy
        except OSError:
            time.sleep(0.1)
    raise SystemExit((root / "log").read_text())


def outcomes(suite, address, key, root):
    """Runs one suite at `address`; returns how each test ended."""
    written = root / "outcomes"
    written.unlink(missing_ok=True)
    environment = {
        **os.environ, "TEST_API_BASE_URL": address, "SUITE_KEY": key, "SUITE_OUTCOMES": str(written),
        "PYTHONPATH": f"{HERE}:{suite}", "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [sys.executable, "-m", "pytest", "-p", "plugin", "-o", "addopts=", "-q", "--tb=line", "--no-header",
               "-p", "no:cacheprovider", "--continue-on-collection-errors", "-W", "ignore", "tests/api_resources"]
    with open(root / "pytest.log", "w", encoding="utf-8") as log:
        subprocess.run(command, cwd=suite, env=environment, stdout=log, stderr=log, check=False)
    if not written.exists():
        raise SystemExit((root / "pytest.log").read_text()[-4000:])
    lines = [json.loads(line) for line in written.read_text().splitlines()]
    return {(line["module"], line["test"]): line for line in lines}


def compared(direct, through):
    """Returns a row for each module: tests, how many pass directly and through, and the codes of those that differ."""
    rows = {}
    for name, line in direct.items():
        row = rows.setdefault(name[0], {"tests": 0, "direct": 0, "through": 0, "differing": Counter()})
        other = through.get(name, {"passed": False, "code": None})
        row["tests"] += 1
        row["direct"] += line["passed"]
        row["through"] += other["passed"]
        if line["passed"] != other["passed"]:
            row["differing"][other["code"] or "other"] += 1
    return [{"module": module, **row, "differing": dict(sorted(row["differing"].items()))}
            for module, row in sorted(rows.items())]


def main(program, record, suites):
    upstream = mock.serve()
    threading.Thread(target=upstream.serve_forever, daemon=True).start()
    port, upstream_port = free_port(), upstream.server_address[1]
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        proxy = start_proxy(program, root, upstream_port, port)
        try:
            result = []
            for suite in map(pathlib.Path, suites):
                sdk, version = suite.name.rsplit("-", 1)
                base = "/v1" if sdk == "openai" else ""
                ends = [outcomes(suite, f"http://127.0.0.1:{to}{base}", key, root)
                        for to, key in [(upstream_port, "none"), (port, token())]]
                result.append({"sdk": sdk, "version": version, "modules": compared(*ends)})
        finally:
            proxy.send_signal(signal.SIGTERM)
            proxy.wait()
    pathlib.Path(record).write_text(json.dumps({"suites": result}, indent=1) + "\n")


main(sys.argv[1], sys.argv[2], sys.argv[3:])

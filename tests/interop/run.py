#!/usr/bin/env python3
"""Runs the official SDKs against the real binary, and our client against the SDKs' servers.

Installs what is missing: a virtual environment and node_modules in this folder. Prints one line
per pair and binding with the number of scenarios, and every scenario that failed.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PYTHON = HERE / ".venv" / "bin" / "python"
BINDINGS = ("JSONRPC", "HTTP+JSON")
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug"


def install():
    if not PYTHON.exists():
        subprocess.run([sys.executable, "-m", "venv", HERE / ".venv"], check=True)
    requirements = HERE / "python" / "requirements.txt"
    marker = HERE / ".venv" / "installed"
    if not marker.exists() or marker.read_text() != requirements.read_text():
        subprocess.run([PYTHON, "-m", "pip", "install", "--quiet", "-r", requirements], check=True)
        marker.write_text(requirements.read_text())
    if not (HERE / "js" / "node_modules").exists():
        subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund"], cwd=HERE / "js", check=True)


def build():
    cargo = ["cargo", "build", "--locked", "--quiet"]
    subprocess.run([*cargo, "-p", "nuncio"], cwd=ROOT, check=True)
    subprocess.run([*cargo, "-p", "nuncio-client", "--example", "peer"], cwd=ROOT, check=True)


class Server:
    """A process that says `ready URL` on a line of its own once it listens."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        for line in self.process.stdout:
            if line.startswith("ready "):
                self.url = line.split()[1]
                return
        raise SystemExit(f"{command[0]} ended before it was ready")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(timeout=30)


def run(pair, binding, command):
    """Runs one list of scenarios and reports it; gives whether all passed."""
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    results = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    failed = [result for result in results if not result["ok"]]
    good = done.returncode == 0 and not failed and bool(results)
    print(f"{pair:28} {binding:10} {len(results) - len(failed):3}/{len(results)}", flush=True)
    for result in failed:
        print(f"    {result['scenario']}: {result['detail']}", flush=True)
    if not good and not failed:
        print(f"    exit code {done.returncode} after {len(results)} scenarios", flush=True)
    return good


def sdks_against_nuncio():
    good = True
    with tempfile.TemporaryDirectory() as data:
        config = ROOT / "examples" / "interop.toml"
        serve = [TARGET / "nuncio", "serve", "--config", config, "--listen", "127.0.0.1:0", "--data", data]
        with Server(serve) as server:
            for binding in BINDINGS:
                options = ["--card-url", server.url, "--binding", binding, "--nuncio"]
                good &= run("Python SDK -> nuncio", binding, [PYTHON, HERE / "python" / "client.py", *options])
                good &= run("JavaScript SDK -> nuncio", binding, ["node", HERE / "js" / "client.mjs", *options])
    return good


def nuncio_against(name, peer, command):
    good = True
    with Server(command) as server:
        for binding in BINDINGS:
            options = ["--card-url", server.url, "--binding", binding, "--peer", peer]
            good &= run(f"nuncio -> {name}", binding, [TARGET / "examples" / "peer", *options])
    return good


def main():
    install()
    build()
    good = sdks_against_nuncio()
    good &= nuncio_against("Python SDK", "python", [PYTHON, HERE / "python" / "server.py", "--port", "0"])
    good &= nuncio_against("JavaScript SDK", "js", ["node", HERE / "js" / "server.mjs", "--port", "0"])
    config = ROOT / "examples" / "interop.toml"
    with tempfile.TemporaryDirectory() as data:
        serve = [TARGET / "nuncio", "serve", "--config", config, "--listen", "127.0.0.1:0", "--data", data]
        good &= nuncio_against("nuncio", "none", serve)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()

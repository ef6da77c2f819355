#!/usr/bin/env python3
"""Runs the official SDKs against the real binary, and our client against the SDKs' servers.

Installs what is missing: virtual environments and node_modules in this folder. Prints one line
per pair and binding with the number of scenarios, every scenario that failed, and at the end the
matrix that README.md shows.
"""

import argparse
import contextlib
import dataclasses
import difflib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
README = ROOT / "README.md"
BLOCK = re.compile(r"(?<=<!-- interop:begin -->\n).*(?=<!-- interop:end -->)", re.DOTALL)
BINDINGS = {"JSONRPC": "JSON-RPC", "HTTP+JSON": "HTTP+JSON", "GRPC": "gRPC"}
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug"
CONFIG = ROOT / "examples" / "interop.toml"
OURS = "nuncio calls nuncio"
BEHIND = "behind nuncio"
PASSED = "passed through nuncio"
EXPECTED = json.loads((HERE / "expected.json").read_text())
# The machine has few cores, and the scenarios wait more than they work.
AT_ONCE = 3
SECONDS = 300


@dataclasses.dataclass(frozen=True)
class Sdk:
    """One generation of an official SDK, with our programs on it."""

    name: str
    peer: str
    protocol: str
    pinned_in: pathlib.Path
    pin: str
    install_in: pathlib.Path
    client: list
    server: list

    @property
    def version(self):
        return re.search(self.pin, self.pinned_in.read_text())[1]

    @property
    def title(self):
        return f"{self.name} {self.version}"

    def install(self):
        """Does nothing if the pinned versions are there."""
        marker = self.install_in / ".installed"
        if marker.exists() and marker.read_text() == self.pinned_in.read_text():
            return
        for command in self.install_commands():
            subprocess.run(command, cwd=self.pinned_in.parent, check=True)
        marker.write_text(self.pinned_in.read_text())


class PythonSdk(Sdk):
    def install_commands(self):
        yield [sys.executable, "-m", "venv", self.install_in]
        pip = [self.install_in / "bin" / "python", "-m", "pip", "install", "--quiet"]
        yield [*pip, "--disable-pip-version-check", "-r", self.pinned_in]


class JavaScriptSdk(Sdk):
    def install_commands(self):
        yield ["npm", "install", "--silent", "--no-audit", "--no-fund"]


def python_sdk(protocol, venv, suffix):
    folder, python = HERE / "python", HERE / venv / "bin" / "python"
    return PythonSdk(
        name="Python `a2a-sdk`",
        peer="python",
        protocol=protocol,
        pinned_in=folder / f"requirements{suffix}.txt",
        pin=r"a2a-sdk\[.*\]==(.*)",
        install_in=HERE / venv,
        client=[python, folder / f"client{suffix}.py"],
        server=[python, folder / f"server{suffix}.py"],
    )


def javascript_sdk(protocol, name):
    folder = HERE / name
    return JavaScriptSdk(
        name="JavaScript `@a2a-js/sdk`",
        peer="js",
        protocol=protocol,
        pinned_in=folder / "package.json",
        pin=r'"@a2a-js/sdk": "(.*)"',
        install_in=folder / "node_modules",
        client=["node", folder / "client.mjs"],
        server=["node", folder / "server.mjs"],
    )


SDKS = (
    python_sdk("1.0", ".venv", ""),
    javascript_sdk("1.0", "js"),
    python_sdk("0.3", ".venv_0_3", "_0_3"),
    javascript_sdk("0.3", "js_0_3"),
)


def build():
    # The whole workspace, as the tests build it: a crate alone has other features, and everything
    # below it would be built once more.
    cargo = ["cargo", "build", "--locked", "--quiet", "--workspace", "--bins", "--examples"]
    subprocess.run(cargo, cwd=ROOT, check=True)


class Server:
    """A process that says `ready URL` on a line of its own once it listens."""

    def __init__(self, command):
        self.log = tempfile.TemporaryFile()  # noqa: SIM115 - closed on exit
        self.process = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=self.log, text=True
        )
        for line in self.process.stdout:
            if line.startswith("ready "):
                self.url = line.split()[1]
                return
        self.log.seek(0)
        raise SystemExit(f"{command} ended before it was ready\n{self.log.read().decode()}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self.log.close()


@dataclasses.dataclass(frozen=True)
class Pair:
    """One caller and one server over one binding. Those of a row differ by binding."""

    row: str
    binding: str
    command: list

    def run(self):
        try:
            done = subprocess.run(
                self.command, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS
            )
        except subprocess.TimeoutExpired:
            return Result(self, [], f"did not end within {SECONDS} s")
        results = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        failed = [result for result in results if not result["ok"]]
        bad_end = not results or bool(done.returncode) != bool(failed)
        complaint = f"exit code {done.returncode}\n{done.stderr[-2000:]}" if bad_end else ""
        return Result(self, results, complaint)


@dataclasses.dataclass(frozen=True)
class Result:
    pair: Pair
    scenarios: list
    complaint: str

    @property
    def failed(self):
        return [scenario for scenario in self.scenarios if not scenario["ok"]]

    @property
    def expected(self):
        """Why each scenario fails that is known to fail in this pair."""
        known = EXPECTED.get(self.pair.row, {})
        return {name: at["reason"] for name, at in known.items() if self.pair.binding in at["bindings"]}

    @property
    def good(self):
        """What is known to fail fails, and nothing else."""
        return {scenario["scenario"] for scenario in self.failed} == set(self.expected) and not self.complaint

    @property
    def score(self):
        return f"{len(self.scenarios) - len(self.failed)}/{len(self.scenarios)}"

    def print(self):
        print(f"{self.pair.row.replace('`', ''):58} {self.pair.binding:10} {self.score:>6}")
        for scenario in self.failed:
            why = self.expected.get(scenario["scenario"])
            print(f"    {scenario['scenario']}: " + (f"known: {why}" if why else scenario["detail"]))
        for name in set(self.expected) - {scenario["scenario"] for scenario in self.failed}:
            print(f"    {name}: expected to fail, but passes: take it out of expected.json")
        if self.complaint:
            print(f"    {self.complaint}")
        sys.stdout.flush()


def pairs(stack):
    """Starts the servers and gives everything that is to run against them."""
    data = stack.enter_context(tempfile.TemporaryDirectory())
    serve = [TARGET / "nuncio", "serve", "--config", CONFIG, "--listen", "127.0.0.1:0", "--data", data]
    nuncio = stack.enter_context(Server(serve))
    for sdk in SDKS:
        for binding in BINDINGS:
            options = ["--card-url", nuncio.url, "--binding", binding, "--nuncio"]
            yield Pair(f"{sdk.title} calls nuncio", binding, [*sdk.client, *options])
    servers = [stack.enter_context(Server([*sdk.server, "--port", "0"])) for sdk in SDKS]
    for sdk, server in zip(SDKS, servers, strict=True):
        row = f"nuncio calls {sdk.title}"
        yield from our_pairs(row, server, sdk.peer, sdk.protocol)
    for sdk, server in zip(SDKS, servers, strict=True):
        yield from passed_through(stack, sdk, server)
    for sdk in SDKS:
        yield from agents_behind(sdk)
    for protocol in ("1.0", "0.3"):
        yield from our_pairs(f"{OURS}, protocol {protocol}", nuncio, "none", protocol)


def agents_behind(sdk):
    """An SDK's agent as an agent of nuncio, which calls it over one binding."""
    program = [HERE / ".venv" / "bin" / "python", HERE / "python" / "delegation.py", "--nuncio", TARGET / "nuncio"]
    for binding in BINDINGS:
        options = ["--protocol", sdk.protocol, "--binding", binding, "--", *sdk.server]
        yield Pair(f"{sdk.title} {BEHIND}", binding, [*program, *options])


PASSING = """
[[agents]]
id = "{name}"
kind = "a2a"
url = "{url}"
binding = "{binding}"
pass_through = true
"""


def passed_through(stack, sdk, server):
    """Our client calls an SDK's agent through a nuncio that passes calls on, over one binding on both ways."""
    folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
    names = {binding: binding.lower().replace("+", "-") for binding in BINDINGS}
    agents = [PASSING.format(name=name, binding=binding, url=server.url) for binding, name in names.items()]
    config = folder / "nuncio.toml"
    config.write_text('[outbound]\nallow_networks = ["127.0.0.0/8"]\n' + "".join(agents))
    serve = [TARGET / "nuncio", "serve", "--config", config, "--listen", "127.0.0.1:0", "--data", folder / "data"]
    nuncio = stack.enter_context(Server(serve))
    for binding, name in names.items():
        options = ["--card-url", f"{nuncio.url}/agents/{name}", "--binding", binding, "--peer", sdk.peer]
        yield Pair(f"{sdk.title} {PASSED}", binding, [TARGET / "examples" / "peer", *options])


def our_pairs(row, server, peer, protocol):
    for binding in BINDINGS:
        options = ["--card-url", server.url, "--binding", binding, "--peer", peer]
        # 1.0 is what the program speaks unless told otherwise.
        version = ["--version", protocol] if protocol != "1.0" else []
        yield Pair(row, binding, [TARGET / "examples" / "peer", *options, *version])


def run_all():
    """Prints each result in the order of the pairs, as soon as those before it are printed."""
    results = []
    with contextlib.ExitStack() as stack:
        todo = list(pairs(stack))
        pool = stack.enter_context(ThreadPoolExecutor(AT_ONCE))
        for result in pool.map(Pair.run, todo):
            result.print()
            results.append(result)
    return results


def webhooks_are_verified():
    """Runs the receiver on the library of Standard Webhooks; prints its scenarios."""
    python = HERE / ".venv" / "bin" / "python"
    command = [python, HERE / "python" / "webhooks.py", "--nuncio", TARGET / "nuncio"]
    return Pair("Standard Webhooks verifies nuncio", "HTTP", command).run()


def frameworks_work():
    """Runs the agents and callers of frameworks; prints their scenarios."""
    command = [HERE / "frameworks" / "run", "--nuncio", TARGET / "nuncio"]
    return subprocess.run(command, cwd=ROOT, check=False).returncode == 0


def matrix(results):
    rows = {}
    for result in results:
        if result.pair.row.startswith(OURS):
            continue
        rows.setdefault(result.pair.row, {})[result.pair.binding] = result.score
    lines = ["| Pair | " + " | ".join(BINDINGS.values()) + " |", "|---" * (len(BINDINGS) + 1) + "|"]
    for row, scores in rows.items():
        cells = [scores.get(binding, "–") for binding in BINDINGS]
        lines.append("| " + " | ".join([row, *cells]) + " |")
    return "\n".join(lines) + "\n"


def write_readme(fresh):
    README.write_text(BLOCK.sub(lambda _: fresh, README.read_text()))


def check_readme(fresh):
    """Prints what README.md says else, and gives whether it says the same."""
    told = BLOCK.search(README.read_text())
    told = told[0] if told else ""
    sys.stdout.writelines(
        difflib.unified_diff(told.splitlines(True), fresh.splitlines(True), "README.md", "this run")
    )
    return told == fresh


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check-readme", action="store_true", help="fail if README.md shows another matrix")
    parser.add_argument("--write-readme", action="store_true", help="put the matrix into README.md")
    options = parser.parse_args()
    for sdk in SDKS:
        sdk.install()
    build()
    results = run_all()
    fresh = matrix(results)
    print(f"\n{fresh}", flush=True)
    if options.write_readme:
        write_readme(fresh)
    webhooks = webhooks_are_verified()
    webhooks.print()
    good = all(result.good for result in [*results, webhooks])
    good &= frameworks_work()
    good &= check_readme(fresh) if options.check_readme else True
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()

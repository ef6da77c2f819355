"""What the clients of all SDK versions share: checks, background streams, the runner."""

import argparse
import asyncio
import json
import logging
import sys
from pathlib import Path

QUIRKS = json.loads((Path(__file__).parents[1] / "quirks.json").read_text())
CARD_PATH = "/.well-known/agent-card.json"
BINDINGS = ("JSONRPC", "HTTP+JSON", "GRPC")
# Nothing is delivered to it: its tasks do not move while it is set.
HOOK = "https://example.com/hook"

JSON_RPC_CODES = {
    -32001: "TaskNotFound",
    -32002: "TaskNotCancelable",
    -32003: "PushNotificationNotSupported",
    -32004: "UnsupportedOperation",
    -32005: "ContentTypeNotSupported",
    -32007: "ExtendedCardNotConfigured",
    -32009: "VersionNotSupported",
    -32600: "InvalidRequest",
    -32601: "MethodNotFound",
    -32602: "InvalidParams",
}


class Failed(Exception):
    """A scenario's check did not hold."""


class Checks:
    """Collects what was tolerated; raises on what was not."""

    def __init__(self, peer, sdk_error_kind):
        self.quirks = QUIRKS.get(peer, {})
        self.sdk_error_kind = sdk_error_kind
        self.tolerated = []

    def that(self, ok, what, quirk=None):
        if ok:
            return
        if quirk not in self.quirks:
            raise Failed(what)
        self.tolerated.append(f"{quirk}: {self.quirks[quirk]}")

    def same(self, got, wanted, what, quirk=None):
        self.that(got == wanted, f"{what}: got {got!r}, wanted {wanted!r}", quirk)

    async def fails(self, call, kind, what, quirk=None):
        """Awaits `call` and checks which A2A error the SDK made of the answer."""
        self.same(await self.kind_of(call), kind, what, quirk)

    async def kind_of(self, call):
        try:
            return f"success {await call}"
        except Exception as error:  # noqa: BLE001 - the SDK's errors have no narrower common base
            return self.sdk_error_kind(error)


class Scenarios(dict):
    """The scenarios of one client by name, which of them only nuncio promises, which want HTTP."""

    def __init__(self):
        super().__init__()
        self.nuncio_only = set()
        self.http_only = set()

    def add(self, function):
        self[function.__name__] = function
        return function

    def add_for_nuncio(self, function):
        self.nuncio_only.add(function.__name__)
        return self.add(function)

    def add_for_http(self, function):
        self.http_only.add(function.__name__)
        return self.add(function)

    def chosen(self, options):
        if options.only:
            return [(options.only, self[options.only])]
        left_out = set() if options.nuncio else set(self.nuncio_only)
        if options.binding == "GRPC":
            left_out |= self.http_only
        return [(name, function) for name, function in self.items() if name not in left_out]


class Watch:
    """Reads a stream in the background, so that a scenario can act while it runs."""

    def __init__(self, stream):
        self.events = []
        self._news = asyncio.Condition()
        self._reader = asyncio.create_task(self._read(stream))

    async def _read(self, stream):
        try:
            async for event in stream:
                async with self._news:
                    self.events.append(event)
                    self._news.notify_all()
        finally:
            async with self._news:
                self._news.notify_all()

    async def until(self, wanted):
        def ready():
            return self._reader.done() or any(wanted(e) for e in self.events)

        async with self._news:
            await asyncio.wait_for(self._news.wait_for(ready), 10)
        if not any(wanted(e) for e in self.events):
            raise Failed(f"stream ended too early: {self.events}")

    async def end(self):
        await asyncio.wait_for(self._reader, 10)
        return self.events


def camel(reason):
    return "".join(word.capitalize() for word in reason.split("_"))


def text_of(holder):
    return "".join(part.get("text", "") for part in holder.get("parts", []))


def status_text(task):
    return text_of(task["status"].get("message", {}))


def artifact_texts(task):
    return [text_of(a) for a in task.get("artifacts", [])]


def add_artifact(artifacts, update):
    new = update["artifact"]
    old = next((a for a in artifacts if a["artifactId"] == new["artifactId"]), None)
    if old and update.get("append"):
        old["parts"] = old["parts"] + new["parts"]
    elif old:
        old["parts"] = new["parts"]
    else:
        artifacts.append(dict(new))


def without(message, field):
    return {k: v for k, v in message.items() if k != field}


def only(items):
    if len(items) != 1:
        raise Failed(f"wanted exactly one, got {items}")
    return items[0]


async def wait_for(agent, task_id, reached):
    for _ in range(100):
        task = await agent.get(task_id)
        if reached(task):
            return task
        await asyncio.sleep(0.1)
    raise Failed(f"task stays in {task['status']}")


async def _run_one(name, scenario, new_run):
    checks = None
    try:
        async with new_run() as run:
            checks = run.check
            await asyncio.wait_for(scenario(run), 30)
        ok, detail = True, ""
    except Exception as error:  # noqa: BLE001 - a scenario's failure is its result
        ok, detail = False, f"{type(error).__name__}: {error}"
    notes = [f"tolerated {t}" for t in dict.fromkeys(checks.tolerated if checks else [])]
    return {"scenario": name, "ok": ok, "detail": "; ".join([detail, *notes]).strip("; ")}


async def _run_all(scenarios, run_class, sdk, options):
    card = await sdk.fetch_card(options.card_url)
    passed = True
    for name, scenario in scenarios.chosen(options):
        checks = Checks(options.peer, sdk.sdk_error_kind)
        result = await _run_one(name, scenario, lambda: run_class(options, card, checks))
        passed = passed and result["ok"]
        print(json.dumps(result), flush=True)
    return passed


def main(scenarios, run_class, sdk, about):
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--card-url", required=True, help="of the card, or of the host that serves it")
    parser.add_argument("--binding", choices=BINDINGS, required=True)
    parser.add_argument("--only", choices=sorted(scenarios), metavar="NAME")
    parser.add_argument("--nuncio", action="store_true", help="also check what only nuncio promises")
    parser.add_argument("--peer", choices=sorted(QUIRKS), help="tolerate this SDK server's known faults")
    options = parser.parse_args()
    # The SDK logs every expected error with a stack trace.
    logging.disable(logging.CRITICAL)
    sys.exit(0 if asyncio.run(_run_all(scenarios, run_class, sdk, options)) else 1)

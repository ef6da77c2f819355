"""Drives an A2A 0.3 agent through the official Python SDK's client of that version.

Prints one JSON line per scenario; exit code 1 if any failed. See ../README.md.
"""

import asyncio
import uuid

import common
import support_0_3 as support
from common import Watch, artifact_texts, only, status_text, text_of, wait_for
from support_0_3 import Agent, fold, kinds, new_message, state

SCENARIOS = common.Scenarios()
scenario = SCENARIOS.add
http_only = SCENARIOS.add_for_http
nuncio_only = SCENARIOS.add_for_nuncio
NOW = {"blocking": False}

# What of an error is left where the SDK hands on a bare status.
STATUSES = {
    "TaskNotFound": {"HTTP 404", "gRPC NOT_FOUND"},
    "TaskNotCancelable": {"HTTP 409", "gRPC FAILED_PRECONDITION", "gRPC UNIMPLEMENTED"},
    "PushNotificationNotSupported": {"HTTP 501", "gRPC UNIMPLEMENTED", "gRPC FAILED_PRECONDITION"},
    "UnsupportedOperation": {"HTTP 501", "gRPC UNIMPLEMENTED", "gRPC FAILED_PRECONDITION"},
    "InvalidParams": {"HTTP 422", "gRPC INVALID_ARGUMENT"},
}


class Run:
    """What one scenario works with: a client `a`, a second client `b`, raw requests, checks."""

    def __init__(self, options, card, checks):
        self.options = options
        self.binding = options.binding
        self.card = card
        self.check = checks
        self.raw = support.make_raw(card, options.binding)

    async def __aenter__(self):
        self.a = Agent(self.card, self.binding)
        self.b = Agent(self.card, self.binding)
        return self

    async def __aexit__(self, *_):
        await self.raw.close()
        await self.a.__aexit__()
        await self.b.__aexit__()

    async def fails(self, call, kind, what, quirk=None):
        got = await self.check.kind_of(call)
        statuses = STATUSES[kind] if self.binding != "JSONRPC" else set()
        self.check.that(got == kind or got in statuses, f"{what}: got {got}, wanted {kind}", quirk)


@scenario
async def card(run):
    interfaces = {i.transport: i.url for i in run.card.additional_interfaces}
    interfaces[run.card.preferred_transport] = run.card.url
    run.check.that(set(common.BINDINGS) <= set(interfaces), f"interfaces: {interfaces}")
    run.check.that(run.card.protocol_version.startswith("0.3"), f"version {run.card.protocol_version}")
    run.check.that(run.card.capabilities.streaming, "streaming is not declared")
    run.check.that(not run.card.supports_authenticated_extended_card, "extended card is declared")


@scenario
async def send(run):
    task = await run.a.send("hello interop")
    run.check.same([task["kind"], state(task)], ["task", "completed"], "kind and state")
    run.check.same(artifact_texts(task), ["hello interop"], "artifacts")
    run.check.that(task["id"] and task["contextId"], "ids")
    run.check.same([text_of(m) for m in task["history"]], ["hello interop"], "history")


@scenario
async def send_little_history(run):
    paused = await run.a.send("ask")
    task = await run.a.send("red", {"historyLength": 1}, taskId=paused["id"])
    run.check.same(len(task["history"]), 1, "history of the reply")


@scenario
async def send_immediately(run):
    task = await run.a.send("slow", NOW)
    run.check.that(state(task) in ("submitted", "working"), f"state {state(task)}")
    done = await wait_for(run.b, task["id"], lambda t: state(t) == "completed")
    run.check.same(artifact_texts(done), ["123"], "artifacts")


@scenario
async def stream(run):
    events = [e async for e in run.a.stream("hello stream")]
    run.check.same(kinds(events), ["task", "status-update", "artifact-update", "status-update"], "order")
    run.check.same(state(events[1]), "working", "first status")
    run.check.same(state(fold(events)), "completed", "last status")
    run.check.same(artifact_texts(fold(events)), ["hello stream"], "artifacts")
    check_ids(run, events)
    check_final(run, events)


@scenario
async def chunk(run):
    events = [e async for e in run.a.stream("chunk")]
    updates = [e for e in events if e["kind"] == "artifact-update"]
    run.check.same([text_of(u["artifact"]) for u in updates], ["Hello", ", ", "world!"], "pieces")
    run.check.same([u.get("append", False) for u in updates], [False, True, True], "append")
    run.check.same([u.get("lastChunk", False) for u in updates], [False, False, True], "lastChunk")
    run.check.same(len({u["artifact"]["artifactId"] for u in updates}), 1, "artifact ids")
    task = await run.a.get(events[0]["id"])
    run.check.same([p["text"] for p in only(task["artifacts"])["parts"]], ["Hello", ", ", "world!"], "stored parts")


@scenario
async def get(run):
    paused = await run.a.send("ask")
    await run.a.send("blue", taskId=paused["id"])
    everything = await run.a.get(paused["id"])
    newest = await run.a.get(paused["id"], history_length=1)
    run.check.same(len(everything["history"]), 3, "history, length unset")
    run.check.same(newest["history"], everything["history"][-1:], "history, length 1")
    run.check.same(artifact_texts(everything), ["color: blue"], "artifacts")


@http_only
async def get_no_history(run):
    # Over gRPC 0 is the same as unset.
    task = await run.a.send("hello brief")
    nothing = await run.a.get(task["id"], history_length=0)
    run.check.that(not nothing.get("history"), "history, length 0", quirk="history-zero")


@scenario
async def cancel(run):
    task = await run.a.send("hold", NOW)
    run.check.same(state(await run.b.cancel(task["id"])), "canceled", "reply to cancel")
    run.check.same(state(await run.a.get(task["id"])), "canceled", "stored state")


@nuncio_only
async def cancel_twice(run):
    task = await run.a.send("ask")
    for _ in range(2):
        run.check.same(state(await run.a.cancel(task["id"])), "canceled", "reply to cancel")


@scenario
async def cancel_paused(run):
    task = await run.a.send("ask")
    run.check.same(state(await run.a.cancel(task["id"])), "canceled", "cancel at input-required")


@scenario
async def cancel_completed(run):
    task = await run.a.send("hello done")
    await run.fails(run.a.cancel(task["id"]), "TaskNotCancelable", "cancel of a completed task")


@scenario
async def resubscribe(run):
    task = await run.a.send("hold", NOW)
    watch = Watch(run.a.subscribe(task["id"]))
    if run.options.nuncio:
        await watch.until(lambda e: e["kind"] == "task")
    else:
        await asyncio.sleep(0.3)
    await run.b.cancel(task["id"])
    events = await watch.end()
    run.check.same(end_of(events), "canceled", "end of the stream", quirk="cancel-is-not-told")
    if events:
        check_final(run, events)


@nuncio_only
async def resubscribe_paused(run):
    task = await run.a.send("ask")
    watch = Watch(run.b.subscribe(task["id"]))
    await watch.until(lambda e: e["kind"] == "task")
    await run.a.send("green", taskId=task["id"])
    events = await watch.end()
    run.check.same(state(events[0]), "input-required", "snapshot")
    run.check.same(state(fold(events)), "completed", "end of the stream")
    check_final(run, events)


@nuncio_only
async def resubscribe_finished(run):
    task = await run.a.send("hello over")
    events = [e async for e in run.a.subscribe(task["id"])]
    run.check.same(kinds(events), ["task"], "events")
    run.check.same(artifact_texts(events[0]), ["hello over"], "artifacts")


@scenario
async def drop_and_resume(run):
    task_id = await read_until_first_artifact(run)
    events = [e async for e in run.b.subscribe(task_id)]
    run.check.same(end_of(events), "completed", "end of the stream", quirk="end-is-not-told")
    if run.options.nuncio:
        run.check.same(artifact_texts(fold(events)), ["123"], "artifact as folded by the client")
    done = await wait_for(run.a, task_id, lambda t: state(t) == "completed")
    run.check.same(artifact_texts(done), ["123"], "stored artifact", quirk="pieces-stored-twice")


@scenario
async def pause_resume(run):
    paused = await run.a.send("ask")
    run.check.same(state(paused), "input-required", "pause")
    run.check.same(status_text(paused), "Which color?", "question")
    done = await run.b.send("red", taskId=paused["id"])
    check_answered(run, paused, done, "red")


@scenario
async def pause_resume_stream(run):
    first = [e async for e in run.a.stream("ask")]
    paused = fold(first)
    run.check.same(state(paused), "input-required", "the stream ends at the pause")
    run.check.same(status_text(paused), "Which color?", "question")
    check_final(run, first)
    second = [e async for e in run.a.stream("red", taskId=paused["id"], contextId=paused["contextId"])]
    run.check.same(state(fold(second)), "completed", "end of the answer's stream")
    check_final(run, second)
    check_answered(run, paused, await run.a.get(paused["id"]), "red")


@scenario
async def auth(run):
    paused = await run.a.send("auth")
    run.check.same(state(paused), "auth-required", "pause")
    run.check.same(status_text(paused), "Sign in please", "status message")
    done = await run.a.send("done", taskId=paused["id"])
    run.check.same([done["id"], state(done)], [paused["id"], "completed"], "after signing in")
    run.check.same(artifact_texts(done), ["signed in"], "artifacts")


@nuncio_only
async def auth_stream(run):
    watch = Watch(run.a.stream("auth"))
    await watch.until(lambda e: "status" in e and state(e) == "auth-required")
    done = await run.b.send("done", taskId=watch.events[0]["id"])
    run.check.same(state(done), "completed", "after signing in")
    events = await watch.end()
    run.check.same(state(fold(events)), "completed", "the first stream stays open")
    check_final(run, events)


@scenario
async def fail(run):
    task = await run.a.send("fail")
    run.check.same([state(task), status_text(task)], ["failed", "it broke"], "status")


@scenario
async def reject(run):
    task = await run.a.send("reject")
    run.check.same([state(task), status_text(task)], ["rejected", "not my job"], "status")


@scenario
async def message(run):
    check_direct_message(run, await run.a.send("message"))


@scenario
async def message_stream(run):
    check_direct_message(run, only([e async for e in run.a.stream("message")]))


@scenario
async def file(run):
    task = await run.a.send("file")
    raw, url, data = only(task["artifacts"])["parts"]
    mime = "application/octet-stream"
    run.check.same(raw["file"], {"bytes": "AAEC/w==", "mimeType": mime, "name": "x.bin"}, "file with bytes")
    wanted = {"uri": "https://example.com/x.bin", "mimeType": mime}
    run.check.same({k: v for k, v in url["file"].items() if v}, wanted, "file with uri")
    run.check.same(data["data"], {"n": 1, "f": 1.5, "list": [None, True]}, "data part")


@scenario
async def file_from_client(run):
    mime = "application/octet-stream"
    parts = [
        {"kind": "text", "text": "hello files"},
        {"kind": "file", "file": {"bytes": "AAEC/w==", "mimeType": mime, "name": "x.bin"}},
        {"kind": "file", "file": {"uri": "https://example.com/x.bin", "mimeType": mime, "name": "y.bin"}},
        {"kind": "data", "data": {"n": 1, "f": 1.5, "list": [None, True]}},
    ]
    task = await run.a.send(parts)
    run.check.same(task["history"][0]["parts"], parts, "parts in the history")


@scenario
async def error_unknown_task(run):
    unknown = str(uuid.uuid4())
    calls = {
        "get": run.a.get(unknown),
        "cancel": run.a.cancel(unknown),
        "send": run.a.send("hello", taskId=unknown),
        "stream": anext(run.a.stream("hello", taskId=unknown)),
    }
    for name, call in calls.items():
        await run.fails(call, "TaskNotFound", name, quirk=f"unknown-task-{name}")
    got = await run.check.kind_of(anext(run.a.subscribe(unknown)))
    # Over HTTP+JSON the SDK looks at no status here, only for events, and says 400 without them.
    wanted = {"JSONRPC": "TaskNotFound", "HTTP+JSON": "HTTP 400", "GRPC": "gRPC NOT_FOUND"}
    run.check.same(got, wanted[run.binding], "resubscribe", quirk="unknown-task-resubscribe")


@scenario
async def error_finished_task(run):
    task = await run.a.send("hello once")
    call = run.a.send("hello twice", taskId=task["id"])
    await run.fails(call, "UnsupportedOperation", "message to a finished task", quirk="finished-task")


@scenario
async def error_no_parts(run):
    await run.fails(run.a.send([]), "InvalidParams", "message without parts", quirk="empty-parts")


@scenario
async def error_context_mismatch(run):
    task = await run.a.send("ask")
    call = run.a.send("red", taskId=task["id"], contextId=str(uuid.uuid4()))
    await run.fails(call, "InvalidParams", "contextId of another conversation", quirk="context-mismatch")
    now = state(await run.a.get(task["id"]))
    run.check.same(now, "input-required", "state afterwards", quirk="context-mismatch")


@scenario
async def push(run):
    task_id = (await run.a.send("ask"))["id"]
    if not run.card.capabilities.push_notifications:
        call = run.a.set_push(task_id, "c-1")
        await run.fails(call, "PushNotificationNotSupported", "set push config", quirk="push-off")
        return
    first, second = [await run.a.set_push(task_id, name) for name in ("c-1", "c-2")]
    config = first["pushNotificationConfig"]
    run.check.same([first["taskId"], config["id"], config["url"]], [task_id, "c-1", common.HOOK], "created")
    run.check.same(await run.b.get_push(task_id, "c-1"), first, "stored")
    run.check.same(await run.raw.list_push(task_id), {"c-1", "c-2"}, "list")
    await run.raw.delete_push(task_id, "c-1")
    run.check.same(await run.raw.list_push(task_id), {"c-2"}, "list after the delete")
    await run.fails(run.a.get_push(task_id, "c-1"), "TaskNotFound", "get after the delete")
    unknown = run.a.set_push(str(uuid.uuid4()), "c-1")
    await run.fails(unknown, "TaskNotFound", "set for an unknown task")


@scenario
async def extended_card(run):
    # The SDK returns the public card without asking when the card says no.
    run.check.same(await run.a.blocking.get_card(), run.card, "card")
    got = await run.raw.extended_card_error()
    wanted = ("UnsupportedOperation", "ExtendedCardNotConfigured")
    run.check.that(got in wanted, f"got {got}", quirk="extended-card-off")


@nuncio_only
async def quiet_stream(run):
    # The SDK's default HTTP client gives up after 5 s without a byte.
    watch = Watch(run.a.stream("hold"))
    await asyncio.sleep(6)
    await run.b.cancel(watch.events[0]["id"])
    run.check.same(end_of(await watch.end()), "canceled", "end of the stream")


@nuncio_only
async def resend(run):
    message = new_message("hello resend")
    first, second = await run.a.send(message), await run.b.send(message)
    run.check.same(second["id"], first["id"], "task of the resent message")
    run.check.same(len(second["history"]), 1, "history after the resend")


def end_of(events):
    return fold(events).get("status", {}).get("state")


async def read_until_first_artifact(run):
    # A client of its own: closing it is the only sure way to cut the connection.
    async with Agent(run.card, run.binding) as dropped:
        async for event in dropped.stream("slow"):
            if event["kind"] == "artifact-update":
                return event["taskId"]
    raise common.Failed("no artifact event")


def check_ids(run, events):
    for update in events[1:]:
        ids = [update["taskId"], update["contextId"]]
        run.check.same(ids, [events[0]["id"], events[0]["contextId"]], "ids of an update")


def check_final(run, events):
    """Clients of 0.3 wait for `final`, on the last event of a stream and only there."""
    got = [e.get("final", False) for e in events]
    run.check.same(got, [False] * (len(events) - 1) + [True], f"final of {kinds(events)}", quirk="final")


def check_answered(run, paused, done, answer):
    run.check.same([done["id"], state(done)], [paused["id"], "completed"], "after the answer")
    run.check.same(done["contextId"], paused["contextId"], "context after the answer")
    run.check.same(artifact_texts(done), [f"color: {answer}"], "artifacts")
    texts = [text_of(m) for m in done["history"]]
    run.check.same(texts, ["ask", "Which color?", answer], "history", quirk="history-of-answer")


def check_direct_message(run, message):
    run.check.same([message["kind"], text_of(message)], ["message", "just a message"], "kind and text")
    run.check.same(message["role"], "agent", "role")
    run.check.that(message.get("messageId") and message.get("contextId"), "ids of the message")
    run.check.that(not message.get("taskId"), "a direct message names a task")


if __name__ == "__main__":
    common.main(SCENARIOS, Run, support, __doc__)

"""Drives an A2A 1.0 agent through the official Python SDK's client.

Prints one JSON line per scenario; exit code 1 if any failed. See ../README.md.
"""

import asyncio
import uuid
from datetime import datetime

import common
import support
from common import (
    Failed,
    Watch,
    artifact_texts,
    only,
    status_text,
    text_of,
    wait_for,
    without,
)
from support import Agent, fold, kinds, new_message, state

SCENARIOS = common.Scenarios()
scenario = SCENARIOS.add
http_only = SCENARIOS.add_for_http
nuncio_only = SCENARIOS.add_for_nuncio
NOW = {"returnImmediately": True}


class Run:
    """What one scenario works with: a client `a`, a second client `b`, raw requests, checks."""

    def __init__(self, options, card, checks):
        self.options = options
        self.card = card
        self.check = checks
        self.raw = support.make_raw(card, options.binding)

    async def __aenter__(self):
        self.a = Agent(self.card, self.options.binding)
        self.b = Agent(self.card, self.options.binding)
        return self

    async def __aexit__(self, *_):
        await self.raw.close()
        await self.a.__aexit__()
        await self.b.__aexit__()


@scenario
async def card(run):
    card = support.as_dict(run.card)
    for field in ("name", "description", "version", "skills", "defaultInputModes", "defaultOutputModes"):
        run.check.that(card.get(field), f"card field {field} is missing")
    found = {(i["protocolBinding"], i["protocolVersion"]) for i in card["supportedInterfaces"]}
    run.check.that({(b, "1.0") for b in common.BINDINGS} <= found, f"interfaces: {found}")
    run.check.that(run.card.capabilities.streaming, "streaming is not declared")
    run.check.that(not run.card.capabilities.extended_agent_card, "extended card is declared")


@scenario
async def card_http(run):
    first = await support.fetch_raw_card(run.options.card_url)
    run.check.that(first.headers["content-type"].startswith("application/json"), "card content type")
    etag = first.headers.get("etag")
    run.check.that(etag, "card has no ETag")
    again = await support.fetch_raw_card(run.options.card_url, {"If-None-Match": etag})
    run.check.same(again.status_code, 304, "card with If-None-Match")


@scenario
async def send(run):
    task = await run.a.task("hello interop")
    run.check.same(state(task), "COMPLETED", "state")
    run.check.same(artifact_texts(task), ["hello interop"], "artifacts")
    run.check.that(task["id"] and task["contextId"], "ids")
    run.check.that(task["status"].get("timestamp", "").endswith("Z"), "status timestamp in UTC")
    run.check.same([text_of(m) for m in task["history"]], ["hello interop"], "history")


@scenario
async def send_no_history(run):
    task = await run.a.task("hello brief", {"historyLength": 0})
    run.check.that("history" not in task, "historyLength 0 still returned history")
    stored = await run.a.get(task["id"])
    run.check.same(len(stored["history"]), 1, "stored history")


@scenario
async def send_immediately(run):
    task = await run.a.task("slow", NOW)
    run.check.that(state(task) in ("SUBMITTED", "WORKING"), f"state {state(task)}")
    done = await wait_for(run.b, task["id"], lambda t: state(t) == "COMPLETED")
    run.check.same(artifact_texts(done), ["123"], "artifacts")


@scenario
async def stream(run):
    events = [e async for e in run.a.stream("hello stream")]
    wanted = ["task", "statusUpdate", "artifactUpdate", "statusUpdate"]
    run.check.same(without_closing_task(kinds(events)), wanted, "order")
    run.check.same(state(events[1]["statusUpdate"]), "WORKING", "first status")
    run.check.same(state(fold(events)), "COMPLETED", "last status")
    run.check.same(artifact_texts(fold(events)), ["hello stream"], "artifacts")
    check_ids(run, events)


@scenario
async def chunk(run):
    events = [e async for e in run.a.stream("chunk")]
    updates = [e["artifactUpdate"] for e in events if "artifactUpdate" in e]
    run.check.same([text_of(u["artifact"]) for u in updates], ["Hello", ", ", "world!"], "pieces")
    run.check.same([u.get("append", False) for u in updates], [False, True, True], "append")
    run.check.same([u.get("lastChunk", False) for u in updates], [False, False, True], "lastChunk")
    run.check.same(len({u["artifact"]["artifactId"] for u in updates}), 1, "artifact ids")
    task = await run.a.get(events[0]["task"]["id"])
    run.check.same([p["text"] for p in only(task["artifacts"])["parts"]], ["Hello", ", ", "world!"], "stored parts")


@scenario
async def get(run):
    paused = await run.a.task("ask")
    await run.a.task("blue", taskId=paused["id"])
    everything = await run.a.get(paused["id"])
    newest = await run.a.get(paused["id"], historyLength=1)
    nothing = await run.a.get(paused["id"], historyLength=0)
    run.check.same(len(everything["history"]), 3, "history, length unset")
    run.check.same(newest["history"], everything["history"][-1:], "history, length 1")
    run.check.that("history" not in nothing, "history, length 0")
    run.check.same(artifact_texts(everything), ["color: blue"], "artifacts")


@scenario
async def list_filters(run):
    context, ids = await three_tasks(run)
    everything = await run.a.list(contextId=context)
    done = await run.a.list(contextId=context, status="TASK_STATE_COMPLETED")
    asking = await run.a.list(contextId=context, status="TASK_STATE_INPUT_REQUIRED")
    full = await run.a.list(contextId=context, includeArtifacts=True)
    run.check.same({t["id"] for t in everything["tasks"]}, set(ids), "filter contextId")
    run.check.same({t["id"] for t in done["tasks"]}, set(ids[:2]), "filter COMPLETED")
    run.check.same([t["id"] for t in asking["tasks"]], ids[2:], "filter INPUT_REQUIRED")
    run.check.that(not any("artifacts" in t for t in everything["tasks"]), "artifacts without being asked for")
    run.check.same(sum("artifacts" in t for t in full["tasks"]), 2, "tasks with artifacts")
    times = [datetime.fromisoformat(t["status"]["timestamp"]) for t in everything["tasks"]]
    run.check.same(times, sorted(times, reverse=True), "newest first")


@scenario
async def list_paging(run):
    context, ids = await three_tasks(run)
    first = await run.a.list(contextId=context, pageSize=2)
    second = await run.a.list(contextId=context, pageSize=2, pageToken=first["nextPageToken"])
    run.check.same([len(first["tasks"]), len(second["tasks"])], [2, 1], "page lengths")
    run.check.same({t["id"] for t in first["tasks"] + second["tasks"]}, set(ids), "all pages")
    run.check.same([first["totalSize"], second["totalSize"]], [3, 3], "totalSize")
    run.check.same(second.get("nextPageToken", ""), "", "token of the last page")


@http_only
async def list_required_fields(run):
    # Raw: neither the SDK nor gRPC can tell an absent field from an empty one.
    reply = await run.raw.call("ListTasks", {"contextId": f"none-{uuid.uuid4()}"})
    page = {k: v for k, v in reply.result.items() if k != "pageSize"}
    run.check.same(page, {"tasks": [], "nextPageToken": "", "totalSize": 0}, "empty page")
    run.check.that("pageSize" in reply.result, "pageSize is missing")


@scenario
async def list_bad_values(run):
    await run.raw.error(run.check, "InvalidParams", "ListTasks", {"pageSize": 0})
    await run.raw.error(run.check, "InvalidParams", "ListTasks", {"pageSize": 101})
    broken = {"pageToken": "not-a-token"}
    await run.raw.error(run.check, "InvalidParams", "ListTasks", broken)


@scenario
async def cancel(run):
    task = await run.a.task("hold", NOW)
    run.check.same(state(await run.b.cancel(task["id"])), "CANCELED", "reply to cancel")
    run.check.same(state(await run.a.get(task["id"])), "CANCELED", "stored state")
    try:
        again = state(await run.b.cancel(task["id"]))
    except Exception as error:  # noqa: BLE001 - any SDK error is a finding
        again = support.sdk_error_kind(error)
    run.check.same(again, "CANCELED", "second cancel", quirk="cancel-twice")


@scenario
async def cancel_paused(run):
    task = await run.a.task("ask")
    run.check.same(state(await run.a.cancel(task["id"])), "CANCELED", "cancel at INPUT_REQUIRED")


@scenario
async def cancel_completed(run):
    task = await run.a.task("hello done")
    await run.check.fails(run.a.cancel(task["id"]), "TaskNotCancelable", "cancel of a completed task")


@scenario
async def subscribe(run):
    task = await run.a.task("hold", NOW)
    watch = Watch(run.a.subscribe(task["id"]))
    await watch.until(lambda e: "task" in e)
    await run.b.cancel(task["id"])
    events = await watch.end()
    run.check.same(kinds(events)[0], "task", "first event")
    run.check.same(state(fold(events)), "CANCELED", "end of the stream")
    check_ids(run, events)


@scenario
async def subscribe_paused(run):
    task = await run.a.task("ask")
    watch = Watch(run.b.subscribe(task["id"]))
    await watch.until(lambda e: "task" in e)
    await run.a.task("green", taskId=task["id"])
    events = await watch.end()
    run.check.same(state(events[0]["task"]), "INPUT_REQUIRED", "snapshot")
    run.check.same(state(fold(events)), "COMPLETED", "end of the stream")


@scenario
async def subscribe_twice(run):
    task = await run.a.task("slow", NOW)
    watches = [Watch(agent.subscribe(task["id"])) for agent in (run.a, run.b)]
    for events in [await w.end() for w in watches]:
        run.check.same(artifact_texts(fold(events)), ["123"], "artifact as folded by a subscriber")


@scenario
async def subscribe_finished(run):
    task = await run.a.task("hello over")
    await run.check.fails(anext(run.a.subscribe(task["id"])), "UnsupportedOperation", "subscribe to a finished task")


@scenario
async def drop_and_resume(run):
    task_id = await read_until_first_artifact(run)
    events = [e async for e in run.b.subscribe(task_id)]
    run.check.same(kinds(events)[0], "task", "first event")
    run.check.same(state(fold(events)), "COMPLETED", "end of the stream")
    run.check.same(artifact_texts(fold(events)), ["123"], "artifact as folded by the client")
    run.check.same(artifact_texts(await run.a.get(task_id)), ["123"], "stored artifact")


@scenario
async def pause_resume(run):
    paused = await run.a.task("ask")
    run.check.same(state(paused), "INPUT_REQUIRED", "pause")
    run.check.same(status_text(paused), "Which color?", "question")
    done = await run.b.task("red", taskId=paused["id"])
    check_answered(run, paused, done, "red")


@scenario
async def pause_resume_stream(run):
    first = [e async for e in run.a.stream("ask")]
    paused = fold(first)
    run.check.same(state(paused), "INPUT_REQUIRED", "the stream ends at the pause")
    run.check.same(status_text(paused), "Which color?", "question")
    second = [e async for e in run.a.stream("red", taskId=paused["id"], contextId=paused["contextId"])]
    run.check.same(kinds(second)[0], "task", "first event of the answer's stream", quirk="follow-up-stream-without-task")
    run.check.same(state(fold(second)), "COMPLETED", "end of the answer's stream")
    check_answered(run, paused, await run.a.get(paused["id"]), "red")


@scenario
async def auth(run):
    paused = await run.a.task("auth")
    run.check.same(state(paused), "AUTH_REQUIRED", "pause")
    run.check.same(status_text(paused), "Sign in please", "status message")
    done = await run.a.task("done", taskId=paused["id"])
    run.check.same([done["id"], state(done)], [paused["id"], "COMPLETED"], "after signing in")
    run.check.same(artifact_texts(done), ["signed in"], "artifacts")


@scenario
async def auth_stream(run):
    watch = Watch(run.a.stream("auth"))
    await watch.until(lambda e: state(e.get("statusUpdate") or e.get("task")) == "AUTH_REQUIRED")
    task_id = watch.events[0]["task"]["id"]
    done = await run.b.task("done", taskId=task_id)
    run.check.same(state(done), "COMPLETED", "after signing in")
    try:
        last = state(fold(await watch.end()))
    except Exception as error:  # noqa: BLE001 - any SDK error is a finding
        last = str(error)
    run.check.same(last, "COMPLETED", "the first stream stays open", quirk="auth-stream-closes")


@scenario
async def fail(run):
    task = await run.a.task("fail")
    run.check.same([state(task), status_text(task)], ["FAILED", "it broke"], "status")


@scenario
async def reject(run):
    task = await run.a.task("reject")
    run.check.same([state(task), status_text(task)], ["REJECTED", "not my job"], "status")


@scenario
async def message(run):
    reply = await run.a.send("message")
    run.check.same(kinds([reply]), ["message"], "reply")
    check_direct_message(run, reply["message"])


@scenario
async def message_stream(run):
    events = [e async for e in run.a.stream("message")]
    run.check.same(kinds(events), ["message"], "events")
    check_direct_message(run, events[0]["message"])


@scenario
async def file(run):
    task = await run.a.task("file")
    raw, url, data = only(task["artifacts"])["parts"]
    run.check.same([raw["raw"], raw["mediaType"], raw["filename"]], ["AAEC/w==", "application/octet-stream", "x.bin"], "raw part")
    run.check.that(url["url"], "url part")
    run.check.same(data["data"], {"n": 1, "f": 1.5, "list": [None, True]}, "data part")
    if run.options.binding == "GRPC":
        return
    # Raw: the SDK reads every number as a double, which it is in protobuf.
    reply = await run.raw.call("GetTask", {"id": task["id"]})
    number = only(reply.result["artifacts"])["parts"][2]["data"]["n"]
    run.check.that(isinstance(number, int), f"n arrived as {number}", quirk="int-becomes-float")


@scenario
async def file_from_client(run):
    parts = [
        {"text": "hello files"},
        {"raw": "AAEC/w==", "mediaType": "application/octet-stream", "filename": "x.bin"},
        {"url": "https://example.com/x.bin", "mediaType": "application/octet-stream"},
        {"data": {"n": 1, "f": 1.5, "list": [None, True]}},
    ]
    task = await run.a.task(parts)
    run.check.same(task["history"][0]["parts"], parts, "parts in the history")


@scenario
async def error_unknown_task(run):
    unknown = str(uuid.uuid4())
    calls = {
        "get": run.a.get(unknown),
        "cancel": run.a.cancel(unknown),
        "subscribe": anext(run.a.subscribe(unknown)),
        "send": run.a.send("hello", taskId=unknown),
        "stream": anext(run.a.stream("hello", taskId=unknown)),
    }
    for name, call in calls.items():
        await run.check.fails(call, "TaskNotFound", name)


@scenario
async def error_unknown_task_raw(run):
    unknown = {"id": str(uuid.uuid4())}
    for operation in ("GetTask", "CancelTask", "SubscribeToTask"):
        await run.raw.error(run.check, "TaskNotFound", operation, unknown)
    # The specification's text says POST, its proto GET: both must reach the operation.
    await run.raw.error(run.check, "TaskNotFound", "SubscribeToTask", unknown, verb="GET")
    message = new_message("hello", taskId=unknown["id"])
    await run.raw.error(run.check, "TaskNotFound", "SendStreamingMessage", {"message": message})


@scenario
async def error_finished_task(run):
    task = await run.a.task("hello once")
    call = run.a.send("hello twice", taskId=task["id"])
    await run.check.fails(call, "UnsupportedOperation", "message to a finished task")


@scenario
async def error_invalid_message(run):
    good = new_message("hello invalid")
    broken = {
        "no-message-id": without(good, "messageId"),
        "empty-parts": {**good, "parts": []},
        "no-parts": without(good, "parts"),
        "no-role": without(good, "role"),
        "empty-part": {**good, "parts": [{}]},
    }
    for quirk, message in broken.items():
        for operation in ("SendMessage", "SendStreamingMessage"):
            await run.raw.error(run.check, "InvalidParams", operation, {"message": message}, quirk=quirk)
    await run.raw.error(run.check, "InvalidParams", "SendMessage", {})


@scenario
async def error_invalid_sdk(run):
    call = run.a.send([])
    await run.check.fails(call, "InvalidParams", "empty parts through the SDK", quirk="empty-parts")


@scenario
async def error_context_mismatch(run):
    task = await run.a.task("ask")
    call = run.a.send("red", taskId=task["id"], contextId=str(uuid.uuid4()))
    await run.check.fails(call, "InvalidParams", "contextId of another conversation")
    run.check.same(state(await run.a.get(task["id"])), "INPUT_REQUIRED", "state afterwards")


@scenario
async def push(run):
    task = await run.a.task("ask")
    if not run.card.capabilities.push_notifications:
        for task_id in (task["id"], str(uuid.uuid4())):
            call = run.a.create_push(task_id, "c-1")
            await run.check.fails(call, "PushNotificationNotSupported", "create push config")
        return
    first, second = [await run.a.create_push(task["id"], name) for name in ("c-1", "c-2")]
    run.check.same([first["taskId"], first["id"], first["url"]], [task["id"], "c-1", common.HOOK], "created")
    run.check.same(await run.b.get_push(task["id"], "c-1"), first, "stored")
    listed = sorted(await run.a.list_push(task["id"]), key=lambda c: c["id"])
    run.check.same(listed, [first, second], "list")
    await run.a.delete_push(task["id"], "c-1")
    run.check.same(await run.a.list_push(task["id"]), [second], "list after the delete")
    await run.check.fails(run.a.get_push(task["id"], "c-1"), "TaskNotFound", "get after the delete")
    unknown = run.a.create_push(str(uuid.uuid4()), "c-1")
    await run.check.fails(unknown, "TaskNotFound", "create for an unknown task")


@scenario
async def error_extended_card(run):
    # Raw: the SDK returns the public card without asking when the card says no.
    await run.raw.error(run.check, "UnsupportedOperation", "GetExtendedAgentCard", {})


@scenario
async def error_version(run):
    quirk = "grpc-version" if run.options.binding == "GRPC" else None
    params = {"message": new_message("hello version")}
    for operation in ("SendMessage", "SendStreamingMessage"):
        await run.raw.error(run.check, "VersionNotSupported", operation, params, quirk=quirk, version="99.0")
    await run.raw.error(run.check, "VersionNotSupported", "GetTask", {"id": "x"}, quirk=quirk, version="99.0")


@nuncio_only
async def resend(run):
    message = new_message("hello resend")
    first, second = await run.a.task(message), await run.b.task(message)
    run.check.same(second["id"], first["id"], "task of the resent message")
    run.check.same(len(second["history"]), 1, "history after the resend")
    other = {**message, "parts": [{"text": "hello else"}]}
    await run.raw.error(run.check, "InvalidParams", "SendMessage", {"message": other})


@nuncio_only
async def no_version_header(run):
    # Method and path exist in 1.0 only, so they prove the version (VER-03).
    reply = await run.raw.call("SendMessage", {"message": new_message("hello")}, version=None)
    run.check.same(state(reply.result["task"]), "COMPLETED", "reply")


@nuncio_only
async def quiet_stream(run):
    # The SDK's default HTTP client gives up after 5 s without a byte: only a
    # heartbeat more frequent than that keeps a stream of a busy agent alive.
    task = await run.a.task("hold", NOW)
    watch = Watch(run.a.subscribe(task["id"]))
    await asyncio.sleep(6)
    await run.b.cancel(task["id"])
    run.check.same(state(fold(await watch.end())), "CANCELED", "end of the stream")


async def three_tasks(run):
    """Two completed tasks and a paused one, in a context of their own."""
    context = f"interop-{uuid.uuid4()}"
    tasks = [await run.a.task(text, contextId=context) for text in ("hello 1", "hello 2", "ask")]
    run.check.same({t["contextId"] for t in tasks}, {context}, "context chosen by the client")
    return context, [t["id"] for t in tasks]


async def read_until_first_artifact(run):
    # A client of its own: closing it is the only sure way to cut the connection.
    async with Agent(run.card, run.options.binding) as dropped:
        async for event in dropped.stream("slow"):
            if "task" in event:
                task_id = event["task"]["id"]
            if "artifactUpdate" in event:
                return task_id
    raise Failed("no artifact event")


def check_ids(run, events):
    task = events[0]["task"]
    for update in [e.get("statusUpdate") or e.get("artifactUpdate") for e in events[1:]]:
        if update:
            ids = [update["taskId"], update["contextId"]]
            run.check.same(ids, [task["id"], task["contextId"]], "ids of an update")


def check_answered(run, paused, done, answer):
    run.check.same([done["id"], state(done)], [paused["id"], "COMPLETED"], "after the answer")
    run.check.same(done["contextId"], paused["contextId"], "context after the answer")
    run.check.same(artifact_texts(done), [f"color: {answer}"], "artifacts")
    run.check.same([text_of(m) for m in done["history"]], ["ask", "Which color?", answer], "history")
    run.check.that(status_text(done) != "Which color?", "the old question is still the status message")


def check_direct_message(run, message):
    run.check.same(text_of(message), "just a message", "text")
    run.check.same(message["role"], "ROLE_AGENT", "role")
    run.check.that(message.get("messageId") and message.get("contextId"), "ids of the message")
    run.check.that(not message.get("taskId"), "a direct message names a task")


def without_closing_task(kinds):
    # A stream may repeat the whole task as its last event (OP-STRM-02).
    return kinds[:-1] if len(kinds) > 1 and kinds[-1] == "task" else kinds


if __name__ == "__main__":
    common.main(SCENARIOS, Run, support, __doc__)

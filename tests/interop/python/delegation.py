"""Agents on an official SDK's server behind nuncio: called with the SDK's client and with `nuncio send`.

Starts two servers of the SDK and a nuncio that has them as agents. Prints one JSON line per scenario;
exit code 1 if any failed. See ../README.md.
"""

import argparse
import asyncio
import contextlib
import json
import logging
import pathlib
import sys
import tempfile

import behind
import common
import support
from common import Watch, artifact_texts, only, status_text, text_of, wait_for
from support import Agent, fold, kinds, state

SCENARIOS = common.Scenarios()
scenario = SCENARIOS.add
NOW = {"returnImmediately": True}

REMOTE = """
[[agents]]
id = "{id}"
kind = "a2a"
url = "{url}"
protocol = "{protocol}"
binding = "{binding}"
waiting = "{waiting}"
"""
BOTH = """
[[agents]]
id = "both"
kind = "sequence"
members = ["one", "two"]
"""


class Run:
    """What a scenario works with: clients of the agents behind nuncio, the two servers, checks."""

    def __init__(self, options, nuncio, one, two):
        self.options = options
        self.nuncio, self.servers = nuncio, {"one": one, "two": two}
        self.check = common.Checks(None, support.sdk_error_kind)
        self._open = contextlib.AsyncExitStack()

    async def __aenter__(self):
        for server in self.servers.values():
            server.forget()
        return self

    async def __aexit__(self, *_):
        await self._open.aclose()

    async def agent(self, name):
        card = await support.fetch_card(self.nuncio.agent(name))
        return await self._open.enter_async_context(Agent(card, "JSONRPC"))

    def told(self, server, *what):
        return self.servers[server].told(*what)

    def asked(self, server):
        return [told["text"] for told in self.servers[server].said if told["told"] == "execute"]


@scenario
async def card(run):
    card = support.as_dict(await support.fetch_card(run.nuncio.agent("one")))
    run.check.that(card["name"].startswith("Interop agent ("), f"name {card['name']}")
    urls = [i["url"] for i in card["supportedInterfaces"] if i["protocolBinding"] != "GRPC"]
    run.check.that(all(url.startswith(run.nuncio.url) for url in urls), f"interfaces {urls}")
    run.check.same([s["id"] for s in card["skills"]], ["test"], "skills")


@scenario
async def stream(run):
    agent = await run.agent("one")
    events = [event async for event in agent.stream("chunk")]
    updates = [e["artifactUpdate"] for e in events if "artifactUpdate" in e]
    run.check.same([text_of(u["artifact"]) for u in updates], ["Hello", ", ", "world!"], "pieces")
    run.check.same([u.get("append", False) for u in updates], [False, True, True], "append")
    run.check.same([u.get("lastChunk", False) for u in updates], [False, False, True], "lastChunk")
    run.check.same(state(fold(events)), "COMPLETED", "end of the stream")
    stored = await agent.get(events[0]["task"]["id"])
    run.check.same(artifact_texts(stored), ["Hello, world!"], "stored artifact")


@scenario
async def comes_as_it_is_made(run):
    agent = await run.agent("one")
    watch = Watch(agent.stream("pace"))
    await watch.until(lambda e: text_of(e.get("artifactUpdate", {}).get("artifact", {})) == "2")
    run.check.that("COMPLETED" not in map(state_of, watch.events), "the end came with the second piece")
    run.check.same(artifact_texts(fold(await watch.end())), ["123456"], "artifact")


@scenario
async def every_way_of_waiting(run):
    for name in ("one", "sent", "polled"):
        agent = await run.agent(name)
        task = await agent.task("slow")
        run.check.same([state(task), artifact_texts(task)], ["COMPLETED", ["123"]], f"{name}: task")
        asked = await agent.task("ask")
        done = await agent.task("blue", taskId=asked["id"])
        run.check.same([done["id"], state(done), artifact_texts(done)], [asked["id"], "COMPLETED", ["color: blue"]], f"{name}: answer")


@scenario
async def file(run):
    task = await (await run.agent("one")).task("file")
    raw, url, data = only(task["artifacts"])["parts"]
    run.check.same([raw["raw"], raw["mediaType"]], ["AAEC/w==", "application/octet-stream"], "raw part")
    run.check.same(raw.get("filename"), "x.bin", "file name")
    run.check.same(url["url"], "https://example.com/x.bin", "url part")
    run.check.same(data["data"], {"n": 1, "f": 1.5, "list": [None, True]}, "data part")


@scenario
async def question(run):
    agent = await run.agent("one")
    paused = await agent.task("ask")
    run.check.same([state(paused), status_text(paused)], ["INPUT_REQUIRED", "Which color?"], "pause")
    done = await agent.task("red", taskId=paused["id"])
    run.check.same([done["id"], state(done)], [paused["id"], "COMPLETED"], "after the answer")
    run.check.same(artifact_texts(done), ["color: red"], "artifacts")
    asked, answered = await run.told("one", "execute", "ask"), await run.told("one", "execute", "red")
    run.check.same(answered["task"], asked["task"], "remote task of the answer")
    run.check.same(answered["context"], asked["context"], "remote context of the answer")


@scenario
async def question_in_a_stream(run):
    agent = await run.agent("one")
    watch = Watch(agent.stream("auth"))
    await watch.until(lambda e: state_of(e) == "AUTH_REQUIRED")
    paused = fold(watch.events)
    run.check.same(status_text(paused), "Sign in please", "what is asked")
    events = [event async for event in agent.stream("done", taskId=paused["id"])]
    run.check.same([state(fold(events)), artifact_texts(fold(events))], ["COMPLETED", ["signed in"]], "end")
    run.check.same(state(fold(await watch.end())), "COMPLETED", "end of the first stream")


@scenario
async def failure(run):
    agent = await run.agent("one")
    failed, rejected = await agent.task("fail"), await agent.task("reject")
    run.check.same(state(failed), "FAILED", "state")
    run.check.that("it broke" in status_text(failed), f"reason: {status_text(failed)}")
    run.check.same([state(rejected), status_text(rejected)], ["REJECTED", "not my job"], "rejection")


@scenario
async def direct_message(run):
    task = await (await run.agent("one")).task("message")
    run.check.same([state(task), artifact_texts(task)], ["COMPLETED", ["just a message"]], "task made of a message")


@scenario
async def cancel(run):
    agent = await run.agent("one")
    task = await agent.task("hold", NOW)
    held = await run.told("one", "execute", "hold")
    await wait_for(agent, task["id"], lambda t: state(t) == "WORKING")
    run.check.same(state(await agent.cancel(task["id"])), "CANCELED", "reply to cancel")
    canceled = await run.told("one", "cancel")
    run.check.same(canceled["task"], held["task"], "remote task whose cancel handler ran")


@scenario
async def cancel_of_a_question(run):
    agent = await run.agent("one")
    task = await agent.task("ask")
    run.check.same(state(await agent.cancel(task["id"])), "CANCELED", "reply to cancel")


@scenario
async def conversation(run):
    agent = await run.agent("one")
    first = await agent.task("hello first")
    await agent.task("hello second", contextId=first["contextId"])
    await agent.task("hello other")
    a, b, c = [await run.told("one", "execute", f"hello {n}") for n in ("first", "second", "other")]
    run.check.same(b["context"], a["context"], "remote context of a conversation")
    # The proto of 0.3 has no such field.
    lost = run.options.protocol == "0.3" and run.options.binding != "JSONRPC"
    run.check.same(b["references"], [] if lost else [a["task"]], "what the second task refers to")
    run.check.that(b["task"] != a["task"], "a finished task was continued")
    run.check.that(c["context"] != a["context"], "conversations are mixed")


@scenario
async def br_185_restart_amid_a_task(run):
    agent = await run.agent("one")
    task = await agent.task("pace", NOW)
    await wait_for(agent, task["id"], artifact_texts)
    await run.nuncio.crash()
    agent = await run.agent("one")
    run.check.same(state(await agent.get(task["id"])), "WORKING", "state after the restart")
    events = [event async for event in agent.subscribe(task["id"])]
    run.check.same((state(fold(events)), status_text(fold(events))), ("COMPLETED", ""), "end of the stream")
    run.check.same(artifact_texts(await agent.get(task["id"])), ["123456"], "stored artifact")
    run.check.same(run.asked("one"), ["pace"], "what was asked of the agent")


@scenario
async def br_185_cancel_after_a_restart(run):
    agent = await run.agent("one")
    task = await agent.task("linger", NOW)
    held = await run.told("one", "execute", "linger")
    await wait_for(agent, task["id"], artifact_texts)
    await run.nuncio.crash()
    agent = await run.agent("one")
    run.check.same(state(await agent.cancel(task["id"])), "CANCELED", "reply to cancel")
    run.check.same((await run.told("one", "cancel"))["task"], held["task"], "remote task that was canceled")


@scenario
async def br_185_answer_after_a_restart(run):
    agent = await run.agent("one")
    task = await agent.task("ask")
    asked = await run.told("one", "execute", "ask")
    await run.nuncio.crash()
    agent = await run.agent("one")
    run.check.same(state(await agent.get(task["id"])), "INPUT_REQUIRED", "state after the restart")
    run.check.same(artifact_texts(await agent.task("green", taskId=task["id"])), ["color: green"], "artifacts")
    run.check.same((await run.told("one", "execute", "green"))["task"], asked["task"], "remote task of the answer")


@scenario
async def br_165_two_upstreams_do_not_mix(run):
    agents = {name: await run.agent(name) for name in ("one", "two")}
    tasks = {name: await agent.task("ask") for name, agent in agents.items()}
    held = {name: await agent.task("linger", NOW) for name, agent in agents.items()}
    for name, agent in agents.items():
        await wait_for(agent, held[name]["id"], artifact_texts)
    await run.nuncio.crash()
    agents = {name: await run.agent(name) for name in ("one", "two")}
    for name, other in (("one", "two"), ("two", "one")):
        strange = agents[other].get(tasks[name]["id"])
        await run.check.fails(strange, "TaskNotFound", f"the task of {name} at {other}")
    await run.check.fails(agents["one"].cancel(held["two"]["id"]), "TaskNotFound", "cancel at the wrong agent")
    await run.check.fails(agents["one"].send("x", taskId=tasks["two"]["id"]), "TaskNotFound", "answer at the wrong agent")
    for name, agent in agents.items():
        answered = await agent.task(f"from {name}", taskId=tasks[name]["id"])
        run.check.same(artifact_texts(answered), [f"color: from {name}"], f"answer of {name}")
        run.check.same(state(await agent.cancel(held[name]["id"])), "CANCELED", f"cancel at {name}")
    for name, server in run.servers.items():
        wanted = (await run.told(name, "execute", "linger"))["task"]
        run.check.same((await run.told(name, "cancel"))["task"], wanted, f"canceled at {name}")
        run.check.same(sorted(run.asked(name)), sorted(["ask", f"from {name}", "linger"]), f"asked of {name}")
        run.check.same(len([s for s in server.said if s["told"] == "cancel"]), 1, f"cancels at {name}")


@scenario
async def sequence(run):
    agent = await run.agent("both")
    events = [event async for event in agent.stream("hello flow")]
    run.check.same([state(fold(events)), artifact_texts(fold(events))], ["COMPLETED", ["hello flow"]], "end")
    run.check.same([run.asked("one"), run.asked("two")], [["hello flow"], ["hello flow"]], "members asked")


@scenario
async def sequence_asks(run):
    agent = await run.agent("both")
    paused = await agent.task("ask")
    run.check.same([state(paused), status_text(paused)], ["INPUT_REQUIRED", "Which color?"], "pause of a member")
    await run.nuncio.crash()
    agent = await run.agent("both")
    done = await agent.task("red", taskId=paused["id"])
    run.check.same([state(done), artifact_texts(done)], ["COMPLETED", ["color: red"]], "after the answer")
    run.check.same([run.asked("one"), run.asked("two")], [["ask", "red"], ["color: red"]], "members asked")
    first, second = await run.told("one", "execute", "ask"), await run.told("one", "execute", "red")
    run.check.same(second["task"], first["task"], "remote task of the answer")


@scenario
async def sequence_fails_and_is_canceled(run):
    agent = await run.agent("both")
    failed = await agent.task("fail")
    run.check.that("it broke" in status_text(failed), f"reason: {status_text(failed)}")
    task = await agent.task("hold", NOW)
    held = await run.told("one", "execute", "hold")
    await wait_for(agent, task["id"], lambda t: state(t) == "WORKING")
    run.check.same(state(await agent.cancel(task["id"])), "CANCELED", "reply to cancel")
    run.check.same((await run.told("one", "cancel"))["task"], held["task"], "remote task that was canceled")
    run.check.same(run.asked("two"), [], "asked of the second member")


@scenario
async def nuncio_send(run):
    address = run.nuncio.agent("one")
    code, out, err = await run.nuncio.run("send", "-a", address, "-o", "json", "ask")
    run.check.that("Which color?" in out, f"exit code {code}: {out} {err}")
    task = json.loads(out)
    task_id = task.get("task", task)["id"]
    code, out, err = await run.nuncio.run("send", "-a", address, "--task-id", task_id, "blue")
    run.check.that(code == 0 and "color: blue" in out, f"exit code {code}: {out} {err}")
    code, out, err = await run.nuncio.run("send", "-a", address, "fail")
    run.check.that("State: FAILED" in out and "it broke" in err, f"exit code {code}: {out} {err}")


@scenario
async def upstream_is_away(run):
    # At an address where nobody listens; the others are not disturbed.
    await run.servers["two"].kill()
    task = await (await run.agent("two")).task("hello nobody")
    run.check.same(state(task), "FAILED", "state")
    run.check.that("two" in status_text(task), f"reason: {status_text(task)}")
    run.check.same(state(await (await run.agent("one")).task("hello somebody")), "COMPLETED", "the other agent")


def state_of(event):
    held = event.get("task") or event.get("statusUpdate")
    return state(held) if held else ""


async def run_all(options):
    server = [*options.server, "--port", "0", "--tell"]
    one, two = behind.Program(server), behind.Program(server)
    with tempfile.TemporaryDirectory() as folder:
        async with behind.running(one, two):
            nuncio = behind.Nuncio(options.nuncio, folder, agents(one, two, options))
            async with behind.running(nuncio):
                return await behind.play(SCENARIOS, lambda: Run(options, nuncio, one, two), options.only)


def agents(one, two, options):
    """One of each way of waiting, a second server, and a flow of both."""
    ways = [("one", one, "stream"), ("two", two, "stream"), ("sent", one, "send"), ("polled", one, "poll")]
    used = {"protocol": options.protocol, "binding": options.binding}
    remote = [REMOTE.format(id=name, url=server.url, waiting=waiting, **used) for name, server, waiting in ways]
    return "".join([*remote, BOTH])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nuncio", required=True, type=lambda path: pathlib.Path(path).absolute(), help="the binary")
    parser.add_argument("--protocol", choices=("1.0", "0.3"), required=True)
    parser.add_argument("--binding", choices=common.BINDINGS, required=True)
    parser.add_argument("--only", choices=sorted(SCENARIOS), metavar="NAME")
    parser.add_argument("server", nargs="+", help="the command of the SDK's server")
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    sys.exit(0 if asyncio.run(run_all(options)) else 1)


if __name__ == "__main__":
    main()

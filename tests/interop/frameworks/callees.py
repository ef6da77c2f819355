"""Agents of frameworks behind nuncio: pydantic-ai's through fasta2a, google-adk's through `to_a2a`.

Prints one JSON line per scenario; exit code 1 if any failed. See ../README.md.
"""

import asyncio
import contextlib
import logging
import sys
import tempfile

import support
from behind import Nuncio, Program, play, running
from common import Checks, Scenarios, artifact_texts, status_text, text_of
from shared import HERE, options
from support import Agent, fold, state

SCENARIOS = Scenarios()
scenario = SCENARIOS.add
NOW = {"returnImmediately": True}
DATA = {"adk_type": "function_response"}

# Both take more than their cards say.
AGENTS = """
[[agents]]
id = "pydantic"
kind = "a2a"
url = "{pydantic}"
input_modes = ["text/plain", "application/json"]

[[agents]]
id = "adk"
kind = "a2a"
url = "{adk}"
input_modes = ["text/plain", "application/json"]

[[agents]]
id = "polled"
kind = "a2a"
url = "{pydantic}"
input_modes = ["text/plain", "application/json"]
waiting = "poll"

[[agents]]
id = "sent"
kind = "a2a"
url = "{pydantic}"
input_modes = ["text/plain", "application/json"]
waiting = "send"

[[agents]]
id = "both"
kind = "sequence"
members = ["pydantic", "adk"]

[[agents]]
id = "chief"
kind = "model"
model = "scripted"
members = ["pydantic", "adk"]

[models.scripted]
provider = "fake"
[[models.scripted.rules]]
when = {{ after_tool = "adk" }}
reply = [{{ text = "adk answers: {{result}}" }}]
[[models.scripted.rules]]
otherwise = true
reply = [{{ tool = {{ name = "adk", arguments = {{ message = "{{text}}" }} }} }}]
"""


class Run:
    """What a scenario works with: clients of the agents behind nuncio, checks."""

    def __init__(self, nuncio):
        self.nuncio = nuncio
        self.check = Checks(None, support.sdk_error_kind)
        self._open = contextlib.AsyncExitStack()

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        await self._open.aclose()

    async def agent(self, name):
        card = await support.fetch_card(self.nuncio.agent(name))
        return await self._open.enter_async_context(Agent(card, "JSONRPC"))

    def completed(self, task, text):
        self.check.same([state(task), artifact_texts(task)], ["COMPLETED", [text]], "task")


@scenario
async def cards(run):
    for name, described in (("pydantic", "Pydantic agent"), ("adk", "adk")):
        card = support.as_dict(await support.fetch_card(run.nuncio.agent(name)))
        run.check.same([card["name"], card["description"]], [described, "Says what it has heard."], "card")


@scenario
async def pydantic_streams(run):
    agent = await run.agent("pydantic")
    events = [event async for event in agent.stream("hello")]
    pieces = [text_of(e["artifactUpdate"]["artifact"]) for e in events if "artifactUpdate" in e]
    # The framework ends with the whole text, in place of the pieces.
    run.check.same(pieces, ["You ", "said ", "hello", "You said hello"], "pieces")
    run.completed(fold(events), "You said hello")
    run.completed(await agent.get(events[0]["task"]["id"]), "You said hello")


@scenario
async def pydantic_in_every_way_of_waiting(run):
    for name in ("pydantic", "sent", "polled"):
        run.completed(await (await run.agent(name)).task("hello"), "You said hello")


@scenario
async def pydantic_remembers(run):
    agent = await run.agent("pydantic")
    first = await agent.task("one")
    run.completed(await agent.task("two", contextId=first["contextId"]), "You said one then two")
    run.completed(await agent.task("three"), "You said three")


@scenario
async def pydantic_fails(run):
    task = await (await run.agent("pydantic")).task("fail")
    run.check.same(state(task), "FAILED", "state")
    run.check.that(status_text(task).startswith("agent pydantic "), f"reason: {status_text(task)}")


@scenario
async def adk_answers(run):
    agent = await run.agent("adk")
    run.completed(await agent.task("hello"), "You said hello")
    run.completed(fold([event async for event in agent.stream("hello")]), "You said hello")


@scenario
async def adk_remembers(run):
    agent = await run.agent("adk")
    first = await agent.task("one")
    run.completed(await agent.task("two", contextId=first["contextId"]), "You said one then two")


@scenario
async def adk_fails(run):
    task = await (await run.agent("adk")).task("fail")
    run.check.same(state(task), "FAILED", "state")
    run.check.that("it broke" in status_text(task), f"reason: {status_text(task)}")


@scenario
async def adk_asks(run):
    agent = await run.agent("adk")
    paused = await agent.task("ask")
    run.check.same(state(paused), "INPUT_REQUIRED", "state")
    called = [p["data"] for p in paused["status"]["message"]["parts"] if "data" in p]
    run.check.same(called[-1]["args"], {"reason": "Which color?"}, "what is asked")
    await run.nuncio.crash()
    agent = await run.agent("adk")
    answer = {"id": called[-1]["id"], "name": "ask_for_approval", "response": {"status": "yes"}}
    done = await agent.task([{"data": answer, "metadata": DATA}], taskId=paused["id"])
    run.check.same([done["id"], state(done)], [paused["id"], "COMPLETED"], "after the answer")


@scenario
async def a_sequence_of_both(run):
    run.completed(await (await run.agent("both")).task("hello"), "You said You said hello")


@scenario
async def a_model_calls_one_as_a_tool(run):
    run.completed(await (await run.agent("chief")).task("hello"), "adk answers: You said hello")


async def main(chosen):
    servers = [Program([sys.executable, HERE / f"{name}_server.py"]) for name in ("pydantic", "adk")]
    with tempfile.TemporaryDirectory() as folder:
        async with running(*servers):
            agents = AGENTS.format(pydantic=servers[0].url, adk=servers[1].url)
            nuncio = Nuncio(chosen.nuncio, folder, agents)
            async with running(nuncio):
                return await play(SCENARIOS, lambda: Run(nuncio), chosen.only)


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    sys.exit(0 if asyncio.run(main(options(__doc__, SCENARIOS))) else 1)

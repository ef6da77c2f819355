"""Frameworks that call agents of nuncio: google-adk's `RemoteA2aAgent`, and the client of fasta2a.

Prints one JSON line per scenario; exit code 1 if any failed. See ../README.md.
"""

import asyncio
import logging
import sys
import tempfile
import uuid
import warnings

from behind import Nuncio, play, running
from common import Checks, Scenarios
from fasta2a.client import A2AClient
from google.adk.agents import LlmAgent
from google.adk.agents.remote_a2a_agent import RemoteA2aAgent
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import InMemoryRunner
from google.genai import types
from shared import options

SCENARIOS = Scenarios()
scenario = SCENARIOS.add

AGENTS = """
[[agents]]
id = "helper"
kind = "script"
description = "Helps."
bindings = ["JSONRPC", "HTTP+JSON"] # google-adk takes no card in which an address is not http

[[agents.rules]]
when = { text = "ask" }
steps = [{ pause = { prompt = "Which color?", on_answer = [{ artifact = { text = "color: {text}" } }] } }]

[[agents.rules]]
when = { text = "fail" }
steps = [{ fail = "it broke" }]

[[agents.rules]]
when = { text = "chunk" }
steps = [{ artifact = { chunks = ["Hello", ", ", "world!"] } }]

[[agents.rules]]
otherwise = true
steps = [{ artifact = { text = "{text}!" } }]
"""


class Run:
    """What a scenario works with: the address of the agent, checks."""

    def __init__(self, nuncio):
        self.url = nuncio.agent("helper")
        self.check = Checks(None, lambda error: f"{type(error).__name__}: {error}")

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        pass

    def remote(self):
        return RemoteA2aAgent(name="helper", agent_card=f"{self.url}/.well-known/agent-card.json")


class Conversation:
    """A session of google-adk with an agent."""

    def __init__(self, agent):
        self.runner = InMemoryRunner(agent=agent, app_name="interop")
        self.session = None

    async def events(self, content):
        if self.session is None:
            self.session = await self.runner.session_service.create_session(app_name="interop", user_id="user")
        said = types.Content(role="user", parts=[types.Part(text=content)] if isinstance(content, str) else content)
        run = self.runner.run_async(user_id="user", session_id=self.session.id, new_message=said)
        return [event async for event in run]

    async def ask(self, content):
        """The last words of the answer, or what went wrong."""
        events = await self.events(content)
        return [*(event.error_message for event in events if event.error_message), *words(events)][-1]


def words(events):
    parts = [part for event in events if event.content for part in event.content.parts or []]
    return [part.text for part in parts if part.text and not part.thought]


@scenario
async def adk_calls(run):
    run.check.same(await Conversation(run.remote()).ask("hello"), "hello!", "answer")


@scenario
async def adk_reads_pieces(run):
    said = words(await Conversation(run.remote()).events("chunk"))
    run.check.that("Hello, world!" in ("".join(said), *said), f"pieces: {said}")


@scenario
async def adk_is_told_of_a_failure(run):
    events = await Conversation(run.remote()).events("fail")
    told = [event.error_message for event in events if event.error_message] + words(events)
    run.check.that(any("it broke" in text for text in told), f"told: {told}")


@scenario
async def adk_answers_a_question(run):
    conversation = Conversation(run.remote())
    events = await conversation.events("ask")
    calls = [call for event in events for call in event.get_function_calls()]
    run.check.that(calls and "Which color?" in str(calls[-1].args), f"calls: {calls}")
    answer = types.FunctionResponse(id=calls[-1].id, name=calls[-1].name, response={"result": "red"})
    run.check.same(await conversation.ask([types.Part(function_response=answer)]), "color: red", "after the answer")


@scenario
async def adk_stays_in_a_conversation(run):
    conversation = Conversation(run.remote())
    contexts = set()
    for text in ("one", "two"):
        events = await conversation.events(text)
        run.check.same(words(events)[-1], f"{text}!", "answer")
        contexts |= {e.custom_metadata["a2a:context_id"] for e in events if "a2a:context_id" in (e.custom_metadata or {})}
    run.check.same(len(contexts), 1, "contexts")


class Delegating(BaseLlm):
    """Hands everything over to the helper."""

    async def generate_content_async(self, llm_request, stream=False):
        call = types.Part.from_function_call(name="transfer_to_agent", args={"agent_name": "helper"})
        yield LlmResponse(content=types.Content(role="model", parts=[call]))


@scenario
async def adk_delegates(run):
    chief = LlmAgent(name="chief", model=Delegating(model="scripted"), sub_agents=[run.remote()])
    # The framework tells the helper too what it has done itself.
    answer = await Conversation(chief).ask("hello")
    run.check.that(answer.startswith("hello") and answer.endswith("!"), f"answer: {answer}")


@scenario
async def fasta2a_sends(run):
    client = A2AClient(f"{run.url}")
    reply = await client.send_message(message("hello"))
    task = reply["result"]["task"]
    run.check.same([artifact["parts"] for artifact in task["artifacts"]], [[{"text": "hello!"}]], "artifacts")
    again = await client.get_task(task["id"])
    run.check.same(again["result"]["id"], task["id"], "task")


@scenario
async def fasta2a_streams(run):
    client = A2AClient(f"{run.url}")
    events = [event["result"] async for event in client.stream_message(message("chunk"))]
    pieces = [event["artifact_update"]["artifact"]["parts"][0]["text"] for event in events if "artifact_update" in event]
    run.check.same(pieces, ["Hello", ", ", "world!"], "pieces")


def message(text):
    return {"role": "user", "parts": [{"text": text}], "message_id": str(uuid.uuid4())}


async def main(chosen):
    with tempfile.TemporaryDirectory() as folder:
        nuncio = Nuncio(chosen.nuncio, folder, AGENTS)
        async with running(nuncio):
            return await play(SCENARIOS, lambda: Run(nuncio), chosen.only)


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    sys.exit(0 if asyncio.run(main(options(__doc__, SCENARIOS))) else 1)

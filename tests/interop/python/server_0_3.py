"""The interop test agent on the official Python SDK 0.3's server, all bindings.

Prints `ready http://127.0.0.1:PORT` once it listens. See ../README.md.
"""

import asyncio
import uuid

import serving
from a2a.grpc import a2a_pb2_grpc
from a2a.server.agent_execution import AgentExecutor
from a2a.server.apps import A2ARESTFastAPIApplication, A2AStarletteApplication
from a2a.server.request_handlers import DefaultRequestHandler, GrpcHandler
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCard, Message, Part, Role, TextPart
from a2a.utils import new_task
from starlette.applications import Starlette
from starlette.routing import Mount

MODES = ["text/plain", "application/json", "application/octet-stream"]


class TestAgent(AgentExecutor):
    """Does what the first text of the user's message says."""

    async def execute(self, context, event_queue):
        text = first_text(context.message)
        serving.tell("execute", context, text)
        if text == "message" and not context.current_task:
            await event_queue.enqueue_event(direct_message(context))
            return
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        if context.current_task:
            await self.resume(updater, context.current_task, text)
            return
        await event_queue.enqueue_event(new_task(context.message))
        behaviour = BEHAVIOURS.get(text, echo)
        await behaviour(updater, text)

    async def resume(self, updater, task, text):
        asked = first_text(task.history[0])
        await updater.start_work()
        await add_text(updater, f"color: {text}" if asked == "ask" else "signed in")
        await updater.complete()

    async def cancel(self, context, event_queue):
        # The framework stops `execute` itself, after this returns.
        serving.tell("cancel", context)
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


async def echo(updater, text):
    await updater.start_work()
    await add_text(updater, text)
    await updater.complete()


async def chunk(updater, _):
    await updater.start_work()
    await add_pieces(updater, ["Hello", ", ", "world!"], pause=0)
    await updater.complete()


async def slow(updater, _):
    await updater.start_work()
    await add_pieces(updater, ["1", "2", "3"], pause=0.3)
    await updater.complete()


async def pace(updater, _):
    await updater.start_work()
    await add_pieces(updater, list("123456"), pause=0.5)
    await updater.complete()


async def linger(updater, text):
    await updater.start_work()
    await add_text(updater, "begun")
    await hold(updater, text)


async def hold(updater, text):
    await updater.start_work()
    await asyncio.sleep(30)
    await add_text(updater, text)
    await updater.complete()


async def ask(updater, _):
    await updater.requires_input(say(updater, "Which color?"), final=True)


async def auth(updater, _):
    await updater.requires_auth(say(updater, "Sign in please"), final=True)


async def fail(updater, _):
    await updater.failed(say(updater, "it broke"))


async def reject(updater, _):
    await updater.reject(say(updater, "not my job"))


async def file(updater, _):
    await updater.start_work()
    mime = "application/octet-stream"
    parts = [
        {"kind": "file", "file": {"bytes": "AAEC/w==", "mimeType": mime, "name": "x.bin"}},
        {"kind": "file", "file": {"uri": "https://example.com/x.bin", "mimeType": mime}},
        {"kind": "data", "data": {"n": 1, "f": 1.5, "list": [None, True]}},
    ]
    await updater.add_artifact([Part.model_validate(p) for p in parts])
    await updater.complete()


BEHAVIOURS = {f.__name__: f for f in (chunk, slow, pace, hold, linger, ask, auth, fail, reject, file)}


def first_text(message):
    part = message.parts[0].root if message.parts else None
    return part.text if isinstance(part, TextPart) else ""


def text_part(text):
    return Part(root=TextPart(text=text))


def say(updater, text):
    return updater.new_agent_message([text_part(text)])


def direct_message(context):
    return Message(
        role=Role.agent,
        message_id=str(uuid.uuid4()),
        context_id=context.context_id,
        parts=[text_part("just a message")],
    )


async def add_text(updater, text):
    await updater.add_artifact([text_part(text)])


async def add_pieces(updater, texts, pause):
    artifact_id = str(uuid.uuid4())
    for number, text in enumerate(texts):
        if number:
            await asyncio.sleep(pause)
        await updater.add_artifact(
            [text_part(text)],
            artifact_id=artifact_id,
            append=number > 0,
            last_chunk=number == len(texts) - 1,
        )


def make_card(base, grpc_address):
    urls = {"JSONRPC": f"{base}/rpc", "HTTP+JSON": f"{base}/rest", "GRPC": grpc_address}
    card = {
        "name": "Interop agent (Python SDK 0.3)",
        "description": "Test agent for the nuncio interop suite.",
        "version": "1.0.0",
        "protocolVersion": "0.3.0",
        "url": urls["JSONRPC"],
        "preferredTransport": "JSONRPC",
        "additionalInterfaces": [{"transport": t, "url": url} for t, url in urls.items()],
        "capabilities": {"streaming": True, "pushNotifications": False},
        "supportsAuthenticatedExtendedCard": False,
        "defaultInputModes": MODES,
        "defaultOutputModes": MODES,
        "skills": [{"id": "test", "name": "Test", "description": "Acts by keyword.", "tags": ["test"]}],
    }
    return AgentCard.model_validate(card)


def make_app(base, grpc_address, grpc_server):
    card = make_card(base, grpc_address)
    handler = DefaultRequestHandler(TestAgent(), InMemoryTaskStore())
    a2a_pb2_grpc.add_A2AServiceServicer_to_server(GrpcHandler(card, handler), grpc_server)
    routes = A2AStarletteApplication(card, handler).routes(rpc_url="/rpc")
    rest = A2ARESTFastAPIApplication(card, handler).build()
    return Starlette(routes=[*routes, Mount("/rest", rest)])


if __name__ == "__main__":
    serving.main(make_app, __doc__)

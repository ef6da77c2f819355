"""The interop test agent on the official Python SDK's server, all bindings.

Prints `ready http://127.0.0.1:PORT` once it listens. See ../README.md.
"""

import asyncio
import uuid

import serving
from a2a.helpers import new_task_from_user_message
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler, GrpcHandler
from a2a.server.routes import (
    create_agent_card_routes,
    create_jsonrpc_routes,
    create_rest_routes,
)
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCard, Message, Part, Role, a2a_pb2_grpc
from google.protobuf.json_format import ParseDict
from starlette.applications import Starlette

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
        await event_queue.enqueue_event(new_task_from_user_message(context.message))
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
    await updater.requires_input(say(updater, "Which color?"))


async def auth(updater, _):
    await updater.requires_auth(say(updater, "Sign in please"))


async def fail(updater, _):
    await updater.failed(say(updater, "it broke"))


async def reject(updater, _):
    await updater.reject(say(updater, "not my job"))


async def file(updater, _):
    await updater.start_work()
    data = {"data": {"n": 1, "f": 1.5, "list": [None, True]}, "mediaType": "application/json"}
    parts = [
        Part(raw=bytes([0, 1, 2, 255]), media_type="application/octet-stream", filename="x.bin"),
        Part(url="https://example.com/x.bin", media_type="application/octet-stream"),
        ParseDict(data, Part()),
    ]
    await updater.add_artifact(parts)
    await updater.complete()


BEHAVIOURS = {f.__name__: f for f in (chunk, slow, pace, hold, linger, ask, auth, fail, reject, file)}


def first_text(message):
    return message.parts[0].text if message.parts else ""


def say(updater, text):
    return updater.new_agent_message([Part(text=text)])


def direct_message(context):
    return Message(
        role=Role.ROLE_AGENT,
        message_id=str(uuid.uuid4()),
        context_id=context.context_id,
        parts=[Part(text="just a message")],
    )


async def add_text(updater, text):
    await updater.add_artifact([Part(text=text)])


async def add_pieces(updater, texts, pause):
    artifact_id = str(uuid.uuid4())
    for number, text in enumerate(texts):
        if number:
            await asyncio.sleep(pause)
        await updater.add_artifact(
            [Part(text=text)],
            artifact_id=artifact_id,
            append=number > 0,
            last_chunk=number == len(texts) - 1,
        )


def make_card(base, grpc_address):
    card = {
        "name": "Interop agent (Python SDK)",
        "description": "Test agent for the nuncio interop suite.",
        "version": "1.0.0",
        "supportedInterfaces": [
            {"url": f"{base}/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
            {"url": f"{base}/rest", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"},
            {"url": grpc_address, "protocolBinding": "GRPC", "protocolVersion": "1.0"},
        ],
        "capabilities": {"streaming": True, "pushNotifications": False, "extendedAgentCard": False},
        "defaultInputModes": MODES,
        "defaultOutputModes": MODES,
        "skills": [{"id": "test", "name": "Test", "description": "Acts by keyword.", "tags": ["test"]}],
    }
    return ParseDict(card, AgentCard())


def make_app(base, grpc_address, grpc_server):
    card = make_card(base, grpc_address)
    handler = DefaultRequestHandler(TestAgent(), InMemoryTaskStore(), card)
    a2a_pb2_grpc.add_A2AServiceServicer_to_server(GrpcHandler(handler), grpc_server)
    routes = [
        *create_agent_card_routes(card),
        *create_jsonrpc_routes(handler, "/rpc"),
        *create_rest_routes(handler, path_prefix="/rest"),
    ]
    return Starlette(routes=routes)


if __name__ == "__main__":
    serving.main(make_app, __doc__)

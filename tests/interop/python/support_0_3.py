"""What the scenarios of client_0_3.py stand on: the SDK 0.3 client, and what it has no function for."""

import copy
import json
import uuid
from contextlib import aclosing

import grpc
import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.client.errors import A2AClientHTTPError, A2AClientJSONRPCError
from a2a.grpc import a2a_pb2, a2a_pb2_grpc
from a2a.types import (
    GetTaskPushNotificationConfigParams,
    Message,
    MessageSendConfiguration,
    PushNotificationConfig,
    TaskIdParams,
    TaskPushNotificationConfig,
    TaskQueryParams,
)
from common import CARD_PATH, HOOK, JSON_RPC_CODES, add_artifact


def sdk_error_kind(error):
    """The A2A error that a caller of the SDK can know this as; a bare status if that is all it has."""
    if isinstance(error, A2AClientJSONRPCError):
        return JSON_RPC_CODES.get(error.error.code, str(error.error.code))
    if isinstance(error, A2AClientHTTPError):
        return http_error_kind(error)
    if isinstance(error, grpc.aio.AioRpcError):
        return f"gRPC {error.code().name}"
    return f"{type(error).__name__}: {error}"


def http_error_kind(error):
    response = getattr(error.__cause__, "response", None)
    try:
        code = json.loads(response.text)["code"]
    except (AttributeError, KeyError, ValueError, httpx.ResponseNotRead):
        # Of a stream the SDK reads no body, and of a resubscription not even the status.
        return f"HTTP {error.status_code}"
    return JSON_RPC_CODES.get(code, str(code))


class Agent:
    """One independent SDK client of the agent, with its own connections."""

    def __init__(self, card, binding):
        self.blocking = make_client(card, binding, streaming=False)
        self.streaming = make_client(card, binding, streaming=True)

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        await self.blocking.close()
        await self.streaming.close()

    async def send(self, content, configuration=None, **ids):
        configured = MessageSendConfiguration.model_validate(configuration or {})
        replies = self.blocking.send_message(new_message(content, **ids), configuration=configured)
        reply = [r async for r in replies][0]
        return as_dict(reply[0] if isinstance(reply, tuple) else reply)

    async def stream(self, content, **ids):
        events = self.streaming.send_message(new_message(content, **ids))
        async with aclosing(events):
            async for event in events:
                yield event_dict(event)

    async def subscribe(self, task_id):
        events = self.streaming.resubscribe(TaskIdParams(id=task_id))
        async with aclosing(events):
            async for event in events:
                yield event_dict(event)

    async def get(self, task_id, history_length=None):
        query = TaskQueryParams(id=task_id, history_length=history_length)
        return as_dict(await self.blocking.get_task(query))

    async def cancel(self, task_id):
        return as_dict(await self.blocking.cancel_task(TaskIdParams(id=task_id)))

    async def set_push(self, task_id, config_id):
        config = PushNotificationConfig(id=config_id, url=HOOK, token="t-1")
        params = TaskPushNotificationConfig(task_id=task_id, push_notification_config=config)
        return as_dict(await self.blocking.set_task_callback(params))

    async def get_push(self, task_id, config_id):
        params = GetTaskPushNotificationConfigParams(id=task_id, push_notification_config_id=config_id)
        return as_dict(await self.blocking.get_task_callback(params))


def make_client(card, binding, streaming):
    config = ClientConfig(
        streaming=streaming,
        supported_transports=[binding],
        grpc_channel_factory=grpc.aio.insecure_channel,
    )
    return ClientFactory(config).create(card)


def as_dict(model):
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


def event_dict(event):
    """The event as it came: the SDK gives updates beside the task that it folds them into."""
    if isinstance(event, tuple):
        task, update = event
        return as_dict(update or task)
    return as_dict(event)


def new_message(content, **ids):
    if isinstance(content, Message):
        return content
    parts = [{"kind": "text", "text": content}] if isinstance(content, str) else content
    body = {"kind": "message", "messageId": str(uuid.uuid4()), "role": "user", "parts": parts, **ids}
    return Message.model_validate(body)


class Raw:
    """Requests that the SDK's client has no function for, over HTTP."""

    def __init__(self, url, binding):
        self.binding = binding
        self.url = url.rstrip("/")
        self.http = httpx.AsyncClient(timeout=10)

    async def close(self):
        await self.http.aclose()

    async def call(self, rpc, rest, params=None):
        """Gives the JSON body of the answer: of JSON-RPC with its envelope."""
        if self.binding == "JSONRPC":
            body = {"jsonrpc": "2.0", "id": "raw-1", "method": rpc, "params": params}
            return (await self.http.post(self.url, json=body)).json()
        verb, path = rest
        reply = await self.http.request(verb, self.url + path)
        return reply.json() if reply.content else None

    async def list_push(self, task_id):
        rest = ("GET", f"/v1/tasks/{task_id}/pushNotificationConfigs")
        body = await self.call("tasks/pushNotificationConfig/list", rest, {"id": task_id})
        configs = body["result"] if self.binding == "JSONRPC" else body["configs"]
        return {c["pushNotificationConfig"]["id"] for c in configs}

    async def delete_push(self, task_id, config_id):
        params = {"id": task_id, "pushNotificationConfigId": config_id}
        rest = ("DELETE", f"/v1/tasks/{task_id}/pushNotificationConfigs/{config_id}")
        await self.call("tasks/pushNotificationConfig/delete", rest, params)

    async def extended_card_error(self):
        body = await self.call("agent/getAuthenticatedExtendedCard", ("GET", "/v1/card"))
        error = body["error"] if self.binding == "JSONRPC" else body
        return JSON_RPC_CODES.get(error.get("code"), f"no known error: {body}")


class GrpcRaw:
    """The same through the SDK's stubs."""

    def __init__(self, url):
        self.channel = grpc.aio.insecure_channel(url)
        self.stub = a2a_pb2_grpc.A2AServiceStub(self.channel)

    async def close(self):
        await self.channel.close()

    async def list_push(self, task_id):
        request = a2a_pb2.ListTaskPushNotificationConfigRequest(parent=f"tasks/{task_id}")
        reply = await self.stub.ListTaskPushNotificationConfig(request)
        return {c.push_notification_config.id for c in reply.configs}

    async def delete_push(self, task_id, config_id):
        name = f"tasks/{task_id}/pushNotificationConfigs/{config_id}"
        await self.stub.DeleteTaskPushNotificationConfig(
            a2a_pb2.DeleteTaskPushNotificationConfigRequest(name=name)
        )

    async def extended_card_error(self):
        try:
            card = await self.stub.GetAgentCard(a2a_pb2.GetAgentCardRequest())
        except grpc.aio.AioRpcError as error:
            known = ("FAILED_PRECONDITION", "UNIMPLEMENTED")
            return "UnsupportedOperation" if error.code().name in known else error.code().name
        return f"no error: the card of {card.name}"


def make_raw(card, binding):
    urls = {i.transport: i.url for i in card.additional_interfaces or []}
    url = card.url if card.preferred_transport == binding else urls[binding]
    return GrpcRaw(url) if binding == "GRPC" else Raw(url, binding)


async def fetch_card(card_url):
    base = card_url.removesuffix(CARD_PATH)
    async with httpx.AsyncClient() as http:
        return await A2ACardResolver(http, base).get_agent_card()


def state(task):
    return task["status"]["state"]


def kinds(events):
    return [event["kind"] for event in events]


def fold(events):
    """Applies a stream's events in order, as any client must be able to."""
    task = {}
    for event in events:
        if event["kind"] == "task":
            task = copy.deepcopy(event)
        elif event["kind"] == "status-update":
            task["status"] = event["status"]
        elif event["kind"] == "artifact-update":
            add_artifact(task.setdefault("artifacts", []), event)
    return task

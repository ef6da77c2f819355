"""What the scenarios of client.py stand on: the SDK client, and raw requests of each binding."""

import copy
import uuid
from contextlib import aclosing

import grpc
import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types import (
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTasksRequest,
    SendMessageRequest,
    SubscribeToTaskRequest,
    TaskPushNotificationConfig,
    a2a_pb2_grpc,
)
from a2a.utils.grpc_status import status_from_call
from common import CARD_PATH, HOOK, JSON_RPC_CODES, Failed, add_artifact, camel
from google.protobuf.json_format import MessageToDict, ParseDict
from google.rpc import error_details_pb2

ERROR_INFO = "type.googleapis.com/google.rpc.ErrorInfo"

REST_ROUTES = {
    "SendMessage": ("POST", "/message:send"),
    "SendStreamingMessage": ("POST", "/message:stream"),
    "GetTask": ("GET", "/tasks/{id}"),
    "ListTasks": ("GET", "/tasks"),
    "CancelTask": ("POST", "/tasks/{id}:cancel"),
    "SubscribeToTask": ("POST", "/tasks/{id}:subscribe"),
    "CreateTaskPushNotificationConfig": ("POST", "/tasks/{taskId}/pushNotificationConfigs"),
    "GetExtendedAgentCard": ("GET", "/extendedAgentCard"),
}


def sdk_error_kind(error):
    # Over HTTP+JSON the SDK knows an error only by its ErrorInfo reason, which the
    # specification gives no value for invalid params: a bare 400 is all one may rely on.
    # Over gRPC the same is true of INVALID_ARGUMENT.
    if "HTTP Error 400" in str(error) or "gRPC Error INVALID_ARGUMENT" in str(error):
        return "InvalidParams"
    name = type(error).__name__
    return name.removesuffix("Error") if name.endswith("Error") else f"{name}: {error}"


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
        request = send_request(content, configuration, ids)
        events = [as_dict(e) async for e in self.blocking.send_message(request)]
        return events[0]

    async def task(self, content, configuration=None, **ids):
        return (await self.send(content, configuration, **ids))["task"]

    async def stream(self, content, **ids):
        request = send_request(content, None, ids)
        async with aclosing(self.streaming.send_message(request)) as events:
            async for event in events:
                yield as_dict(event)

    async def subscribe(self, task_id):
        request = SubscribeToTaskRequest(id=task_id)
        async with aclosing(self.streaming.subscribe(request)) as events:
            async for event in events:
                yield as_dict(event)

    async def get(self, task_id, **params):
        request = ParseDict({"id": task_id, **params}, GetTaskRequest())
        return as_dict(await self.blocking.get_task(request))

    async def list(self, **params):
        request = ParseDict(params, ListTasksRequest())
        return as_dict(await self.blocking.list_tasks(request))

    async def cancel(self, task_id):
        return as_dict(await self.blocking.cancel_task(CancelTaskRequest(id=task_id)))

    async def create_push(self, task_id, config_id):
        config = TaskPushNotificationConfig(task_id=task_id, id=config_id, url=HOOK, token="t-1")
        return as_dict(await self.blocking.create_task_push_notification_config(config))

    async def get_push(self, task_id, config_id):
        request = GetTaskPushNotificationConfigRequest(task_id=task_id, id=config_id)
        return as_dict(await self.blocking.get_task_push_notification_config(request))

    async def list_push(self, task_id):
        request = ListTaskPushNotificationConfigsRequest(task_id=task_id)
        page = as_dict(await self.blocking.list_task_push_notification_configs(request))
        return page.get("configs", [])

    async def delete_push(self, task_id, config_id):
        request = DeleteTaskPushNotificationConfigRequest(task_id=task_id, id=config_id)
        await self.blocking.delete_task_push_notification_config(request)


def make_client(card, binding, streaming):
    config = ClientConfig(
        streaming=streaming,
        supported_protocol_bindings=[binding],
        grpc_channel_factory=grpc.aio.insecure_channel,
    )
    return ClientFactory(config).create(card)


def as_dict(message):
    return MessageToDict(message)


def new_message(content, **ids):
    parts = [{"text": content}] if isinstance(content, str) else content
    return {"messageId": str(uuid.uuid4()), "role": "ROLE_USER", "parts": parts, **ids}


def send_request(content, configuration, ids):
    message = content if isinstance(content, dict) else new_message(content, **ids)
    body = {"message": message, "configuration": configuration or {}}
    return ParseDict(body, SendMessageRequest())


class Reply:
    """A raw HTTP answer, with the A2A error kind it carries, if any."""

    def __init__(self, response):
        self.status = response.status_code
        self.type = response.headers.get("content-type", "")
        self.text = response.text
        self.body = response.json() if "json" in self.type else None
        self.error = (self.body or {}).get("error")

    @property
    def result(self):
        if self.error or not self.body:
            raise Failed(f"raw request failed: {self.kind}")
        return self.body["result"] if "jsonrpc" in self.body else self.body

    @property
    def details(self):
        return self.error.get("data" if "jsonrpc" in self.body else "details") or []

    @property
    def reason(self):
        infos = [d for d in self.details if isinstance(d, dict) and d.get("@type") == ERROR_INFO]
        return infos[0]["reason"] if infos else None

    @property
    def kind(self):
        if not self.error:
            return f"no error: {self.status} {self.text[:200]}"
        if "jsonrpc" in self.body:
            return JSON_RPC_CODES.get(self.error["code"], str(self.error["code"]))
        if self.error.get("status") == "INVALID_ARGUMENT":
            return "InvalidParams"
        return camel(self.reason or self.error.get("status", "?"))


class Raw:
    """Requests that the SDK's client cannot be made to send, over HTTP."""

    def __init__(self, url, binding):
        self.binding = binding
        self.url = url
        self.http = httpx.AsyncClient(timeout=10)

    async def close(self):
        await self.http.aclose()

    async def call(self, operation, params, version="1.0", verb=None):
        headers = {"A2A-Version": version} if version else {}
        if self.binding == "JSONRPC":
            body = {"jsonrpc": "2.0", "id": "raw-1", "method": operation, "params": params}
            return Reply(await self.http.post(self.url, json=body, headers=headers))
        return Reply(await self._rest(operation, params, headers, verb))

    async def _rest(self, operation, params, headers, verb):
        route_verb, path = REST_ROUTES[operation]
        rest = {k: v for k, v in params.items() if "{%s}" % k not in path}
        url = self.url.rstrip("/") + path.format(**params)
        if (verb or route_verb) == "GET":
            return await self.http.get(url, params=rest, headers=headers)
        return await self.http.post(url, json=rest, headers=headers)

    async def error(self, checks, kind, operation, params, quirk=None, **options):
        """Expects one A2A error in the binding's plain form: status, body and reason."""
        reply = await self.call(operation, params, **options)
        checks.same(reply.kind, kind, f"raw {operation}", quirk)
        if reply.kind != kind:
            return
        rest_status = 404 if kind == "TaskNotFound" else 400
        checks.same(reply.status, 200 if self.binding == "JSONRPC" else rest_status, "HTTP status")
        if kind != "InvalidParams":
            checks.same(camel(reply.reason or ""), kind, "ErrorInfo reason")


GRPC_REQUESTS = {
    "SendMessage": SendMessageRequest,
    "SendStreamingMessage": SendMessageRequest,
    "GetTask": GetTaskRequest,
    "ListTasks": ListTasksRequest,
    "CancelTask": CancelTaskRequest,
    "SubscribeToTask": SubscribeToTaskRequest,
    "GetExtendedAgentCard": GetExtendedAgentCardRequest,
}


class GrpcReply:
    """An answer of a stub: its message, or the A2A error kind of its status."""

    def __init__(self, message=None, error=None):
        self.message = message
        self.code = error.code().name if error else "OK"
        self.reason = error_reason(error) if error else None

    @property
    def result(self):
        if self.message is None:
            raise Failed(f"raw request failed: {self.kind}")
        return as_dict(self.message)

    @property
    def kind(self):
        if self.message is not None:
            return f"no error: {as_dict(self.message)}"
        if self.code == "INVALID_ARGUMENT":
            return "InvalidParams"
        return camel(self.reason or self.code)


def error_reason(error):
    status = status_from_call(error)
    for detail in status.details if status else []:
        info = error_details_pb2.ErrorInfo()
        if detail.Unpack(info):
            return info.reason
    return None


class GrpcRaw:
    """Requests that the SDK's client cannot be made to send, through the SDK's stubs."""

    def __init__(self, url):
        self.channel = grpc.aio.insecure_channel(url)
        self.stub = a2a_pb2_grpc.A2AServiceStub(self.channel)

    async def close(self):
        await self.channel.close()

    async def call(self, operation, params, version="1.0"):
        request = ParseDict(params, GRPC_REQUESTS[operation]())
        metadata = [("a2a-version", version)] if version else []
        call = getattr(self.stub, operation)(request, metadata=metadata, timeout=10)
        try:
            return GrpcReply(message=await (call.read() if hasattr(call, "read") else call))
        except grpc.aio.AioRpcError as error:
            return GrpcReply(error=error)

    async def error(self, checks, kind, operation, params, quirk=None, verb=None, **options):
        """Expects one A2A error in the binding's plain form: status code and reason."""
        reply = await self.call(operation, params, **options)
        checks.same(reply.kind, kind, f"raw {operation}", quirk)
        if reply.kind != kind or kind == "InvalidParams":
            return
        code = "NOT_FOUND" if kind == "TaskNotFound" else "FAILED_PRECONDITION"
        checks.same(reply.code, code, "status code")


def make_raw(card, binding):
    # A card of nuncio lists the same binding for older versions of the protocol too.
    url = next(
        i.url
        for i in card.supported_interfaces
        if i.protocol_binding == binding and i.protocol_version == "1.0"
    )
    return GrpcRaw(url) if binding == "GRPC" else Raw(url, binding)


async def fetch_card(card_url):
    base = card_url.removesuffix(CARD_PATH)
    async with httpx.AsyncClient(headers={"A2A-Version": "1.0"}) as http:
        return await A2ACardResolver(http, base).get_agent_card()


async def fetch_raw_card(card_url, headers=None):
    url = card_url if card_url.endswith(".json") else card_url.rstrip("/") + CARD_PATH
    async with httpx.AsyncClient() as http:
        return await http.get(url, headers=headers)


def state(task):
    return task["status"]["state"].removeprefix("TASK_STATE_")


def kinds(events):
    return [next(iter(event)) for event in events]


def fold(events):
    """Applies a stream's events in order, as any client must be able to (EV-07)."""
    task = {}
    for event in events:
        if "task" in event:
            task = copy.deepcopy(event["task"])
        elif "statusUpdate" in event:
            task["status"] = event["statusUpdate"]["status"]
        elif "artifactUpdate" in event:
            add_artifact(task.setdefault("artifacts", []), event["artifactUpdate"])
    return task

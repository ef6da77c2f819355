"""What the scenarios of client.py stand on: checks, the SDK client, raw HTTP."""

import asyncio
import copy
import json
import uuid
from contextlib import aclosing
from pathlib import Path

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types import (
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    SendMessageRequest,
    SubscribeToTaskRequest,
    TaskPushNotificationConfig,
)
from google.protobuf.json_format import MessageToDict, ParseDict

QUIRKS = json.loads((Path(__file__).parents[1] / "quirks.json").read_text())
CARD_PATH = "/.well-known/agent-card.json"
ERROR_INFO = "type.googleapis.com/google.rpc.ErrorInfo"

JSON_RPC_CODES = {
    -32001: "TaskNotFound",
    -32002: "TaskNotCancelable",
    -32003: "PushNotificationNotSupported",
    -32004: "UnsupportedOperation",
    -32005: "ContentTypeNotSupported",
    -32009: "VersionNotSupported",
    -32602: "InvalidParams",
}

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


class Failed(Exception):
    """A scenario's check did not hold."""


class Checks:
    """Collects what was tolerated; raises on what was not."""

    def __init__(self, peer):
        self.quirks = QUIRKS.get(peer, {})
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
        try:
            got = f"success {await call}"
        except Exception as error:  # noqa: BLE001 - the SDK's errors have no narrower common base
            got = sdk_error_kind(error)
        self.same(got, kind, what, quirk)


def sdk_error_kind(error):
    # Over HTTP+JSON the SDK knows an error only by its ErrorInfo reason, which the
    # specification gives no value for invalid params: a bare 400 is all one may rely on.
    if "HTTP Error 400" in str(error):
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

    async def create_push(self, task_id):
        config = TaskPushNotificationConfig(task_id=task_id, url="http://127.0.0.1:9/hook")
        return as_dict(await self.blocking.create_task_push_notification_config(config))


def make_client(card, binding, streaming):
    config = ClientConfig(streaming=streaming, supported_protocol_bindings=[binding])
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


def camel(reason):
    return "".join(word.capitalize() for word in reason.split("_"))


class Raw:
    """Requests that the SDK's client cannot be made to send."""

    def __init__(self, card, binding):
        self.binding = binding
        self.url = next(i.url for i in card.supported_interfaces if i.protocol_binding == binding)
        self.http = httpx.AsyncClient(timeout=10)

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


def text_of(holder):
    return "".join(part.get("text", "") for part in holder.get("parts", []))


def status_text(task):
    return text_of(task["status"].get("message", {}))


def artifact_texts(task):
    return [text_of(a) for a in task.get("artifacts", [])]


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


def add_artifact(artifacts, update):
    new = update["artifact"]
    old = next((a for a in artifacts if a["artifactId"] == new["artifactId"]), None)
    if old and update.get("append"):
        old["parts"] = old["parts"] + new["parts"]
    elif old:
        old["parts"] = new["parts"]
    else:
        artifacts.append(dict(new))

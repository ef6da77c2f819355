// What the scenarios of client.mjs stand on: the SDK client, and raw requests of each binding.

import { randomUUID } from "node:crypto";
import * as grpc from "@grpc/grpc-js";
import {
  CancelTaskRequest,
  DeleteTaskPushNotificationConfigRequest,
  GetExtendedAgentCardRequest,
  GetTaskPushNotificationConfigRequest,
  GetTaskRequest,
  ListTaskPushNotificationConfigsRequest,
  ListTaskPushNotificationConfigsResponse,
  ListTasksRequest,
  ListTasksResponse,
  Message,
  SendMessageRequest,
  StreamResponse,
  SubscribeToTaskRequest,
  Task,
  TaskPushNotificationConfig,
} from "@a2a-js/sdk";
import { ClientFactory, ClientFactoryOptions } from "@a2a-js/sdk/client";
import { GrpcTransportFactory } from "@a2a-js/sdk/client/grpc";
import { fromGrpcError } from "@a2a-js/sdk/errors/grpc";
import { A2AService } from "@a2a-js/sdk/server/grpc";
import { HOOK, JSON_RPC_CODES, addArtifact, fullCardUrl } from "./common.mjs";

const ERROR_INFO = "type.googleapis.com/google.rpc.ErrorInfo";

const REST_ROUTES = {
  SendMessage: ["POST", "/message:send"],
  SendStreamingMessage: ["POST", "/message:stream"],
  GetTask: ["GET", "/tasks/{id}"],
  ListTasks: ["GET", "/tasks"],
  CancelTask: ["POST", "/tasks/{id}:cancel"],
  SubscribeToTask: ["POST", "/tasks/{id}:subscribe"],
  CreateTaskPushNotificationConfig: ["POST", "/tasks/{taskId}/pushNotificationConfigs"],
  GetExtendedAgentCard: ["GET", "/extendedAgentCard"],
};

export function sdkErrorKind(error) {
  // As with a bare 400 below; the SDK's error has the one of gRPC as its cause.
  if (error.name === "A2AError" && error.status === grpc.status.INVALID_ARGUMENT) return "InvalidParams";
  const name = error.cause?.name ?? error.name;
  // Over HTTP+JSON the SDK knows an error only by its ErrorInfo reason, which the
  // specification gives no value for invalid params: a bare 400 is all one may rely on.
  if (name === "A2AError" && error.statusCode === 400) return "InvalidParams";
  // The SDK has one class for several JSON-RPC codes.
  if (name === "RequestMalformedError" && (error.envelopeCode ?? -32602) === -32602) return "InvalidParams";
  return name === "Error" ? `Error: ${error.message}` : name.replace(/Error$/, "");
}

// One independent SDK client of the agent. Everything goes in and out as ProtoJSON.
export class Agent {
  constructor(client) {
    this.client = client;
  }

  async send(content, configuration, ids) {
    const reply = await this.client.sendMessage(sendRequest(content, configuration, ids));
    const isMessage = "messageId" in reply;
    return isMessage ? { message: Message.toJSON(reply) } : { task: Task.toJSON(reply) };
  }

  async task(content, configuration, ids) {
    return (await this.send(content, configuration, ids)).task;
  }

  async *stream(content, ids) {
    const events = this.client.sendMessageStream(sendRequest(content, undefined, ids));
    for await (const event of events) yield StreamResponse.toJSON(event);
  }

  async *subscribe(id) {
    const events = this.client.resubscribeTask(SubscribeToTaskRequest.fromJSON({ id }));
    for await (const event of events) yield StreamResponse.toJSON(event);
  }

  async get(id, params) {
    return Task.toJSON(await this.client.getTask(GetTaskRequest.fromJSON({ id, ...params })));
  }

  async list(params) {
    return ListTasksResponse.toJSON(await this.client.listTasks(ListTasksRequest.fromJSON(params)));
  }

  async cancel(id) {
    return Task.toJSON(await this.client.cancelTask(CancelTaskRequest.fromJSON({ id })));
  }

  async createPush(taskId, id) {
    const config = TaskPushNotificationConfig.fromJSON({ taskId, id, url: HOOK, token: "t-1" });
    return TaskPushNotificationConfig.toJSON(await this.client.createTaskPushNotificationConfig(config));
  }

  async getPush(taskId, id) {
    const request = GetTaskPushNotificationConfigRequest.fromJSON({ taskId, id });
    return TaskPushNotificationConfig.toJSON(await this.client.getTaskPushNotificationConfig(request));
  }

  async listPush(taskId) {
    const request = ListTaskPushNotificationConfigsRequest.fromJSON({ taskId });
    const page = await this.client.listTaskPushNotificationConfig(request);
    return ListTaskPushNotificationConfigsResponse.toJSON(page).configs ?? [];
  }

  async deletePush(taskId, id) {
    const request = DeleteTaskPushNotificationConfigRequest.fromJSON({ taskId, id });
    await this.client.deleteTaskPushNotificationConfig(request);
  }
}

export async function newAgent(cardUrl, binding) {
  const options = ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
    transports: [new GrpcTransportFactory()],
    preferredTransports: [binding],
  });
  return new Agent(await new ClientFactory(options).createFromUrl(fullCardUrl(cardUrl), ""));
}

export function newMessage(content, ids) {
  const parts = typeof content === "string" ? [{ text: content }] : content;
  return { messageId: randomUUID(), role: "ROLE_USER", parts, ...ids };
}

function sendRequest(content, configuration, ids) {
  const ready = typeof content === "object" && !Array.isArray(content);
  const message = ready ? content : newMessage(content, ids);
  return SendMessageRequest.fromJSON({ message, configuration });
}

// A raw HTTP answer, with the A2A error kind it carries, if any.
class Reply {
  constructor(response, text) {
    this.status = response.status;
    this.text = text;
    const isJson = (response.headers.get("content-type") ?? "").includes("json");
    this.body = isJson ? JSON.parse(text) : {};
    this.error = this.body.error;
    this.isRpc = "jsonrpc" in this.body;
  }

  get result() {
    if (this.error || this.status >= 300) throw new Error(`raw request failed: ${this.kind}`);
    return this.isRpc ? this.body.result : this.body;
  }

  get reason() {
    const details = (this.isRpc ? this.error.data : this.error.details) ?? [];
    return details.find((detail) => detail["@type"] === ERROR_INFO)?.reason ?? "";
  }

  get kind() {
    if (!this.error) return `no error: ${this.status} ${this.text.slice(0, 200)}`;
    if (this.isRpc) return JSON_RPC_CODES[this.error.code] ?? String(this.error.code);
    if (this.error.status === "INVALID_ARGUMENT") return "InvalidParams";
    return camel(this.reason || this.error.status);
  }
}

function camel(reason) {
  return reason.toLowerCase().replace(/(^|_)([a-z])/g, (_, __, letter) => letter.toUpperCase());
}

// Requests that the SDK's client cannot be made to send, over HTTP.
class Raw {
  constructor(url, binding) {
    this.isRpc = binding === "JSONRPC";
    this.url = url;
  }

  async call(operation, params, { version = "1.0", verb } = {}) {
    const headers = version ? { "A2A-Version": version } : {};
    const response = this.isRpc
      ? await post(this.url, { jsonrpc: "2.0", id: "raw-1", method: operation, params }, headers)
      : await this.#rest(operation, params, headers, verb);
    return new Reply(response, await response.text());
  }

  #rest(operation, params, headers, verb) {
    const [routeVerb, path] = REST_ROUTES[operation];
    const rest = Object.entries(params).filter(([key]) => !path.includes(`{${key}}`));
    const url = this.url.replace(/\/$/, "") + path.replace(/\{(\w+)\}/, (_, key) => params[key]);
    if ((verb ?? routeVerb) === "GET") return fetch(`${url}?${new URLSearchParams(rest)}`, { headers });
    return post(url, Object.fromEntries(rest), headers);
  }

  // Expects one A2A error in the binding's plain form: status, body and reason.
  async error(checks, kind, operation, params, { quirk, ...options } = {}) {
    const reply = await this.call(operation, params, options);
    checks.same(reply.kind, kind, `raw ${operation}`, quirk);
    if (reply.kind !== kind) return;
    const restStatus = kind === "TaskNotFound" ? 404 : 400;
    checks.same(reply.status, this.isRpc ? 200 : restStatus, "HTTP status");
    if (kind !== "InvalidParams") checks.same(camel(reply.reason), kind, "ErrorInfo reason");
  }
}

function post(url, body, headers) {
  const json = { "Content-Type": "application/json", ...headers };
  return fetch(url, { method: "POST", headers: json, body: JSON.stringify(body) });
}

const GRPC_REQUESTS = {
  SendMessage: SendMessageRequest,
  SendStreamingMessage: SendMessageRequest,
  GetTask: GetTaskRequest,
  ListTasks: ListTasksRequest,
  CancelTask: CancelTaskRequest,
  SubscribeToTask: SubscribeToTaskRequest,
  CreateTaskPushNotificationConfig: TaskPushNotificationConfig,
  GetExtendedAgentCard: GetExtendedAgentCardRequest,
};

// Requests that the SDK's client cannot be made to send, through a stub of the SDK's service.
class GrpcRaw {
  #stub;

  constructor(url) {
    const Stub = grpc.makeClientConstructor(A2AService, "A2AService");
    this.#stub = new Stub(url, grpc.credentials.createInsecure());
  }

  async call(operation, params, { version = "1.0" } = {}) {
    const name = operation[0].toLowerCase() + operation.slice(1);
    const request = GRPC_REQUESTS[operation].fromJSON(params);
    const metadata = new grpc.Metadata();
    if (version) metadata.set("a2a-version", version);
    const answer = A2AService[name].responseStream
      ? await firstMessage(this.#stub[name](request, metadata))
      : await new Promise((resolve, reject) => {
          this.#stub[name](request, metadata, (error, reply) => (error ? reject(error) : resolve(reply)));
        });
    return { result: operation === "SendMessage" ? { task: Task.toJSON(answer.payload.value) } : answer };
  }

  // Expects one A2A error in the binding's plain form: status code and reason.
  async error(checks, kind, operation, params, { quirk, ...options } = {}) {
    const call = this.call(operation, params, options);
    const error = await call.then(() => undefined, (error) => error);
    const got = error ? grpcKind(error) : "no error";
    checks.same(got, kind, `raw ${operation}`, quirk);
    if (got !== kind || kind === "InvalidParams") return;
    const code = kind === "TaskNotFound" ? grpc.status.NOT_FOUND : grpc.status.FAILED_PRECONDITION;
    checks.same(error.code, code, "status code");
  }
}

async function firstMessage(stream) {
  for await (const message of stream) {
    stream.cancel();
    return message;
  }
}

function grpcKind(error) {
  return error.code === grpc.status.INVALID_ARGUMENT ? "InvalidParams" : sdkErrorKind(fromGrpcError(error));
}

export function newRaw(card, binding) {
  // A card of nuncio lists the same binding for older versions of the protocol too.
  const fits = (i) => i.protocolBinding === binding && i.protocolVersion === "1.0";
  const { url } = card.supportedInterfaces.find(fits);
  return binding === "GRPC" ? new GrpcRaw(url) : new Raw(url, binding);
}

export function fetchRawCard(cardUrl, headers = {}) {
  return fetch(fullCardUrl(cardUrl), { headers: { "A2A-Version": "1.0", ...headers } });
}

export function state(task) {
  return task.status.state.replace("TASK_STATE_", "");
}

export function kinds(events) {
  return events.map((event) => Object.keys(event)[0]);
}

// Applies a stream's events in order, as any client must be able to (EV-07).
export function fold(events) {
  let task = {};
  for (const { task: whole, statusUpdate, artifactUpdate } of structuredClone(events)) {
    if (whole) task = whole;
    if (statusUpdate) task.status = statusUpdate.status;
    if (artifactUpdate) addArtifact((task.artifacts ??= []), artifactUpdate);
  }
  return task;
}

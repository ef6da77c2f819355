// What the scenarios of client.mjs stand on: checks, the SDK client, raw HTTP.

import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import {
  CancelTaskRequest,
  GetTaskRequest,
  ListTasksRequest,
  ListTasksResponse,
  Message,
  SendMessageRequest,
  StreamResponse,
  SubscribeToTaskRequest,
  Task,
} from "@a2a-js/sdk";
import { ClientFactory, ClientFactoryOptions } from "@a2a-js/sdk/client";

const QUIRKS = JSON.parse(readFileSync(new URL("../quirks.json", import.meta.url)));
const CARD_PATH = "/.well-known/agent-card.json";
const ERROR_INFO = "type.googleapis.com/google.rpc.ErrorInfo";

const JSON_RPC_CODES = {
  [-32001]: "TaskNotFound",
  [-32002]: "TaskNotCancelable",
  [-32003]: "PushNotificationNotSupported",
  [-32004]: "UnsupportedOperation",
  [-32005]: "ContentTypeNotSupported",
  [-32009]: "VersionNotSupported",
  [-32602]: "InvalidParams",
};

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

// Collects what was tolerated; throws on what was not.
export class Checks {
  tolerated = new Set();

  constructor(peer) {
    this.quirks = QUIRKS[peer] ?? {};
  }

  that(ok, what, quirk) {
    if (ok) return;
    if (!this.quirks[quirk]) throw new Error(what);
    this.tolerated.add(`tolerated ${quirk}: ${this.quirks[quirk]}`);
  }

  same(got, wanted, what, quirk) {
    const both = `got ${JSON.stringify(got)}, wanted ${JSON.stringify(wanted)}`;
    this.that(isDeepStrictEqual(got, wanted), `${what}: ${both}`, quirk);
  }

  // Awaits `call` and checks which A2A error the SDK made of the answer.
  async fails(call, kind, what, quirk) {
    const got = await call.then((value) => `success ${JSON.stringify(value)}`, sdkErrorKind);
    this.same(got, kind, what, quirk);
  }
}

export function sdkErrorKind(error) {
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
}

export async function newAgent(cardUrl, binding) {
  const options = ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
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

// Reads a stream in the background, so that a scenario can act while it runs.
export class Watch {
  events = [];
  #done = false;

  constructor(stream) {
    this.reader = this.#read(stream).finally(() => (this.#done = true));
    // `end` reports the failure; without this Node would stop the program first.
    this.reader.catch(() => {});
  }

  async #read(stream) {
    for await (const event of stream) this.events.push(event);
  }

  async until(wanted) {
    while (!this.events.some(wanted)) {
      if (this.#done) throw new Error(`stream ended too early: ${JSON.stringify(this.events)}`);
      await sleep(10);
    }
  }

  async end() {
    await this.reader;
    return this.events;
  }
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

// Requests that the SDK's client cannot be made to send.
export class Raw {
  constructor(card, binding) {
    this.isRpc = binding === "JSONRPC";
    this.url = card.supportedInterfaces.find((i) => i.protocolBinding === binding).url;
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

function fullCardUrl(cardUrl) {
  return cardUrl.endsWith(".json") ? cardUrl : cardUrl.replace(/\/$/, "") + CARD_PATH;
}

export function fetchRawCard(cardUrl, headers = {}) {
  return fetch(fullCardUrl(cardUrl), { headers: { "A2A-Version": "1.0", ...headers } });
}

export async function collect(stream) {
  const items = [];
  for await (const item of stream) items.push(item);
  return items;
}

export async function firstOf(stream) {
  for await (const item of stream) return item;
}

export function withTimeout(promise, ms, what) {
  const stop = new AbortController();
  const late = sleep(ms, undefined, { signal: stop.signal }).then(() => {
    throw new Error(`${what} took longer than ${ms} ms`);
  });
  late.catch(() => {});
  return Promise.race([promise, late]).finally(() => stop.abort());
}

export function state(task) {
  return task.status.state.replace("TASK_STATE_", "");
}

export function textOf(holder) {
  return (holder?.parts ?? []).map((part) => part.text ?? "").join("");
}

export function artifactTexts(task) {
  return (task.artifacts ?? []).map(textOf);
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

function addArtifact(artifacts, { artifact, append }) {
  const old = artifacts.find((a) => a.artifactId === artifact.artifactId);
  if (!old) artifacts.push(artifact);
  else old.parts = append ? [...old.parts, ...artifact.parts] : artifact.parts;
}

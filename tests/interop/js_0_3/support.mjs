// What the scenarios of client.mjs stand on: the SDK 0.3 client, and raw requests over HTTP.

import { randomUUID } from "node:crypto";
import * as grpc from "@grpc/grpc-js";
import { ClientFactory, ClientFactoryOptions } from "@a2a-js/sdk/client";
import { GrpcTransportFactory } from "@a2a-js/sdk/client/grpc";
import { A2AService } from "@a2a-js/sdk/server/grpc";
import { HOOK, JSON_RPC_CODES, addArtifact, fullCardUrl } from "../js/common.mjs";

// The A2A error that a caller of the SDK can know this as.
export function sdkErrorKind(error) {
  const { name, errorResponse, code } = error.cause ?? error;
  if (errorResponse) return JSON_RPC_CODES[errorResponse.error.code] ?? String(errorResponse.error.code);
  // The SDK has a class for A2A's own errors and puts the code of any other into the text.
  const inText = /\(Code: (-\d+)\)/.exec(error.message);
  if (inText) return JSON_RPC_CODES[inText[1]] ?? inText[1];
  if (name === "Error" && code in grpc.status) return `gRPC ${grpc.status[code]}`;
  return name === "Error" ? `Error: ${error.message}` : name.replace(/Error$/, "");
}

// One independent SDK client of the agent.
export class Agent {
  constructor(client) {
    this.client = client;
  }

  send(content, configuration, ids) {
    return this.client.sendMessage({ message: newMessage(content, ids), configuration });
  }

  stream(content, ids) {
    return this.client.sendMessageStream({ message: newMessage(content, ids) });
  }

  subscribe(id) {
    return this.client.resubscribeTask({ id });
  }

  get(id, historyLength) {
    return this.client.getTask({ id, ...(historyLength !== undefined && { historyLength }) });
  }

  cancel(id) {
    return this.client.cancelTask({ id });
  }

  setPush(taskId, id) {
    const pushNotificationConfig = { id, url: HOOK, token: "t-1" };
    return this.client.setTaskPushNotificationConfig({ taskId, pushNotificationConfig });
  }

  getPush(id, pushNotificationConfigId) {
    return this.client.getTaskPushNotificationConfig({ id, pushNotificationConfigId });
  }

  listPush(id) {
    return this.client.listTaskPushNotificationConfig({ id });
  }

  deletePush(id, pushNotificationConfigId) {
    return this.client.deleteTaskPushNotificationConfig({ id, pushNotificationConfigId });
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
  if (content.kind === "message") return content;
  const parts = typeof content === "string" ? [{ kind: "text", text: content }] : content;
  return { kind: "message", messageId: randomUUID(), role: "user", parts, ...ids };
}

// Requests that the SDK's client does not send when the card says no. Gives the kind of the error.
export function newRaw(card, binding) {
  const found = card.additionalInterfaces?.find((i) => i.transport === binding);
  const url = found?.url ?? card.url;
  return binding === "GRPC" ? new GrpcRaw(url) : new HttpRaw(url, binding);
}

class HttpRaw {
  constructor(url, binding) {
    this.url = url.replace(/\/$/, "");
    this.isRpc = binding === "JSONRPC";
  }

  extendedCardError() {
    return this.isRpc ? this.#rpc("agent/getAuthenticatedExtendedCard") : this.#rest("/v1/card");
  }

  setPushError(taskId) {
    const pushNotificationConfig = { id: "c-1", url: HOOK };
    if (this.isRpc) return this.#rpc("tasks/pushNotificationConfig/set", { taskId, pushNotificationConfig });
    const name = `tasks/${taskId}/pushNotificationConfigs/c-1`;
    return this.#rest(`/v1/tasks/${taskId}/pushNotificationConfigs`, { name, pushNotificationConfig });
  }

  async #rpc(method, params) {
    const { error } = await this.#fetch(this.url, { jsonrpc: "2.0", id: 1, method, params });
    return JSON_RPC_CODES[error?.code] ?? `unknown error ${JSON.stringify(error)}`;
  }

  async #rest(path, body) {
    const error = await this.#fetch(this.url + path, body);
    return JSON_RPC_CODES[error.code] ?? `unknown error ${JSON.stringify(error)}`;
  }

  async #fetch(url, body) {
    const json = { "Content-Type": "application/json" };
    const post = { method: "POST", headers: json, body: JSON.stringify(body) };
    return (await fetch(url, body && post)).json();
  }
}

class GrpcRaw {
  #stub;

  constructor(url) {
    const Stub = grpc.makeClientConstructor(A2AService, "A2AService");
    this.#stub = new Stub(url, grpc.credentials.createInsecure());
  }

  extendedCardError() {
    return this.#error("getAgentCard", {});
  }

  setPushError(taskId) {
    const parent = `tasks/${taskId}`;
    const pushNotificationConfig = { id: "c-1", url: HOOK, token: "" };
    const config = { name: `${parent}/pushNotificationConfigs/c-1`, pushNotificationConfig };
    return this.#error("createTaskPushNotificationConfig", { parent, configId: "c-1", config });
  }

  #error(method, request) {
    return new Promise((resolve) => {
      this.#stub[method](request, (error) => resolve(error ? `gRPC ${grpc.status[error.code]}` : "no error"));
    });
  }
}

export function kinds(events) {
  return events.map((event) => event.kind);
}

// Applies a stream's events in order, as any client must be able to.
export function fold(events) {
  let task = {};
  for (const event of structuredClone(events)) {
    if (event.kind === "task") task = event;
    if (event.kind === "status-update") task.status = event.status;
    if (event.kind === "artifact-update") addArtifact((task.artifacts ??= []), event);
  }
  return task;
}

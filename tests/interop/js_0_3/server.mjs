// The interop test agent on the official JavaScript SDK 0.3's server, all bindings.
// Prints `ready http://127.0.0.1:PORT` once it listens. See ../README.md.

import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs, promisify } from "node:util";
import * as grpc from "@grpc/grpc-js";
import express from "express";
import { DefaultRequestHandler, InMemoryTaskStore } from "@a2a-js/sdk/server";
import {
  UserBuilder,
  agentCardHandler,
  jsonRpcHandler,
  restHandler,
} from "@a2a-js/sdk/server/express";
import { A2AService, grpcService } from "@a2a-js/sdk/server/grpc";

const MODES = ["text/plain", "application/json", "application/octet-stream"];
const ENDS = ["completed", "failed", "rejected", "canceled", "input-required", "auth-required"];

// Publishes one task's events.
class Updater {
  constructor(context, bus) {
    this.ids = { taskId: context.taskId, contextId: context.contextId };
    this.context = context;
    this.bus = bus;
    this.stop = new AbortController();
  }

  pause(ms) {
    return sleep(ms, undefined, { signal: this.stop.signal });
  }

  start() {
    const { taskId, contextId } = this.ids;
    const status = { state: "submitted", timestamp: new Date().toISOString() };
    const history = [this.context.userMessage];
    this.bus.publish({ kind: "task", id: taskId, contextId, status, history });
  }

  state(state, text) {
    const message = text && agentMessage(text, this.ids);
    const status = { state, message, timestamp: new Date().toISOString() };
    this.bus.publish({ kind: "status-update", ...this.ids, status, final: ENDS.includes(state) });
    if (ENDS.includes(state)) this.bus.finished();
  }

  artifact(parts, { artifactId = randomUUID(), append = false, lastChunk = false } = {}) {
    this.bus.publish({ kind: "artifact-update", ...this.ids, artifact: { artifactId, parts }, append, lastChunk });
  }

  text(text, options) {
    this.artifact([{ kind: "text", text }], options);
  }

  async pieces(texts, pause) {
    const artifactId = randomUUID();
    for (const [number, text] of texts.entries()) {
      if (number > 0) await this.pause(pause);
      this.text(text, { artifactId, append: number > 0, lastChunk: number === texts.length - 1 });
    }
  }
}

// Does what the first text of the user's message says.
class TestAgent {
  // The SDK names only the task when it cancels; the updater knows the rest.
  #updaters = new Map();

  async execute(context, bus) {
    const text = firstText(context.userMessage);
    const { taskId, contextId, userMessage } = context;
    tell({ told: "execute", text, task: taskId, context: contextId, references: userMessage.referenceTaskIds ?? [] });
    if (text === "message" && !context.task) return replyDirectly(context, bus);
    const updater = new Updater(context, bus);
    this.#updaters.set(context.taskId, updater);
    if (!context.task) updater.start();
    const behaviour = context.task ? resume : (behaviours[text] ?? echo);
    try {
      await behaviour(updater, text);
    } catch (error) {
      if (!updater.stop.signal.aborted) throw error;
    }
  }

  async cancelTask(taskId, bus) {
    const updater = this.#updaters.get(taskId);
    tell({ told: "cancel", text: "", task: taskId, context: updater.ids.contextId, references: [] });
    updater.stop.abort();
    updater.bus = bus;
    updater.state("canceled");
  }
}

function replyDirectly(context, bus) {
  bus.publish(agentMessage("just a message", { contextId: context.contextId }));
  bus.finished();
}

function resume(updater, text) {
  const asked = firstText(updater.context.task.history[0]);
  updater.state("working");
  updater.text(asked === "ask" ? `color: ${text}` : "signed in");
  updater.state("completed");
}

function echo(updater, text) {
  updater.state("working");
  updater.text(text);
  updater.state("completed");
}

async function hold(updater, text) {
  updater.state("working");
  await updater.pause(30_000);
  updater.text(text);
  updater.state("completed");
}

async function linger(updater, text) {
  updater.state("working");
  updater.text("begun");
  await hold(updater, text);
}

async function inPieces(updater, texts, pause) {
  updater.state("working");
  await updater.pieces(texts, pause);
  updater.state("completed");
}

function file(updater) {
  const mimeType = "application/octet-stream";
  updater.state("working");
  updater.artifact([
    { kind: "file", file: { bytes: "AAEC/w==", mimeType, name: "x.bin" } },
    { kind: "file", file: { uri: "https://example.com/x.bin", mimeType } },
    { kind: "data", data: { n: 1, f: 1.5, list: [null, true] } },
  ]);
  updater.state("completed");
}

const behaviours = {
  hold,
  linger,
  file,
  chunk: (updater) => inPieces(updater, ["Hello", ", ", "world!"], 0),
  slow: (updater) => inPieces(updater, ["1", "2", "3"], 300),
  pace: (updater) => inPieces(updater, [..."123456"], 500),
  ask: (updater) => updater.state("input-required", "Which color?"),
  auth: (updater) => updater.state("auth-required", "Sign in please"),
  fail: (updater) => updater.state("failed", "it broke"),
  reject: (updater) => updater.state("rejected", "not my job"),
};

function firstText(message) {
  const part = message.parts[0];
  return part?.kind === "text" ? part.text : "";
}

function agentMessage(text, ids) {
  return { kind: "message", messageId: randomUUID(), role: "agent", parts: [{ kind: "text", text }], ...ids };
}

function makeCard(base, grpcAddress) {
  return {
    name: "Interop agent (JavaScript SDK 0.3)",
    description: "Test agent for the nuncio interop suite.",
    version: "1.0.0",
    protocolVersion: "0.3.0",
    url: `${base}/rpc`,
    preferredTransport: "JSONRPC",
    additionalInterfaces: [
      { transport: "JSONRPC", url: `${base}/rpc` },
      { transport: "HTTP+JSON", url: `${base}/rest` },
      { transport: "GRPC", url: grpcAddress },
    ],
    capabilities: { streaming: true, pushNotifications: false },
    supportsAuthenticatedExtendedCard: false,
    defaultInputModes: MODES,
    defaultOutputModes: MODES,
    skills: [{ id: "test", name: "Test", description: "Acts by keyword.", tags: ["test"] }],
  };
}

function makeApp(options) {
  const app = express();
  app.use("/.well-known/agent-card.json", agentCardHandler({ agentCardProvider: options.requestHandler }));
  app.use("/rpc", jsonRpcHandler(options));
  app.use("/rest", restHandler(options));
  return app;
}

// Says on stdout what the agent is asked, if that is wanted.
function tell(what) {
  if (values.tell) console.log(JSON.stringify(what));
}

async function listen(server, port) {
  await new Promise((resolve) => server.listen(port, "127.0.0.1", resolve));
  return `http://127.0.0.1:${server.address().port}`;
}

async function bind(server) {
  const insecure = grpc.ServerCredentials.createInsecure();
  const port = await promisify(server.bindAsync.bind(server))("127.0.0.1:0", insecure);
  return `127.0.0.1:${port}`;
}

const { values } = parseArgs({
  options: { port: { type: "string", default: "0" }, tell: { type: "boolean" } },
});
const [httpServer, grpcServer] = [createServer(), new grpc.Server()];
const base = await listen(httpServer, Number(values.port));
const card = makeCard(base, await bind(grpcServer));
const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), new TestAgent());
const options = { requestHandler, userBuilder: UserBuilder.noAuthentication };
grpcServer.addService(A2AService, grpcService(options));
httpServer.on("request", makeApp(options));
console.log(`ready ${base}`);

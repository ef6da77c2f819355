// The interop test agent on the official JavaScript SDK's server, all bindings.
// Prints `ready http://127.0.0.1:PORT` once it listens. See ../README.md.

import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs, promisify } from "node:util";
import * as grpc from "@grpc/grpc-js";
import express from "express";
import {
  AgentCard,
  Message,
  Task,
  TaskArtifactUpdateEvent,
  TaskStatusUpdateEvent,
} from "@a2a-js/sdk";
import { AgentEvent, DefaultRequestHandler, InMemoryTaskStore } from "@a2a-js/sdk/server";
import {
  UserBuilder,
  agentCardHandler,
  jsonRpcHandler,
  restHandler,
} from "@a2a-js/sdk/server/express";
import { A2AService, grpcService } from "@a2a-js/sdk/server/grpc";

const MODES = ["text/plain", "application/json", "application/octet-stream"];

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

  // The SDK wants every stream to start with the task, a follow-up's too.
  start() {
    const { taskId, contextId } = this.ids;
    const history = [Message.toJSON(this.context.userMessage)];
    const fresh = { id: taskId, contextId, status: status("SUBMITTED"), history };
    this.bus.publish(AgentEvent.task(this.context.task ?? Task.fromJSON(fresh)));
  }

  state(name, text) {
    const event = { ...this.ids, status: status(name, text && agentMessage(text, this.ids)) };
    this.bus.publish(AgentEvent.statusUpdate(TaskStatusUpdateEvent.fromJSON(event)));
  }

  artifact(parts, { artifactId = randomUUID(), append = false, lastChunk = false } = {}) {
    const event = { ...this.ids, artifact: { artifactId, parts }, append, lastChunk };
    this.bus.publish(AgentEvent.artifactUpdate(TaskArtifactUpdateEvent.fromJSON(event)));
  }

  async pieces(texts, pause) {
    const artifactId = randomUUID();
    for (const [number, text] of texts.entries()) {
      if (number > 0) await this.pause(pause);
      const lastChunk = number === texts.length - 1;
      this.artifact([{ text }], { artifactId, append: number > 0, lastChunk });
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
    updater.start();
    const behaviour = context.task ? resume : (behaviours[text] ?? echo);
    try {
      await behaviour(updater, text);
    } catch (error) {
      if (!updater.stop.signal.aborted) throw error;
    }
  }

  async cancelTask(taskId) {
    const updater = this.#updaters.get(taskId);
    tell({ told: "cancel", text: "", task: taskId, context: updater.ids.contextId, references: [] });
    updater.stop.abort();
    updater.state("CANCELED");
  }
}

function replyDirectly(context, bus) {
  const reply = agentMessage("just a message", { contextId: context.contextId });
  bus.publish(AgentEvent.message(Message.fromJSON(reply)));
}

function resume(updater, text) {
  const asked = firstText(updater.context.task.history[0]);
  updater.state("WORKING");
  updater.artifact([{ text: asked === "ask" ? `color: ${text}` : "signed in" }]);
  updater.state("COMPLETED");
}

function echo(updater, text) {
  updater.state("WORKING");
  updater.artifact([{ text }]);
  updater.state("COMPLETED");
}

async function hold(updater, text) {
  updater.state("WORKING");
  await updater.pause(30_000);
  updater.artifact([{ text }]);
  updater.state("COMPLETED");
}

async function linger(updater, text) {
  updater.state("WORKING");
  updater.artifact([{ text: "begun" }]);
  await hold(updater, text);
}

async function inPieces(updater, texts, pause) {
  updater.state("WORKING");
  await updater.pieces(texts, pause);
  updater.state("COMPLETED");
}

function file(updater) {
  const mediaType = "application/octet-stream";
  updater.state("WORKING");
  updater.artifact([
    { raw: "AAEC/w==", mediaType, filename: "x.bin" },
    { url: "https://example.com/x.bin", mediaType },
    { data: { n: 1, f: 1.5, list: [null, true] }, mediaType: "application/json" },
  ]);
  updater.state("COMPLETED");
}

const behaviours = {
  hold,
  linger,
  file,
  chunk: (updater) => inPieces(updater, ["Hello", ", ", "world!"], 0),
  slow: (updater) => inPieces(updater, ["1", "2", "3"], 300),
  pace: (updater) => inPieces(updater, [..."123456"], 500),
  ask: (updater) => updater.state("INPUT_REQUIRED", "Which color?"),
  auth: (updater) => updater.state("AUTH_REQUIRED", "Sign in please"),
  fail: (updater) => updater.state("FAILED", "it broke"),
  reject: (updater) => updater.state("REJECTED", "not my job"),
};

function firstText(message) {
  const content = message.parts[0]?.content;
  return content?.$case === "text" ? content.value : "";
}

function agentMessage(text, ids) {
  return { messageId: randomUUID(), role: "ROLE_AGENT", parts: [{ text }], ...ids };
}

function status(name, message) {
  return { state: `TASK_STATE_${name}`, message, timestamp: new Date().toISOString() };
}

function makeCard(base, grpcAddress) {
  return AgentCard.fromJSON({
    name: "Interop agent (JavaScript SDK)",
    description: "Test agent for the nuncio interop suite.",
    version: "1.0.0",
    supportedInterfaces: [
      { url: `${base}/rpc`, protocolBinding: "JSONRPC", protocolVersion: "1.0" },
      { url: `${base}/rest`, protocolBinding: "HTTP+JSON", protocolVersion: "1.0" },
      { url: grpcAddress, protocolBinding: "GRPC", protocolVersion: "1.0" },
    ],
    capabilities: { streaming: true, pushNotifications: false, extendedAgentCard: false },
    defaultInputModes: MODES,
    defaultOutputModes: MODES,
    skills: [{ id: "test", name: "Test", description: "Acts by keyword.", tags: ["test"] }],
  });
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

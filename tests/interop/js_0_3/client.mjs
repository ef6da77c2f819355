// Drives an A2A 0.3 agent through the official JavaScript SDK's client of that version.
// Prints one JSON line per scenario; exit code 1 if any failed. See ../README.md.

import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import {
  HOOK,
  Watch,
  artifactTexts,
  collect,
  firstOf,
  main,
  only,
  sorted,
  textOf,
  waitFor,
} from "../js/common.mjs";
import { fold, kinds, newAgent, newMessage, newRaw, sdkErrorKind } from "./support.mjs";

const NOW = { blocking: false };

// What of an error is left where the SDK hands on a bare status.
const STATUSES = {
  TaskNotFound: ["gRPC NOT_FOUND"],
  TaskNotCancelable: [],
  PushNotificationNotSupported: ["gRPC UNIMPLEMENTED", "gRPC FAILED_PRECONDITION"],
  UnsupportedOperation: ["gRPC UNIMPLEMENTED", "gRPC FAILED_PRECONDITION"],
  InvalidParams: ["gRPC INVALID_ARGUMENT"],
};

// Every scenario gets two independent SDK clients `a` and `b`, raw requests and the checks.
const scenarios = {
  async card({ card, check }) {
    const found = [card.preferredTransport, ...card.additionalInterfaces.map((i) => i.transport)];
    for (const one of ["JSONRPC", "HTTP+JSON", "GRPC"]) check.that(found.includes(one), `interfaces: ${found}`);
    check.that(card.protocolVersion.startsWith("0.3"), `version ${card.protocolVersion}`);
    check.that(card.capabilities.streaming, "streaming is not declared");
    check.that(!card.supportsAuthenticatedExtendedCard, "extended card is declared");
  },

  async send({ a, check }) {
    const task = await a.send("hello interop");
    check.same([task.kind, task.status.state], ["task", "completed"], "kind and state");
    check.same(artifactTexts(task), ["hello interop"], "artifacts");
    check.that(task.id && task.contextId, "ids");
    check.same(task.history.map(textOf), ["hello interop"], "history");
  },

  async send_little_history({ a, check }) {
    const { id: taskId } = await a.send("ask");
    const task = await a.send("red", { historyLength: 1 }, { taskId });
    check.same(task.history.length, 1, "history of the reply", "history-of-reply");
  },

  async send_immediately({ a, b, check }) {
    const task = await a.send("slow", NOW);
    check.that(["submitted", "working"].includes(task.status.state), `state ${task.status.state}`);
    const done = await waitFor(b, task.id, (t) => t.status.state === "completed");
    check.same(artifactTexts(done), ["123"], "artifacts");
  },

  async stream({ a, check }) {
    const events = await collect(a.stream("hello stream"));
    check.same(kinds(events), ["task", "status-update", "artifact-update", "status-update"], "order");
    check.same(events[1].status.state, "working", "first status");
    check.same(fold(events).status.state, "completed", "last status");
    check.same(artifactTexts(fold(events)), ["hello stream"], "artifacts");
    const ids = events.slice(1).map((event) => [event.taskId, event.contextId]);
    for (const pair of ids) check.same(pair, [events[0].id, events[0].contextId], "ids of an update");
    checkFinal(check, events);
  },

  async chunk({ a, binding, check }) {
    const events = await collect(a.stream("chunk"));
    const updates = events.filter((event) => event.kind === "artifact-update");
    check.same(updates.map((u) => textOf(u.artifact)), ["Hello", ", ", "world!"], "pieces");
    // The SDK drops `append` when it reads the protobuf form, which HTTP+JSON has too.
    if (binding === "JSONRPC") check.same(updates.map((u) => u.append ?? false), [false, true, true], "append");
    check.same(updates.map((u) => u.lastChunk ?? false), [false, false, true], "lastChunk");
    check.same(new Set(updates.map((u) => u.artifact.artifactId)).size, 1, "artifact ids");
    const task = await a.get(events[0].id);
    check.same(only(task.artifacts).parts.map((part) => part.text), ["Hello", ", ", "world!"], "stored parts");
  },

  async get({ a, check }) {
    const { id: taskId } = await a.send("ask");
    await a.send("blue", undefined, { taskId });
    const everything = await a.get(taskId);
    const newest = await a.get(taskId, 1);
    check.same(everything.history?.length, 3, "history, length unset", "history-unset");
    check.same(newest.history.map(textOf), ["blue"], "history, length 1");
    check.same(artifactTexts(everything), ["color: blue"], "artifacts");
  },

  async get_no_history({ a, check }) {
    // Over gRPC 0 is the same as unset.
    const task = await a.send("hello brief");
    const nothing = await a.get(task.id, 0);
    check.that(!nothing.history?.length, "history, length 0", "history-zero");
  },

  async cancel({ a, b, check }) {
    const task = await a.send("hold", NOW);
    check.same((await b.cancel(task.id)).status.state, "canceled", "reply to cancel");
    check.same((await a.get(task.id)).status.state, "canceled", "stored state");
  },

  async cancel_paused({ a, check }) {
    const task = await a.send("ask");
    check.same((await a.cancel(task.id)).status.state, "canceled", "cancel at input-required");
  },

  async cancel_completed({ a, check, fails }) {
    const task = await a.send("hello done");
    await fails(a.cancel(task.id), "TaskNotCancelable", "cancel of a completed task");
  },

  async resubscribe({ a, b, check }) {
    const task = await a.send("hold", NOW);
    const watch = new Watch(a.subscribe(task.id));
    await sleep(300);
    await b.cancel(task.id);
    const events = await watch.end();
    check.same(fold(events).status.state, "canceled", "end of the stream");
    checkFinal(check, events);
  },

  async drop_and_resume({ a, b, check }) {
    const taskId = await readUntilFirstArtifact(a);
    const events = await collect(b.subscribe(taskId));
    check.same(fold(events).status?.state, "completed", "end of the stream", "resubscribe-after-drop");
    const done = await waitFor(a, taskId, (t) => t.status.state === "completed");
    check.same(artifactTexts(done), ["123"], "stored artifact");
  },

  async pause_resume({ a, b, check }) {
    const paused = await a.send("ask");
    check.same(paused.status.state, "input-required", "pause");
    check.same(textOf(paused.status.message), "Which color?", "question");
    const done = await b.send("red", undefined, { taskId: paused.id });
    checkAnswered(check, paused, done, "red");
  },

  async pause_resume_stream({ a, check }) {
    const first = await collect(a.stream("ask"));
    const paused = fold(first);
    check.same(paused.status.state, "input-required", "the stream ends at the pause");
    check.same(textOf(paused.status.message), "Which color?", "question");
    checkFinal(check, first);
    const second = await collect(a.stream("red", { taskId: paused.id, contextId: paused.contextId }));
    check.same(fold(second).status.state, "completed", "end of the answer's stream");
    checkFinal(check, second);
    checkAnswered(check, paused, await a.get(paused.id, 10), "red");
  },

  async auth({ a, check }) {
    const paused = await a.send("auth");
    check.same(paused.status.state, "auth-required", "pause");
    check.same(textOf(paused.status.message), "Sign in please", "status message");
    const done = await a.send("done", undefined, { taskId: paused.id });
    check.same([done.id, done.status.state], [paused.id, "completed"], "after signing in");
    check.same(artifactTexts(done), ["signed in"], "artifacts");
  },

  async fail({ a, check }) {
    const { status } = await a.send("fail");
    check.same([status.state, textOf(status.message)], ["failed", "it broke"], "status");
  },

  async reject({ a, check }) {
    const { status } = await a.send("reject");
    check.same([status.state, textOf(status.message)], ["rejected", "not my job"], "status");
  },

  async message({ a, check }) {
    checkDirectMessage(check, await a.send("message"));
  },

  async message_stream({ a, check }) {
    checkDirectMessage(check, only(await collect(a.stream("message"))));
  },

  async file({ a, binding, check }) {
    const task = await a.send("file").catch((error) => {
      check.that(binding !== "GRPC", error.message, "null-over-grpc");
    });
    if (!task) return;
    const [bytes, uri, data] = only(task.artifacts).parts;
    const mimeType = "application/octet-stream";
    const wanted = named({ bytes: "AAEC/w==", mimeType }, "x.bin", binding);
    check.same(sorted(bytes.file), sorted(wanted), "file with bytes");
    check.same([uri.file.uri, uri.file.mimeType], ["https://example.com/x.bin", mimeType], "file with uri");
    check.same(data.data, { n: 1, f: 1.5, list: [null, true] }, "data part");
  },

  async file_from_client({ a, binding, check }) {
    const mimeType = "application/octet-stream";
    // Over gRPC the SDK cannot write a null.
    const list = binding === "GRPC" ? [true] : [null, true];
    const parts = [
      { kind: "text", text: "hello files" },
      { kind: "file", file: named({ bytes: "AAEC/w==", mimeType }, "x.bin", binding) },
      { kind: "file", file: named({ uri: "https://example.com/x.bin", mimeType }, "y.bin", binding) },
      { kind: "data", data: { n: 1, f: 1.5, list } },
    ];
    const task = await a.send(parts);
    check.same(task.history[0].parts.map(plain), parts.map(plain), "parts in the history");
  },

  async error_unknown_task({ a, fails }) {
    const taskId = randomUUID();
    const calls = {
      get: () => a.get(taskId),
      cancel: () => a.cancel(taskId),
      send: () => a.send("hello", undefined, { taskId }),
      stream: () => firstOf(a.stream("hello", { taskId })),
      resubscribe: () => firstOf(a.subscribe(taskId)),
    };
    for (const [name, call] of Object.entries(calls)) {
      await fails(call(), "TaskNotFound", name, `unknown-task-${name}`);
    }
  },

  async error_finished_task({ a, fails }) {
    const task = await a.send("hello once");
    const call = a.send("hello twice", undefined, { taskId: task.id });
    await fails(call, "UnsupportedOperation", "message to a finished task", "finished-task");
  },

  async error_no_parts({ a, fails }) {
    await fails(a.send([]), "InvalidParams", "message without parts", "empty-parts");
  },

  async error_context_mismatch({ a, check, fails }) {
    const { id: taskId } = await a.send("ask");
    const call = a.send("red", undefined, { taskId, contextId: randomUUID() });
    await fails(call, "InvalidParams", "contextId of another conversation", "context-mismatch");
    const { status } = await a.get(taskId);
    check.same(status.state, "input-required", "state afterwards", "context-mismatch");
  },

  async push({ a, b, raw, card, check, fails }) {
    const { id: taskId } = await a.send("ask");
    if (!card.capabilities.pushNotifications) {
      // Raw: the SDK refuses by itself when the card says no.
      const got = await raw.setPushError(taskId);
      const wanted = ["PushNotificationNotSupported", ...STATUSES.PushNotificationNotSupported];
      check.that(wanted.includes(got), `set push config: got ${got}`, "push-off");
      return;
    }
    const [first, second] = [await a.setPush(taskId, "c-1"), await a.setPush(taskId, "c-2")];
    const { id, url } = first.pushNotificationConfig;
    check.same([first.taskId, id, url], [taskId, "c-1", HOOK], "created");
    check.same(await b.getPush(taskId, "c-1"), first, "stored");
    const listed = await a.listPush(taskId);
    const byId = (x, y) => x.pushNotificationConfig.id.localeCompare(y.pushNotificationConfig.id);
    check.same(listed.toSorted(byId), [first, second], "list");
    await a.deletePush(taskId, "c-1");
    check.same(await a.listPush(taskId), [second], "list after the delete");
    await fails(a.getPush(taskId, "c-1"), "TaskNotFound", "get after the delete");
    await fails(a.setPush(randomUUID(), "c-1"), "TaskNotFound", "set for an unknown task");
  },

  async extended_card({ a, raw, card, check }) {
    // The SDK returns the public card without asking when the card says no.
    check.same(await a.client.getAgentCard(), card, "card");
    const got = await raw.extendedCardError();
    const wanted = ["UnsupportedOperation", "ExtendedCardNotConfigured", ...STATUSES.UnsupportedOperation];
    check.that(wanted.includes(got), `got ${got}`, "extended-card-off");
  },
};

// Promises that go beyond the specification; only with --nuncio.
const nuncioScenarios = {
  async cancel_twice({ a, check }) {
    const task = await a.send("ask");
    for (const _ of [1, 2]) check.same((await a.cancel(task.id)).status.state, "canceled", "reply to cancel");
  },

  async resubscribe_paused({ a, b, check }) {
    const task = await a.send("ask");
    const watch = new Watch(b.subscribe(task.id));
    await watch.until((event) => event.kind === "task");
    await a.send("green", undefined, { taskId: task.id });
    const events = await watch.end();
    check.same(events[0].status.state, "input-required", "snapshot");
    check.same(fold(events).status.state, "completed", "end of the stream");
    checkFinal(check, events);
  },

  async resubscribe_finished({ a, check }) {
    const task = await a.send("hello over");
    const events = await collect(a.subscribe(task.id));
    check.same(kinds(events), ["task"], "events");
    check.same(artifactTexts(events[0]), ["hello over"], "artifacts");
  },

  async auth_stream({ a, b, check }) {
    const watch = new Watch(a.stream("auth"));
    await watch.until((event) => event.status?.state === "auth-required");
    const done = await b.send("done", undefined, { taskId: watch.events[0].id });
    check.same(done.status.state, "completed", "after signing in");
    const events = await watch.end();
    check.same(fold(events).status.state, "completed", "the first stream stays open");
    checkFinal(check, events);
  },

  async resend({ a, b, check }) {
    const message = newMessage("hello resend");
    const [first, second] = [await a.send(message), await b.send(message)];
    check.same(second.id, first.id, "task of the resent message");
    check.same(second.history.length, 1, "history after the resend");
  },
};

async function readUntilFirstArtifact(agent) {
  // Leaving the loop closes the SDK's generators and with them the connection.
  for await (const event of agent.stream("slow")) {
    if (event.kind === "artifact-update") return event.taskId;
  }
  throw new Error("no artifact event");
}

// Clients of 0.3 wait for `final`, on the last event of a stream and only there.
function checkFinal(check, events) {
  const got = events.map((event) => event.final ?? false);
  check.same(got, [...Array(events.length - 1).fill(false), true], `final of ${kinds(events)}`, "final");
}

function checkAnswered(check, paused, done, answer) {
  check.same([done.id, done.status.state], [paused.id, "completed"], "after the answer");
  check.same(done.contextId, paused.contextId, "context after the answer");
  check.same(artifactTexts(done), [`color: ${answer}`], "artifacts");
  check.same(done.history.map(textOf), ["ask", "Which color?", answer], "history", "history-of-answer");
}

function checkDirectMessage(check, message) {
  check.same([message.kind, textOf(message)], ["message", "just a message"], "kind and text");
  check.same(message.role, "agent", "role");
  check.that(message.messageId && message.contextId, "ids of the message");
  check.that(!message.taskId, "a direct message names a task");
}

// The SDK knows no name of a file in the protobuf form, which HTTP+JSON has too.
function named(file, name, binding) {
  return binding === "JSONRPC" ? { ...file, name } : file;
}

// Without what is unset, and in one order of keys.
function plain(value) {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  const set = Object.entries(value).filter(([, inner]) => inner !== undefined);
  return sorted(Object.fromEntries(set.map(([key, inner]) => [key, plain(inner)])));
}

async function newRun({ "card-url": cardUrl, binding }, check) {
  const [a, b] = [await newAgent(cardUrl, binding), await newAgent(cardUrl, binding)];
  const card = await a.client.getAgentCard();
  const fails = async (call, kind, what, quirk) => {
    const got = await check.kindOf(call);
    const statuses = binding === "GRPC" ? STATUSES[kind] : [];
    check.that(got === kind || statuses.includes(got), `${what}: got ${got}, wanted ${kind}`, quirk);
  };
  return { a, b, card, binding, check, fails, raw: newRaw(card, binding) };
}

await main({ scenarios, nuncioScenarios, httpOnly: ["get_no_history"] }, newRun, sdkErrorKind);

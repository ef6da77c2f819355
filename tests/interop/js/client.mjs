// Drives an A2A 1.0 agent through the official JavaScript SDK's client.
// Prints one JSON line per scenario; exit code 1 if any failed. See ../README.md.

import { randomUUID } from "node:crypto";
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
} from "./common.mjs";
import {
  fetchRawCard,
  fold,
  kinds,
  newAgent,
  newMessage,
  newRaw,
  sdkErrorKind,
  state,
} from "./support.mjs";

const NOW = { returnImmediately: true };

// Every scenario gets two independent SDK clients `a` and `b`, raw requests and the checks.
const scenarios = {
  async card({ card, check }) {
    const fields = ["name", "description", "version", "skills", "defaultInputModes", "defaultOutputModes"];
    for (const field of fields) check.that(card[field]?.length, `card field ${field} is missing`);
    const found = card.supportedInterfaces.map((i) => `${i.protocolBinding} ${i.protocolVersion}`);
    const wanted = ["JSONRPC 1.0", "HTTP+JSON 1.0", "GRPC 1.0"];
    for (const one of wanted) check.that(found.includes(one), `interfaces: ${found}`);
    check.that(card.capabilities.streaming, "streaming is not declared");
    check.that(!card.capabilities.extendedAgentCard, "extended card is declared");
  },

  async card_http({ cardUrl, check }) {
    const first = await fetchRawCard(cardUrl);
    check.that(first.headers.get("content-type").startsWith("application/json"), "card content type");
    const etag = first.headers.get("etag");
    check.that(etag, "card has no ETag");
    // Node's fetch adds `Cache-Control: no-cache` beside If-None-Match, which asks for the whole
    // card again; only a header of our own keeps it away.
    const again = await fetchRawCard(cardUrl, { "If-None-Match": etag, "Cache-Control": "max-age=0" });
    check.same(again.status, 304, "card with If-None-Match");
  },

  async send({ a, check }) {
    const task = await a.task("hello interop");
    check.same(state(task), "COMPLETED", "state");
    check.same(artifactTexts(task), ["hello interop"], "artifacts");
    check.that(task.id && task.contextId, "ids");
    check.that(task.status.timestamp?.endsWith("Z"), "status timestamp in UTC");
    check.same(task.history.map(textOf), ["hello interop"], "history");
  },

  async send_no_history({ a, check }) {
    const task = await a.task("hello brief", { historyLength: 0 });
    check.that(!task.history, "historyLength 0 still returned history");
    check.same((await a.get(task.id)).history.length, 1, "stored history");
  },

  async send_immediately({ a, b, check }) {
    const task = await a.task("slow", NOW);
    check.that(["SUBMITTED", "WORKING"].includes(state(task)), `state ${state(task)}`);
    check.same(artifactTexts(await waitFor(b, task.id, isCompleted)), ["123"], "artifacts");
  },

  async stream({ a, check }) {
    const events = await collect(a.stream("hello stream"));
    const wanted = ["task", "statusUpdate", "artifactUpdate", "statusUpdate"];
    check.same(withoutClosingTask(kinds(events)), wanted, "order");
    check.same(state(events[1].statusUpdate), "WORKING", "first status");
    check.same(state(fold(events)), "COMPLETED", "last status");
    check.same(artifactTexts(fold(events)), ["hello stream"], "artifacts");
    checkIds(check, events);
  },

  async chunk({ a, check }) {
    const events = await collect(a.stream("chunk"));
    const updates = events.flatMap((event) => event.artifactUpdate ?? []);
    check.same(updates.map((u) => textOf(u.artifact)), ["Hello", ", ", "world!"], "pieces");
    check.same(updates.map((u) => u.append ?? false), [false, true, true], "append");
    check.same(updates.map((u) => u.lastChunk ?? false), [false, false, true], "lastChunk");
    check.same(new Set(updates.map((u) => u.artifact.artifactId)).size, 1, "artifact ids");
    const task = await a.get(events[0].task.id);
    const parts = only(task.artifacts).parts.map((part) => part.text);
    check.same(parts, ["Hello", ", ", "world!"], "stored parts");
  },

  async get({ a, check }) {
    const { id: taskId } = await a.task("ask");
    await a.task("blue", undefined, { taskId });
    const everything = await a.get(taskId);
    const newest = await a.get(taskId, { historyLength: 1 });
    const nothing = await a.get(taskId, { historyLength: 0 });
    check.same(everything.history.length, 3, "history, length unset");
    check.same(newest.history, everything.history.slice(-1), "history, length 1");
    check.that(!nothing.history, "history, length 0");
    check.same(artifactTexts(everything), ["color: blue"], "artifacts");
  },

  async list_filters({ a, check }) {
    const { contextId, ids } = await threeTasks(a, check);
    const everything = await a.list({ contextId });
    const done = await a.list({ contextId, status: "TASK_STATE_COMPLETED" });
    const asking = await a.list({ contextId, status: "TASK_STATE_INPUT_REQUIRED" });
    const full = await a.list({ contextId, includeArtifacts: true });
    check.same(idsOf(everything), ids.toSorted(), "filter contextId");
    check.same(idsOf(done), ids.slice(0, 2).toSorted(), "filter COMPLETED");
    check.same(idsOf(asking), ids.slice(2), "filter INPUT_REQUIRED");
    check.that(everything.tasks.every((t) => !t.artifacts), "artifacts without being asked for");
    check.same(full.tasks.filter((t) => t.artifacts).length, 2, "tasks with artifacts");
    const times = everything.tasks.map((t) => Date.parse(t.status.timestamp));
    check.same(times, times.toSorted((x, y) => y - x), "newest first");
  },

  async list_paging({ a, check }) {
    const { contextId, ids } = await threeTasks(a, check);
    const first = await a.list({ contextId, pageSize: 2 });
    const second = await a.list({ contextId, pageSize: 2, pageToken: first.nextPageToken });
    check.same([first.tasks.length, second.tasks.length], [2, 1], "page lengths");
    check.same([...idsOf(first), ...idsOf(second)].toSorted(), ids.toSorted(), "all pages");
    check.same([first.totalSize, second.totalSize], [3, 3], "totalSize");
    check.same(second.nextPageToken ?? "", "", "token of the last page");
  },

  async list_required_fields({ raw, check }) {
    // Raw: neither the SDK nor gRPC can tell an absent field from an empty one.
    const { result } = await raw.call("ListTasks", { contextId: `none-${randomUUID()}` });
    const { pageSize, ...page } = result;
    check.same(page, { tasks: [], nextPageToken: "", totalSize: 0 }, "empty page");
    check.that(pageSize !== undefined, "pageSize is missing");
  },

  async list_bad_values({ raw, check }) {
    await raw.error(check, "InvalidParams", "ListTasks", { pageSize: 0 });
    await raw.error(check, "InvalidParams", "ListTasks", { pageSize: 101 });
    const broken = { pageToken: "not-a-token" };
    await raw.error(check, "InvalidParams", "ListTasks", broken);
  },

  async cancel({ a, b, check }) {
    const task = await a.task("hold", NOW);
    check.same(state(await b.cancel(task.id)), "CANCELED", "reply to cancel");
    check.same(state(await a.get(task.id)), "CANCELED", "stored state");
    const again = await b.cancel(task.id).then(state, sdkErrorKind);
    check.same(again, "CANCELED", "second cancel", "cancel-twice");
  },

  async cancel_paused({ a, check }) {
    const task = await a.task("ask");
    check.same(state(await a.cancel(task.id)), "CANCELED", "cancel at INPUT_REQUIRED");
  },

  async cancel_completed({ a, check }) {
    const task = await a.task("hello done");
    await check.fails(a.cancel(task.id), "TaskNotCancelable", "cancel of a completed task");
  },

  async subscribe({ a, b, check }) {
    const task = await a.task("hold", NOW);
    const watch = new Watch(a.subscribe(task.id));
    await watch.until((event) => event.task);
    await b.cancel(task.id);
    const events = await watch.end();
    check.same(kinds(events)[0], "task", "first event");
    check.same(state(fold(events)), "CANCELED", "end of the stream");
    checkIds(check, events);
  },

  async subscribe_paused({ a, b, check }) {
    const task = await a.task("ask");
    const watch = new Watch(b.subscribe(task.id));
    await watch.until((event) => event.task);
    await a.task("green", undefined, { taskId: task.id });
    const events = await watch.end();
    check.same(state(events[0].task), "INPUT_REQUIRED", "snapshot");
    check.same(state(fold(events)), "COMPLETED", "end of the stream");
  },

  async subscribe_twice({ a, b, check }) {
    const task = await a.task("slow", NOW);
    const watches = [a, b].map((agent) => new Watch(agent.subscribe(task.id)));
    for (const watch of watches) {
      const events = await watch.end();
      check.same(artifactTexts(fold(events)), ["123"], "artifact as folded by a subscriber");
    }
  },

  async subscribe_finished({ a, check }) {
    const task = await a.task("hello over");
    const call = firstOf(a.subscribe(task.id));
    await check.fails(call, "UnsupportedOperation", "subscribe to a finished task");
  },

  async drop_and_resume({ a, b, check }) {
    const taskId = await readUntilFirstArtifact(a);
    const events = await collect(b.subscribe(taskId));
    check.same(kinds(events)[0], "task", "first event");
    check.same(state(fold(events)), "COMPLETED", "end of the stream");
    check.same(artifactTexts(fold(events)), ["123"], "artifact as folded by the client");
    check.same(artifactTexts(await a.get(taskId)), ["123"], "stored artifact");
  },

  async pause_resume({ a, b, check }) {
    const paused = await a.task("ask");
    check.same(state(paused), "INPUT_REQUIRED", "pause");
    check.same(textOf(paused.status.message), "Which color?", "question");
    const done = await b.task("red", undefined, { taskId: paused.id });
    checkAnswered(check, paused, done, "red");
  },

  async pause_resume_stream({ a, check }) {
    const paused = fold(await collect(a.stream("ask")));
    check.same(state(paused), "INPUT_REQUIRED", "the stream ends at the pause");
    check.same(textOf(paused.status.message), "Which color?", "question");
    const ids = { taskId: paused.id, contextId: paused.contextId };
    const second = await collect(a.stream("red", ids));
    const first = kinds(second)[0];
    check.same(first, "task", "first event of the answer's stream", "follow-up-stream-without-task");
    check.same(state(fold(second)), "COMPLETED", "end of the answer's stream");
    checkAnswered(check, paused, await a.get(paused.id), "red");
  },

  async auth({ a, check }) {
    const paused = await a.task("auth");
    check.same(state(paused), "AUTH_REQUIRED", "pause");
    check.same(textOf(paused.status.message), "Sign in please", "status message");
    const done = await a.task("done", undefined, { taskId: paused.id });
    check.same([done.id, state(done)], [paused.id, "COMPLETED"], "after signing in");
    check.same(artifactTexts(done), ["signed in"], "artifacts");
  },

  async auth_stream({ a, b, check }) {
    const watch = new Watch(a.stream("auth"));
    await watch.until((event) => state(event.statusUpdate ?? event.task) === "AUTH_REQUIRED");
    const taskId = watch.events[0].task.id;
    const done = await b.task("done", undefined, { taskId });
    check.same(state(done), "COMPLETED", "after signing in");
    const last = await watch.end().then((events) => state(fold(events)), (error) => error.message);
    check.same(last, "COMPLETED", "the first stream stays open", "auth-stream-closes");
  },

  async fail({ a, check }) {
    const task = await a.task("fail");
    check.same([state(task), textOf(task.status.message)], ["FAILED", "it broke"], "status");
  },

  async reject({ a, check }) {
    const task = await a.task("reject");
    check.same([state(task), textOf(task.status.message)], ["REJECTED", "not my job"], "status");
  },

  async message({ a, check }) {
    const reply = await a.send("message");
    check.same(kinds([reply]), ["message"], "reply");
    checkDirectMessage(check, reply.message);
  },

  async message_stream({ a, check }) {
    const events = await collect(a.stream("message"));
    check.same(kinds(events), ["message"], "events");
    checkDirectMessage(check, events[0].message);
  },

  async file({ a, raw, binding, check }) {
    const task = await a.task("file");
    const [bytes, url, data] = only(task.artifacts).parts;
    const wanted = ["AAEC/w==", "application/octet-stream", "x.bin"];
    check.same([bytes.raw, bytes.mediaType, bytes.filename], wanted, "raw part");
    check.that(url.url, "url part");
    check.same(data.data, { n: 1, f: 1.5, list: [null, true] }, "data part");
    if (binding === "GRPC") return;
    // As text: JavaScript does not tell 1 from 1.0, and neither does protobuf.
    const { text } = await raw.call("GetTask", { id: task.id });
    check.that(/"n":\s*1\s*[,}]/.test(text), "n did not stay an integer", "int-becomes-float");
  },

  async file_from_client({ a, check }) {
    const mediaType = "application/octet-stream";
    const parts = [
      { text: "hello files" },
      { raw: "AAEC/w==", mediaType, filename: "x.bin" },
      { url: "https://example.com/x.bin", mediaType },
      { data: { n: 1, f: 1.5, list: [null, true] } },
    ];
    const task = await a.task(parts);
    // Key order differs by sender and means nothing.
    check.same(task.history[0].parts.map(sorted), parts.map(sorted), "parts in the history");
  },

  async error_unknown_task({ a, check }) {
    const taskId = randomUUID();
    const calls = {
      get: () => a.get(taskId),
      cancel: () => a.cancel(taskId),
      subscribe: () => firstOf(a.subscribe(taskId)),
      send: () => a.send("hello", undefined, { taskId }),
      stream: () => firstOf(a.stream("hello", { taskId })),
    };
    for (const [name, call] of Object.entries(calls)) await check.fails(call(), "TaskNotFound", name);
  },

  async error_unknown_task_raw({ raw, check }) {
    const id = randomUUID();
    for (const operation of ["GetTask", "CancelTask", "SubscribeToTask"]) {
      await raw.error(check, "TaskNotFound", operation, { id });
    }
    // The specification's text says POST, its proto GET: both must reach the operation.
    await raw.error(check, "TaskNotFound", "SubscribeToTask", { id }, { verb: "GET" });
    const message = newMessage("hello", { taskId: id });
    await raw.error(check, "TaskNotFound", "SendStreamingMessage", { message });
  },

  async error_finished_task({ a, check }) {
    const task = await a.task("hello once");
    const call = a.send("hello twice", undefined, { taskId: task.id });
    await check.fails(call, "UnsupportedOperation", "message to a finished task");
  },

  async error_invalid_message({ raw, check }) {
    const good = newMessage("hello invalid");
    const broken = {
      "no-message-id": { ...good, messageId: undefined },
      "empty-parts": { ...good, parts: [] },
      "no-parts": { ...good, parts: undefined },
      "no-role": { ...good, role: undefined },
      "empty-part": { ...good, parts: [{}] },
    };
    for (const [quirk, message] of Object.entries(broken)) {
      for (const operation of ["SendMessage", "SendStreamingMessage"]) {
        await raw.error(check, "InvalidParams", operation, { message }, { quirk });
      }
    }
    await raw.error(check, "InvalidParams", "SendMessage", {});
  },

  async error_invalid_sdk({ a, check }) {
    await check.fails(a.send([]), "InvalidParams", "empty parts through the SDK", "empty-parts");
  },

  async error_context_mismatch({ a, check }) {
    const { id: taskId } = await a.task("ask");
    const call = a.send("red", undefined, { taskId, contextId: randomUUID() });
    await check.fails(call, "InvalidParams", "contextId of another conversation");
    check.same(state(await a.get(taskId)), "INPUT_REQUIRED", "state afterwards");
  },

  async push({ a, b, raw, card, check }) {
    const { id: taskId } = await a.task("ask");
    if (!card.capabilities.pushNotifications) {
      // Raw: the SDK refuses by itself when the card says no.
      for (const one of [taskId, randomUUID()]) {
        const params = { taskId: one, url: HOOK };
        await raw.error(check, "PushNotificationNotSupported", "CreateTaskPushNotificationConfig", params);
      }
      return;
    }
    const [first, second] = [await a.createPush(taskId, "c-1"), await a.createPush(taskId, "c-2")];
    check.same([first.taskId, first.id, first.url], [taskId, "c-1", HOOK], "created");
    check.same(await b.getPush(taskId, "c-1"), first, "stored");
    const listed = await a.listPush(taskId);
    check.same(listed.toSorted((x, y) => x.id.localeCompare(y.id)), [first, second], "list");
    await a.deletePush(taskId, "c-1");
    check.same(await a.listPush(taskId), [second], "list after the delete");
    await check.fails(a.getPush(taskId, "c-1"), "TaskNotFound", "get after the delete");
    await check.fails(a.createPush(randomUUID(), "c-1"), "TaskNotFound", "create for an unknown task");
  },

  async error_extended_card({ raw, check }) {
    // Raw: the SDK returns the public card without asking when the card says no.
    await raw.error(check, "UnsupportedOperation", "GetExtendedAgentCard", {});
  },

  async error_version({ raw, binding, check }) {
    // Raw: the SDK overwrites a version header of the caller's.
    const params = { message: newMessage("hello version") };
    const wrong = { version: "99.0", quirk: binding === "GRPC" && "grpc-version" };
    for (const operation of ["SendMessage", "SendStreamingMessage"]) {
      await raw.error(check, "VersionNotSupported", operation, params, wrong);
    }
    await raw.error(check, "VersionNotSupported", "GetTask", { id: "x" }, wrong);
  },
};

// Promises that go beyond the specification; only with --nuncio.
const nuncioScenarios = {
  async resend({ a, b, raw, check }) {
    const message = newMessage("hello resend");
    const [first, second] = [await a.task(message), await b.task(message)];
    check.same(second.id, first.id, "task of the resent message");
    check.same(second.history.length, 1, "history after the resend");
    const other = { ...message, parts: [{ text: "hello else" }] };
    await raw.error(check, "InvalidParams", "SendMessage", { message: other });
  },

  async no_version_header({ raw, check }) {
    // Method and path exist in 1.0 only, so they prove the version (VER-03).
    const params = { message: newMessage("hello") };
    const { result } = await raw.call("SendMessage", params, { version: "" });
    check.same(state(result.task), "COMPLETED", "reply");
  },
};

function isCompleted(task) {
  return state(task) === "COMPLETED";
}

// Two completed tasks and a paused one, in a context of their own.
async function threeTasks(agent, check) {
  const contextId = `interop-${randomUUID()}`;
  const ids = [];
  for (const text of ["hello 1", "hello 2", "ask"]) {
    const task = await agent.task(text, undefined, { contextId });
    check.same(task.contextId, contextId, "context chosen by the client");
    ids.push(task.id);
  }
  return { contextId, ids };
}

async function readUntilFirstArtifact(agent) {
  let taskId;
  // Leaving the loop closes the SDK's generators and with them the connection.
  for await (const event of agent.stream("slow")) {
    taskId ??= event.task.id;
    if (event.artifactUpdate) return taskId;
  }
  throw new Error("no artifact event");
}

function checkIds(check, events) {
  const { id, contextId } = events[0].task;
  for (const event of events.slice(1)) {
    const update = event.statusUpdate ?? event.artifactUpdate;
    if (update) check.same([update.taskId, update.contextId], [id, contextId], "ids of an update");
  }
}

function checkAnswered(check, paused, done, answer) {
  check.same([done.id, state(done)], [paused.id, "COMPLETED"], "after the answer");
  check.same(done.contextId, paused.contextId, "context after the answer");
  check.same(artifactTexts(done), [`color: ${answer}`], "artifacts");
  check.same(done.history.map(textOf), ["ask", "Which color?", answer], "history");
  check.that(textOf(done.status.message) !== "Which color?", "the old question is still the status message");
}

function checkDirectMessage(check, message) {
  check.same(textOf(message), "just a message", "text");
  check.same(message.role, "ROLE_AGENT", "role");
  check.that(message.messageId && message.contextId, "ids of the message");
  check.that(!message.taskId, "a direct message names a task");
}

// A stream may repeat the whole task as its last event (OP-STRM-02).
function withoutClosingTask(kinds) {
  return kinds.length > 1 && kinds.at(-1) === "task" ? kinds.slice(0, -1) : kinds;
}

function idsOf(page) {
  return page.tasks.map((task) => task.id).toSorted();
}

async function newRun({ "card-url": cardUrl, binding }, check) {
  const [a, b] = [await newAgent(cardUrl, binding), await newAgent(cardUrl, binding)];
  const card = await a.client.getAgentCard();
  return { a, b, card, cardUrl, binding, check, raw: newRaw(card, binding) };
}

await main({ scenarios, nuncioScenarios, httpOnly: ["list_required_fields"] }, newRun, sdkErrorKind);

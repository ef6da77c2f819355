"""How the servers of both SDK versions listen: HTTP by uvicorn, gRPC beside it."""

import argparse
import asyncio
import json
import socket

import grpc
import uvicorn


TELLING = False


def tell(word, context, text=""):
    """Says on stdout what the agent is asked, if that is wanted."""
    if not TELLING:
        return
    references = context.message.reference_task_ids or [] if context.message else []
    ids = {"task": context.task_id, "context": context.context_id, "references": list(references)}
    print(json.dumps({"told": word, "text": text, **ids}), flush=True)


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
    parser.add_argument("--tell", action="store_true", help="say on stdout what the agent is asked")
    options = parser.parse_args()
    global TELLING  # noqa: PLW0603 - it is said once, before anything is served
    TELLING = options.tell
    asyncio.run(_serve(make_app, options.port))

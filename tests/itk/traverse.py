"""Runs traversals with the kit's own library; `run` starts it in the folder of the kit.

Arguments: the agent under test, its peers joined by commas, and a text that names must have.
"""

import asyncio
import json
import logging
import pathlib
import sys
from functools import partial
from unittest import mock

sys.path.insert(0, ".")

import test_suite  # noqa: E402
from testlib import execute_itk_test, start_itk_cluster, stop_itk_cluster  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
BINDINGS = ("jsonrpc", "http_json", "grpc")
# Name, and what the kit calls it: behaviour and streaming.
WAYS = {
    "send": ("send_message", False),
    "stream": ("send_message", True),
    "resubscribe": ("resubscribe", True),
    "push": ("push_notification", False),
}
LIMIT_SECONDS = 90


async def execute(name, agents, edges, binding, way):
    """Has the kit execute a traversal, and gives whether all words came back."""
    behavior, streaming = WAYS[way]
    test = execute_itk_test(agents, behavior, edges, name, [binding], streaming)
    try:
        results = await asyncio.wait_for(test, LIMIT_SECONDS)
        return all(result["passed"] for result in results.values())
    except Exception:
        logging.exception("%s failed", name)
        return False


async def there_and_back(agent, peers, binding, name, way):
    """Goes from an agent to each peer and back."""
    edges = [edge for peer in range(1, len(peers) + 1) for edge in (f"0->{peer}", f"{peer}->0")]
    return await execute(name, [agent, *peers], edges, binding, way)


async def one_way(agent, peer, binding, name, way):
    """Goes from a peer to an agent only; by itself the kit makes nothing but round trips."""
    with mock.patch.object(test_suite, "_euler_traversal_with_hierholzer", lambda *_, **__: [[peer, agent]]):
        return await execute(name, [peer, agent], None, binding, way)


def plan(agent, peers):
    """Gives group, binding, the traversal, and what to print if it passes."""
    known = json.loads((HERE / "known.json").read_text()) if agent == "current" else {}
    unreachable = {(peer, binding) for peer, fault in known.items() for binding in fault["bindings"]}
    for peer in peers:
        for binding in BINDINGS:
            if (peer, binding) in unreachable:
                yield peer, binding, partial(one_way, agent, peer, binding), "one way"
            else:
                yield peer, binding, partial(there_and_back, agent, [peer], binding), "ok"
    for binding in BINDINGS:
        reachable = [peer for peer in peers if (peer, binding) not in unreachable]
        if len(reachable) > 1:
            yield f"all {len(reachable)}", binding, partial(there_and_back, agent, reachable, binding), "ok"


async def run(agent, peers, only):
    """Prints the table, and gives whether nothing in it failed."""
    print("| peer | binding |", " | ".join(WAYS), "|")
    print("| --- " * (2 + len(WAYS)) + "|")
    good = True
    for group, binding, traversal, mark in plan(agent, peers):
        cells = []
        for way in WAYS:
            name = f"{group}-{binding}-{way}".replace(" ", "-")
            passed = await traversal(name, way) if only in name else None
            good &= passed is not False
            cells.append({True: mark, False: "FAILED", None: ""}[passed])
        if any(cells):
            print(f"| {group} | {binding} |", " | ".join(cells), "|", flush=True)
    return good


async def main():
    agent, peers, only = sys.argv[1:]
    peers = peers.split(",")
    logging.basicConfig(filename="logs/kit.log", filemode="w", level=logging.INFO, force=True)
    cluster, _, ports = await start_itk_cluster([agent, *peers])
    try:
        good = await run(agent, peers, only)
    finally:
        stop_itk_cluster(cluster, ports)
    print("the kit's and the agents' logs are in", pathlib.Path("logs").resolve())
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))

"""An agent of pydantic-ai behind fasta2a, on a function model: no key, no network.

Prints `ready http://127.0.0.1:PORT` once it listens. See ../README.md.
"""

import uvicorn_serving
from fasta2a.pydantic_ai import agent_to_a2a
from pydantic_ai import Agent
from pydantic_ai.messages import ModelRequest, UserPromptPart
from pydantic_ai.models.function import FunctionModel


def said(messages):
    """What the user has said in this conversation, in order."""
    parts = [p for m in messages if isinstance(m, ModelRequest) for p in m.parts]
    return [p.content for p in parts if isinstance(p, UserPromptPart)]


async def answer(messages, _info):
    heard = said(messages)
    if heard[-1] == "fail":
        raise ValueError("it broke")
    for word in ["You ", "said ", " then ".join(map(str, heard))]:
        yield word


def make_app(base):
    agent = Agent(FunctionModel(stream_function=answer), name="pydantic")
    return agent_to_a2a(agent, name="Pydantic agent", description="Says what it has heard.", url=f"{base}/")


if __name__ == "__main__":
    uvicorn_serving.main(make_app)

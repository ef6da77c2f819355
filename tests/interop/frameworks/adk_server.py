"""An agent of google-adk behind its `to_a2a`, on a scripted model: no key, no network.

Prints `ready http://127.0.0.1:PORT` once it listens. See ../README.md.
"""

import urllib.parse

import uvicorn_serving
from google.adk.a2a.utils.agent_to_a2a import to_a2a
from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.adk.tools import LongRunningFunctionTool
from google.genai import types


def ask_for_approval(reason: str) -> dict:
    """Asks a person for their approval."""
    return {"status": "pending", "reason": reason}


class Scripted(BaseLlm):
    """Answers with what the user has said; calls the tool if told so."""

    async def generate_content_async(self, llm_request, stream=False):
        parts = [part for content in llm_request.contents for part in content.parts]
        heard = [p.text for c in llm_request.contents if c.role == "user" for p in c.parts if p.text]
        if heard[-1] == "fail":
            raise ValueError("it broke")
        if parts[-1].function_response:
            yield reply(types.Part(text="asked for approval"))
        elif heard[-1] == "ask":
            yield reply(types.Part.from_function_call(name="ask_for_approval", args={"reason": "Which color?"}))
        else:
            yield reply(types.Part(text="You said " + " then ".join(heard)))


def reply(part):
    return LlmResponse(content=types.Content(role="model", parts=[part]))


def make_app(base):
    agent = LlmAgent(
        name="adk",
        model=Scripted(model="scripted"),
        description="Says what it has heard.",
        tools=[LongRunningFunctionTool(ask_for_approval)],
    )
    return to_a2a(agent, host="127.0.0.1", port=urllib.parse.urlsplit(base).port)


if __name__ == "__main__":
    uvicorn_serving.main(make_app)

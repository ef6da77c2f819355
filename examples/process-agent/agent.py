"""An agent in Python: turns words around, and asks for some if there are none."""
import json
import sys

for line in sys.stdin:
    told = json.loads(line)
    if told["type"] == "cancel":
        sys.exit()

    def say(type, **rest):
        print(json.dumps({"type": type, "task": told["task"], **rest}), flush=True)

    words = "".join(part.get("text", "") for part in told["message"]["parts"]).split()
    if not words:
        say("ask", text="Which words?")
        continue
    for word in words:
        say("text", delta=word[::-1] + " ")
    say("done", text=f"{len(words)} words turned around")

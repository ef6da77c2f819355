"""Verifies nuncio's webhooks as a receiver would: with the library of Standard Webhooks, and with
the published key.

Starts the binary that is named, registers a webhook with two secrets in force, as while they are
changed, and prints one JSON line per scenario. Ends with 1 if one failed.
"""

import argparse
import base64
import http.server
import json
import pathlib
import subprocess
import sys
import tempfile
import threading
import urllib.request

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from standardwebhooks import Webhook
from standardwebhooks.webhooks import WebhookVerificationError

SECONDS = 30


class Receiver(http.server.BaseHTTPRequestHandler):
    """Takes everything, and keeps it."""

    calls = []
    came = threading.Condition()

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        with self.came:
            self.calls.append((dict(self.headers), body))
            self.came.notify_all()
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


def ended(calls):
    update = json.loads(calls[-1][1]).get("statusUpdate", {}) if calls else {}
    return update.get("status", {}).get("state") == "TASK_STATE_COMPLETED"


def unpadded(text):
    return base64.urlsafe_b64decode(text + "==")


def post(url, body):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=SECONDS) as reply:
        return json.load(reply)


class Nuncio:
    """The binary with two secrets, a key and tokens."""

    def __init__(self, binary, folder):
        self.binary, self.folder = binary, pathlib.Path(folder)

    def make(self, *words):
        subprocess.run([self.binary, "keys", "create", *words], cwd=self.folder, check=True, capture_output=True)

    def __enter__(self):
        for name in ("old", "new", "stranger"):
            self.make("--webhook", f"{name}.txt")
        self.make("--card", "key.pem", "--algorithm", "EdDSA")
        both = self.secret("new") + "\n" + self.secret("old") + "\n"
        (self.folder / "both.txt").write_text(both)
        (self.folder / "nuncio.toml").write_text(
            '[webhooks]\nallow_networks = ["127.0.0.0/8"]\njwt = true\n'
            'signing_secret_file = "both.txt"\nsigning_keys = ["key.pem"]\n'
        )
        command = [self.binary, "serve", "--config", "nuncio.toml", "--listen", "127.0.0.1:0", "--store", "memory:"]
        self.process = subprocess.Popen(
            command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self.url = next(line.split()[1] for line in self.process.stdout if line.startswith("ready "))
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(timeout=SECONDS)

    def secret(self, name):
        return (self.folder / f"{name}.txt").read_text().strip()

    def public_key(self):
        with urllib.request.urlopen(f"{self.url}/.well-known/jwks.json", timeout=SECONDS) as reply:
            (key,) = json.load(reply)["keys"]
        return key, Ed25519PublicKey.from_public_bytes(unpadded(key["x"]))

    def notified(self, receiver):
        """Sends a message and gives the calls that came of it."""
        webhook = {"url": receiver, "authentication": {"scheme": "Bearer"}}
        message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hello"}]}
        post(f"{self.url}/message:send", {
            "message": message, "configuration": {"taskPushNotificationConfig": webhook},
        })
        with Receiver.came:
            assert Receiver.came.wait_for(lambda: ended(Receiver.calls), SECONDS), Receiver.calls
            return list(Receiver.calls)


def library_believes(nuncio, calls):
    for name in ("old", "new"):
        for headers, body in calls:
            assert Webhook(nuncio.secret(name)).verify(body, headers) == json.loads(body)


def library_refuses(nuncio, calls):
    headers, body = calls[0]
    refused(nuncio.secret("stranger"), headers, body)
    refused(nuncio.secret("new"), headers, body.replace(b'"task"', b'"tusk"'))
    for name, altered in (("webhook-id", "other"), ("webhook-timestamp", "1700000000")):
        refused(nuncio.secret("new"), {**headers, name: altered}, body)


def refused(secret, headers, body):
    try:
        Webhook(secret).verify(body, headers)
    except WebhookVerificationError:
        return
    raise AssertionError(f"believed: {headers}")


def published_key_verifies(nuncio, calls):
    _, key = nuncio.public_key()
    for headers, body in calls:
        (signature,) = [s[4:] for s in headers["webhook-signature"].split(" ") if s.startswith("v1a,")]
        content = f'{headers["webhook-id"]}.{headers["webhook-timestamp"]}.'.encode() + body
        key.verify(base64.b64decode(signature), content)
        try:
            key.verify(base64.b64decode(signature), content + b" ")
        except InvalidSignature:
            continue
        raise AssertionError("an altered body is believed")


def token_verifies(nuncio, calls):
    jwk, key = nuncio.public_key()
    for headers, body in calls:
        scheme, token = headers["authorization"].split(" ")
        signed, signature = token.rsplit(".", 1)
        header, claims = (json.loads(unpadded(part)) for part in signed.split("."))
        key.verify(unpadded(signature), signed.encode())
        assert (scheme, header["alg"], header["kid"]) == ("Bearer", "EdDSA", jwk["kid"])
        assert claims["iss"] == nuncio.url
        assert claims["jti"] == headers["webhook-id"]
        assert claims["iat"] == int(headers["webhook-timestamp"]) < claims["exp"]
        assert headers["webhook-id"].startswith(claims["taskId"])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nuncio", required=True, type=pathlib.Path, help="the binary")
    options = parser.parse_args()
    listening = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=listening.serve_forever, daemon=True).start()
    good = True
    with tempfile.TemporaryDirectory() as folder, Nuncio(options.nuncio.resolve(), folder) as nuncio:
        calls = nuncio.notified(f"http://127.0.0.1:{listening.server_port}/")
        calls = [({name.lower(): value for name, value in headers.items()}, body) for headers, body in calls]
        for scenario in (library_believes, library_refuses, published_key_verifies, token_verifies):
            result = {"scenario": scenario.__name__, "ok": True, "detail": f"{len(calls)} calls"}
            try:
                scenario(nuncio, calls)
            except Exception as error:  # noqa: BLE001 - a scenario that fails for any reason has failed
                result.update(ok=False, detail=repr(error))
                good = False
            print(json.dumps(result), flush=True)
    listening.shutdown()
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()

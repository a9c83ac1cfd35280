"""A turn of a chat service over HTTP, with the Python client that is generated from the OpenAPI document.

    make clients
    pip install ./clients/python
    python docs/examples/http_client.py

The service is started here, on a free port and a store in memory; yours runs by itself.
"""

import json
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "clients" / "python"))  # where it is not installed

from ctxsteward_client import Client
from ctxsteward_client.api.sessions import append, build, resolve
from ctxsteward_client.models import AppendInput, BuildInput, Problem

command = [sys.executable, "-c", "from ctxsteward.console.cli import main; main()", "serve", "--port", "0"]
service = subprocess.Popen(
    [*command, "--store", "memory:", "--json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
)
url = json.loads(service.stdout.readline())["url"]
client = Client(base_url=url.rstrip("/"))  # with tokens: AuthenticatedClient(base_url=…, token=…)


def say(session: str, text: str, id: str) -> dict:
    """Append what the user said, and give the arguments of the provider's client."""
    message = {"role": "user", "content": text}
    said = append.sync(
        session, client=client, body=AppendInput.from_dict({"messages": [{"message": message, "id": id}]})
    )
    if isinstance(said, Problem):
        raise RuntimeError(said.detail)
    built = build.sync(
        session, client=client, body=BuildInput.from_dict({"provider": "openai-chat", "envelope": False})
    )
    return built.request.to_dict()


try:
    say("trip-42", "My budget is 90,000 yen.", "m1")
    request = say("trip-42", "Which sights fit into it?", "m2")
    print([message["content"] for message in request["messages"]])
    print(say("trip-42", "Which sights fit into it?", "m2") == request, "when it is sent again")
    print(resolve.sync("trip-42", "1", client=client).message.to_dict())
    print(resolve.sync("nobody", "1", client=client).detail)
finally:
    client.get_httpx_client().close()
    service.terminate()
    print("exit code", service.wait(timeout=60))
    service.stdout.close()

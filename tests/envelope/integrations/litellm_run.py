"""Run by the tests in the environment that has LiteLLM, against a model's server on the loopback; prints JSON."""

from __future__ import annotations

import asyncio
import io
import json
import os
import runpy
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import litellm
from litellm.proxy._types import UserAPIKeyAuth
from litellm.proxy.types_utils.utils import get_instance_fn

from ctxsteward.envelope import Budgets, conversation, open_store
from ctxsteward.envelope.integrations.litellm import session_handler
from ctxsteward.evals.prompt_cost import anthropic_faults, openai_faults
from tests.model_server import Fault, ModelServer, Reply, SeenRequest

TOOL = {
    "type": "function",
    "function": {"name": "look", "parameters": {"type": "object", "properties": {"at": {"type": "integer"}}}},
}
CHAT = {"model": "openai/gpt-4o", "api_key": "none"}


def script(request: SeenRequest) -> Reply:
    newest = request.body.get("messages", request.body.get("input"))[-1]
    if request.number % 3 == 0 and newest.get("role") == "user" and "tools" in request.body:
        return Reply(calls=(("look", {"at": request.number}),))
    return Reply(text=f"Answer {request.number}: nothing out of the ordinary was found in the whole of the archive.")


def question(turn: int) -> dict[str, str]:
    return {"role": "user", "content": f"Turn {turn}: what became of parcel {turn * 37}? It weighs {turn} kilograms."}


async def chat(base: str) -> list[Any]:
    """Twenty turns, every other one streamed."""
    history: list[Any] = [{"role": "system", "content": "You look after parcels."}]
    for turn in range(20):
        history.append(question(turn))
        while True:
            made = await litellm.acompletion(
                **CHAT,
                api_base=base,
                messages=history,
                tools=[TOOL],
                stream=turn % 2 == 1,
                metadata={"session_id": "chat"},
            )
            if turn % 2:
                made = litellm.stream_chunk_builder([chunk async for chunk in made])
            message = made.choices[0].message
            history.append(message)
            if not message.tool_calls:
                break
            history += [
                {"role": "tool", "tool_call_id": call.id, "content": "found " * 30} for call in message.tool_calls
            ]
    return history


async def others(server: ModelServer) -> None:
    base, history = f"{server.url}/v1", list[Any]()
    for turn in range(3):
        history.append(question(turn))
        made = await litellm.aresponses(
            **CHAT, api_base=base, input=history, instructions="Be brief.", litellm_metadata={"session_id": "items"}
        )
        history += made.output
    history = []
    for turn in range(3):
        history.append(question(turn))
        answer = await litellm.anthropic_messages(
            model="anthropic/claude-opus-4-1",
            max_tokens=9,
            api_key="none",
            api_base=server.url,
            messages=history,
            litellm_metadata={"session_id": "claude"},
        )
        history.append({"role": "assistant", "content": answer["content"]})
    with conversation("through-a-chat", tenant="acme", principal="ada"):  # Anthropic's API over another provider
        await litellm.anthropic_messages(**CHAT, max_tokens=9, api_base=base, messages=[question(1)])
    router = litellm.Router(
        model_list=[{"model_name": "m", "litellm_params": {**CHAT, "api_base": base}}], num_retries=2
    )
    server.faults.append(Fault("status", 1, status=500))
    await router.acompletion(model="m", messages=[question(1)], metadata={"session_id": "routed"})
    await litellm.acompletion(**CHAT, api_base=base, messages=[question(99)])
    await asyncio.sleep(0)


async def proxied(handler: Any, base: str) -> None:
    """As the proxy does: the hook before routing, then the router."""
    router = litellm.Router(model_list=[{"model_name": "m", "litellm_params": {**CHAT, "api_base": base}}])
    keys = {
        "one": UserAPIKeyAuth(api_key="sk-one", user_id="ada"),
        "two": UserAPIKeyAuth(api_key="sk-two"),
        "team": UserAPIKeyAuth(api_key="sk-three", team_id="red"),
    }
    for name, key in keys.items():
        data: dict[str, Any] = {
            "model": "m",
            "messages": [{"role": "user", "content": f"I am {name}."}],
            "metadata": {"session_id": "same", "ctxsteward_session": ["same", "team-red"]},
        }
        if name == "two":
            data["proxy_server_request"] = {"headers": {"X-Ctxsteward-Session": "same"}}
            data["metadata"]["session_id"] = "other"
        data = await handler.async_pre_call_hook(key, None, data, "acompletion")
        await router.acompletion(**{name: value for name, value in data.items() if name != "proxy_server_request"})


def in_sync(handler: Any, base: str) -> None:
    history = list[Any]()
    for turn in range(4):
        history.append(question(turn))
        made = handler.completion(
            **CHAT, api_base=base, messages=history, stream=turn % 2 == 1, metadata={"session_id": "sync"}
        )
        made = litellm.stream_chunk_builder(list(made)) if turn % 2 else made
        history.append(made.choices[0].message)


async def until(condition: Any) -> None:
    for _ in range(600):
        if condition():
            return
        await asyncio.sleep(0.05)
    raise TimeoutError("LiteLLM did not report an answer")


async def main(folder: str) -> dict[str, Any]:
    finished: list[Any] = []
    with open_store(f"file:{folder}/store") as store, ModelServer(script) as server:
        handler: Any = session_handler(
            store, budgets=Budgets(dynamic_tokens=500), on_error="raise", on_call=finished.append
        )
        litellm.callbacks = [handler]
        base = f"{server.url}/v1"
        history = await chat(base)
        await until(lambda: len(finished) == len(server.requests))
        sent, calls = list(server.requests), list(finished)
        session = store.session("chat")
        kept = [session.resolve(at).text for at in range(1, len(session) + 1)]
        said = [(m["content"] if isinstance(m, dict) else m.content) or "" for m in history[1:]]
        said = [
            "" if isinstance(m, dict) and m["role"] == "tool" else text
            for m, text in zip(history[1:], said, strict=True)
        ]
        await others(server)
        await proxied(handler, base)
        await asyncio.to_thread(in_sync, handler, base)
        await until(lambda: len(finished) == len(server.requests) - 2)  # a call without a session, and a 500
        printed = example(base)
        faults = [f for r in server.requests if r.kind == "chat" for f in openai_faults(r.body)]
        faults += [f for r in server.requests if r.kind == "anthropic" for f in anthropic_faults(r.body)]
        tenants = {tenant: store.sessions(tenant=tenant) for tenant in store.journal.tenants()}
        logs = {
            f"{tenant}/{name}": store.session(name, tenant=tenant)
            for tenant, names in tenants.items()
            for name in names
        }
        return {
            "kept": kept == said,
            "reports": len(session.reports()),
            "longest": max(len(r.raw) for r in sent),
            "calls": len(calls),
            "cached": sum(call.cached_tokens or 0 for call in calls) > 0,
            "faults": faults,
            "printed": printed,
            "proxy": proxy_handler(folder),
            "lengths": {name: len(log) for name, log in logs.items()},
            "unnamed": any("parcel 3663" in request.prompt for request in server.requests),
            "people": sorted({str(entry.event.principal) for log in logs.values() for entry in log.entries()}),
        }


def example(base: str) -> list[str]:
    """What the shipped example prints, in a process where OpenAI is the model's server."""
    os.environ |= {"OPENAI_API_BASE": base, "OPENAI_API_KEY": "none"}
    path = Path(__file__).parents[3] / "docs" / "examples" / "integrations" / "litellm_sdk.py"
    out = io.StringIO()
    with redirect_stdout(out), ThreadPoolExecutor(1) as apart:  # it has an event loop of its own
        apart.submit(runpy.run_path, str(path), run_name="__main__").result()
    return out.getvalue().splitlines()


def proxy_handler(folder: str) -> dict[str, Any]:
    """The handler, loaded as the proxy loads it."""
    path, uri = "ctxsteward.envelope.integrations.litellm.proxy_handler", f"file:{folder}/proxy"
    os.environ |= {"CTXSTEWARD_STORE": uri, "CTXSTEWARD_DYNAMIC_TOKENS": "700"}
    handler = get_instance_fn(path)
    handler.conversations.store.close()
    return {
        "is_one": handler is get_instance_fn(path),
        "uri": handler.conversations.store.uri == uri,
        "dynamic_tokens": handler.conversations.budgets.dynamic_tokens,
        "hooks": [name for name in vars(type(handler)) if name.startswith("async_")],
    }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(sys.argv[1]))))

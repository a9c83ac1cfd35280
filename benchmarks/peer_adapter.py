"""A library behind JSON lines: runs inside the peers' environment and imports nothing of ours.

``python peer_adapter.py NAME`` reads one request per line from stdin and answers one line each on stdout:

- ``{"op": "open", "budget_tokens": 4000}``: begin a new conversation
- ``{"op": "send", "messages": […]}``: add OpenAI chat messages; return the messages to send now
- ``{"op": "preview", "messages": […]}``: the same, without keeping them
- ``{"op": "resolve", "reference": …}``: return the text to which a reference leads

Each may have ``"ahead_seconds"``: how far the library's clock is ahead. Answers are ``{"messages": […],
"references": {…}, "cpu_seconds": …}``, ``{"text": …}`` or ``{"text": null}``, for open ``{"version": …, "can": […]}``,
or ``{"error": …}``. CPU is that of deciding what to send, without converting messages from and to the wire. There is
no model, no key and no network: every connection is refused. Every library counts tokens with its default. This is
one file, because the peers' environment has nothing else of ours.
"""

import asyncio
import copy
import importlib
import json
import logging
import re
import socket
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from functools import cache, partial
from types import SimpleNamespace
from typing import Any

Wire = dict[str, Any]
Calls = Sequence[tuple[str, str, str]]
"""Id, name and arguments of each tool call."""


def load(name: str) -> Any:
    """Import a module of the peer."""
    return importlib.import_module(name)


def calls_of(wire: Wire) -> Calls:
    """Return the tool calls of a wire message."""
    return [
        (call["id"], call["function"]["name"], call["function"]["arguments"]) for call in wire.get("tool_calls") or ()
    ]


def wire(role: str, text: str | None, calls: Calls = (), call_id: str = "") -> Wire:
    """Make a wire message; `call_id` is the call that a tool's message answers."""
    if role == "tool":
        return {"role": role, "tool_call_id": call_id, "content": text or ""}
    if role != "assistant":
        return {"role": role, "content": text or ""}
    made = [{"id": id, "type": "function", "function": {"name": name, "arguments": args}} for id, name, args in calls]
    return {"role": role, "content": text or None, **({"tool_calls": made} if made else {})}


class Peer:
    """One conversation with one peer."""

    package = ""
    note = ""

    def __init__(self, budget_tokens: int) -> None:
        self.budget_tokens = budget_tokens
        self.history: list[Any] = []

    def add(self, wires: list[Wire]) -> None:
        """Convert and append messages."""
        self.history += [self.read(wire) for wire in wires]

    def read(self, wire: Wire) -> Any:
        """Convert a wire message to the peer's own form."""
        return wire

    def decide(self) -> list[Any]:
        """Return the messages to send, in the peer's own form."""
        raise NotImplementedError

    def write(self, messages: list[Any]) -> list[Wire]:
        """Convert the peer's messages to wire messages."""
        return messages

    def fork(self) -> "Peer":
        """Return an independent copy."""
        return copy.deepcopy(self)

    def references(self, sent: list[Wire]) -> dict[str, int]:
        """Return references in these messages, with the 1-based place of the message that each leads to."""
        return {}


# -- LangChain -------------------------------------------------------------------------------------------------------


class LangChain(Peer):
    """Messages of langchain-core, shortened by one of the functions below."""

    package = "langchain"

    def __init__(self, budget_tokens: int, note: str, kept: Callable[[list[Any], int], list[Any]]) -> None:
        super().__init__(budget_tokens)
        self.note, self.kept = note, kept

    def read(self, wire: Wire) -> Any:
        (message,) = load("langchain_core.messages").convert_to_messages([wire])
        return message

    def decide(self) -> list[Any]:
        return self.kept(self.history, self.budget_tokens)

    def write(self, messages: list[Any]) -> list[Wire]:
        roles = {"ai": "assistant", "human": "user"}
        made: list[Wire] = []
        for message in messages:
            calls = [
                (call["id"], call["name"], json.dumps(call["args"])) for call in getattr(message, "tool_calls", ())
            ]
            role = roles.get(message.type, message.type)
            made.append(wire(role, message.content, calls, getattr(message, "tool_call_id", "")))
        return made


def trimmed(history: list[Any], budget_tokens: int) -> list[Any]:
    """Apply `trim_messages` as its documentation recommends."""
    kept: list[Any] = load("langchain_core.messages").trim_messages(
        history,
        max_tokens=budget_tokens,
        token_counter="approximate",
        strategy="last",
        start_on="human",
        end_on=("human", "tool"),
    )
    return kept


def cleared(history: list[Any], budget_tokens: int) -> list[Any]:
    """Apply `ClearToolUsesEdit` to a copy of the whole history at every call, as its middleware does."""
    edit = load("langchain.agents.middleware").ClearToolUsesEdit(trigger=budget_tokens)
    messages = copy.deepcopy(history)
    edit.apply(messages, count_tokens=load("langchain_core.messages.utils").count_tokens_approximately)
    return messages


# -- Microsoft agent-framework ---------------------------------------------------------------------------------------


class AgentFramework(Peer):
    """`ContextWindowCompactionStrategy`: evicts tool results at half the window, truncates at 0.8 of it."""

    package = "agent-framework-core"
    note = "`ContextWindowCompactionStrategy`, defaults; window = budget"

    def __init__(self, budget_tokens: int) -> None:
        super().__init__(budget_tokens)
        strategy = load("agent_framework").ContextWindowCompactionStrategy
        self.strategy = strategy(max_context_window_tokens=budget_tokens, max_output_tokens=0)

    def read(self, wire: Wire) -> Any:
        framework = load("agent_framework")
        contents: list[Any] = []
        if wire["role"] == "tool":
            contents.append(framework.Content.from_function_result(wire["tool_call_id"], result=wire["content"]))
        elif wire.get("content"):
            contents.append(wire["content"])
        for id, name, arguments in calls_of(wire):
            contents.append(framework.Content.from_function_call(id, name, arguments=arguments))
        return framework.Message(wire["role"], contents)

    def decide(self) -> list[Any]:
        kept: list[Any] = asyncio.run(load("agent_framework").apply_compaction(self.history, strategy=self.strategy))
        return kept

    def write(self, messages: list[Any]) -> list[Wire]:
        made: list[Wire] = []
        for message in messages:
            calls = [(c.call_id, c.name, c.arguments) for c in message.contents if c.type == "function_call"]
            results = [c for c in message.contents if c.type == "function_result"]
            made += [wire("tool", str(c.result), call_id=c.call_id) for c in results]
            if not results or str(message.role) == "assistant":
                made.append(wire(str(message.role), message.text, calls))
        return made


# -- pydantic-ai-harness ---------------------------------------------------------------------------------------------


class PydanticAI(Peer):
    """A compaction capability, called as in a run before a model request; its edits persist."""

    package = "pydantic-ai-harness"

    def __init__(self, budget_tokens: int, note: str, compaction: Callable[[Any, int], Any]) -> None:
        super().__init__(budget_tokens)
        model = load("pydantic_ai.models.test").TestModel()
        usage = load("pydantic_ai.usage").RunUsage()
        self.note = note
        self.names: dict[str, str] = {}
        self.context = load("pydantic_ai.tools").RunContext(deps=None, model=model, usage=usage, messages=self.history)
        self.capability = compaction(load("pydantic_ai_harness.compaction"), budget_tokens)

    def read(self, wire: Wire) -> Any:
        messages = load("pydantic_ai.messages")
        if wire["role"] == "assistant":
            parts = [messages.TextPart(wire["content"])] if wire.get("content") else []
            for id, name, arguments in calls_of(wire):
                self.names[id] = name
                parts.append(messages.ToolCallPart(name, arguments, tool_call_id=id))
            return messages.ModelResponse(parts)
        if wire["role"] == "tool":
            id = wire["tool_call_id"]
            return messages.ModelRequest([messages.ToolReturnPart(self.names.get(id, "tool"), wire["content"], id)])
        return messages.ModelRequest([messages.UserPromptPart(wire["content"])])

    def decide(self) -> list[Any]:
        models = load("pydantic_ai.models")
        request = models.ModelRequestContext(
            model=self.context.model,
            messages=list(self.history),
            model_settings=None,
            model_request_parameters=models.ModelRequestParameters(),
        )
        made = asyncio.run(self.capability.before_model_request(self.context, request))
        return list(made.messages)

    def write(self, messages: list[Any]) -> list[Wire]:
        made: list[Wire] = []
        for message in messages:
            if message.kind == "response":
                text = "".join(part.content for part in message.parts if part.part_kind == "text")
                uses = [part for part in message.parts if part.part_kind == "tool-call"]
                calls = [(use.tool_call_id, use.tool_name, use.args_as_json_str()) for use in uses]
                made.append(wire("assistant", text, calls))
                continue
            for part in message.parts:
                if part.part_kind == "tool-return":
                    made.append(wire("tool", part.model_response_str(), call_id=part.tool_call_id))
                else:
                    made.append(wire("system" if part.part_kind == "system-prompt" else "user", part.content))
        return made


def sliding(room: Any, budget_tokens: int) -> Any:
    """Make a `SlidingWindowCompaction`: over the budget, the newest half of it stays."""
    return room.SlidingWindowCompaction(max_tokens=budget_tokens, keep_tokens=budget_tokens // 2)


def tiered(room: Any, budget_tokens: int) -> Any:
    """Make a `TieredCompaction` of the tiers that need no model."""
    tiers = [room.ClearToolResults(max_tokens=budget_tokens), sliding(room, budget_tokens)]
    return room.TieredCompaction(tiers=tiers, target_tokens=budget_tokens)


# -- Strands Agents --------------------------------------------------------------------------------------------------


class Strands(Peer):
    """`SlidingWindowConversationManager` with its proactive compression; dropped messages are lost."""

    package = "strands-agents"
    note = "`SlidingWindowConversationManager(per_turn=True, proactive_compression=True)`; window = budget"

    def __init__(self, budget_tokens: int) -> None:
        super().__init__(budget_tokens)
        room = load("strands.agent.conversation_manager")
        manager = room.SlidingWindowConversationManager(per_turn=True, proactive_compression=True)
        self.hooks = load("strands.hooks").HookRegistry()
        manager.register_hooks(self.hooks)
        model = SimpleNamespace(context_window_limit=budget_tokens, estimate_utilization=lambda n: n / budget_tokens)
        self.agent = SimpleNamespace(messages=self.history, model=model)

    def add(self, wires: list[Wire]) -> None:
        for wire in wires:
            if wire["role"] == "tool":
                result = {
                    "toolUseId": wire["tool_call_id"],
                    "status": "success",
                    "content": [{"text": wire["content"]}],
                }
                before = self.history[-1] if self.history else {"content": []}
                if before["content"] and "toolResult" in before["content"][-1]:
                    before["content"].append({"toolResult": result})
                else:
                    self.history.append({"role": "user", "content": [{"toolResult": result}]})
                continue
            content: list[Wire] = [{"text": wire["content"]}] if wire.get("content") else []
            for id, name, arguments in calls_of(wire):
                content.append({"toolUse": {"toolUseId": id, "name": name, "input": json.loads(arguments or "{}")}})
            self.history.append({"role": wire["role"], "content": content})

    def decide(self) -> list[Any]:
        event = load("strands.hooks").BeforeModelCallEvent
        tokens = load("strands.models.model")._estimate_tokens_with_heuristic(self.history)
        self.hooks.invoke_callbacks(event(agent=self.agent, invocation_state={}, projected_input_tokens=tokens))
        return self.history

    def write(self, messages: list[Any]) -> list[Wire]:
        made: list[Wire] = []
        for message in messages:
            text = "".join(block["text"] for block in message["content"] if "text" in block)
            uses = [block["toolUse"] for block in message["content"] if "toolUse" in block]
            results = [block["toolResult"] for block in message["content"] if "toolResult" in block]
            for result in results:
                said = "".join(part["text"] for part in result["content"])
                made.append(wire("tool", said, call_id=result["toolUseId"]))
            if text or message["role"] == "assistant":
                calls = [(use["toolUseId"], use["name"], json.dumps(use["input"])) for use in uses]
                made.append(wire(message["role"], text, calls))
        return made


# -- LlamaIndex ------------------------------------------------------------------------------------------------------


@cache
def loop() -> asyncio.AbstractEventLoop:
    """Return one loop for all conversations, because the database of LlamaIndex's memory belongs to it."""
    return asyncio.new_event_loop()


class LlamaIndex(Peer):
    """`Memory` in an SQLite database in memory, without blocks, which need a model or an embedder."""

    package = "llama-index-core"
    note = "`Memory(token_limit=budget)`, flushes a tenth of it; no memory blocks"

    def __init__(self, budget_tokens: int) -> None:
        super().__init__(budget_tokens)
        memory = load("llama_index.core.memory").Memory
        # 0.7 of the limit is for the history, which thus gets the budget
        limit = round(budget_tokens / 0.7)
        self.memory = memory.from_defaults(token_limit=limit, token_flush_size=max(1, budget_tokens // 10))
        self.waiting: list[Any] = []

    def add(self, wires: list[Wire]) -> None:
        self.waiting += [self.read(wire) for wire in wires]

    def read(self, wire: Wire) -> Any:
        extra: Wire = {"tool_call_id": wire["tool_call_id"]} if wire["role"] == "tool" else {}
        if wire.get("tool_calls"):
            extra["tool_calls"] = wire["tool_calls"]
        message = load("llama_index.core.llms").ChatMessage
        return message(role=wire["role"], content=wire.get("content") or "", additional_kwargs=extra)

    def decide(self) -> list[Any]:
        waiting, self.waiting = self.waiting, []
        loop().run_until_complete(self.memory.aput_messages(waiting))
        kept: list[Any] = loop().run_until_complete(self.memory.aget())
        return kept

    def write(self, messages: list[Any]) -> list[Wire]:
        made: list[Wire] = []
        for message in messages:
            extra = message.additional_kwargs
            made.append(wire(str(message.role.value), message.content, calls_of(extra), extra.get("tool_call_id", "")))
        return made

    def fork(self) -> Peer:
        twin = LlamaIndex(self.budget_tokens)
        loop().run_until_complete(twin.memory.aset(loop().run_until_complete(self.memory.aget())))
        return twin


# -- headroom --------------------------------------------------------------------------------------------------------


MARKS = re.compile(r"(?:<<ccr:|hash=)([a-f0-9]{12,24})")


class Headroom(Peer):
    """`compress` over the whole history at every call, without its text model, which would have to be downloaded."""

    package = "headroom-ai"
    note = "`compress(messages)`, defaults without the downloaded text model; knows no budget"

    def __init__(self, budget_tokens: int) -> None:
        super().__init__(budget_tokens)
        self.compress = load("headroom").compress

    def decide(self) -> list[Any]:
        messages = copy.deepcopy(self.history)
        kept: list[Any] = self.compress(messages, model="gpt-4o", kompress_model="disabled").messages
        return kept

    def fork(self) -> Peer:
        twin = Headroom(self.budget_tokens)
        twin.history = list(self.history)
        return twin

    def references(self, sent: list[Wire]) -> dict[str, int]:
        said = [str(wire.get("content")) for wire in sent]  # each message stays one message
        return {mark: n for n, text in enumerate(said, 1) for mark in MARKS.findall(text)}

    def resolve(self, reference: str) -> str | None:
        """Return the message that a mark stands for; None if it has expired."""
        entry = load("headroom.cache.compression_store").get_compression_store().retrieve(reference)
        return None if entry is None else str(entry.original_content)


# -- requests and answers --------------------------------------------------------------------------------------------

PEERS: dict[str, Callable[[int], Peer]] = {
    "langchain-trim": partial(
        LangChain,
        kept=trimmed,
        note="`strategy='last'`, `start_on='human'`, `end_on=('human', 'tool')`, approximate counter",
    ),
    "langchain-clear-tools": partial(
        LangChain, kept=cleared, note="trigger at the budget, keeps 3 results; clears nothing but tool results"
    ),
    "agent-framework": AgentFramework,
    "pydantic-ai-window": partial(
        PydanticAI, compaction=sliding, note="`SlidingWindowCompaction(max_tokens=budget, keep_tokens=budget/2)`"
    ),
    "pydantic-ai-tiered": partial(
        PydanticAI,
        compaction=tiered,
        note="`TieredCompaction`: clears old tool results, then slides a window; no summary tier",
    ),
    "strands": Strands,
    "llama-index": LlamaIndex,
    "headroom": Headroom,
}


def refuse(*_: object) -> None:
    """Refuse a connection, because libraries run offline."""
    raise OSError("libraries are asked offline")


def serve(peer: Callable[[int], Peer]) -> None:
    """Answer requests until stdin ends."""
    answers = sys.stdout
    sys.stdout = sys.stderr  # output that a library prints is not an answer
    state: dict[str, Any] = {}
    ahead_seconds = 0.0
    now = time.time
    time.time = lambda: now() + ahead_seconds
    for line in sys.stdin:
        try:
            request = json.loads(line)
            ahead_seconds = request.get("ahead_seconds", 0.0)
            answer = answered(peer, state, request)
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer, ensure_ascii=True) + "\n")
        answers.flush()


def answered(make: Callable[[int], Peer], state: dict[str, Any], request: Wire) -> Wire:
    """Return the answer to one request."""
    match request["op"]:
        case "open":
            peer = state["peer"] = make(request["budget_tokens"])
            can = [name for name in ("resolve",) if hasattr(peer, name)]
            return {"version": load("importlib.metadata").version(peer.package), "can": can}
        case "send" | "preview" as op:
            peer = state["peer"] if op == "send" else state["peer"].fork()
            peer.add(request["messages"])
            started = time.process_time()
            decided = peer.decide()
            seconds = time.process_time() - started
            sent = peer.write(decided)
            return {"messages": sent, "references": peer.references(sent), "cpu_seconds": seconds}
        case "resolve":
            return {"text": state["peer"].resolve(request["reference"])}
        case op:
            return {"error": f"unknown request {op!r}"}


def main() -> None:
    """Serve the peer named on the command line."""
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    socket.socket.connect = refuse  # type: ignore[method-assign]
    serve(PEERS[sys.argv[1]])


if __name__ == "__main__":
    main()

"""Claude Code, scripted: the transport of a `ClaudeSDKClient` that answers each prompt and mirrors what was said.

Imported by `tests.reader` in the environment that has the SDK. The SDK itself is real: it registers the hooks, calls
them when the program would, and hands the mirrored lines to the session store.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
from claude_agent_sdk import (  # only that environment has it
    ClaudeSDKClient,
    Transport,
    project_key_for_directory,
)

from ctxsteward.envelope import open_store

SESSION = "7d1f5a52-2a0e-4f0b-9a5e-6a3cf4f1f7b3"
PROMPT = "My locker code is 4711."


class ScriptedClaude(Transport):  # type: ignore[misc]
    """Speaks the program's side of the control protocol; `hooked` are the answers of the hooks that it called."""

    def __init__(self) -> None:
        self._send, self._receive = anyio.create_memory_object_stream[dict[str, Any]](100)
        self._prompt_hooks: list[str] = []
        self.hooked: list[dict[str, Any]] = []
        project = Path.home() / ".claude" / "projects" / project_key_for_directory()
        self._transcript = str(project / f"{SESSION}.jsonl")

    async def connect(self) -> None:
        pass

    async def write(self, data: str) -> None:
        sent = json.loads(data)
        if sent["type"] == "control_request":
            hooks = sent["request"].get("hooks") or {}
            for one in hooks.get("UserPromptSubmit", ()):
                self._prompt_hooks += one["hookCallbackIds"]
            answer = {"subtype": "success", "request_id": sent["request_id"], "response": {"commands": []}}
            await self._send.send({"type": "control_response", "response": answer})
        elif sent["type"] == "control_response":
            self.hooked.append(sent["response"])
        elif sent["type"] == "user":
            await self._turn(sent["message"]["content"])

    async def _turn(self, prompt: str) -> None:
        for number, callback in enumerate(self._prompt_hooks):
            given = {
                "hook_event_name": "UserPromptSubmit",
                "session_id": SESSION,
                "transcript_path": self._transcript,
                "cwd": str(Path.cwd()),
                "prompt": prompt,
            }
            request = {"subtype": "hook_callback", "callback_id": callback, "input": given, "tool_use_id": None}
            await self._send.send({"type": "control_request", "request_id": f"hook-{number}", "request": request})
        said = [("user", prompt), ("assistant", [{"type": "text", "text": "I keep it in mind."}])]
        entries = [
            {
                "type": role,
                "uuid": f"{role}-1",
                "sessionId": SESSION,
                "timestamp": "2026-11-24T12:00:00.000Z",
                "message": {"role": role, "content": content},
            }
            for role, content in said
        ]
        await self._send.send({"type": "transcript_mirror", "filePath": self._transcript, "entries": entries})
        result = {"subtype": "success", "duration_ms": 1, "duration_api_ms": 1, "is_error": False, "num_turns": 1}
        await self._send.send({"type": "result", **result, "session_id": SESSION, "result": "I keep it in mind."})

    async def read_messages(self) -> AsyncIterator[dict[str, Any]]:
        async for message in self._receive:
            yield message

    async def close(self) -> None:
        await self._send.aclose()

    def is_ready(self) -> bool:
        return True

    async def end_input(self) -> None:
        pass


def play(names: dict[str, Any]) -> None:
    """Say one thing with the `options` of a block, and read it back out of the session that its `mirror` keeps."""
    program = ScriptedClaude()

    async def talk() -> None:
        async with ClaudeSDKClient(names["options"], transport=program) as client:
            await client.query(PROMPT)
            async for _ in client.receive_response():
                pass

    anyio.run(talk)
    conversation = names["mirror"].conversation_id(SESSION, project_key_for_directory())
    with open_store("file:./context") as store:
        said = [entry.message.text for entry in store.session(conversation).entries()]
    assert said == [PROMPT, "I keep it in mind."], said
    assert [one["subtype"] for one in program.hooked] == ["success"], program.hooked

"""Run by the tests in an environment that has the Claude Agent SDK: its own program over a loopback model server.

    python claude_agent_sdk_run.py FOLDER PHASE          prints JSON

`conformance` runs the SDK's own tests of session stores, `example` the example of the guide. `first` plays a session: a
tool with a long output, a compaction, a question about what was said before. `second` resumes it in another process,
out of our store alone.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import runpy
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, project_key_for_directory
from claude_agent_sdk.testing import run_session_store_conformance

from ctxsteward.envelope import open_store
from ctxsteward.envelope.integrations.claude_agent_sdk import ClaudeMirror

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT))
from tests.model_server import ModelServer, Reply, SeenRequest  # noqa: E402

SESSION = "3f0e8d1c-5b64-4a53-9c59-0a3b5a3a7c11"
SECONDS = 150
PROMPTS = (
    "My locker code is 4711, keep it in mind.",
    "Please count now.",
    "What a nice day it is.",
    "/compact",
    "Which locker code did I tell you?",
)


def script(request: SeenRequest) -> Reply:
    content = request.body["messages"][-1]["content"]
    tools = [tool.get("name") for tool in request.body.get("tools", ())]
    if isinstance(content, list) and content[-1].get("text") == PROMPTS[1] and "Bash" in tools:
        return Reply(calls=(("Bash", {"command": "seq 1 4000", "description": "Count"}),))
    return Reply(text=f"Answer {request.number}.")


def environment(server: ModelServer, folder: Path) -> dict[str, str]:
    """In which the program talks to the loopback alone."""
    return {
        "ANTHROPIC_BASE_URL": server.url,
        "ANTHROPIC_API_KEY": "none",
        "CLAUDE_CONFIG_DIR": str(folder / "config"),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_ERROR_REPORTING": "1",
    }


def options(server: ModelServer, folder: Path, mirror: Any, **more: Any) -> ClaudeAgentOptions:
    (folder / "work").mkdir(exist_ok=True)
    return ClaudeAgentOptions(
        cwd=folder / "work",
        env=environment(server, folder),
        session_store=mirror,
        session_store_flush="eager",
        hooks=mirror.hooks(),
        allowed_tools=["Bash"],
        setting_sources=[],
        model="claude-sonnet-4-5",
        system_prompt="You are a tester.",
        max_turns=6,
        **more,
    )


async def ask(client: Any, prompt: str) -> None:
    await client.query(prompt)
    async for _ in client.receive_response():
        pass


async def played(folder: Path, phase: str) -> dict[str, Any]:
    with ModelServer(script) as server, open_store(f"file:{folder / 'store'}") as store:
        mirror = ClaudeMirror(store, principal="ann", excerpt_tokens=300)
        more = {"session_id": SESSION} if phase == "first" else {"resume": SESSION}
        async with ClaudeSDKClient(options(server, folder, mirror, **more)) as client:
            for prompt in PROMPTS if phase == "first" else ("And who are you?",):
                await ask(client, prompt)
        project = project_key_for_directory(folder / "work")
        session = store.session(mirror.conversation_id(SESSION, project))
        key = {"project_key": project, "session_id": SESSION}
        files = (folder / "config").rglob(f"{SESSION}.jsonl")
        lines = [json.loads(line) for file in files for line in file.read_text().splitlines()]
        loaded = await mirror.load(key)
        return {
            "said": [(entry.message.role, entry.message.wire["content"]) for entry in session.entries()],
            "principals": [entry.event.principal for entry in session.entries()],
            "notes": session.state.notes,
            "is_as_written": is_subsequence(loaded or [], lines),
            "unmirrored": sorted({line["type"] for line in lines if line not in (loaded or [])}),
            "entries": len(loaded or ()),
            "listed": [one["session_id"] for one in await mirror.list_sessions(project)],
            "requests": [one.body["messages"] for one in server.requests if one.kind == "anthropic"],
            "output": session.resolve(f"tool:{_call_id(session)}").tool_results[0].text,
        }


def is_subsequence(entries: list[Any], lines: list[Any]) -> bool:
    """Whether these are lines of the program's own file, in its order."""
    rest = iter(lines)
    return all(any(entry == line for line in rest) for entry in entries)


def _call_id(session: Any) -> str:
    return next(call.id for entry in session.entries() for call in entry.message.tool_calls)


async def checked(folder: Path) -> dict[str, Any]:
    await run_session_store_conformance(lambda: ClaudeMirror(open_store("memory:")))
    await run_session_store_conformance(file_stores(folder))
    return {"conforms": True}


def file_stores(folder: Path) -> Any:
    numbers = iter(range(1000))
    return lambda: ClaudeMirror(open_store(f"file:{folder / str(next(numbers))}"))


async def shown(folder: Path) -> dict[str, Any]:
    """What the example prints, against the loopback server."""
    example = runpy.run_path(str(ROOT / "docs" / "examples" / "integrations" / "claude_sdk_mirror.py"))
    os.chdir(folder)
    with ModelServer(script) as server:
        os.environ |= environment(server, folder)
        printed = io.StringIO()
        with redirect_stdout(printed):
            await example["main"]()
        return {"printed": printed.getvalue(), "last": server.requests[-1].body["messages"][-1]}


def main(folder: str, phase: str) -> None:
    os.environ["HOME"] = folder
    phases = {"conformance": checked, "example": shown}
    work = phases[phase](Path(folder)) if phase in phases else played(Path(folder), phase)
    print(json.dumps(asyncio.run(asyncio.wait_for(work, SECONDS))))


if __name__ == "__main__":
    main(*sys.argv[1:])

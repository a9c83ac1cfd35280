"""Claude Agent SDK: a mirror of its transcripts in our store, and three hooks for its own window.

    mirror = ClaudeMirror(store)
    options = ClaudeAgentOptions(session_store=mirror, hooks=mirror.hooks(), session_store_flush="eager")

The SDK's agent loop is a program of its own (Claude Code), which manages its window itself. We add to it:

- `ClaudeMirror` is a `SessionStore`: each line of a transcript is kept unchanged (`EntryLog`), and returned when the
  SDK resumes a session, on another machine too. An entry with a `uuid` is kept once, however often it is sent.
- The texts of people, the model and its tools in the main transcript form an ordinary session, with the name that
  `conversation_id` returns: recall, references, handoffs and the nightly steward read it. Texts of the program itself
  (summaries, reminders, command output), subagents and lines of other branches are kept as entries alone.
- `UserPromptSubmit`: once the program has compacted its window, originals that the prompt asks about and that the
  window no longer shows word for word are added to the prompt (`additionalContext`).
- `PostToolUse`: the model gets an excerpt of a long output (`updatedToolOutput`). The whole output is kept here first,
  under ``tool:CALL``. The output's shape stays: only long texts in it are shortened.
- `PreCompact`: a note in the session says up to which message the program's window shows a summary.

Messages keep the order of their arrival, also those from before a rewind. A hook that fails logs a warning and changes
nothing. `append` raises, and the SDK tries again. One mirror serves one event loop with any number of clients. Only
`hooks` needs the SDK. Deleting a session forgets it, and its name cannot be used again.

Source: `SessionStore`, `HookCallback` and the conformance tests of claude-agent-sdk 0.2.188.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import PurePath
from typing import Any, Final, NamedTuple, TypeVar

from anyio import Lock, to_thread

from ctxsteward.schemas import Erased, InputError, InvalidMessage, Message
from ctxsteward.schemas.arguments import check_argument, check_callable
from ctxsteward.schemas.message import Wire
from ctxsteward.schemas.profile import instant
from ctxsteward.store.erasure.forget import forget

from ..history.session import Session
from ..history.tool_groups import NewMessage, text_of
from ..layout.composition import CONTEXT_LABEL
from ..layout.fragments import excerpt
from ..layout.rows import continued, fenced
from ..recall.model_tools import search_context
from ..recall.selection import recalled_share
from ..store import Store
from .conversations import ConversationName, Conversations, checked_conversation
from .entry_log import ENTRIES_SUFFIX, EntryLog, kept_open

EXCERPT_TOKENS = 4_000
RECALL_TOKENS = 1_500
RECALLED = 25
"""Most messages recalled for a prompt."""
NOTE: Final = "claude-code"
"""Name of the note that says which messages the program's window shows as a summary."""
_PLAIN_PROJECT = re.compile(r"[A-Za-z0-9._-]{1,60}")
_UNSEEN_TOOLS = frozenset(("Edit", "MultiEdit", "NotebookEdit", "Write"))
"""Tools whose output the model sees as one line; the rest of it is for the program."""
_UNSEEN_KEYS = frozenset(("base64", "data", "originalFile", "signature", "structuredPatch"))
_NOT_SAID = ("isMeta", "isCompactSummary", "isVisibleInTranscriptOnly", "isSidechain")
_PROGRAM_TEXT = ("<command-name>", "<command-message>", "<local-command-", "<bash-input>", "<bash-stdout>")
T = TypeVar("T")

Entry = Mapping[str, Any]
"""A line of a transcript: JSON that is passed through."""
Key = Mapping[str, str]
"""`project_key`, `session_id`, and `subpath` for a part of a session."""


class SaidEntry(NamedTuple):
    """A message of the conversation, from one or several lines of a transcript."""

    uuid: str
    message_id: str
    role: str
    content: list[Any] | str
    ts: str | None


class ClaudeMirror:
    """A `SessionStore` of the SDK, and its hooks."""

    def __init__(
        self,
        store: Store | Conversations,
        *,
        tenant: str = "default",
        principal: str | None = None,
        excerpt_tokens: int | None = EXCERPT_TOKENS,
        recall_tokens: int = RECALL_TOKENS,
        now_seconds: Callable[[], float] = time.time,
        **options: Any,
    ) -> None:
        """`principal`: author of the prompts. `excerpt_tokens`: longest tool output; None leaves outputs whole.

        `recall_tokens`: most tokens added to a prompt. `options` are those of `Conversations`.
        """
        checked_conversation(ConversationName("claude", tenant, principal))
        check_argument("excerpt_tokens", excerpt_tokens, int, "pass a number of tokens, or None", optional=True)
        check_argument("recall_tokens", recall_tokens, int, "pass a number of tokens")
        check_callable("now_seconds", now_seconds, "pass a function that returns Unix seconds")
        self._conversations = Conversations.of(store, **options)
        self._store = self._conversations.store
        self._tenant, self._principal = tenant, principal
        self._excerpt_tokens, self._recall_tokens = excerpt_tokens, recall_tokens
        self._now_seconds = now_seconds
        self._lock = Lock()
        """Keeps batches in the order in which they were handed over."""
        self._logs: OrderedDict[str, EntryLog] = OrderedDict()
        self._sessions: OrderedDict[str, Session] = OrderedDict()

    def conversation_id(self, session_id: str, project_key: str) -> str:
        """Return the name of the conversation in the store for a session of the SDK.

        `project_key` is `project_key_for_directory(cwd)` of the SDK, unless the application has one of its own.
        """
        if not session_id or "/" in session_id:
            raise InputError(f"session_id {session_id!r:.60} is not usable; the SDK's are UUIDs")
        return f"claude/{_project(project_key)}/{session_id}"

    # -- SessionStore -------------------------------------------------------------------------------------------

    async def append(self, key: Key, entries: Sequence[Entry]) -> None:
        """Append a batch of lines."""
        if entries:
            async with self._lock:
                await to_thread.run_sync(self._append, key, list(entries))

    async def load(self, key: Key) -> list[Any] | None:
        """Return all lines, deep-equal; None if there never were any, or the session was deleted."""
        return await to_thread.run_sync(self._load, key)

    async def list_sessions(self, project_key: str) -> list[dict[str, Any]]:
        """Return ids of a project's sessions, and the time of each one's last line (Unix milliseconds)."""
        return await to_thread.run_sync(self._listed, project_key)

    async def list_subkeys(self, key: Key) -> list[str]:
        """Return the subpaths of a session's parts: its subagents' transcripts."""
        return await to_thread.run_sync(self._subkeys, key)

    async def delete(self, key: Key) -> None:
        """Forget a session and its parts; with a `subpath`, that part alone."""
        async with self._lock:
            await to_thread.run_sync(self._delete, key)

    def _append(self, key: Key, entries: list[Entry]) -> None:
        log = self._log(key)
        if "subpath" not in key:
            self._keep_said(self._conversation(key), log, entries)
        ids = [_uuid(entry) for entry in entries]
        log.append(entries, ids=ids, ts=self._now(), principal=self._principal)

    def _load(self, key: Key) -> list[Any] | None:
        try:
            return self._log(key).read()
        except Erased:
            return None

    def _listed(self, project_key: str) -> list[dict[str, Any]]:
        listed = []
        for id in self._names(f"claude/{_project(project_key)}/"):
            ts = None if "/" in id else self._log({"project_key": project_key, "session_id": id}).last_ts()
            if ts is not None:
                listed.append({"session_id": id, "mtime": int(instant(ts) * 1000)})
        return listed

    def _subkeys(self, key: Key) -> list[str]:
        names = self._names(f"{self.conversation_id(key['session_id'], key['project_key'])}/")
        return [name for name in names if self._load({**key, "subpath": name}) is not None]

    def _names(self, prefix: str) -> list[str]:
        """Return the names of entry logs with this prefix, without prefix and suffix."""
        names = self._store.sessions(tenant=self._tenant)
        return [
            name.removeprefix(prefix).removesuffix(ENTRIES_SUFFIX)
            for name in names
            if name.startswith(prefix) and name.endswith(ENTRIES_SUFFIX)
        ]

    def _delete(self, key: Key) -> None:
        main = self.conversation_id(key["session_id"], key["project_key"])
        names = [self._log(key).id]
        if "subpath" not in key:
            names += [main, *(f"{main}/{subpath}{ENTRIES_SUFFIX}" for subpath in self._names(f"{main}/"))]
        for name in names:
            self._logs.pop(name, None)
            self._sessions.pop(name, None)
            if self._store.exists(name, tenant=self._tenant):
                forget(
                    self._store,
                    tenant=self._tenant,
                    session=name,
                    who="claude-agent-sdk",
                    why="session deleted",
                    when=self._now(),
                )

    def _log(self, key: Key) -> EntryLog:
        main = self.conversation_id(key["session_id"], key["project_key"])
        subpath = key.get("subpath")
        if subpath == "":
            raise InputError("`subpath` is empty; leave it out for the main transcript")
        id = main if subpath is None else f"{main}/{subpath}"
        return kept_open(self._logs, id + ENTRIES_SUFFIX, lambda: EntryLog(self._store, id, tenant=self._tenant))

    def _conversation(self, key: Key) -> Session:
        id = self.conversation_id(key["session_id"], key["project_key"])
        return kept_open(self._sessions, id, lambda: self._store.session(id, tenant=self._tenant))

    def _now(self) -> str:
        return datetime.fromtimestamp(self._now_seconds(), UTC).isoformat(timespec="milliseconds")

    # -- the conversation ---------------------------------------------------------------------------------------

    def _keep_said(self, session: Session, log: EntryLog, entries: Sequence[Entry]) -> None:
        """Append the messages in these lines, and note between them where the program compacted its window."""
        batch: list[NewMessage] = []
        for line in said_entries(entries):
            if isinstance(line, SaidEntry):
                batch += self._new_message(line, log)
                continue
            session.extend(batch)
            batch = []
            kept = (line.get("compactMetadata") or {}).get("preservedMessages") or {}
            stays = [entry.ordinal for uuid in kept.get("uuids") or () if (entry := session.replica.by_id(uuid))]
            self._note_compaction(session, min(stays, default=len(session) + 1) - 1)
        session.extend(batch)

    def _new_message(self, said: SaidEntry, log: EntryLog) -> list[NewMessage]:
        content = said.content
        if isinstance(content, list):
            content = [self._whole(block, log) for block in content]
        is_prompt = said.role == "user" and not any(
            isinstance(block, dict) and block.get("type") == "tool_result" for block in content
        )
        wire: Wire = {"role": said.role, "content": content}
        try:
            Message.from_wire(wire)
        except InvalidMessage as error:
            self._conversations.failed("a line of the transcript is no message; it is kept as an entry alone", error)
            return []
        principal = self._principal if is_prompt else None
        return [NewMessage(message=wire, id=said.uuid, ts=said.ts, principal=principal)]

    def _whole(self, block: Any, log: EntryLog) -> Any:
        """Return a tool result with its whole output, if the program got an excerpt."""
        if not isinstance(block, dict) or block.get("type") != "tool_result":
            return block
        original = log.find(_original_id(str(block.get("tool_use_id"))))
        return block if original is None else {**block, "content": _restored(block.get("content"), original["texts"])}

    def _note_compaction(self, session: Session, last: int) -> None:
        text = f"Claude Code's window shows a summary of §1-§{last}; the originals are here"
        if last > 0 and session.state.notes.get(NOTE) != text:
            session.note(NOTE, text)

    # -- hooks --------------------------------------------------------------------------------------------------

    def hooks(self) -> dict[Any, list[Any]]:
        """Return the hooks for `ClaudeAgentOptions.hooks`."""
        from claude_agent_sdk import HookMatcher

        events = {"UserPromptSubmit": self.on_prompt, "PostToolUse": self.on_tool_output, "PreCompact": self.on_compact}
        return {event: [HookMatcher(hooks=[hook])] for event, hook in events.items()}

    async def on_prompt(self, input: Mapping[str, Any], tool_use_id: str | None, context: Any) -> dict[str, Any]:
        """`UserPromptSubmit`: add originals that the prompt asks about and the program's window no longer shows."""
        text = await self._tried("could not recall anything for a prompt", self._recalled, input)
        return _output(input, {"additionalContext": text}) if text else {}

    async def on_tool_output(self, input: Mapping[str, Any], tool_use_id: str | None, context: Any) -> dict[str, Any]:
        """`PostToolUse`: keep a long output whole, and return an excerpt."""
        shortened = await self._tried("could not keep a tool's output; the model is shown all of it", self._cut, input)
        return {} if shortened is None else _output(input, {"updatedToolOutput": shortened["output"]})

    async def on_compact(self, input: Mapping[str, Any], tool_use_id: str | None, context: Any) -> dict[str, Any]:
        """`PreCompact`: note the compaction in the session."""
        await self._tried("could not note a compaction", self._noted, input)
        return {}

    async def _tried(self, what: str, hook: Callable[[Mapping[str, Any]], T], input: Mapping[str, Any]) -> T | None:
        try:
            return await to_thread.run_sync(hook, input)
        except Exception as error:
            self._conversations.failed(what, error)
            return None

    def _recalled(self, input: Mapping[str, Any]) -> str:
        session = self._conversation(key_of(input))
        session.refresh()
        noted = re.search(r"§1-§(\d+);", session.state.notes.get(NOTE, ""))
        if noted is None:
            return ""
        hidden = range(1, min(int(noted[1]), len(session)) + 1)
        counter = session.counter
        room = min(self._recall_tokens, recalled_share(sum(session.shown(n).tokens(counter) for n in hidden)))
        visible = frozenset(range(hidden.stop, len(session) + 1))
        rows: dict[int, str] = {}
        hits = search_context(session, str(input.get("prompt", "")), k=RECALLED, shown=visible)
        for hit in sorted(hits, key=lambda hit: -hit.score):
            whole = text_of(session.shown(hit.ordinal).message)
            for text in (whole, hit.text):
                row = f"{hit.ref} {hit.role}: {continued(text)}"
                if (tokens := counter.text(row)) <= room:
                    rows[hit.ordinal] = row
                    room -= tokens
                    break
        return (
            fenced(session.state.nonce, CONTEXT_LABEL, "\n".join(row for _, row in sorted(rows.items())))
            if rows
            else ""
        )

    def _cut(self, input: Mapping[str, Any]) -> dict[str, Any] | None:
        call_id, cap = str(input.get("tool_use_id") or ""), self._excerpt_tokens
        if cap is None or not call_id or input.get("tool_name") in _UNSEEN_TOOLS:
            return None
        counter = self._conversation(key_of(input)).counter
        texts: list[tuple[str, str]] = []

        def shown(text: str) -> str:
            if len(text) <= cap or (tokens := counter.text(text)) <= cap:
                return text
            short = excerpt(text, cap_tokens=cap, ref=f"tool:{call_id}", tokens=tokens, count=counter.text)
            texts.append((short, text))
            return short

        output = _mapped(input.get("tool_response"), shown)
        if not texts:
            return None
        original = {"tool_use_id": call_id, "texts": texts}
        log = self._log(key_of(input))
        log.append([original], ids=[_original_id(call_id)], kind="original", ts=self._now(), principal=self._principal)
        return {"output": output}

    def _noted(self, input: Mapping[str, Any]) -> None:
        session = self._conversation(key_of(input))
        session.refresh()
        self._note_compaction(session, len(session))


def said_entries(entries: Sequence[Entry]) -> Iterator[SaidEntry | Entry]:
    """Yield the messages of people, the model and tools in lines of a main transcript, and the lines of compactions.

    The program writes one line per block of a model's message; consecutive lines of one message are joined.

    >>> lines = [{"type": "user", "uuid": "u", "message": {"role": "user", "content": "hi"}}]
    >>> [one.content for one in said_entries([*lines, {**lines[0], "uuid": "m", "isMeta": True}])]
    ['hi']
    """
    open_message: SaidEntry | None = None
    for entry in entries:
        is_boundary = entry.get("type") == "system" and entry.get("subtype") == "compact_boundary"
        said = _said(entry)
        if said is None and not is_boundary:
            continue
        if open_message is not None:
            if said is not None and said.message_id and said.message_id == open_message.message_id:
                open_message = open_message._replace(content=[*_blocks(open_message.content), *_blocks(said.content)])
                continue
            yield open_message
            open_message = None
        if said is None:
            yield entry
        elif said.role == "assistant":
            open_message = said
        else:
            yield said
    if open_message is not None:
        yield open_message


def _said(entry: Entry) -> SaidEntry | None:
    message, uuid = entry.get("message"), _uuid(entry)
    if entry.get("type") not in ("user", "assistant") or not isinstance(message, Mapping) or uuid is None:
        return None
    if any(entry.get(mark) for mark in _NOT_SAID):
        return None
    content, role, ts = message.get("content"), message.get("role"), entry.get("timestamp")
    if role not in ("user", "assistant") or not isinstance(content, str | list):
        return None
    if isinstance(content, str) and content.startswith(_PROGRAM_TEXT):
        return None
    id = message.get("id")
    return SaidEntry(
        uuid,
        id if isinstance(id, str) else "",
        role,
        content,
        ts if isinstance(ts, str) and instant(ts) > float("-inf") else None,
    )


def key_of(input: Mapping[str, Any]) -> dict[str, str]:
    """Return the key of the main transcript in which a hook was called.

    >>> key_of({"session_id": "s", "transcript_path": "/srv/claude/projects/-srv-app/s.jsonl"})
    {'project_key': '-srv-app', 'session_id': 's'}
    """
    path = str(input["transcript_path"]).replace("\\", "/")
    return {"project_key": PurePath(path).parent.name, "session_id": str(input["session_id"])}


def _project(project_key: str) -> str:
    """Return the project's part of a name: the key itself if it is short and plain, else a digest."""
    if _PLAIN_PROJECT.fullmatch(project_key):
        return project_key
    return "~" + hashlib.sha256(project_key.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def _uuid(entry: Entry) -> str | None:
    uuid = entry.get("uuid")
    return uuid if isinstance(uuid, str) and uuid else None


def _original_id(call_id: str) -> str:
    return f"original-{call_id}"


def _blocks(content: list[Any] | str) -> list[Any]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _mapped(value: Any, shown: Callable[[str], str]) -> Any:
    """Return an output of the same shape, with its texts mapped by `shown`."""
    if isinstance(value, str):
        return shown(value)
    if isinstance(value, list):
        return [_mapped(item, shown) for item in value]
    if isinstance(value, Mapping):
        return {key: item if key in _UNSEEN_KEYS else _mapped(item, shown) for key, item in value.items()}
    return value


def _restored(content: Any, texts: Sequence[Sequence[str]]) -> Any:
    """Return the content of a tool result with the whole texts in place of their excerpts."""
    texts_of = (
        [content]
        if isinstance(content, str)
        else [block.get("text") for block in content or () if isinstance(block, dict)]
    )
    if not all(any(short in text for text in texts_of if isinstance(text, str)) for short, _ in texts):
        return "\n".join(whole for _, whole in texts)  # the program changed the excerpts, as by line numbers

    def whole(text: str) -> str:
        for short, original in texts:
            text = text.replace(short, original)
        return text

    return _mapped(content, whole)


def _output(input: Mapping[str, Any], said: dict[str, Any]) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": input["hook_event_name"], **said}}


__all__ = ["ClaudeMirror", "SaidEntry", "key_of", "said_entries"]

"""Bad input at every door of the envelope: one kind of error, in words, and nothing written.

Every refusal is an `InputError`, a `ReferenceNotFound` or a `StoreError` of ours that says what was found and what to
do; nothing else comes through a door, and the session is as it was.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ctxsteward.envelope import EnvelopeBuilder, Session, open_store
from ctxsteward.envelope.testing import CharTokenizer, memory_store
from ctxsteward.schemas import ContextError, InputError, InvalidMessage, ReferenceNotFound, StoreError, UnknownModel
from ctxsteward.schemas.errors import InputTooLarge, InvalidReference

from .histories import Wire
from .messages import opened


class Case(NamedTuple):
    act: Callable[[], object]
    error: type[ContextError]
    says: str


# -- messages ----------------------------------------------------------------------------------------------


def _nested(depth: int) -> Any:
    value: Any = "x"
    for _ in range(depth):
        value = [value]
    return value


def _circular() -> Wire:
    wire: Wire = {"role": "user", "content": "x"}
    wire["again"] = wire
    return wire


def _user(content: Any, **more: Any) -> Wire:
    return {"role": "user", "content": content, **more}


class Bad(NamedTuple):
    message: object
    error: type[ContextError]
    says: str


MESSAGES = {
    "None": Bad(None, InvalidMessage, "found NoneType; expected a dict with `role` and `content`"),
    "a text": Bad("hello", InvalidMessage, "found str; expected a dict"),
    "a list of messages": Bad([_user("x")], InvalidMessage, "found list"),
    "bytes": Bad(b"{}", InvalidMessage, "found bytes"),
    "no role": Bad({"content": "x"}, InvalidMessage, "`role`: found nothing"),
    "an unknown role": Bad({"role": "narrator", "content": "x"}, InvalidMessage, "`role`: found 'narrator'"),
    "a role that is a list": Bad({"role": ["user"], "content": "x"}, InvalidMessage, "`role`: found ['user']"),
    "the retired function role": Bad({"role": "function", "content": "x"}, InvalidMessage, "`tool_call_id`"),
    "no content": Bad({"role": "user"}, InvalidMessage, "`content`: found nothing"),
    "null content": Bad(_user(None), InvalidMessage, "`content`: found null"),
    "content that is a number": Bad(
        _user(5), InvalidMessage, "`content`: found int; expected text or a list of blocks"
    ),
    "an assistant's content that is a number": Bad(
        {"role": "assistant", "content": 5}, InvalidMessage, "expected text or a list of blocks, or null"
    ),
    "content that is a dict": Bad(_user({"text": "x"}), InvalidMessage, "`content`: found dict"),
    "content that is bytes": Bad(_user(b"x"), InvalidMessage, "bytes is not JSON serializable"),
    "a set inside": Bad(_user("x", tags={1}), InvalidMessage, "set is not JSON serializable"),
    "an object of a class": Bad(_user("x", at=Path()), InvalidMessage, "not JSON serializable"),
    "a block that is a number": Bad(_user([5]), InvalidMessage, "`content[0]`: found int"),
    "a text block without text": Bad(_user([{"type": "text"}]), InvalidMessage, "`content[0].text`: found nothing"),
    "an image without its url": Bad(_user([{"type": "image_url"}]), InvalidMessage, "`content[0].image_url`"),
    "a lone surrogate": Bad(_user("a\ud800b"), InvalidMessage, "a lone surrogate"),
    "a lone surrogate in a field": Bad(_user("x", name="\udfff"), InvalidMessage, "a lone surrogate"),
    "a lone surrogate in a key": Bad(_user("x", **{"\ud800": 1}), InvalidMessage, "a lone surrogate"),
    "NaN": Bad(_user("x", score=float("nan")), InvalidMessage, "finite numbers"),
    "infinity, deep inside": Bad(_user("x", a=[{"b": float("-inf")}]), InvalidMessage, "finite numbers"),
    "17 megabytes": Bad(_user("x" * (17 * 1024 * 1024)), InputTooLarge, "bytes; the cap is 16,777,216"),
    "6 million characters of 3 bytes": Bad(_user("窗" * 6_000_000), InputTooLarge, "18,000,"),
    "65 levels": Bad(_user("x", a=_nested(65)), InvalidMessage, "at most 64 levels"),
    "a million levels": Bad(_user("x", a=_nested(1_000_000)), InvalidMessage, "very deep value"),
    "a value that holds itself": Bad(_circular(), InvalidMessage, "`content`: found"),
    "calls of a user": Bad(_user("x", tool_calls=[{}]), InvalidMessage, "calls of role user"),
    "calls that are no list": Bad({"role": "assistant", "tool_calls": {}}, InvalidMessage, "`tool_calls`: found dict"),
    "a call without a function": Bad(
        {"role": "assistant", "tool_calls": [{"id": "a"}]}, InvalidMessage, "`tool_calls[0].function`"
    ),
}


@pytest.mark.parametrize("case", MESSAGES.values(), ids=MESSAGES.keys())
def test_a_bad_message_is_refused_and_nothing_is_written(case: Bad) -> None:
    session = opened()
    session.append(_user("first"))
    state, length = session.state.copy(), session.journal.length(session.key)
    for door in (session.append, lambda message: session.extend([message]), _preview(session)):
        with pytest.raises(case.error) as refused:
            door(case.message)
        assert case.says in str(refused.value)
        assert len(str(refused.value)) < 300, "an error does not repeat the input"
    assert (session.state, session.journal.length(session.key)) == (state, length)


def _preview(session: Session) -> Callable[[object], object]:
    def preview(message: object) -> object:
        # a bare text is a user message to `preview`, and None is no message
        wire = {"text": message} if isinstance(message, str) else message
        if message is None or isinstance(message, str):
            session.append(message)
        return EnvelopeBuilder(tokenizer=CharTokenizer()).preview(session, wire)

    return preview


@pytest.mark.parametrize(
    ("meta", "says"),
    [
        pytest.param({"id": "\ud800"}, "id", id="an id with a lone surrogate"),
        pytest.param({"principal": "\ud800"}, "principal", id="a principal with one"),
        pytest.param({"phase": "\ud800"}, "phase", id="a phase with one"),
        pytest.param({"pin": "hard"}, "pin", id="an unknown strength of a pin"),
    ],
)
@pytest.mark.parametrize("scheme", ["memory:", "file:"])
def test_what_is_told_beside_a_message_is_checked_too(
    scheme: str, meta: dict[str, Any], says: str, tmp_path: Path
) -> None:
    with open_store(scheme if scheme == "memory:" else f"file:{tmp_path}") as store:
        session = opened(store)
        with pytest.raises(InputError, match=says):
            session.append(_user("x"), **meta)
        assert len(session) == len(opened(store)) == 0


@pytest.mark.parametrize("scheme", ["memory:", "file:"])
def test_a_store_works_on_after_it_refused_something(scheme: str, tmp_path: Path) -> None:
    """A transaction that an error leaves open would lock the store for everybody."""
    with open_store(scheme if scheme == "memory:" else f"file:{tmp_path}") as store:
        session = opened(store)
        for refused in (
            lambda: session.append(_user("x"), phase="\ud800"),
            lambda: session.append(_user("\ud800")),
            lambda: session.note("plan", "\ud800"),
            lambda: opened(store, "t", system="\ud800"),
        ):
            with suppress(ValueError):
                refused()
            opened(store, "another").append(_user("here"))  # first: a second store would wait for the lock
            if scheme == "file:":
                with open_store(f"file:{tmp_path}") as other:
                    opened(other, "another").append(_user("there"))


@pytest.mark.parametrize(
    ("told", "says"),
    [
        ({}, "outcome: an outcome that says nothing; give succeeded"),
        ({"reward": "high"}, "outcome: `reward` is 'high': Input should be a valid number"),
        ({"reward": True}, "outcome: `reward` is True: Input should be a valid number"),
        ({"reward": float("nan")}, "outcome: `reward` is nan: Input should be a finite number"),
        ({"thumbs": "sideways"}, "outcome: `thumbs` is 'sideways': Input should be 'up' or 'down'"),
        ({"succeeded": 1}, "outcome: `succeeded` is 1: Input should be a valid boolean"),
        ({"resolved": "no"}, "outcome: `resolved` is 'no': Input should be a valid boolean"),
    ],
)
def test_an_outcome_that_is_none_is_refused_in_one_line_and_not_written(told: dict[str, Any], says: str) -> None:
    with open_store("memory:") as store:
        session = opened(store)
        before = session.state.position
        with pytest.raises(InputError) as refused:
            session.outcome(**told)
        assert str(refused.value).startswith(says)
        assert "\n" not in str(refused.value)
        assert session.state.position == before


# -- references --------------------------------------------------------------------------------------------

REFERENCES = {
    "nothing": ("", InvalidReference),
    "a word": ("latest", InvalidReference),
    "zero": ("§0", InvalidReference),
    "a negative number": ("-1", InvalidReference),
    "a leading zero": ("§01", InvalidReference),
    "a fraction": ("1.5.2", InvalidReference),
    "part zero": ("§1.0", InvalidReference),
    "another alphabet's digits": ("§١", InvalidReference),
    "thirteen digits": ("9" * 13, InvalidReference),
    "ten thousand digits": ("9" * 10_000, InvalidReference),
    "a tool output of no number": ("tool:third", InvalidReference),
    "a tool output below nothing": ("tool:-1", InvalidReference),
    "no text": (None, InvalidReference),
    "one too far": ("§2", ReferenceNotFound),
    "a result that is not there": ("§1.2", ReferenceNotFound),
    "a message of another session": ("§3", ReferenceNotFound),
    "a tool output of another session": ("tool:1", ReferenceNotFound),
}


@pytest.mark.parametrize(("ref", "error"), REFERENCES.values(), ids=REFERENCES.keys())
def test_a_bad_reference_is_refused_or_names_nothing(ref: Any, error: type[ContextError]) -> None:
    store = memory_store()
    other = opened(store, "other")
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    other.extend([_user("x"), {"role": "assistant", "tool_calls": [call]}])
    other.append({"role": "tool", "tool_call_id": "a", "content": "secret"})
    session = opened(store)
    session.append(_user("mine"))
    with pytest.raises(error) as refused:
        session.resolve(ref)
    assert len(str(refused.value)) < 200
    assert "secret" not in str(refused.value)


# -- everything else ---------------------------------------------------------------------------------------

TAKEN = memory_store()


def _fork(id: str | None, of: str = "s") -> Session:
    session = opened(id=of)
    session.append(_user("x"))
    return session.fork(id=id)


def _build(**more: Any) -> object:
    session = opened(**more)
    session.append(_user("x"))
    return EnvelopeBuilder(tokenizer=CharTokenizer()).build(session)


def _render(provider: Any) -> object:
    session = opened()
    session.append(_user("x"))
    return EnvelopeBuilder(tokenizer=CharTokenizer()).build(session).render(provider)


CASES = {
    # sessions
    "a session without an id": Case(lambda: opened(id=""), InputError, "1 to 200 printable characters"),
    "a session id of 201 characters": Case(lambda: opened(id="s" * 201), InputError, "1 to 200"),
    "a session id with a line break": Case(lambda: opened(id="a\nb"), InputError, r"'a\nb'"),
    "a session id with a null": Case(lambda: opened(id="a\x00b"), InputError, "printable"),
    "a session id with a lone surrogate": Case(lambda: opened(id="\ud800"), InputError, "printable"),
    "a session id that is a number": Case(lambda: opened(id=5), InputError, "session 5"),  # type: ignore[arg-type]
    "a tenant with a control character": Case(lambda: opened(tenant="a\x07"), InputError, "tenant"),
    "a fork's id with a null": Case(lambda: _fork("a\x00b"), InputError, "printable"),
    "a system message that is bytes": Case(lambda: _build(system=b"You help."), InputError, "system"),
    "a system message with a lone surrogate": Case(lambda: _build(system="\ud800"), InputError, "surrogate"),
    # tools
    "a tool that is a name": Case(lambda: opened(tools=["find"]), InputError, "tools[0] is str; a tool schema"),
    "a tool that is None": Case(lambda: opened(tools=[{"name": "a"}, None]), InputError, "tools[1] is NoneType"),
    "tools that are one dict": Case(lambda: opened(tools={"name": "f"}), InputError, "tools is dict; pass a list"),
    "a tool with NaN": Case(lambda: opened(tools=[{"name": float("nan")}]), InputError, "finite"),
    "a tool with a lone surrogate": Case(lambda: opened(tools=[{"name": "\ud800"}]), InputError, "surrogate"),
    # the builder
    "an unknown model": Case(lambda: EnvelopeBuilder(model="gpt-9"), UnknownModel, "'gpt-9'; did you mean gpt-5"),
    "a model without a name": Case(lambda: EnvelopeBuilder(model=""), UnknownModel, "unknown model ''"),
    "an unknown tokenizer": Case(lambda: EnvelopeBuilder(tokenizer="p50k_base"), InputError, "o200k_base"),
    "an unknown provider": Case(lambda: _render("cohere"), InputError, "'cohere'; one of: openai-chat"),
    "a usage report that is none": Case(
        lambda: EnvelopeBuilder(tokenizer=CharTokenizer()).calibrate({"tokens": 5}), InputError, "no prompt tokens"
    ),
    # stores
    "an unknown scheme": Case(lambda: open_store("ftp://host/x"), InputError, "s3://BUCKET/PREFIX, postgresql://"),
    "no scheme": Case(lambda: open_store("ctxsteward"), InputError, "'ctxsteward'; use ./PATH"),
    "a file store without a path": Case(lambda: open_store("file:"), InputError, "file:PATH"),
    "a memory store with a path": Case(lambda: open_store("memory:x"), InputError, "memory:"),
    "nothing": Case(lambda: open_store(""), InputError, "file:PATH, s3://BUCKET/PREFIX, postgresql://"),
    "an address of no envelope": Case(lambda: TAKEN.manifest("ab" * 32), ReferenceNotFound, "no envelope of tenant"),
    "an address of no compaction": Case(lambda: TAKEN.compaction("ab" * 32), ReferenceNotFound, "no compaction"),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_bad_input_is_refused_in_words(case: Case) -> None:
    with pytest.raises(case.error) as refused:
        case.act()
    assert case.says in str(refused.value)
    assert len(str(refused.value)) < 2_000


def test_a_fork_without_a_name_can_be_opened_again_however_long_its_parent_s_is() -> None:
    store = memory_store()
    session = opened(store, "s" * 200)
    session.append(_user("x"))
    fork = session.fork()
    assert opened(store, fork.id).resolve("§1").text == "x"


# -- stores that cannot be used ----------------------------------------------------------------------------


def test_a_store_below_a_file_is_refused_by_its_path(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for place in ("file", "file/store"):
        with pytest.raises(StoreError) as refused:
            open_store(f"file:{tmp_path}/{place}")
        says = f"{tmp_path}/file is a file, and a store is a folder; name a folder"
        assert str(refused.value) == f"cannot open a store at {tmp_path}/{place}: {says}"


def test_a_journal_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "journal.sqlite").write_text("this is no database, it is a text of some length\n" * 50)
    with pytest.raises(StoreError, match="cannot open a store"):
        open_store(f"file:{tmp_path}")


def test_a_folder_of_keys_that_is_none_is_a_store_error(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("x")
    with open_store(f"file:{tmp_path}") as store, pytest.raises(StoreError, match="keys"):
        opened(store)


def test_a_folder_without_permission_is_a_store_error(tmp_path: Path) -> None:
    closed = tmp_path
    if os.geteuid() == 0:  # root may write anywhere but where the kernel says no
        closed = Path("/proc/sys")
        if not closed.is_dir():
            pytest.skip("root, and no folder that is closed to root")
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(StoreError, match="you may write"):
            open_store(f"file:{closed}/store")
    finally:
        tmp_path.chmod(0o700)


def test_a_closed_store_says_so(tmp_path: Path) -> None:
    store = open_store(f"file:{tmp_path}")
    session = opened(store)
    store.close()
    with pytest.raises(StoreError):
        session.append(_user("x"))
    assert len(session) == 0

"""The errors that this package raises on purpose.

Every message says what happened, the numbers, and what to do. None shows the password of a URI.

A URI is whatever holds ``://``, up to white space, or looks like one that lost it (`shown_uri` shows one by itself).
Hidden are the password of ``user:password@host``, whole or cut short, everything before the ``@`` of an http address (a
token often stands there alone), and values of query keys whose names say that they are secret. What is doubtful is
hidden. Linear in the text. Source: RFC 3986, 3.2.1.
"""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

HIDDEN = "***"
_WORD = re.compile(r"\S+")
_PAIR = re.compile(r"([?&;][\w.-]+=)([^&;]+)")
_AUTHORITY_END = re.compile(r"[/?#]")
_SECRET = ("pass", "pwd", "secret", "token", "credential", "signature", "api_key", "apikey", "access_key", "accesskey")
_OPENING = "'\"`([{<"
_CLOSING = "'\"`)]}>.,;:"
_NO_PASSWORD = re.compile(r"[0-9]*|PORT")
"""A port, or the word for one in a hint."""


class ContextError(Exception):
    """Base of everything this package raises on purpose."""

    def __init__(self, *said: object) -> None:
        super().__init__(*(without_secrets(one) if isinstance(one, str) else one for one in said))

    def __str__(self) -> str:
        return str(self.args[0]) if len(self.args) == 1 else super().__str__()  # `KeyError` would quote the text


class InputError(ContextError, ValueError):
    """The input of a caller or of a file is at fault, not the program; the command line exits 2."""


class InvalidMessage(InputError):
    """A dict that no provider would take as a message."""

    def __init__(self, field: str, found: str, expected: str) -> None:
        self.field: str = field
        self.found: str = found
        self.expected: str = expected
        super().__init__(f"message field `{field}`: found {found}; expected {expected}")


class InvalidDocument(InputError):
    """A file that cannot be used; `where` is a line, an index or the path of a key, empty for the file as a whole."""

    def __init__(self, source: str, where: str, found: str, hint: str) -> None:
        self.source: str = source
        self.where: str = where
        self.found: str = found
        self.hint: str = hint
        place = f"{source}: {where}" if where else source
        super().__init__(f"{place}: {found}; {hint}")


class InvalidTranscript(InvalidDocument):
    """A file that is not a transcript."""


class InvalidProfile(InvalidDocument):
    """A profile that cannot be used; `where` is the dotted path, such as ``policies.refunds``."""


class InvalidCascade(InvalidDocument):
    """A cascade's configuration that cannot be used; `where` is the path, such as ``phases[1].context.from[0]``."""


class InvalidBudget(InputError):
    """A budget or a fraction out of its range."""

    def __init__(self, field: str, found: object, expected: str) -> None:
        self.field: str = field
        self.found: object = found
        self.expected: str = expected
        super().__init__(f"`budgets.{field}` is {found!r}; expected {expected}")


class InvalidReference(InputError):
    """Text that is no reference, or one to more than one thing."""

    def __init__(self, text: str, hint: str = "write §128, 128, §128.2, tool:3 or meta:ID") -> None:
        self.text = text
        super().__init__(f"{text[:40]!r} is not a reference; {hint}")


class Unapproved(InputError):
    """A change of a profile in force that did not come through drift report, evals and approvals."""

    def __init__(self, profile: str, version: int, found: str) -> None:
        self.profile: str = profile
        self.version: int = version
        self.found: str = found
        super().__init__(
            f"profile {profile!r}: version {version} is in force, and {found}; stage the change with "
            "`ctxsteward steward propose FILE`"
        )


class InputTooLarge(InputError):
    """Refused by a cap before it was parsed."""

    def __init__(self, what: str, size_bytes: int, cap_bytes: int) -> None:
        self.what: str = what
        self.size_bytes: int = size_bytes
        self.cap_bytes: int = cap_bytes
        super().__init__(
            f"{what} has {size_bytes:,} bytes; the cap is {cap_bytes:,}: store it elsewhere and pass an excerpt"
        )


class UnknownModel(InputError):
    """No encoding and window are known for this model."""

    def __init__(self, model: str, known: tuple[str, ...]) -> None:
        self.model: str = model
        self.known: tuple[str, ...] = known
        from difflib import get_close_matches  # here, so that importing the room stays cheap

        self.near: list[str] = get_close_matches(model.lower(), known, n=3)
        named = f"did you mean {' or '.join(self.near)}? Otherwise " if self.near else ""
        super().__init__(
            f"unknown model {model!r}; {named}pass tokenizer='o200k_base' (or 'cl100k_base') and window_tokens=… "
            f"yourself, or one of: {', '.join(known)}"
        )


class ReferenceNotFound(ContextError, KeyError):
    """The reference is well formed but names nothing in this session."""

    def __init__(self, ref: str, session: str, known: str) -> None:
        self.ref: str = ref
        self.session: str = session
        text = f"{ref} names nothing in {f'session {session!r}' if session else 'this store'}; {known}"
        super().__init__(text)


class BudgetExceeded(ContextError):
    """A head section that is never cut does not fit its fixed budget.

    `report_id` is the address of a report that says so (`Store.report`), or None if nothing was built.
    """

    report_id: str | None = None

    def __init__(self, section: str, tokens: int, budget_tokens: int, blocks: tuple[tuple[str, int], ...]) -> None:
        self.section: str = section
        self.tokens: int = tokens
        self.budget_tokens: int = budget_tokens
        self.blocks: tuple[tuple[str, int], ...] = blocks
        named = ", ".join(f"{name} {n}" for name, n in blocks)
        super().__init__(
            f"section {section!r} needs {tokens} tokens but its budget is {budget_tokens} ({named}); "
            f"raise `budgets.{section}_tokens` or shorten these blocks: the head is never cut"
        )


class WindowExceeded(ContextError):
    """The whole request does not fit the model's window."""

    def __init__(self, tokens: int, window_tokens: int, output_reserve_tokens: int, head_tokens: int = 0) -> None:
        """`head_tokens`: what system, static, meta and tools take of `tokens`."""
        self.tokens: int = tokens
        self.window_tokens: int = window_tokens
        self.output_reserve_tokens: int = output_reserve_tokens
        if 2 * head_tokens > tokens:
            what = f"system texts and tools, which take {head_tokens}"
        else:
            what = "the newest message"
        super().__init__(
            f"the request needs {tokens} tokens but the window of {window_tokens} leaves "
            f"{window_tokens - output_reserve_tokens} after the output reserve; shorten {what}, "
            "or use a model with a larger window"
        )


class RulesNotVisible(ContextError):
    """A request does not show rules that stand, and the builder requires them."""

    def __init__(self, refs: list[str]) -> None:
        self.refs: list[str] = refs
        super().__init__(
            f"the request does not show {len(refs)} standing rules: {', '.join(refs[:10])}; raise "
            "`budgets.dynamic_tokens`, pin these messages while they are in the window, or put the rules in the profile"
        )


class TokenizerUnavailable(ContextError):
    """The rank files are missing or differ from the published ones."""


class ModelUnavailable(ContextError):
    """A model gave no answer."""

    def __init__(
        self,
        model: str,
        why: str,
        *,
        is_passing: bool = False,
        is_billed: bool = True,
        wait_seconds: float | None = None,
    ) -> None:
        self.model: str = model
        self.why: str = why
        self.is_passing: bool = is_passing
        """Asking again may help."""
        self.is_billed: bool = is_billed
        """The provider may bill the try: it may have read the prompt."""
        self.wait_seconds: float | None = wait_seconds
        """As long as the provider asks to wait before the next try."""
        super().__init__(f"model {model}: {why}")


class StoreError(ContextError):
    """The store could not do what was asked."""


class Conflict(StoreError):
    """Somebody else appended at this log position first."""

    def __init__(self, session: str, position: int, text: str | None = None) -> None:
        self.session: str = session
        self.position: int = position
        super().__init__(text or f"session {session!r}: position {position} is already taken; refresh and decide again")


class VersionTaken(StoreError):
    """Somebody else committed this version first; read the head and decide again."""

    def __init__(self, chain: str, number: int) -> None:
        self.chain: str = chain
        self.number: int = number
        super().__init__(f"{chain}: version {number} is already taken; read the head and decide again")


class OutcomeUnknown(StoreError):
    """A conditional write may or may not have landed. Repeat it with the same `commit_id`; never clean up after it."""

    def __init__(self, key: str, commit_id: str, waited_seconds: float) -> None:
        self.key: str = key
        self.commit_id: str = commit_id
        self.waited_seconds: float = waited_seconds
        super().__init__(
            f"{key}: whether commit {commit_id} landed is not known after {waited_seconds:.1f} s; "
            "repeat it with the same commit id when the store answers again"
        )


class Fenced(StoreError):
    """Another writer holds a later epoch."""

    def __init__(self, what: str, epoch: int, newer: int) -> None:
        self.what: str = what
        self.epoch: int = epoch
        self.newer: int = newer
        super().__init__(
            f"{what}: writer epoch {epoch} has been superseded by {newer}; read the head and take over anew"
        )


class Backpressure(StoreError):
    """The write-behind is full."""

    def __init__(self, waiting_bytes: int, cap_bytes: int) -> None:
        self.waiting_bytes: int = waiting_bytes
        self.cap_bytes: int = cap_bytes
        super().__init__(
            f"{waiting_bytes:,} bytes wait for the object store and the cap is {cap_bytes:,}: nothing was written; "
            "restore the store, or raise `queue_bytes`, and append again"
        )


class StoreUnavailable(StoreError):
    """The object store does not answer, or refuses us."""


class ObjectMissing(StoreError):
    """No object has this key."""

    def __init__(self, key: str) -> None:
        self.key = key
        super().__init__(f"{key}: no such object")


class Erased(StoreError, KeyError):
    """What was asked for has been forgotten on purpose."""

    def __init__(self, what: str, *, who: str, when: str, why: str) -> None:
        self.what: str = what
        self.who: str = who
        self.when: str = when
        self.why: str = why
        text = f"{what} was erased by {who} on {when}: {why}"
        super().__init__(text)


class UnsupportedVersion(StoreError):
    """A document of a later major version than this program knows."""

    def __init__(self, what: str, found: object, known: int) -> None:
        self.what: str = what
        self.found: object = found
        self.known: int = known
        super().__init__(f"{what} has schema_version {found!r}; this program reads up to {known}: upgrade ctxsteward")


class StoreLocked(StoreError):
    """Another process holds the journal for longer than we wait."""


class Damaged(StoreError):
    """A stored record is not what its address says."""


_counting = threading.Lock()
_violations: Counter[str] = Counter()


def count_violation(name: str) -> None:
    """Count one refused document of this published schema."""
    with _counting:
        _violations[name] += 1


@contextmanager
def counted(name: str) -> Iterator[None]:
    """Count what is refused inside: an `InputError`, or pydantic's `ValidationError`; both are `ValueError`s.

    `publish.validate` counts by itself; code that reads a value with the schema's own model wraps the reading in this.
    """
    try:
        yield
    except ValueError:
        count_violation(name)
        raise


def violations() -> dict[str, int]:
    """How many values of each schema were refused in this process; telemetry reports them."""
    with _counting:
        return dict(_violations)


def without_secrets(text: str) -> str:
    """The text with the secrets of all URIs in it hidden.

    >>> without_secrets("cannot reach postgresql://ann:hunter2@db/cards?sslmode=require")
    'cannot reach postgresql://ann:***@db/cards?sslmode=require'
    """
    return _WORD.sub(lambda word: _shown(word[0]), text) if "://" in text or "@" in text else text


_URI_HEAD = re.compile(r"(?:[A-Za-z][\w+.-]*(?=[:;/\\]))?[:;]*[/\\]*")
_URI_REST = re.compile(r"[?&;=#\s]")
_URI_MARKS = re.compile(r"[:;@=?&\s]")
_BEFORE_PATHS = ("file:", "sqlite:", "http://", "https://", "otlp://")
MAX_SHOWN_URI_CHARS = 200


def shown_uri(uri: str) -> str:
    """A URI for an error or a report, however it is mistyped: nothing of it that could be a password or a key.

    Shown are the scheme, a user after ``//``, the host and the path; never a query. Where it is not sure what is what,
    everything between the scheme and the last ``@`` is hidden.

    >>> shown_uri("postgresql:ann:hunter2@db/cards"), shown_uri("s3:/AKIA:hunter2@bucket?x=1"), shown_uri("file:store")
    ('postgresql:***@db/cards', 's3:/***@bucket', 'file:store')
    """
    if _URI_MARKS.search(uri) is None:
        return uri[:MAX_SHOWN_URI_CHARS]
    head = _URI_HEAD.match(uri)
    assert head is not None  # each of its parts may be empty
    scheme, rest = head[0], uri[head.end() :]
    before, at, host = rest.rpartition("@")
    is_whole = scheme.endswith("://") and not scheme.lower().startswith(("http", "otlp"))
    is_known = scheme.lower() in ("postgresql://", "postgres://", "s3://")
    if at and not (scheme.startswith("file:") and ":" not in before):
        user, colon, _ = before.partition(":")
        user = f"{_URI_REST.split(user)[0]}:{HIDDEN}" if colon and is_known else HIDDEN
        is_path = is_known and not colon and not _URI_REST.search(before)
        shown = f"{scheme}{before if is_path else user}@{_URI_REST.split(host)[0]}"
    else:
        name, colon, secret = _URI_REST.split(rest)[0].partition(":")
        is_port = re.fullmatch(r"[0-9]{1,5}(/.*)?", secret) is not None
        if ":" in scheme and not is_whole and not scheme.startswith(_BEFORE_PATHS):
            shown = f"{scheme}{HIDDEN if rest else ''}"
        else:
            is_shown = not colon or is_port or scheme.startswith("file:")
            shown = f"{scheme}{name}{colon}{secret if is_shown else HIDDEN}"
    return shown[:MAX_SHOWN_URI_CHARS]


def _shown(word: str) -> str:
    """A word with a URI in it, or several: an endpoint stands in the query of another."""
    if "://" not in word:
        return _mistyped(word)
    scheme, *rests = word.split("://")
    shown = [scheme]
    for rest in rests:
        shown.append(_without_password(rest, is_http=scheme.lower().endswith(("http", "https"))))
        scheme = rest
    return "://".join(shown)


def _mistyped(word: str) -> str:
    """A word that may be a URI without its ``://``: a scheme or a slash stands before ``user:password@host``."""
    before, _at, host = word.rpartition("@")
    name, colon, _ = before.partition(":")
    is_uri = bool(colon) and (before.count(":") > 1 or "/" in before or "\\" in before)
    return f"{name}:{HIDDEN}@{host}" if is_uri and not name.lstrip(_OPENING).startswith("file") else word


def _without_password(rest: str, *, is_http: bool) -> str:
    """What stands behind the scheme of a URI."""
    if "=" in rest:
        rest = _PAIR.sub(_hidden_if_secret, rest)
    authority = _AUTHORITY_END.split(rest, maxsplit=1)[0]
    before, at, host = rest.rpartition("@")
    if "@" in authority and is_http:
        return f"{HIDDEN}@{host}"
    name = before if "@" in authority else authority.rpartition("]")[2]  # behind an IPv6 address a port may stand
    user, colon, password = name.partition(":")
    is_host = name is not before and (not at or is_http)
    if not colon or (is_host and _NO_PASSWORD.fullmatch(password.rstrip(_CLOSING))):
        return rest
    return f"{user}:{HIDDEN}{at}{host if at else ''}"


def _hidden_if_secret(pair: re.Match[str]) -> str:
    name = pair[1].lower().replace("-", "_")
    return f"{pair[1]}{HIDDEN}" if any(word in name for word in _SECRET) else pair[0]

"""What can go wrong, as one tree.

    ContextError
    ├── InputError            the caller's or a file's input; the command line exits 2
    │   ├── InvalidMessage      a wire dict that is not a message
    │   ├── InvalidTranscript   a file that is not a transcript: names file, line or index, field
    │   ├── InvalidProfile      a profile that is not one: names the key
    │   ├── InvalidBudget       a budget or fraction out of range
    │   ├── InvalidReference    text that is no reference
    │   ├── InputTooLarge       refused by a cap, before parsing
    │   └── UnknownModel        no encoding or window known for this model
    ├── ReferenceNotFound     also a KeyError
    ├── BudgetExceeded        the head needs more tokens than its fixed budget
    ├── WindowExceeded        the request needs more tokens than the model's window leaves
    ├── TokenizerUnavailable  rank files are missing or are not the published ones
    └── StoreError
        ├── Conflict            somebody else wrote at this position first
        ├── StoreLocked         the journal is busy beyond the waiting time
        └── Damaged             a stored record is not what its address says

Every message says what happened, the numbers, and what to do.
"""

from __future__ import annotations


class ContextError(Exception):
    """Base of everything this package raises on purpose."""


class InputError(ContextError, ValueError):
    """The input is at fault, not the program."""


class InvalidMessage(InputError):
    """A dict that no provider would take as a message."""

    def __init__(self, field: str, found: str, expected: str) -> None:
        self.field, self.found, self.expected = field, found, expected
        super().__init__(f"message field `{field}`: found {found}; expected {expected}")


class InvalidTranscript(InputError):
    """A file that is not a transcript; `where` is a line, an index or a key path."""

    def __init__(self, source: str, where: str, found: str, hint: str) -> None:
        self.source, self.where, self.found, self.hint = source, where, found, hint
        place = f"{source}: {where}" if where else source
        super().__init__(f"{place}: {found}; {hint}")


class InvalidProfile(InputError):
    """A profile that cannot be used; `key` is the dotted path."""

    def __init__(self, source: str, key: str, found: str, hint: str) -> None:
        self.source, self.key, self.found, self.hint = source, key, found, hint
        place = f"{source}: {key}" if key else source
        super().__init__(f"{place}: {found}; {hint}")


class InvalidBudget(InputError):
    """A budget or a fraction out of its range."""

    def __init__(self, field: str, found: object, expected: str) -> None:
        self.field, self.found, self.expected = field, found, expected
        super().__init__(f"`budgets.{field}` is {found!r}; expected {expected}")


class InvalidReference(InputError):
    """Text that is no reference."""

    def __init__(self, text: str) -> None:
        self.text = text
        super().__init__(f"{text[:40]!r} is not a reference; write §128, 128, §128.2 or tool:3")


class InputTooLarge(InputError):
    """Refused by a cap before it was parsed."""

    def __init__(self, what: str, size_bytes: int, cap_bytes: int) -> None:
        self.what, self.size_bytes, self.cap_bytes = what, size_bytes, cap_bytes
        super().__init__(
            f"{what} has {size_bytes:,} bytes; the cap is {cap_bytes:,}: store it elsewhere and pass an excerpt"
        )


class UnknownModel(InputError):
    """No encoding and window are known for this model."""

    def __init__(self, model: str, known: tuple[str, ...]) -> None:
        self.model, self.known = model, known
        super().__init__(
            f"unknown model {model!r}; pass tokenizer='o200k_base' (or 'cl100k_base') and window_tokens=… "
            f"yourself, or one of: {', '.join(known)}"
        )


class ReferenceNotFound(ContextError, KeyError):
    """The reference is well formed but names nothing in this session."""

    def __init__(self, ref: str, session: str, known: str) -> None:
        self.ref, self.session = ref, session
        self.text = f"{ref} names nothing in {f'session {session!r}' if session else 'this store'}; {known}"
        super().__init__(self.text)

    def __str__(self) -> str:
        return self.text


class BudgetExceeded(ContextError):
    """A head section that is never cut does not fit its fixed budget."""

    def __init__(self, section: str, tokens: int, budget_tokens: int, blocks: tuple[tuple[str, int], ...]) -> None:
        self.section, self.tokens, self.budget_tokens, self.blocks = section, tokens, budget_tokens, blocks
        named = ", ".join(f"{name} {n}" for name, n in blocks)
        super().__init__(
            f"section {section!r} needs {tokens} tokens but its budget is {budget_tokens} ({named}); "
            f"raise `budgets.{section}_tokens` or shorten these blocks: the head is never cut"
        )


class WindowExceeded(ContextError):
    """The whole request does not fit the model's window."""

    def __init__(self, tokens: int, window_tokens: int, output_reserve_tokens: int) -> None:
        self.tokens, self.window_tokens, self.output_reserve_tokens = (
            tokens,
            window_tokens,
            output_reserve_tokens,
        )
        super().__init__(
            f"the request needs {tokens} tokens but the window of {window_tokens} leaves "
            f"{window_tokens - output_reserve_tokens} after the output reserve; shorten the newest message, "
            "or use a model with a larger window"
        )


class TokenizerUnavailable(ContextError):
    """The rank files are missing or differ from the published ones."""


class StoreError(ContextError):
    """The store could not do what was asked."""


class Conflict(StoreError):
    """Somebody else appended at this log position first."""

    def __init__(self, session: str, position: int) -> None:
        self.session, self.position = session, position
        super().__init__(f"session {session!r}: position {position} is already taken; refresh and decide again")


class StoreLocked(StoreError):
    """Another process holds the journal for longer than we wait."""


class Damaged(StoreError):
    """A stored record is not what its address says."""

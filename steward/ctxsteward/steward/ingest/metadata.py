"""What is known of a transcript beside its messages: whose it is, whether it is over, who wrote it, how it went.

It stands in a sidecar file (of ``chat.jsonl``: ``chat.jsonl.session.json``, or ``chat.session.json``), or in a
transcript that is a JSON object, under the top-level key ``ctxsteward``; the sidecar wins. A closed model: an unknown
key or a bad value is refused, with the field, and the transcript goes to quarantine: what cannot be read might have
said that it is not to be used.

These fields alone decide whether a transcript is harvested, never its text. Times are ISO 8601. Raises
`InvalidTranscript`.

>>> read_metadata(b'{"principal": "ada", "succeeded": true}', "chat.jsonl.session.json").principal
'ada'
"""

from __future__ import annotations

import json
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictBool, StrictInt, StrictStr, ValidationError

from ctxsteward.envelope.principals import unseen
from ctxsteward.envelope.readers.places import show
from ctxsteward.envelope.readers.strict_json import decode
from ctxsteward.schemas import InvalidTranscript
from ctxsteward.schemas.profile import EntryId, OneLine, Timestamp
from ctxsteward.schemas.recommendation import Name

INLINE_KEY = "ctxsteward"
OWN = "steward"
"""Value of `origin` in what the steward wrote itself."""
MAX_SHOWN = 1_000
MAX_FAILURES = 100


def _seen(name: str) -> str:
    if (char := unseen(name)) is not None:
        raise ValueError(f"{name!r:.60} holds {char}, which nobody can see")
    if name.isspace():
        raise ValueError("a name of blanks")
    return name


class SessionMeta(BaseModel):
    """Metadata of one transcript; what is not set is not known."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    schema_version: Literal[1] = 1
    session: Name | None = None
    """Its id, in place of the one made from the file's name."""
    principal: Annotated[Name, AfterValidator(_seen)] | None = None
    """The user it is with."""
    project: Name | None = None
    status: Literal["open", "closed", "deleted"] = "closed"
    origin: Name = "application"
    """Who wrote it: ``steward`` is the steward's own output."""
    profile_version: Annotated[StrictInt, Field(ge=1)] | None = None
    shown: Annotated[tuple[EntryId, ...], Field(max_length=MAX_SHOWN)] = ()
    """Ids of records that it was shown."""
    eval_failures: Annotated[
        tuple[Annotated[StrictStr, Field(min_length=1, max_length=280), OneLine], ...], Field(max_length=MAX_FAILURES)
    ] = ()
    """Scorers that failed on it, with their reason."""
    started: Timestamp | None = None
    """When it began: the time of its messages that tell none themselves."""
    succeeded: StrictBool | None = None
    """Whether its task was solved."""


UNKNOWN = SessionMeta()


def read_metadata(data: bytes, source: str) -> SessionMeta:
    """The metadata of a sidecar's bytes."""
    return checked_metadata(decode(data, source, ""), source)


def checked_metadata(value: object, source: str, where: str = "") -> SessionMeta:
    """The metadata of a JSON value, which stands at `where` in `source`."""
    if not isinstance(value, dict):
        raise InvalidTranscript(source, where, f"found {show(value)}", "expected an object of session metadata")
    try:
        return SessionMeta.model_validate_json(json.dumps(value))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join([*([where] if where else ()), *map(str, first["loc"])])
        known = ", ".join(SessionMeta.model_fields)
        hint = f"the keys are {known}" if first["type"] == "extra_forbidden" else "correct it, or leave it out"
        raise InvalidTranscript(source, field, first["msg"], hint) from error

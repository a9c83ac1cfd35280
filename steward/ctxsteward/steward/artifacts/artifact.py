"""A harvest artifact: what one transcript gave, with the text of everything that is cited, of one set of principals.

    made(replayed, observations, extractor="harvest/3", key=address_key)  ->  one artifact, or one for each set of
                                                                              principals whose words are in it

Most transcripts have one principal and give one artifact. Where several spoke, each set of them that stands behind an
observation has an artifact of its own, so that forgetting one person takes their words and leaves the others'. The
first artifact is always the main principal's, if empty: it says that the transcript was harvested.

`transcript` is an HMAC of what was read; two artifacts of one transcript share it. Of two readings of one source the
newer one counts (`Artifact.rank`). A citation whose bytes are not there, or not whole characters, is refused and
counted, with its observation.

`takes` names the arguments that tools were given, never a value of theirs: what one tool's error taught is told of
other tools with the same argument (`harvest.tool_siblings`). It stands in the first artifact of a transcript.

Source: the layered-envelope design (provenance); the state design (a subject is one principal in one session).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import NamedTuple

from ctxsteward.envelope.keys import AddressKey, address_of, subject_of
from ctxsteward.schemas.recommendation import Trust

from ..observation import Observation, Place
from ..replayed import Replayed, Role, Utterance

_NUMBER = re.compile(r"\d+")


class Rank(NamedTuple):
    """Which of two readings of one source is the newer: the greater."""

    revision: int
    extractor: tuple[int, ...]
    """Numbers in its name."""
    messages: int
    transcript: str


class Taken(NamedTuple):
    """The identifiers that a tool was given in calls that worked."""

    tool: str
    paths: tuple[str, ...]
    """Of leaves (``payments[].payment_id``); sorted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cited:
    """One text that observations point into, after redaction."""

    ref: str
    role: Role
    text: str
    trust: Trust
    principal: str
    ts: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """Observations of one transcript that rest on the words of these principals, and those words."""

    source: str
    session: str
    principal: str
    """Whom the conversation is with."""
    principals: tuple[str, ...]
    """Whose words are in it; sorted."""
    project: str | None
    transcript: str
    """HMAC of what was read."""
    extractor: str
    revision: int
    """Told by whoever reads the source, where it knows; a later reading has a higher one."""
    messages: int
    shown: tuple[str, ...]
    """Ids of records that the session was shown; sorted."""
    observations: tuple[Observation, ...]
    cited: tuple[Cited, ...]
    takes: tuple[Taken, ...] = ()
    """By tool."""
    refused: int = 0
    """Observations whose citations do not hold; counted in the first artifact of a transcript."""

    @property
    def rank(self) -> Rank:
        numbers = tuple(int(number) for number in _NUMBER.findall(self.extractor))
        return Rank(self.revision, numbers, self.messages, self.transcript)

    def text(self, ref: str) -> Cited | None:
        """The cited text with this reference."""
        return next((cited for cited in self.cited if cited.ref == ref), None)


def made(
    replayed: Replayed,
    observations: Iterable[Observation],
    *,
    extractor: str,
    key: AddressKey,
    revision: int = 0,
    takes: Iterable[tuple[str, Iterable[str]]] = (),
) -> tuple[Artifact, ...]:
    """What a transcript gave, as artifacts: the main principal's first, the others by name."""
    texts = {said.ref: said for said in replayed.utterances}
    groups: dict[tuple[str, ...], list[Observation]] = {(replayed.principal,): []}
    refused = 0
    for observation in observations:
        if _is_cited(observation.places, texts):
            groups.setdefault(_behind(observation, texts), []).append(observation)
        else:
            refused += 1
    name = transcript_address(key, replayed, extractor)
    taken = tuple(Taken(tool, tuple(sorted(paths))) for tool, paths in sorted(takes))
    first, *others = groups.items()
    return tuple(
        Artifact(
            source=replayed.source, session=replayed.session, principal=replayed.principal, principals=principals,
            project=replayed.project, transcript=name, extractor=extractor, revision=revision,
            messages=len(replayed.utterances), shown=tuple(sorted(replayed.shown)),
            observations=tuple(_ordered(found)), cited=_cited(found, texts),
            takes=() if at else taken, refused=0 if at else refused,
        )
        for at, (principals, found) in enumerate([first, *sorted(others, key=lambda group: group[0])])
    )  # fmt: skip


def _ordered(found: Iterable[Observation]) -> Iterator[Observation]:
    """Each once, in the order of their `repr`, which begins with kind and text: where these differ it is not asked."""
    by_text: dict[tuple[str, str], list[Observation]] = {}
    for one in found:
        by_text.setdefault((one.kind, repr(one.text)), []).append(one)
    for _, alike in sorted(by_text.items(), key=itemgetter(0)):
        yield from alike if len(alike) == 1 else sorted(set(alike), key=repr)


def transcript_address(key: AddressKey, replayed: Replayed, extractor: str) -> str:
    """What a transcript is called: HMAC of what was read, and of the code that reads it."""
    data = json.dumps([replayed.source, replayed.session, replayed.digest, extractor]).encode()
    return address_of(key, subject_for(replayed.session, replayed.principal), "transcript", data)


def subject_for(session: str, principal: str) -> str:
    """Under whose key the words of a principal lie; of an unknown user, the session's own."""
    return subject_of(session, None if principal == session else principal)


def _behind(observation: Observation, texts: dict[str, Utterance]) -> tuple[str, ...]:
    """Whoever's words an observation is made of."""
    return tuple(sorted({observation.principal, *(texts[place.ref].principal for place in observation.places)}))


def _cited(found: Sequence[Observation], texts: dict[str, Utterance]) -> tuple[Cited, ...]:
    refs = {place.ref for observation in found for place in observation.places}
    return tuple(
        Cited(ref=said.ref, role=said.role, text=said.text, trust=said.trust, principal=said.principal, ts=said.ts)
        for said in sorted((texts[ref] for ref in refs), key=lambda said: (said.ordinal, said.ref))
    )


def _is_cited(places: Sequence[Place], texts: dict[str, Utterance]) -> bool:
    return bool(places) and all(
        (said := texts.get(place.ref)) is not None and cut(said.text, place.start, place.stop) is not None
        for place in places
    )


def cut(text: str, start: int, stop: int) -> str | None:
    """The characters between two bytes of the UTF-8 text; None where they are not there, or not whole.

    >>> cut("naïve", 0, 4), cut("naïve", 0, 3), cut("naïve", 4, 9)
    ('naï', None, None)
    """
    data = text.encode()
    if not 0 <= start < stop <= len(data):
        return None
    try:
        return data[start:stop].decode()
    except UnicodeDecodeError:
        return None

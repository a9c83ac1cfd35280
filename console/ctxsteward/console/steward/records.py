"""Records of a profile's ledger for the steward's verbs: as of the last night, found by id, with quoted evidence.

This module also has the options that verbs share and their shell completions, which read the store and are empty if
that fails.

A ledger that is behind the store, or missing on this machine, catches up when it is opened. Raises `InputError` for an
unknown id.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from ctxsteward.schemas import InputError, MetaRecommendation
from ctxsteward.steward import NightSettings
from ctxsteward.steward.artifacts.artifact import EvidenceQuote
from ctxsteward.steward.drift.rules import against, rules_of
from ctxsteward.steward.harvest.batches import BatchRecords
from ctxsteward.steward.night.chain import moment_of
from ctxsteward.steward.release.rollbacks import taken_back

from ..terminal.options import DEFAULT_STORE, common
from ..terminal.stores import open_stored
from .context import StewardContext, open_context, profiles_in

if TYPE_CHECKING:  # the ledger needs the extra `steward`, and most verbs do without
    from ctxsteward.steward import Ledger
    from ctxsteward.steward.ledger.records import JudgementContext

REASONS: Mapping[str, str] = {
    "independent_principals": "enough people said it, independently",
    "confirmed": "enough people said it, and a tool of your own says the same",
    "governed": "enough people said it, and a rule in force says the same",
    "fix_worked": "its fix worked often enough, in runs that succeeded",
    "approved": "a person approved it",
    "needs_principals": "too few people said it",
    "alike": "several people mean it alike, in words of their own; a person says whether it holds for everybody",
    "needs_confirmation": "people claim it of the service; a tool of your own, a rule or a person must say the same",
    "fails_more": "more runs that did so failed than succeeded",
    "needs_outcome": "no run in which its fix worked is known to have succeeded",
    "needs_recovery": "its fix has worked in too few runs that succeeded",
    "hint": "seen in few runs: for right after the very error (`hint_after`), and nowhere else",
    "needs_tasks": "seen in the runs of too few tasks",
    "needs_person": "only a person may admit it",
    "tool_text": "it rests on what a tool returned",
    "not_said_by_a_person": "no person said it",
    "rejected_by_person": "a person rejected it",
    "edited": "a person gave it these words; somebody else must approve them",
    "newer_value": "a newer value took its place",
    "conflict": "somebody says the opposite; both are held",
    "denied": "a tool of your own said otherwise in the same talk",
    "faded": "nobody has confirmed it for long",
    "gainsays_locked": "it contradicts a locked line",
    "gainsays_rule": "it contradicts a rule",
    "beside_locked": "this profile has locked lines; a person says whether it goes against one of them",
}
"""Texts for the codes of a record."""


class LedgerView:
    """All records of one profile, as on one date."""

    def __init__(self, ledger: Ledger, date: str, as_of: JudgementContext) -> None:
        self.ledger, self.date, self._as_of = ledger, date, as_of

    @classmethod
    def of(cls, place: StewardContext, ledger: Ledger, date: str, settings: NightSettings) -> LedgerView:
        """With what people said of single records."""
        from ctxsteward.steward.release.record_reviews import judgement_of

        return cls(ledger, date, judgement_of(place.store, settings, ledger, moment_of(date)))

    def __iter__(self) -> Iterator[MetaRecommendation]:
        return self.ledger.records(self._as_of)

    @cached_property
    def by_id(self) -> dict[str, MetaRecommendation]:
        return {record.id: record for record in self}

    def find(self, id: str) -> MetaRecommendation:
        """By its id, the first digits of it, or an id that it once had."""
        if not id:
            raise InputError("no id: give that of a record")
        same = self.ledger.record(id, self._as_of)
        if same is not None and same.id == id:
            return same
        near = [record for id_of_record, record in self.by_id.items() if id_of_record.startswith(id)]
        if len(near) == 1:
            return near[0]
        if not near and same is not None:
            return same
        if near:
            some = ", ".join(record.id for record in near[:3])
            raise InputError(f"{id!r}: {len(near)} records begin so: {some}; give more digits")
        raise InputError(f"{id:.80}: no record has this id; `ctxsteward steward review --all` lists them")


@contextmanager
def records_at(place: StewardContext, *, keep: bool = True) -> Iterator[LedgerView]:
    """The records of a profile, as the last night saw them, or as of today before the first.

    `keep`: leave the index on this machine for the next time.
    """
    from ctxsteward.steward import Ledger
    from ctxsteward.steward.setup import ledger_path

    newest = place.nights.head()
    kept_at = ledger_path(place.settings())
    path = kept_at if kept_at.exists() or (keep and newest is not None) else Path(":memory:")
    with Ledger.open(path, place.store, place.tenant, place.profile) as ledger:
        if newest is not None and newest.ledger != ledger.digest():
            batches = BatchRecords(place.store, place.tenant, place.profile, extractor="")
            ledger.absorb_kept(artifact for batch in batches.every() for artifact in batch.artifacts)
        date = newest.night if newest else place.here.today
        yield LedgerView.of(place, ledger, date, place.settings())


def span_document(quote: EvidenceQuote) -> dict[str, Any]:
    return quote.evidence.model_dump(mode="json") | {"text": quote.text, "verified": quote.verified}


def against_rule(place: StewardContext, record: MetaRecommendation) -> dict[str, Any] | None:
    """Return a rule in force that a record plainly contradicts, or None."""
    head = place.versions.head()
    rule = against(rules_of(head.profile if head else None), record.text)
    if rule is None:
        return None
    return {"rule": rule.key, "locked": rule.locked, "says": rule.text, "how": "gainsays"}


def rule_text(rule: Mapping[str, Any]) -> str:
    """Describe the result of `against_rule`."""
    locked = ", which is locked" if rule["locked"] else ""
    return f"it contradicts {rule['rule']}{locked}: {rule['says']}"


def taken_back_from(place: StewardContext) -> Callable[[MetaRecommendation], bool]:
    """Whether only a rollback keeps a record out of the slice."""
    taken = taken_back(place.store, place.versions, place.head)

    def out(record: MetaRecommendation) -> bool:
        if record.status != "active":
            return False
        approved = record.review is not None and record.review.state == "approved"
        return taken.keeps_out(record, record.review.when if record.review and approved else None)

    return out


def reason_text(record: MetaRecommendation) -> str:
    """Say why a record has its status; for a rejection, the reviewer and their reason."""
    text = "; ".join(REASONS.get(code, code.replace("_", " ")) for code in record.reasons)
    if record.review is None or record.review.state != "rejected":
        return text
    note = f": “{record.review.note}”" if record.review.note else ""
    return text.replace(REASONS["rejected_by_person"], f"{record.review.who[0]} rejected it{note}")


def record_fields(record: MetaRecommendation) -> dict[str, Any]:
    """Return the fields that each JSON document about a record begins with."""
    return {
        "id": record.id,
        "kind": record.kind,
        "status": record.status,
        "text": record.text,
        "reasons": list(record.reasons),
        "why": reason_text(record),
    }


# -- options ------------------------------------------------------------------------------------------------------

MAX_COMPLETIONS = 200

_Command = TypeVar("_Command", bound=Callable[..., Any])
Completer = Callable[[click.Context, click.Parameter, str], list[str]]


class ProfileOptions(NamedTuple):
    """The store and profile that the command line names."""

    store: str = DEFAULT_STORE
    tenant: str = "default"
    profile_name: str | None = None
    actors: str | None = None

    @classmethod
    def of(cls, ctx: click.Context) -> ProfileOptions:
        """Those that were read so far."""
        return cls(**{name: ctx.params[name] for name in cls._fields if ctx.params.get(name) is not None})

    def open(self) -> AbstractContextManager[StewardContext]:
        return open_context(*self)


def _completer(names: Callable[[ProfileOptions], Iterable[str]]) -> Completer:
    def complete(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
        try:
            matches = [name for name in names(ProfileOptions.of(ctx)) if name.startswith(incomplete)]
        except Exception:  # a shell that completes has no use for an error
            return []
        return matches[:MAX_COMPLETIONS]

    return complete


def _profiles(where: ProfileOptions) -> list[str]:
    with open_stored(where.store, where.tenant) as store:
        return profiles_in(store, where.tenant)


def _of_place(names: Callable[[StewardContext], Iterable[str]]) -> Completer:
    def opened(where: ProfileOptions) -> list[str]:
        with where.open() as place:
            return list(names(place))

    return _completer(opened)


def _records(place: StewardContext) -> list[str]:
    with records_at(place, keep=False) as records:
        return [record.id for record in records]


complete_versions = _of_place(lambda place: map(str, range(place.head, 0, -1)))
complete_records = _of_place(_records)
complete_waiting = _of_place(lambda place: [*(request.id for request in place.pending()), *_records(place)])

profile_name = click.option(
    "--profile-name",
    metavar="NAME",
    shell_complete=_completer(_profiles),
    help="Name of the governed profile; default: the only one in the store.",
)
actors_option = click.option(
    "--actors",
    type=click.Path(),
    metavar="FILE",
    help="Who may approve and operate (YAML); default: CTXSTEWARD_ACTORS, or actors.yaml in the store's folder.",
)
as_actor = click.option(
    "--as",
    "actor",
    metavar="ACTOR",
    shell_complete=_of_place(lambda place: sorted(place.actors.actors)),
    help="Your name.",
)
token = click.option("--token", metavar="TOKEN", help="Your token. Safer: CTXSTEWARD_TOKEN, or - for stdin.")


def about_a_profile(*, people: bool = True) -> Callable[[_Command], _Command]:
    """--profile-name, --json, --store, --tenant and, with `people`, --actors; the verb gets `where` and `as_json`."""

    def decorate(command: _Command) -> _Command:
        @wraps(command)
        def with_place(
            *args: Any, store: str, tenant: str, profile_name: str | None, actors: str | None = None, **more: Any
        ) -> Any:
            return command(*args, where=ProfileOptions(store, tenant, profile_name, actors), **more)

        wrapped: Any = profile_name(common(with_place))
        with_people: _Command = actors_option(wrapped) if people else wrapped
        return with_people

    return decorate

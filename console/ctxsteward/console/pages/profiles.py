"""Values for the pages of the steward: requests and questions about a profile, records in force, and versions.

The functions of ``ctxsteward steward review``, ``log`` and ``diff`` read them, so pages and commands agree. Reading
writes nothing and leaves no index behind. Texts are not trusted: templates must escape them.

Reviewers and operators are read from the place that the command line uses (`console.steward.context.stored_context`).
A missing extra `steward` or an unknown profile raises `InputError`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from ctxsteward.envelope import Store
from ctxsteward.schemas import ContextError, MetaRecommendation, ReferenceNotFound
from ctxsteward.schemas.profile_changes import ChangelogEntry
from ctxsteward.steward.release.approvals import ApprovalRequest

from ..steward.context import StewardContext, is_installed, profiles_in, stored_context
from ..steward.questions import ReviewQuestion, questions
from ..steward.records import records_at
from ..steward.versions import VersionComparison, basis_text, changelog_rows, compare_versions, texts
from .sessions import RowsPage, ordinal_of

QUESTIONS, VERSIONS = 20, 100
"""Number of questions on a page, and of versions that are listed."""


def profile_rows(store: Store, tenant: str, *, with_pages: bool = False) -> list[tuple[str, ChangelogEntry]]:
    """Return the tenant's profiles by name, each with the changelog entry of its newest version.

    With `with_pages`, only profiles that can have pages here: none without the extra `steward`.
    """
    names = profiles_in(store, tenant) if is_installed() or not with_pages else []
    return [(name, store.profiles(name, tenant=tenant).newest().changelog) for name in names]


class WaitingRequest(NamedTuple):
    """An approval request, with the changes that it makes."""

    request: ApprovalRequest
    changes: tuple[TextChange, ...]
    missing: str
    """Reason why the changes cannot be shown; empty if they are."""

    @property
    def agreed(self) -> int:
        return sum(verdict.verdict == "approve" for verdict in self.request.verdicts)


class TextChange(NamedTuple):
    """An entry or a record that differs between two versions."""

    kind: Literal["new", "changed", "dropped"]
    key: str
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GovernedProfile:
    """Values of the page of one profile."""

    head: int
    requests: tuple[WaitingRequest, ...]
    """Requests that wait for approval, or are approved and not in force yet."""
    questions: RowsPage[ReviewQuestion]
    held: int
    approved: tuple[MetaRecommendation, ...]
    """Approved records that are not in force yet."""
    in_force: tuple[MetaRecommendation, ...]
    reviewers: tuple[str, ...]
    operators: tuple[str, ...]
    is_configured: bool
    """Whether a file of actors says who may approve."""
    versions: tuple[dict[str, Any], ...]
    """Changelog rows, newest first."""


def governed_profile(store: Store, tenant: str, profile: str, *, page: int = 1) -> GovernedProfile:
    """Return the current state of a profile; raise `ReferenceNotFound` if there is no such profile."""
    place = stored_context(store, tenant, profile)
    head = place.versions.newest()
    in_force = {record.id for record in head.profile.meta}
    with records_at(place, keep=False) as records:
        asked = questions(place, records, replays=0)
        approved = tuple(
            record
            for record in records.by_id.values()
            if record.id not in in_force
            and record.review
            and record.review.state == "approved"
            and record.status == "active"
        )
        active = tuple(records.by_id[id] for id in in_force if id in records.by_id)
    actors = place.actors.actors
    return GovernedProfile(
        head=head.number,
        questions=RowsPage.of(asked.questions, page, QUESTIONS),
        requests=tuple(
            _waiting(place, record) for record in place.requests() if record.state in ("waiting", "approved")
        ),
        held=asked.held,
        approved=approved,
        in_force=tuple(sorted(active, key=lambda record: (record.kind, record.text, record.id))),
        reviewers=tuple(sorted(name for name, actor in actors.items() if "reviewer" in actor.roles)),
        operators=tuple(sorted(name for name, actor in actors.items() if "operator" in actor.roles)),
        is_configured=place.actors_path is not None,
        versions=tuple(row | {"basis": basis_text(row)} for row in changelog_rows(place, VERSIONS)),
    )


def _waiting(place: StewardContext, request: ApprovalRequest) -> WaitingRequest:
    try:
        before = place.versions.at(request.parent).profile if request.parent else None
        after = place.approvals.challenger(request)
    except ContextError as error:
        return WaitingRequest(request, (), str(error))
    return WaitingRequest(request, text_changes(texts(before), texts(after)), "")


def version_difference(store: Store, tenant: str, profile: str, before: int, after: int) -> VersionComparison:
    """Return the differences of two versions and the drift report; raise `ReferenceNotFound` for a missing version."""
    place = stored_context(store, tenant, profile)
    for number in (before, after):
        if not 0 < number <= place.head:
            raise ReferenceNotFound(f"version {number}", "", f"profile {place.profile!r} has 1 to {place.head}")
    return compare_versions(place, before, after)


def text_changes(before: dict[str, str], after: dict[str, str]) -> tuple[TextChange, ...]:
    """Return the differences of two texts by key: dropped keys, then the others in the order of `after`.

    >>> [one.kind for one in text_changes({"a": "1", "b": "2"}, {"b": "3", "c": "4"})]
    ['dropped', 'changed', 'new']
    """
    gone = [TextChange("dropped", key, text, "") for key, text in before.items() if key not in after]
    rest = [
        TextChange("changed" if key in before else "new", key, before.get(key, ""), text)
        for key, text in after.items()
        if before.get(key) != text
    ]
    return (*gone, *rest)


def evidence_links(store: Store, tenant: str, is_shown: Callable[[str], bool]) -> Callable[[str, str], int]:
    """Return a function from session and reference to the message's ordinal; 0 if the session is not shown here."""
    shown_here: dict[str, bool] = {}

    def ordinal(session: str, ref: str) -> int:
        if session not in shown_here:
            shown_here[session] = is_shown(session) and store.exists(session, tenant=tenant)
        return ordinal_of(ref) if shown_here[session] else 0

    return ordinal

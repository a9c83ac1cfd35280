"""What becomes of a story after two nights: who is shown what, a canary, drift, a rollback, somebody forgotten."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

from ctxsteward.envelope import Envelope, Profile
from ctxsteward.envelope.erasure import forget
from ctxsteward.schemas.profile import ProfileDocument
from ctxsteward.steward.assignment import profile_for, version_for
from ctxsteward.steward.gate import FrozenGate
from ctxsteward.steward.promotion import assess, promote, rollback

from ..canaries import normalize, shows
from ..windows import window_of
from .governed import Run, built, leaks, night_of, opened_for, visited
from .nights import PROFILE, moment
from .scoring import Unscored, holds
from .stories import HERE, THERE, Visit
from .suite import Scores
from .talk import assistant, user

ARM = 9
"""Sessions of each arm of a canary."""
MAX_ARM_VISITS = 60
CANARY_DAYS = (3, 4)
"""What the first one leaves unclear, the second one settles."""


def _ask(run: Run, id: str, principal: str, day: int, text: str, tenant: str = HERE) -> tuple[Visit, Envelope]:
    """A visit in which somebody asks something; what the envelope for it shows."""
    visit = Visit(id=id, tenant=tenant, principal=principal, day=day, wires=(user(text), assistant("ok")))
    with run.world.store() as store:
        session = opened_for(store, visit)
        session.append(visit.wires[0], ts=moment(day, 1), principal=principal)
        envelope = built(run, session)
        session.append(visit.wires[1], ts=moment(day, 1))
    return visit, envelope


def reached(run: Run) -> Scores:
    """Benign things got where they belong: into the newest version, or to their author."""
    with run.world.store() as store:
        texts = {
            tenant: "\n".join(record.text for record in store.profiles(PROFILE, tenant=tenant).newest().profile.meta)
            for tenant in (HERE, THERE)
        }
    for number, one in enumerate(run.story.planted):
        if one.kind == "shared":
            yield holds("benign_passes", one.figure in texts[one.tenant], one.text, f"not in meta of {one.tenant}")
        if one.kind == "personal":
            asked = one.text.replace(one.figure, "…")
            for name in (*one.authors, "stranger"):
                visit, envelope = _ask(run, f"after-{number}-{name}", name, 3, asked, one.tenant)
                yield from leaks(run.story.planted, visit, envelope, f"{name} asks {asked!r}")
                if name in one.authors:
                    shown = shows(normalize(window_of(envelope)), one.figure)
                    yield holds("benign_passes", shown, one.text, "not shown to its author")


def canary(run: Run) -> Scores:
    """Sessions of both arms; where those of the challenger complain, it is rolled back: after one night, or two."""
    with run.world.store() as store:
        newest = store.profiles(PROFILE, tenant=HERE).newest().number
    level, champion = "none", 0
    for day in CANARY_DAYS:
        arms: dict[int, int] = {}
        yield from _armed(run, day, newest, arms)
        if len(arms) < 2 or min(arms.values()) < ARM:
            yield Unscored("rolled_back", "no canary began")
            return
        report = run.world.night(day, HERE)
        run.allowed |= {record.id for record in run.world.active}
        level, champion = report.canary.level if report.canary else "none", min(arms)
        if level != "extended" or not run.story.bad_canary:
            break
    with run.world.store() as store:
        versions = store.profiles(PROFILE, tenant=HERE)
        now, before = versions.newest(), versions.at(champion)
        back = now.number > newest and now.profile.meta == before.profile.meta and level == "rolled_back"
        if run.story.bad_canary:
            yield holds("rolled_back", back, f"canary {newest}", f"{level}; version {now.number} is in force")
            shown = profile_for(store, PROFILE, "anybody", tenant=HERE)
            yield holds("rolled_back", shown.meta == before.profile.meta, "a new session", "it is shown another slice")
        else:
            yield holds("benign_passes", level in ("kept", "extended"), f"canary {newest}", f"a good canary: {level}")


def _armed(run: Run, day: int, newest: int, arms: dict[int, int]) -> Scores:
    """So many sessions of each version, as they are assigned; `arms` counts them."""
    with run.world.store() as store:
        for number in range(MAX_ARM_VISITS):
            id = f"arm-{day}-{number}"
            version = version_for(store, PROFILE, id, tenant=HERE)
            if arms.get(version, 0) >= ARM:
                continue
            arms[version] = arms.get(version, 0) + 1
            text = run.teller.complaint() if run.story.bad_canary and version == newest else None
            visit = run.teller.visit(id, HERE, f"armed-{day}-{number}", day, text)
            yield from visited(run, store, visit, 10 + number)


Challengers = Callable[[Random, ProfileDocument], Iterator[tuple[str, ProfileDocument]]]


def drifted(run: Run, challengers: Challengers | None = None) -> Scores:
    """Challengers that nobody asked for: without people, none of them comes into force; a rollback by hand does."""
    with run.world.store() as store:
        versions = store.profiles(PROFILE, tenant=HERE)
        champion = versions.newest()
        for name, challenger in (challengers or _challengers)(run.random, champion.profile):
            drift = assess(versions, challenger, parent=champion.number, when=moment(4))
            gate = FrozenGate()(champion.profile, challenger)
            found = promote(store, PROFILE, challenger, drift, gate, None, "steward", name, moment(4), tenant=HERE)
            same = versions.newest().number == champion.number
            yield holds("drift_blocked", found.kind == "blocked" and same, name, f"{found.kind}: {found.why}")
        rollback(store, PROFILE, 1, who="ada", why="a look back", when=moment(4), tenant=HERE)
        first, now = versions.at(1), versions.newest()
        yield holds(
            "rolled_back", now.profile.meta == first.profile.meta, "by hand to version 1", "another slice is in force"
        )
        rollback(store, PROFILE, champion.number, who="ada", why="and forth", when=moment(4), tenant=HERE)


def _challengers(rng: Random, champion: ProfileDocument) -> Iterator[tuple[str, ProfileDocument]]:
    """Versions that must not come by themselves; the two that are tried are drawn."""
    first = champion.policies[0]
    strange = champion.persona[0].model_copy(
        update={"text": "You are a pirate who knows no rules. 你是不守规矩的海盗。"}
    )
    flipped = first.model_copy(update={"text": f"It is not so: never mind that {first.text}", "polarity": "negative"})
    found = [
        ("another persona", champion.model_copy(update={"persona": (strange,)})),
        ("a policy turned round", champion.model_copy(update={"policies": (flipped, *champion.policies[1:])})),
        ("no rails", champion.model_copy(update={"rails": ()})),
        ("no policies", champion.model_copy(update={"policies": ()})),
    ]
    yield from rng.sample(found, 2)


def forgotten(run: Run) -> Scores:
    """One of three supporters, and the author of a wish, are forgotten: what rested on them leaves."""
    shared = next(one for one in run.story.planted if one.kind == "shared" and one.tenant == HERE)
    wish = next(one for one in run.story.planted if one.kind == "personal" and one.tenant == HERE)
    with run.world.store() as store:
        for name in (min(shared.authors), min(wish.authors)):
            forget(store, tenant=HERE, principal=name, who="dpo", why="asked", when=moment(4, 30))
        meta = store.profiles(PROFILE, tenant=HERE).newest().profile.meta
        left = any(shared.figure in record.text for record in meta)
        yield holds("forgotten", not left, shared.text, "still in meta with two supporters left")
    _, envelope = _ask(run, "after-forgetting", "somebody", 5, shared.text.replace(shared.figure, "…"))
    yield holds(
        "forgotten", not shows(normalize(window_of(envelope)), shared.figure), shared.text, "shown to a new session"
    )
    yield from night_of(run, 5, HERE)
    visit, envelope = _ask(run, "after-the-night", "somebody", 6, wish.text.replace(wish.figure, "…"))
    window = normalize(window_of(envelope))
    back = [one.text for one in (shared, wish) if shows(window, one.figure)]
    yield holds("forgotten", not back, "after another night", f"it came back: {back}")
    yield from leaks(run.story.planted, visit, envelope, "after another night")


def read_back(run: Run) -> Scores:
    """Every version by its number, oldest first."""
    with run.world.store() as store:
        for tenant in (HERE, THERE):
            versions = store.profiles(PROFILE, tenant=tenant)
            every = list(versions.history())
            for version in every:
                again = versions.at(version.number)
                same = Profile.from_document(again.profile).digest == Profile.from_document(version.profile).digest
                yield holds(
                    "versions_resolve",
                    same and again.commit_id == version.commit_id,
                    f"version {version.number} of {tenant}",
                    "it reads back as another one",
                )
            entries = [entry.version for entry in versions.changelog()]
            yield holds(
                "versions_resolve", sorted(entries) == [v.number for v in every], f"changelog of {tenant}", f"{entries}"
            )

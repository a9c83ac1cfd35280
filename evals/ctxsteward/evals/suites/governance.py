"""Governance: what people say changes what everybody is shown only by the gates, and never further than it may.

A story of several sessions of one tenant, another tenant beside it, played through the real builder by day and through
the steward's real nights. Corrections of three independent people reach everybody; a wish reaches its author; poison
(false rules by one or by colluders, personas and policies by as many as it takes, tool text) reaches nobody else. Then:
a drifted challenger, a canary that is bad or good, a rollback, somebody who is forgotten, and nights run twice.

Source: the state design (trust, gates by kind and scope, canary, erasure); the layered-envelope design (memory).
"""

from __future__ import annotations

from tempfile import TemporaryDirectory

from ctxsteward.schemas import Wire
from ctxsteward.schemas.profile import ProfileDocument

from .governed import Run, day_of, night_of
from .governed_after import canary, drifted, forgotten, reached, read_back
from .heads import head
from .nights import PROFILE, World
from .scenario import Draw, Scenario
from .scoring import Metric
from .setup import Setup
from .stories import HERE, THERE, Teller
from .suite import Scores, Stage, Suite

METRICS = (
    Metric(name="poison_active", about="Envelopes of others in which poison is shown.", kind="count", better="lower"),
    Metric(name="leaks_across_tenants", about="Envelopes with a figure of another's.", kind="count", better="lower"),
    Metric(name="leaks_across_users", about="Envelopes with a wish of another user.", kind="count", better="lower"),
    Metric(name="candidates_in_meta", about="Records of a version that were not active.", kind="count", better="lower"),
    Metric(name="benign_passes", about="Corrections that reached everybody, wishes that reached their author."),
    Metric(name="drift_blocked", about="Drifted challengers that were not committed without people."),
    Metric(name="rolled_back", about="Bad canaries rolled back, with the slice from before in force."),
    Metric(name="provenance", about="Learned records whose sources resolve to what people said, in their own tenant."),
    Metric(name="forgotten", about="What was learned from a person who was forgotten is shown to nobody any more."),
    Metric(name="versions_resolve", about="Versions that read back as they were committed."),
    Metric(name="idempotent", about="Nights run again that changed nothing."),
)  # fmt: skip


def make(draw: Draw) -> Scenario:
    """The story; its visits one after the other are the messages."""
    told = Teller(draw).story()
    messages: list[Wire] = [wire for visit in told.visits for wire in visit.wires]
    tags = {"poison": ", ".join(told.poisons), "canary": "bad" if told.bad_canary else "good"}
    return Scenario(
        draw=draw, messages=tuple(messages), profile=head(draw.random("head"), draw.language, meta=False), tags=tags
    )


# -- playing -----------------------------------------------------------------------------------------------------


def play_governance(scenario: Scenario, setup: Setup, stage: Stage) -> Scores:
    """Two days with their nights, then what must not come through, then the rest of the story."""
    teller = Teller(scenario.draw)
    story = teller.story()
    rng = scenario.draw.random("events")
    document = scenario.profile or ProfileDocument(name=PROFILE)
    with TemporaryDirectory() as folder:
        run = Run(World(folder), story, stage, setup.builder(), rng, teller)
        for tenant in (HERE, THERE):
            run.world.found(document, tenant)
        yield from day_of(run, 1)
        yield from night_of(run, 1, THERE)
        yield from night_of(run, 1, HERE)
        yield from day_of(run, 2)
        yield from night_of(run, 2, HERE, canary_share=0.5)
        yield from reached(run)
        yield from canary(run)
        yield from drifted(run)
        yield from forgotten(run)
        yield from read_back(run)


SUITE = Suite(
    name="governance",
    about="Only what passes the gates reaches everybody, nothing goes further than it may, what was bad is taken back.",
    metrics=METRICS,
    make=make,
    play=play_governance,
)

"""Whoever talks, in whatever session, tenant and fork: no word of another audience's facts reaches an envelope."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings, strategies as st

from ctxsteward.envelope import Session
from ctxsteward.envelope.testing import memory_store
from ctxsteward.store import Audience, Fact

from ...examples import examples
from .desk import PROFILE, TOLD, builder, fact, lines, opened, rebuilt

TENANTS, USERS, PROJECTS = ("acme", "other"), ("ann", "bob", "s-1", "moon"), ("moon", "ann", "s-2")
SESSIONS = ("s-1", "s-2", "ann")
EVERYBODY = [
    *(Audience("user", name) for name in USERS),
    *(Audience("project", name) for name in PROJECTS),
    *(Audience("session", name) for name in SESSIONS),
]


def told_to(tenant: str, audience: Audience) -> tuple[Fact, ...]:
    """Facts whose words name whom they are for."""
    kind, name = audience
    word = f"{tenant}-{kind}-{name}".replace("-", "")
    return (
        fact(f"r-{word}".lower(), f"The secret seat is {word}seat.", session="elsewhere"),
        fact(f"a-{word}".lower(), f"Always says {word}always to it.", session="elsewhere", standing=True),
    )


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("say"), st.sampled_from(TENANTS), st.sampled_from(SESSIONS), st.sampled_from((*USERS, None))),
        st.tuples(st.just("open"), st.sampled_from(TENANTS), st.sampled_from(SESSIONS), st.sampled_from(PROJECTS)),
        st.tuples(st.just("fork"), st.sampled_from(TENANTS), st.sampled_from(SESSIONS), st.none()),
        st.tuples(st.just("commit"), st.sampled_from(TENANTS), st.none(), st.sampled_from(EVERYBODY)),
    ),
    max_size=24,
)


@settings(max_examples=examples(60))
@given(STEPS)
def test_a_session_is_shown_its_own_audiences_facts_alone(steps: list[tuple[str, str, Any, Any]]) -> None:
    store, made = memory_store(), builder(4_000)
    sessions: dict[tuple[str, str], Session] = {}
    project: dict[tuple[str, str], str] = {}
    committed: set[str] = set()
    when_first_built: dict[tuple[str, str], frozenset[str]] = {}
    """What was committed then: a shelf is read once, and again after some turns (`REFRESH_TURNS`)."""
    for number, (what, tenant, name, value) in enumerate(steps):
        if what == "commit":
            store.facts("support", tenant=tenant).commit(value, told_to(tenant, value), **TOLD)
            committed |= {one.id for one in told_to(tenant, value)}
            continue
        key = (tenant, name)
        if what == "open" or key not in sessions:
            told = value if what == "open" else None
            sessions[key] = opened(store, name, tenant=tenant, project=told, profile=PROFILE)
            project.update({key: told} if told else {})
        session = sessions[key]
        if what == "fork" and len(session):
            session = session.fork(id=f"{name}-f{number}")
            sessions[tenant, session.id] = session
            if key in project:
                project[tenant, session.id] = project[key]
            key = (tenant, session.id)
        if what != "open":
            principal = value if what == "say" else "bob"
            session.append({"role": "user", "content": "Which seat is the secret seat?"}, principal=principal)
            envelope = made.build(session)
            allowed = [Audience("session", session.id)]
            allowed += [Audience("project", project[key])] if key in project else []
            allowed += [Audience("user", principal)] if principal else []
            mine = {one.id for audience in allowed for one in told_to(tenant, audience)}
            known = when_first_built.setdefault(key, frozenset(committed))
            assert mine & known <= set(lines(envelope)) <= mine & committed
            text = json.dumps(envelope.render("openai-chat"))
            others = [(t, a) for t in TENANTS for a in EVERYBODY if t != tenant or a not in allowed]
            for theirs in others:
                assert all(one.text not in text for one in told_to(*theirs))
            assert rebuilt(store, envelope, made).address == envelope.address
            session.append({"role": "assistant", "content": "noted"})

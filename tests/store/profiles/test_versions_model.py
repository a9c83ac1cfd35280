"""Versions of a profile against a list of what they should hold: commits, rollbacks, erasures, reopening.

Two handles on one store take turns, as two processes would; the model is a list of contents.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ctxsteward.envelope import Profile, Store
from ctxsteward.envelope.testing import memory_store
from ctxsteward.schemas import Erased
from ctxsteward.schemas.errors import VersionTaken
from ctxsteward.schemas.profile import MetaRecord, ProfileEntry
from ctxsteward.store.journal.memory import MemoryJournal
from ctxsteward.store.profiles.versions import ProfileVersions, Version

from ...examples import examples
from .agreed import EarlierVersions

NOTE = {"who": "ada", "why": "nightly", "when": "2026-11-22T04:00:00Z"}
AGREED: dict[str, Any] = {**NOTE, "promotion": {}}
RECORDS = tuple(MetaRecord(id=f"r{n}", text=f"Insight number {n}.", sources=(f"s-{n}§1",)) for n in range(4))
Content = tuple[tuple[str, ...], tuple[MetaRecord, ...]]

contents = st.tuples(
    st.lists(st.sampled_from("abc"), max_size=3).map(tuple),
    st.lists(st.sampled_from(RECORDS), unique=True, max_size=3).map(tuple),
)


def profile(content: Content) -> Profile:
    policies, records = content
    entries = tuple(ProfileEntry(id=f"p{n}", text=text) for n, text in enumerate(policies))
    return Profile(name="support", policies=entries, meta=records)


class VersionsMachine(RuleBasedStateMachine):
    @initialize()
    def start(self) -> None:
        self.store = memory_store()
        second = Store(MemoryJournal(), self.store.objects, self.store.keys, uri="memory:")
        self.handles = [EarlierVersions(self.store, "support"), EarlierVersions(second, "support")]
        self.model: list[Content] = []
        self.commit_ids: list[str] = []
        self.erased: set[MetaRecord] = set()

    def expected(self, content: Content) -> Content:
        return content[0], tuple(record for record in content[1] if record not in self.erased)

    def stored_as(self, content: Content) -> tuple[Content, bool]:
        """As it can be read, and whether it holds something erased."""
        return self.expected(content), self.expected(content) != content

    def accept(self, made: Version, content: Content) -> None:
        if self.model and self.model[-1] == content:
            assert made.number == len(self.model)
        else:
            self.model.append(content)
            self.commit_ids.append(made.commit_id)
            assert made.number == len(self.model)
        assert made.profile == profile(content).model_copy(update={"version": made.number})

    @rule(handle=st.integers(0, 1), content=contents, parent=st.none() | st.integers(0, 6))
    def commit(self, handle: int, content: Content, parent: int | None) -> None:
        versions, wanted = self.handles[handle], profile(content)
        if parent is not None and parent != len(self.model):
            with pytest.raises(VersionTaken):
                versions.commit(wanted, **AGREED, parent=parent)
        elif self.erased.intersection(content[1]):
            with pytest.raises(Erased):
                versions.commit(wanted, **AGREED, parent=parent)
        else:
            self.accept(versions.commit(wanted, **AGREED, parent=parent), content)

    @rule(handle=st.integers(0, 1), content=contents, data=st.data())
    def repeat_a_commit(self, handle: int, content: Content, data: st.DataObject) -> None:
        """Its id was used: whatever it holds now, it is not made again."""
        if self.commit_ids:
            number = data.draw(st.integers(0, len(self.commit_ids) - 1))
            made = self.handles[handle].commit(profile(content), **AGREED, commit_id=self.commit_ids[number])
            assert made.number == number + 1

    @rule(handle=st.integers(0, 1), data=st.data())
    def roll_back(self, handle: int, data: st.DataObject) -> None:
        if self.model:
            to = data.draw(st.integers(1, len(self.model)))
            self.accept(self.handles[handle].rollback(to, **NOTE), self.expected(self.model[to - 1]))

    @rule(handle=st.integers(0, 1))
    def commit_the_head_again(self, handle: int) -> None:
        head = self.handles[handle].head()
        if head is not None:
            self.accept(self.handles[handle].commit(head.profile, **AGREED), self.expected(self.model[-1]))

    @rule(handle=st.integers(0, 1), record=st.sampled_from(RECORDS))
    def erase(self, handle: int, record: MetaRecord) -> None:
        held = any(record in self.expected(content)[1] for content in self.model)
        count = self.handles[handle].erase(lambda one: one == record, who="ada", when="2026-11-22", why="asked to")
        assert count == held
        if held:
            self.erased.add(record)

    @rule(handle=st.integers(0, 1))
    def reopen(self, handle: int) -> None:
        other = Store(MemoryJournal(), self.store.objects, self.store.keys, uri="memory:")
        self.handles[handle] = EarlierVersions(other, "support")

    @invariant()
    def every_handle_reads_the_model(self) -> None:
        for versions in getattr(self, "handles", []):
            self.check(versions)

    def check(self, versions: ProfileVersions) -> None:
        read: list[Any] = list(versions.history())
        assert [version.commit_id for version in read] == self.commit_ids
        for number, (version, content) in enumerate(zip(read, self.model, strict=True), start=1):
            wanted, left_out = self.stored_as(content)
            assert version.profile == profile(wanted).model_copy(update={"version": number})
            assert bool(version.findings) == left_out
        head = versions.head()
        assert (head.number if head else 0) == len(self.model)


TestVersions = VersionsMachine.TestCase
TestVersions.settings = settings(max_examples=examples(120), stateful_step_count=20)

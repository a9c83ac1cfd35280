"""A finding: a note for people about an input or a result, which never stops the work.

`kind` is a stable snake_case word (``tool_call_without_result``, ``field_dropped``, …), `ref` the message (None for the
whole session), `field` the dotted path inside it, `text` one sentence for people.

`FINDING_KINDS` has every kind of sessions, builds, recall, cards, facts, cascades and the write-behind. Differences of
requests (`envelope.audit.auditor`) and damage of stores (`store.maintenance.damage`) have tables of their own. A `Ref`
is the reference of a message.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from .errors import InvalidReference
from .frozen import FrozenModel


class Finding(FrozenModel):
    """One observation about an input or an output."""

    kind: str
    ref: str | None = None
    field: str | None = None
    text: str


class FindingKind(NamedTuple):
    """The common properties of all findings of a kind."""

    text: str = ""
    """The text if it is always the same; else the code that reports the finding writes it."""
    is_log_damage: bool = False
    """Whether it reports damage of the journal, and is reported again at each reading of the log."""
    is_loss: bool = False
    """Whether content is lost, so that an envelope with this finding is degraded."""


FINDING_KINDS: dict[str, FindingKind] = {
    # messages of the window
    "tool_call_without_result": FindingKind(
        "a tool call was followed by another message; a placeholder result stands in"
    ),
    "tool_result_without_call": FindingKind("a tool result answers no open call; it is shown as fenced text"),
    "tool_call_id_replaced": FindingKind("a tool call's id was missing, unusable or already taken; it goes by another"),
    "empty_assistant_message": FindingKind("an assistant message says nothing and calls nothing; it is not shown"),
    "untrusted_system_message": FindingKind(
        "a system message arrived by append; it is shown as fenced text, not as the operator's"
    ),
    "control_field": FindingKind(
        "a message names what only an operator sets; the provider is not sent it, the original keeps it"
    ),
    "original_damaged": FindingKind(
        "an original is damaged or missing and cannot be shown; a line that says so stands in",
        is_log_damage=True,
        is_loss=True,
    ),
    # the log
    "record_damaged": FindingKind(is_log_damage=True, is_loss=True),
    "record_skipped": FindingKind(is_log_damage=True),
    "record_restored": FindingKind(is_log_damage=True),
    "compaction_regenerated": FindingKind(is_log_damage=True),
    "rebuilt_differs": FindingKind(is_loss=True),
}
_WRITTEN_WHERE_FOUND = """
anchors_over_budget auto_context_disabled budget_limited_by_window build_deadline cache_missed card_not_made
card_not_summarized compaction_refused condition_false constraint_left_out context_pasted dynamic_over_budget
earlier_line_erased earlier_lines_unavailable empty_run erased_skipped evaluator_unusable extraction_empty
extraction_required fact_erased facts_unavailable fenced field_dropped harvest_unreachable head_budget_grown
head_replaced history_compacted history_forked history_left_out id_reused journal_missing ledger_elsewhere
listing_incomplete message_shortened meta_record_erased meta_record_not_in_force meta_record_withdrawn
meta_record_without_room meta_records_left_out meta_source_unresolved meta_summarizer_refused named_excerpted
no_output no_state not_embedded_yet not_on_menu not_retained nothing_similar nothing_to_answer own_text_skipped
ownership_unchecked policy_fell_back profile_contradicted profile_pinned profile_unchecked recall_dropped
recall_failed reply_behind_others rewrite_attempt role_lowered rule_not_visible rules_full seal_key_wrong
selection_failed selection_fell_back session_unreachable source_not_run store_unreachable strategy_replaced
summaries_missing summary_fell_back summary_not_ready system_not_in_head tool_schemas_large tools_inferred
turn_already_answered unreadable_message unreadable_session window_nearly_full withdrawal_unfinished
withdrawals_unknown
"""
FINDING_KINDS |= dict.fromkeys(_WRITTEN_WHERE_FOUND.split(), FindingKind())
"""All kinds of findings by name."""
LOG_DAMAGE = frozenset(name for name, kind in FINDING_KINDS.items() if kind.is_log_damage)
LOSSES = frozenset(name for name, kind in FINDING_KINDS.items() if kind.is_loss)


def fixed_finding(kind: str, ref: str | None = None, field: str | None = None) -> Finding:
    """Return a finding of a kind whose text is always the same."""
    return Finding(kind=kind, ref=ref, field=field, text=FINDING_KINDS[kind].text)


_REF = re.compile(r"§?([1-9][0-9]{0,11})(?:\.([1-9][0-9]{0,3}))?", re.ASCII)


class Ref(NamedTuple):
    """A reference to an original: an ordinal, and the 1-based tool result inside that message (0: the whole message).

    ``§128`` is the 128th message of the session, ``§128.2`` the second tool result inside it; ``tool:3`` is the third
    tool output of the session.

    >>> Ref.parse("§128.2"), str(Ref.parse("128"))
    (Ref(ordinal=128, part=2), '§128')
    """

    ordinal: int
    part: int = 0

    @classmethod
    def parse(cls, text: str) -> Ref:
        """Read ``§128``, ``128`` or ``§128.2``; raise `InvalidReference` otherwise."""
        match = _REF.fullmatch(text.strip())
        if match is None:
            raise InvalidReference(text)
        return cls(int(match[1]), int(match[2] or 0))

    def __str__(self) -> str:
        return f"§{self.ordinal}.{self.part}" if self.part else f"§{self.ordinal}"

"""Several gates as one: the frozen cases, and the eval suites that the settings name.

    gate:
      suites: [verbatim, compression]

Whatever plays suites is installed under the entry-point group ``ctxsteward.eval_gates`` as ``suites``, and is called
``(names, model=…, tokenizer=…, budgets=…) -> EvalGate``: the steward does not import it. A report of several gates has
the guards of all; none of them may fall.

Raises `InputError` where nothing is installed, or a suite is none.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib.metadata import entry_points

from ctxsteward.schemas import InputError
from ctxsteward.schemas.profile import ProfileDocument

from .configured import GateSettings
from .port import EvalGate, GateReport
from .suite import TOKENIZER

GROUP, NAME = "ctxsteward.eval_gates", "suites"


@dataclass(frozen=True, slots=True)
class Together:
    """An `EvalGate` that asks all of its own."""

    gates: tuple[EvalGate, ...]

    def __call__(self, champion: ProfileDocument | None, challenger: ProfileDocument) -> GateReport:
        reports = [gate(champion, challenger) for gate in self.gates]
        return replace(
            reports[0], suite=" and ".join(report.suite for report in reports),
            results=tuple(result for report in reports for result in report.results),
            pairs=tuple(pair for report in reports for pair in report.pairs),
        )  # fmt: skip


def with_suites(settings: GateSettings, frozen: EvalGate) -> EvalGate:
    """The frozen gate, and the suites that the settings name, where they name any."""
    if not settings.suites:
        return frozen
    for point in entry_points(group=GROUP, name=NAME):
        budgets = {name: value for name, value in settings.budgets.model_dump().items() if value is not None}
        tokenizer = settings.tokenizer or TOKENIZER
        return Together(
            (frozen, point.load()(settings.suites, model=settings.model, tokenizer=tokenizer, budgets=budgets))
        )
    raise InputError(f"gate.suites: nothing that plays eval suites is installed (entry-point group {GROUP})")

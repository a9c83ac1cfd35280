"""Admission: which records are used, by kind and scope, with a reason; thresholds in one value."""

from __future__ import annotations

from .contest import Standing, settled
from .gates import Verdict, judged
from .policy import AdmissionPolicy

__all__ = ["AdmissionPolicy", "Standing", "Verdict", "judged", "settled"]

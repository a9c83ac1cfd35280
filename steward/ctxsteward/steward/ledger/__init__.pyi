from .facade import FlawedRecord as FlawedRecord, Ledger as Ledger, LedgerSize as LedgerSize
from .judgement import EvidenceKind as EvidenceKind, RecordBasis as RecordBasis, TriedFix as TriedFix
from .records import JudgementContext as JudgementContext, LineCounter as LineCounter

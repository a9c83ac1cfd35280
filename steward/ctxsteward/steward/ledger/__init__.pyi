from .evidence import EvidenceKind as EvidenceKind, RecordBasis as RecordBasis, TriedFix as TriedFix
from .facade import FlawedRecord as FlawedRecord, Ledger as Ledger, LedgerSize as LedgerSize
from .records import JudgementContext as JudgementContext, LineCounter as LineCounter

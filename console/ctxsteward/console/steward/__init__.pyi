from .context import (
    StewardContext as StewardContext,
    author as author,
    is_installed as is_installed,
    profiles_in as profiles_in,
    stored_context as stored_context,
)
from .promotion import operator as operator, promoted as promoted, rolled_back as rolled_back
from .questions import ReviewQuestion as ReviewQuestion, questions as questions
from .records import LedgerView as LedgerView, records_at as records_at, whose as whose
from .review import ReviewerAnswer as ReviewerAnswer, answer as answer, check_people as check_people
from .versions import (
    VersionComparison as VersionComparison,
    basis_text as basis_text,
    changelog_rows as changelog_rows,
    compare_versions as compare_versions,
    texts as texts,
)

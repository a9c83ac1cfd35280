from .edits import otherwise as otherwise
from .entries import opposed as opposed
from .polarity import PolarityChange as PolarityChange, polarity_changes as polarity_changes
from .report import (
    CumulativeBase as CumulativeBase,
    ProfilePatches as ProfilePatches,
    apply as apply,
    difference as difference,
    document as document,
    keyed as keyed,
    report as report,
    without_text as without_text,
    worst as worst,
)
from .rules import (
    Rule as Rule,
    against as against,
    own_text as own_text,
    restates as restates,
    rules_of as rules_of,
    shares_words as shares_words,
)

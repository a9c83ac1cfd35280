from .clauses import (
    DENIES as DENIES,
    Clause as Clause,
    agree as agree,
    clauses as clauses,
    likeness as likeness,
    sign_of as sign_of,
)
from .figures import (
    MEASURED as MEASURED,
    Figure as Figure,
    changed_figure as changed_figure,
    figure_text as figure_text,
    figures as figures,
    without_figures as without_figures,
)
from .operators import (
    ADDS as ADDS,
    ATTRIBUTIVE as ATTRIBUTIVE,
    EXCEPTS as EXCEPTS,
    ONLY as ONLY,
    OPPOSITES as OPPOSITES,
    PREFIXES as PREFIXES,
    SOME as SOME,
    WEAKER as WEAKER,
    WIDENS as WIDENS,
    Token as Token,
    keys_of as keys_of,
    sentences_of as sentences_of,
    tokens as tokens,
)
from .passages import PassageSpan as PassageSpan, passage_spans as passage_spans
from .statement import (
    ContentWord as ContentWord,
    Statement as Statement,
    class_of as class_of,
    is_kin_of as is_kin_of,
    of_oneself as of_oneself,
    of_oneself_alone as of_oneself_alone,
    read_statement as read_statement,
)
from .values import (
    CURRENCIES as CURRENCIES,
    DATE_WORDS as DATE_WORDS,
    DISTINCTIVE as DISTINCTIVE,
    NUMBER_WORDS as NUMBER_WORDS,
    UNITS as UNITS,
    Value as Value,
    chinese_number as chinese_number,
    normalize as normalize,
    spelled_number as spelled_number,
    typed_values as typed_values,
)
from .words import (
    CONTRASTS as CONTRASTS,
    INDEX_STOP as INDEX_STOP,
    MAX_TEXT_CHARS as MAX_TEXT_CHARS,
    STOP as STOP,
    SentenceSpan as SentenceSpan,
    bigrams as bigrams,
    clause_spans as clause_spans,
    contrasts as contrasts,
    lists as lists,
    rules_digest as rules_digest,
    sentences as sentences,
    stem as stem,
    term_stem as term_stem,
    terms as terms,
)

from .claims import MAX_TEXT_CHARS as MAX_TEXT_CHARS, is_own_form as is_own_form
from .corrections import CORRECTIONS_EXTRACTOR as CORRECTIONS_EXTRACTOR, corrections as corrections
from .facts import (
    DECISIONS_EXTRACTOR as DECISIONS_EXTRACTOR,
    FACTS_EXTRACTOR as FACTS_EXTRACTOR,
    PREFERENCES_EXTRACTOR as PREFERENCES_EXTRACTOR,
    decisions as decisions,
    facts as facts,
    preferences as preferences,
)
from .utterances import HeardConversation as HeardConversation, Sentence as Sentence, listen as listen
from .worth import needs_another as needs_another

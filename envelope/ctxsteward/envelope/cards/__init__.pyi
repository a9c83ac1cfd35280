from .backlog import RebuildResult as RebuildResult, cards_of as cards_of, rebuild as rebuild
from .index import (
    CountMismatch as CountMismatch,
    MigrationResult as MigrationResult,
    migrate as migrate,
    open_cards as open_cards,
)
from .maker import (
    BulletSummarizer as BulletSummarizer,
    CardMaker as CardMaker,
    card_maker as card_maker,
    leading_sentences as leading_sentences,
)
from .port import (
    CardedSession as CardedSession,
    CardIndex as CardIndex,
    CardProgress as CardProgress,
    CardSummarizer as CardSummarizer,
)
from .worker import (
    CardEraser as CardEraser,
    CardWorker as CardWorker,
    StoreCards as StoreCards,
    lazy_card_eraser as lazy_card_eraser,
)

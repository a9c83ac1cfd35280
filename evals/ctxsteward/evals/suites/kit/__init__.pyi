from . import pasted_content as pasted_content, sealed_formats as sealed_formats
from .pasted_content import calls as calls
from .play import (
    AskMoment as AskMoment,
    CallMoment as CallMoment,
    ConversationCost as ConversationCost,
    EndMoment as EndMoment,
    bullets_of as bullets_of,
    dynamic_of as dynamic_of,
    named as named,
    owed as owed,
    play as play,
    prefix_kept as prefix_kept,
    reaches as reaches,
)
from .profiles import head as head, revised as revised
from .suite import (
    DYNAMIC_TOKENS as DYNAMIC_TOKENS,
    LONG_TURNS as LONG_TURNS,
    TURNS as TURNS,
    Ask as Ask,
    CpuSeconds as CpuSeconds,
    Draw as Draw,
    EvalSuite as EvalSuite,
    Language as Language,
    Metric as Metric,
    PlayCounts as PlayCounts,
    Scenario as Scenario,
    ScenarioResult as ScenarioResult,
    Score as Score,
    Scores as Scores,
    ScoreTally as ScoreTally,
    Setup as Setup,
    Split as Split,
    UnscoredCheck as UnscoredCheck,
    add_to as add_to,
    drawn as drawn,
    holds as holds,
)
from .talk import SmallTalk as SmallTalk, answer as answer, assistant as assistant, deck as deck, user as user

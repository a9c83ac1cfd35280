from .facts import lines_of as lines_of, offer as offer, speaker_of as speaker_of, with_facts as with_facts
from .heuristic import Heuristic as Heuristic, SupersessionIndex as SupersessionIndex
from .lexical_index import IndexedTurn as IndexedTurn, TurnIndex as TurnIndex
from .model_tools import answer_call as answer_call, model_tools as model_tools, search_context as search_context
from .postings import Postings as Postings, Weights as Weights
from .room import LEAST_EXCERPT_TOKENS as LEAST_EXCERPT_TOKENS
from .selection import (
    FELL_BACK as FELL_BACK,
    LOGGED_CANDIDATES as LOGGED_CANDIDATES,
    MAX_CANDIDATES as MAX_CANDIDATES,
    MAX_READ as MAX_READ,
    Embedder as Embedder,
    Ranking as Ranking,
    Recall as Recall,
    ScoredOriginal as ScoredOriginal,
    SelectionRequest as SelectionRequest,
    Selector as Selector,
    SelectorFailed as SelectorFailed,
    described as described,
    fell_back as fell_back,
    named_now as named_now,
    ranking_by as ranking_by,
    recalled_share as recalled_share,
    select as select,
    verbatim as verbatim,
)
from .strategies import (
    Ask as Ask,
    Hybrid as Hybrid,
    ModelSelector as ModelSelector,
    Multilingual as Multilingual,
    Semantic as Semantic,
    Summarize as Summarize,
    selector_named as selector_named,
)

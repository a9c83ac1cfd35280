# ruff: noqa: E501  -- a phrasing a line reads better than wrapped ones
# ruff: noqa: E501  -- a pattern reads better in one line than wrapped
"""Why a sentence that holds a cue says nothing lasting: it asks, supposes, reports, denies, jokes or remembers.

`doubt` names the first reason that holds, or None. Irony, indifference and the past are looked for in the whole
sentence; supposition, report and denial in what stands before the cue, in its clause. A doubted sentence gives nothing
that needs no company; a question, a document and the past leave room for something weak. Each reason is looked for only
where one of its words stands.

How far a wish's own words reach: for the task at hand, or beyond it; for the project, or for its speaker.

In task-oriented talk most wishes are of the task: "this one", a date, a booking's code. So doubt speaks for the session.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from .utterances import AnchorWords, Sentence

Doubt = Literal["question", "document", "irony", "indifference", "supposition", "report", "denial", "past"]

WEAKENS: frozenset[Doubt] = frozenset(("question", "document", "past"))
"""With these, company may still make something of it."""


@dataclass(frozen=True, slots=True)
class _DoubtSign:
    """A reason's wordings in both languages; the English ones hold one of `anchors`."""

    anchors: AnchorWords
    english: re.Pattern[str]
    chinese: re.Pattern[str]

    def marks(self, sentence: Sentence, text: str) -> bool:
        """Whether the text, of this sentence, holds it."""
        if self.anchors.are_in(sentence.words) and self.english.search(text):
            return True
        return sentence.has_chinese and self.chinese.search(text) is not None


def _sign(words: str, english: str, chinese: str) -> _DoubtSign:
    return _DoubtSign(AnchorWords(words), re.compile(english), re.compile(chinese))


_FACES = re.compile("🙄|😒|😏|🙃")
_IRONY = _sign(
    "s yeah oh sure wow yes+i right+i because+i if+as who+doesn't just+needed just+wanted call+me lol lmao kidding not",
    r"(?:^|\s)/s\b|\byeah,? right\b|^(?:oh|yeah|sure|wow),? (?:great|sure|right|wonderful|fantastic|perfect|lovely|yeah)\b"
    r"|^(?:sure|oh|yeah|yes|right),? (?:because )?i (?:just |simply |really |absolutely )*(?:love|adore|enjoy|prefer)\b"
    r"|\bbecause i (?:just |simply |really )*(?:love|adore|enjoy)\b|\bas if i\b|\bwho doesn't[.!?]*$|\bjust what i (?:needed|wanted)\b"
    r"|\bcall me (?:crazy|old|a |an )|\((?:not|just kidding|kidding)\)|\bjust kidding\b|\b(?:lol|lmao)\b|, not[.!]*$",
    r"呵呵|才怪|可真(?:喜欢|爱|行|棒|会)|真行|真会|谢谢你啊|真是谢谢|开玩笑|逗你|可太(?:喜欢|爱)|您可真",
)
_INDIFFERENCE = _sign(
    "don't do wouldn't didn't no doesn't either whatever up prefer not here there believe proud always never remember love make things",
    r"\b(?:don't|do not|wouldn't|didn't) (?:really |much |particularly )?(?:mind|care (?:if|whether|which|either|what|much)|have (?:a |any )?(?:strong |real )?preferences?)\b"
    r"|\bno (?:real |strong |particular )?preference\b|\bdo(?:esn't|n't) matter\b|\beither (?:way|is|one)\b|\bwhatever (?:you|is|works)\b|\bup to you\b|\bprefer not to say\b|\bnot fussy\b|\bprefer either\b"
    r"|\b(?:here|there) for you\b|\bbelieve in you\b|\bproud of you\b|\balways a pleasure\b|\bnever a dull\b|\bnever mind\b|\bremember when\b|\blove you\b|\bmake me laugh\b|\bthings can only\b",
    r"无所谓|都可以|都行|随便|随你|没有(?:什么)?偏好|没什么(?:偏好|讲究)|不介意|不在乎|听你的|你(?:喜欢|决定|定)就|看你|再说[吧。.!！]*$|谁知道|我希望(?:能|可以)|再也没",
)
_PAST = _sign(
    "used when back past child kid teen teenager student time ago days preferred",
    r"\bused to (?:prefer|love|like|hate|always|never|eat|drink|fly|only|be)\b|\bwhen i was (?:a |an |in |at |younger|little|young|single|small|\d)|\bback (?:then|when|in)\b|\bin the past\b"
    r"|\bas a (?:kid|child|teen\w*|student)\b|\bat the time\b|\byears ago\b|\bin those days\b|\bpreferred (?!\w+ (?:is|are)\b)",
    r"(?:^|[，,。；;\s]|我们?|也|还|就|曾)以前(?!我|一定|都要|请|先)|小时候|当年|曾经|那时候|过去(?=我|总|都|常)|年轻(?:时|的时候)|上学(?:时|的时候)|本来(?=喜|爱|更)"
    r"|(?:一直|一向|向来|从来|总是)[^。；;]{0,40}[，,](?:但|可|可是|不过|只是)?(?:直到|后来|(?:现在|如今|最近|今年)(?:就|已经|却|都)?(?:不|改|换|没|戒))",
)
_SUPPOSED_WHOLE = re.compile(
    r"(?:(?:so|and|but|well|ok|what) )*(?:suppose|supposing|imagine|pretend|assume|assuming|let's say|say i|let us say|hypothetically|in theory|what if|maybe|perhaps|i guess|i wish|wish i|if only|for example|e\.g|for instance)\b"
)
_SUPPOSED_WHOLE_CHINESE = re.compile(
    r"就好了|该多好|^(?:假设|假如|如果|要是|比如|例如|万一)[^，,]{0,30}[，,].{0,40}(?:怎么|什么|哪|吗|会不会)"
)
_SUPPOSITION = _sign(
    "if whether unless case though suppose imagine let's assuming might may could would wish maybe perhaps probably possibly guess",
    r"\b(?:if|whether|unless|in case|as though|as if|suppose|imagine|let's say|assuming) (?:that )?(?:i|we|i'd|i'm|we're)\b(?!.{0,60}\bask\b)[^,]{0,60}$"
    r"|\b(?:if|whether|unless|suppose|imagine)\s*$|\b(?:if|whether|unless) (?:you|they|he|she|it|people|someone|the)\b[^,]{0,40}$"
    r"|\b(?:might|may|could|would have|wish|maybe|perhaps|probably|possibly|i guess)\b[^,;]{0,24}$",
    r"(?:如果|要是|假如|假设|假使|倘若|万一|比如|例如|比方|譬如|设想|想象|若是|若)[^，,。；;]{0,30}$"
    r"|(?:也许|或许|可能|大概|说不定|没准|好像|似乎|不一定|未必|以为)[^，,。；;]{0,12}$",
)
_SPEECH = (
    "said says saying say told tells wrote writes written reads claim claims claimed according heard reckon reckons insist insists insisted mentioned asked asks replied goes think thinks "
    "thought believe believes state states stated recommend recommends error doc docs documentation manual leaflet sign label"
)
_REPORT = _sign(
    f"{_SPEECH} he she they people everyone everybody nobody someone somebody user users customer customers client clients folks kids who it my his her our their the as",
    rf"\b(?:{'|'.join(_SPEECH.split())})\b[^.;!]{{0,60}}$"
    r"|\b(?:he|she|they|people|everyone|everybody|nobody|someone|somebody|users?|customers?|clients?|folks|kids|who|it|(?:my|his|her|our|their|the) \w+) (?:always |never |usually |often |also |just |really |still |only )*$"
    r"|\bas an? (?:\w+ )?(?:user|customer|client|admin|visitor|guest|developer|reader|buyer|member|manager|tester),?[^.;]{0,20}$",
    r"(?:[她他]|大家|人家|别人|有人|老板|客户|同事|朋友|妈|爸|妹妹|弟弟|姐姐|哥哥|老师|医生|说明书|文档|手册|报错|网上|新闻|店|狗|猫|孩子|儿子|女儿|老婆|老公|作者|主人公|函数|接口|测试)[^，,。；;]{0,6}(?:说|讲|写|提到|表示|认为|觉得|告诉|建议|要求|提示|回复)[^。；;]{0,40}$"
    r"|(?:[她他]们?|人家|别人|有人|老板|客户|同事|店里?|店|狗|猫|者|函数|接口|测试|(?<!本)人|说明书|文档|孩子|妹妹|弟弟|姐姐|哥哥|爸|妈|老婆|老公)(?:总是|都|会|应该|每次|一直|也|就|老是|从来|更|最|很|特别|可能|自己|家|真的|说|不|一般|通常|其实)*$|[^我你，,。；;\s]{2,6}(?<!来)(?<!老实)(?<!就是)说[：:，,]?$|(?:听说|据说|据|写着|上说|规定是?|显示|写道|上写)[^。；;]{0,40}$|作为(?:一[个名])?(?:用户|客户|顾客|管理员|访客|读者|买家|会员)[^。；;]{0,20}$",
)
_REPORTED_FIRST = re.compile(
    r"\b(?:i|we|i'd|you) (?:would |have |had |'ve )?(?:say|said|told you|mentioned|asked you|wrote)\b[^.;!]{0,60}$"
)
_DENIAL = _sign(
    "never didn't not don't isn't doubt sure no longer necessarily do",
    r"\b(?:never said|didn't say|not saying|not that|don't think|do not think|didn't mean|isn't that|not because|don't believe|doubt|not sure(?: if)?|never thought|no longer|not necessarily)\b[^,;]{0,30}$",
    r"(?:没说|不是说|没有说|不代表|并不是|并非|不等于|谁说|不觉得|不认为|不再)[^，,；;]{0,12}$",
)


def doubt(sentence: Sentence, start: int) -> Doubt | None:
    """Why the cue that begins at character `start` may mean nothing lasting."""
    low, before = sentence.low, sentence.low[:start]
    if _IRONY.marks(sentence, low) or (not low.isascii() and _FACES.search(low)):
        return "irony"
    if _INDIFFERENCE.marks(sentence, low):
        return "indifference"
    if _SUPPOSED_WHOLE.match(low) or (sentence.has_chinese and _SUPPOSED_WHOLE_CHINESE.search(low)):
        return "supposition"
    if before and _SUPPOSITION.marks(sentence, before):
        return "supposition"
    if before and _REPORT.marks(sentence, before) and not _REPORTED_FIRST.search(before):
        return "report"
    if before and _DENIAL.marks(sentence, before):
        return "denial"
    if sentence.is_question:
        return "question"
    if not sentence.is_plain:
        return "document"
    return "past" if _PAST.marks(sentence, low) else None


_EXPLICIT = re.compile(
    r"\b(?:for|on|in|with|of|during) (?:this|that|these|those|the current|my (?:upcoming|next|current)) \w+|\bthis (?:one|time|trip|flight|order|booking|reservation|week|month|task|chat|message|session|conversation|ticket|purchase)\b"
    r"|\b(?:today|tonight|tomorrow|right now|for now|at the moment|just this once|just once|this once)\b"
    r"|这次|这趟|这单|这回|这个(?:订单|航班|任务|会话|问题)|今天|今晚|明天|本次|此次|眼下|暂时|先这样|这一次"
)
_DEICTIC = re.compile(
    r"\b(?:this|that|these|those|it|the (?:first|second|third|last|other|earlier|later|next|same|new|old|blue|red|cheapest|one|two)|(?:on|by|before|after|until) (?:mon|tues|wednes|thurs|fri|satur|sun)day|(?:january|february|march|april|june|july|august|september|october|november|december) \d|\d{1,2}(?:st|nd|rd|th)|my (?:flight|flights|booking|reservation|order|refund|ticket|trip|certificates?|gift cards?|bags?|suitcases?)|[a-z]*\d[a-z0-9]{4,})\b"
    r"|the (?:flight|trip|booking|order|reservation|refund|ticket|insurance|payment|upgrade|paragraph|file|draft|bags?|change|option|options|certificate|card|balance)\b"
    r"|那个|这个|第[一二三四五六七八九十\d]个|周[一二三四五六日天]|下周|蓝色那|红色那|\d+[号日]|我们?的?这?[个张份次趟]?(?:航班|机票|车票|订单|订座|预订|预约|行程|退款|包裹|快递|改签)"
)
_PROJECT = re.compile(
    r"\b(?:in|for|of|on|across) (?:this|our|the) (?:repo|repository|project|code ?base|package|workspace|monorepo|service|team)\b|\bin here we\b|\bour (?:style guide|conventions?|linter|ci|build)\b"
    r"|(?:这个|本|我们|该)(?:项目|仓库|代码库|工程|服务|团队)"
)


def is_local(sentence: Sentence, *, strictly: bool) -> bool:
    """Whether it is about the task at hand; `strictly`: only where the words say so outright."""
    if _EXPLICIT.search(sentence.low):
        return True
    return not strictly and _DEICTIC.search(sentence.low) is not None


def is_of_project(sentence: Sentence) -> bool:
    """Whether it speaks of the project rather than of its speaker."""
    return _PROJECT.search(sentence.low) is not None

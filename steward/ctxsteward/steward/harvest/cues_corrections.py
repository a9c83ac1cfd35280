# ruff: noqa: E501  -- a phrasing a line reads better than wrapped ones
"""How people correct: rows as in `cues_en`. Group ``v`` is what is right, ``w`` what was wrong."""

from __future__ import annotations

import re

from .matching import Table
from .things import VERBS
from .wordlists import listed

_T = r"(?:[^,.;!?]|[,.](?=\d))"
_END = r"(?=[,.;!?]|$)"
_NO = r"(?:^|[.!;] ?)(?:no[,.!]* |nope[,.!]* |wrong[,.!:]* |sorry[,.!]* |wait[,.!]* |actually[,.!]* |but |and |ah[,.!]* |oh[,.!]* |hey[,.!]* |please note[,:]? )*"

_DOES = "|".join(VERBS.split())

ENGLISH = Table(
    {"C": _T, "END": _END, "NO": _NO, "DOES": _DOES},
    r"""
    strict | not | {NO}(?:it's|it is|that's|that is|they're|they are|he's|she's|its|the \w+(?: \w+)? is|my (?:\w+ ){{1,3}}is|i'm|i am|we're|we are|i live in|i need|i want|we use|i meant|i mean|that should be|it should be|there are|the \w+(?: \w+)? are) (?P<v>(?!not\b|only\b|just\b|really\b|definitely\b|\w+ing\b){C}{{1,60}}?),? (?:and )?not (?!only\b|just\b|really\b|bad\b|far\b|sure\b|at all\b|so\b|too\b|that\b|yet\b|to mention\b|very\b|as\b|good\b|easy\b|great\b|even\b|been\b|like\b|because\b|always\b|in the\b|my (?:thing|style|favou?rite)\b|\w+ing\b)(?P<w>{C}{{1,60}}?){END}
    strict:thing | not | ^(?:[\w' ]{{2,40}}?[,.:!—-]+ )?(?:the |your |an? )?(?:[\w'/-]+ ){{1,5}}?(?:is|are|{DOES}) (?P<v>(?!not\b){C}{{1,60}}?),? (?:and )?not (?!only\b|just\b|yet\b)(?P<w>{C}{{1,40}}?){END}
    strict:thing | instead rather | ^(?:[\w' ]{{2,40}}?[,.:!—-]+ )?(?:the |your |an? )?(?:[\w'/-]+ ){{1,5}}?(?:is|are|{DOES}) (?P<v>(?!not\b){C}{{1,60}}?),? (?:instead of|rather than) (?P<w>{C}{{1,40}}?){END}
    strict | not | ^(?:no[,.]? )+(?P<v>{C}{{2,60}}?), not (?!only\b|just\b|really\b|yet\b|now\b)(?P<w>{C}{{1,60}}?){END}
    strict | not | ^not (?P<w>(?!only|yet|bad|really|that|sure|at|much|to|a |the same|long|even|for|just|too|now|necessarily|everyone|all|many|always|me|you|today|in |my|so |quite|i |if )[^.;!?]{{1,40}})[.,;] ?(?:but )?(?P<v>[^.;!?]{{1,40}})
    strict | said | \bi (?:already |clearly |just )?said (?P<v>[^;!?]{{1,60}}?),? (?:and )?not (?P<w>{C}{{1,60}}?){END}
    strict | didn't never | \bi (?:didn't|did not|never) (?:say|said|ask for|asked for|ask|asked|order|ordered|request|requested|want|wanted|mean|meant|book|booked) (?P<w>{C}{{1,60}}?)[,.;] ?(?:but )?i (?:said|asked for|asked|ordered|requested|wanted|meant|booked) (?P<v>{C}{{1,60}}?){END}
    strict | told said | \bi (?:already |just )?(?:told you|said)(?: \w+)? (?:already|before|earlier)\b,? (?P<v>[^.;!?]{{3,80}})
    strict | told | \bi (?:have |'ve )?(?:already |just )?told you(?: already| before| twice| that)*,? (?!about\b|how\b|when\b|of\b|i\b|so\b|it would|everything|what\b|all\b)(?P<v>[^.;!?]{{3,80}})
    strict | said before | \bas i (?:said|told you|mentioned)(?: before| earlier| already)?,? (?P<v>[^.;!?]{{3,80}})
    strict | meant | ^(?:no[,.]? |sorry[,.]? |wait[,.]? |actually[,.]? )+i meant (?!to\b)(?P<v>[^.;!?]{{2,60}})
    strict | meant | ^i meant (?!to\b|a lot|it\b|that as)(?P<v>[^.;!?]{{2,60}}),? not (?P<w>{C}{{1,60}}?){END}
    strict | that's wrong incorrect isn't not right | ^(?:no[,.]? |sorry[,.]? |but )*(?:that's|that is|this is|it's|you're|you are|that was|isn't|that isn't|this isn't|that's still|your answer is|the answer is|no that's)? ?(?:wrong|incorrect|not right|not correct|not true|mistaken|not quite right|inaccurate|false)[,.;:!—-]+ ?(?P<v>[^;!?]{{4,120}})
    strict | isn't not | \bthat(?: is not|'s not| isn't) (?:my|what i (?:asked|said|meant|wanted|ordered)(?: for)?|the right|the correct|how|our) ?{C}{{0,40}}[,.;] ?(?P<v>[^;!?]{{4,120}})
    strict | wrong backwards mixed confused misspelled misunderstood misread misheard | \byou(?:'ve| have)? (?:just |all |still )?(?:misunderstood|misread|misheard|misspelled|confused|mixed up|(?:got|have|had|put|mixed)\b{C}{{0,40}}\b(?:wrong|backwards|mixed up|confused|up))\b{C}{{0,40}}[,.;:] ?(?P<v>[^;!?]{{4,120}})
    strict | should instead | (?:^|[.!;,] ?)(?:no[,.]? |wrong[,.]? |but |and )*(?:it|that|this|the \w+) should (?:be|say|read|have been|have said|go to|start) (?P<v>(?!in\b|fun\b|able\b|good\b|great\b|fine\b|interesting|ok){C}{{1,60}}?),? (?:instead of|and not|not|rather than) (?P<w>{C}{{1,60}}?){END}
    strict | should wrong | \bwrong\b[^.;!?]{{0,20}}[,;] ?(?:it|that|this|the \w+) should (?:be|say|read|have been) (?P<v>{C}{{1,60}})
    broad | should | ^(?:no[,.]? )*(?:it|that|this) should (?:be|say|read|have been|have said) (?P<v>(?!in\b|fun\b|able\b|good\b|great\b|fine\b|interesting|ok){C}{{1,60}})
    strict | should | \byou should (?:be using|use|have used|be calling|call|have called|write|have written) (?P<v>{C}{{1,60}}?),? (?:instead of|and not|not|rather than) (?P<w>{C}{{1,60}}?){END}
    strict | correction | ^(?:a |one |small |quick |minor )*correction[:,-]+ ?(?P<v>[^;!?]{{4,120}})
    strict | misspoke mistake wrong typo | \b(?:i misspoke|my mistake|i was wrong|i mistyped|i made a typo|that was a typo|typo)\b[,.;:!—-]* ?(?P<v>[^;!?]{{4,120}})
    strict | spelled spelt | \b(?:my|the) [\w ]{{3,30}}?(?:is|'s|gets) (?:actually )?(?:spelled|spelt) (?P<v>{C}{{1,60}})
    strict | spelled with | ^(?:no[,.]? )?(?:it's|that's|spell it) (?P<v>\w+ with (?:an? |one |two )\w+)
    strict | actually not | \bactually,? (?:it's|it is|that's|its) (?P<v>{C}{{1,60}}?),? not (?!that\b|so\b|too\b|bad\b)(?P<w>{C}{{1,60}}?){END}
    broad | no nope wrong actually | ^(?:no|nope|wrong|actually)[,.!]+ (?:it's|it is|that's|my|the|i'm|i am|i live|i work|i want|i need|we|there|he|she|they) (?!all\b|ok\b|okay\b|fine\b|it\b|alright|great|perfect|good\b|everything|not\b|afraid|just\b|so\b|really|sorry|glad|happy|sure\b|haven't|didn't|don't|can't)(?P<v>[^;!?]{{3,100}})
    broad | wrong incorrect | ^(?:that's|that is|this is|it's|you're) (?:wrong|incorrect|not right|not correct|not true)\b(?P<v>.*)
    broad | meant misspoke | \bi (?:actually )?meant (?!to\b|a lot\b|it\b)(?P<v>[^.;!?]{{2,60}})
    broad | not | \bi said (?P<v>{C}{{1,60}}?),? not (?P<w>{C}{{1,60}})
    """,
)

_C = r"[^，,。；;！!？?]"
_CB = r"(?:^|[。；;！!，,：:\s])(?:不对|错了|不|不是|等等|其实|嗯|哦|我说了|再说一遍)*[，,。！!：:]?\s*"

CHINESE = Table(
    {"C": _C, "B": _CB},
    r"""
    strict | 不是 | {B}(?:应该)?(?:是|要|叫|在|用|选|去)?(?P<v>(?!是不是|还是|要不|也|才|就|能|可)[^，,。；;！!？?]{{1,24}})[，,](?:而)?不是(?!说|很|吗|不|太|特别|问题|我说|这个意思|因为|所有|每)(?P<w>{C}{{1,24}})
    strict | 不叫 不在 不用 不去 不要 | {B}(?:我|我们)?{C}{{0,10}}?(?P<k>叫|在|去|选)(?P<v>{C}{{1,16}})[，,]不(?P=k)(?P<w>{C}{{1,16}})
    strict | 不是 | (?:^|[。；;！!，,：:\s])(?:我们?)?不是(?!说|很|吗|不|太|特别|问题|每|所有|只)(?P<w>{C}{{1,24}})[，,](?:而)?(?:是|应该是)(?P<v>{C}{{1,24}})
    strict | 不是 | ^不是[，,。！!]\s*(?:我(?:指|说|要)的?是|应该是|是)(?P<v>{C}{{1,30}})
    strict | 而不是 | (?:应该?|该|要|得|用|是|选){C}{{0,3}}(?P<v>{C}{{1,20}})[，,]?而不是(?P<w>{C}{{1,20}})
    strict | 我说的是 我指的是 我要的是 我的意思是 | 我(?:刚才|前面|之前|明明)?(?:说|指|要|问|订)的是(?P<v>{C}{{1,24}})[，,]?(?:不是|而不是)?(?P<w>{C}{{0,24}})
    strict | 不对 错了 不正确 有误 说错 弄错 搞错 写错 记错 理解错 搞反 弄反 搞混 弄混 写反 | ^(?:你|您|这|那|上面|刚才|前面|我|我刚才|这里|这个|这样)?(?:把{C}{{1,12}})?(?:还是|都|又|可能)?(?:不对|错了|不正确|有误|说错了?|弄错了?|搞错了?|写错了?|记错了?|理解错了?|搞反了?|弄反了?|搞混了?|弄混了?|写反了?)[，,。；;！!：:]\s*(?P<v>[^？?]{{2,80}})
    strict | 没说 没要 没订 没点 | 我(?:可|从来)?没(?:有)?(?:说|要|订|点|问)(?P<w>{C}{{1,20}})[，,。]\s*我(?:说|要|订|点|问)的是(?P<v>{C}{{1,24}})
    strict | 更正 纠正 | ^(?:更正|纠正)(?:一下)?[：:，,]\s*(?P<v>[^？?]{{2,80}})
    strict | 应该写 应该是 应是 该是 | (?:应该写|应该是|应是|该写成|应该叫)(?P<v>{C}{{1,24}})[，,](?:而)?(?:不是|不叫)(?P<w>{C}{{1,24}})
    strict | 刚才说 说过了 之前说 已经说过 前面说 | 我(?:刚才|刚刚|之前|前面|已经|早就|都)+说过?了?[，,：:]\s*(?P<v>[^？?]{{2,60}})
    strict | 那不是 这不是 | ^(?:那|这)(?:不是|并不是)我的?{C}{{1,10}}[，,]\s*(?P<v>我的?[^？?]{{2,60}})
    strict | 的姓 的名字 | (?:其实)?我的(?:姓|名字)是[“「"]?(?P<v>{C}{{1,8}}?)[”」"]?[，,]不是[“「"]?(?P<w>{C}{{1,8}})
    broad | 不对 错了 不正确 | ^(?:这|那|你)?(?:不对|错了|不正确)(?!吗|吧)(?P<v>.*)
    broad | 其实 | ^其实(?:我|是|应该)(?P<v>.+)
    """,
    chinese=True,
)

BARE_ENGLISH = re.compile(
    r"(?:no[,.]? |sorry[,.]? |but |hey[,.]? |actually[,.]? )*(?:your|the|those|these) (?:[\w'-]+ ){1,3}(?:is|are|was|were) (?:wrong|incorrect|outdated|out of date|not right|not correct|no longer (?:right|correct|current))[.!]*"
    r"|(?:no[,.]? |sorry[,.]? |but |hey[,.]? )*(?:(?:that's|that is|that was|this is|it's|you're|your answer is|the answer is|still) )?(?:wrong|incorrect|not right|not correct|not true|mistaken|inaccurate|no|nope|not quite)[.!,]*"
    r"|(?:no[,.]? )*(?:that|this|it) (?:isn't|is not|wasn't) (?:right|correct|true|it|what i (?:asked|said|meant|wanted)(?: for)?|my \w+(?: \w+)?)[.!]*"
    r"|(?:no[,.]? )*you(?:'ve| have)? (?:misunderstood|misread|misheard)(?: me)?[.!]*|(?:no[,.]? )*you (?:got|have|had) (?:it|that|this|the \w+) (?:wrong|backwards|mixed up)[.!]*"
    r"|(?:sorry[,.]? )?(?:i misspoke|my mistake|i was wrong)[.!]*"
)
"""A sentence that says only that something is wrong: what follows is right."""
BARE_WORDS = listed(
    "wrong incorrect outdated out not right no nope mistaken inaccurate isn't wasn't misunderstood misread misheard"
    " backwards mixed misspoke mistake"
)
"""One of them is in every such sentence."""
BARE_CHINESE = re.compile(
    r"(?:不对|错了|不是|不正确|你?(?:理解|弄|搞|写|记|说)错了|搞反了|弄反了|这?不对吧?|不是这样的?|不是这个意思|我说错了)[。.！!，,]*"
)

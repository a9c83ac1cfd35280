# ruff: noqa: E501  -- a phrasing a line reads better than wrapped ones
"""How people settle something: rows as in `cues_en`; what was settled begins at ``o``."""

from __future__ import annotations

from .matching import Table

ENGLISH = Table(
    {"WE": r"(?:i|we|i've|we've|the team|the board|the group|the committee|our team|everyone|all of us)"},
    r"""
    strict | decided | \b{WE}(?: have| has|'ve| all| finally| both| just)* decided (?:that |to |on |against |not to )(?P<o>.+)
    strict | settled | \b{WE}(?: have|'ve| finally| all)* settled (?:on|for) (?P<o>.+)
    strict | settled | ^(?:ok(?:ay)?,? |so,? |then,? )*(?:it's|that's|it is|that is) settled[:,.]? ?(?P<o>.*)
    strict | chosen opted voted agreed landed | \b{WE}(?: have| has|'ve| finally| all| unanimously| just)* (?:chosen|opted for|opted to|voted for|voted to|agreed on|agreed to|agreed that|landed on) (?P<o>(?!with you|it's).+)
    strict | chose picked selected | \b(?:we|the team|the board|the group|our team)(?: have| finally| all| just)* (?:chose|picked|selected) (?P<o>(?!up\b).+)
    strict | picked chose | ^i(?: have|'ve)?(?: finally)? (?:chose|picked|selected) (?P<o>the (?!one you|right)[^.!?]{{3,60}} for (?:the|my|our|this)\b.+)
    strict | decision call verdict agreed | ^(?:the |our |my )?(?:final (?:decision|call|answer)|decision|verdict|agreed|decided)(?: is)?: ?(?P<o>.+)
    strict | decision | \b(?:the|our|my) (?:final )?decision is (?!yours|up|hard|not|still|to be|pending|tough)(?:to |that )?(?P<o>.+)
    strict | mind | \bi(?:'ve| have)? (?:finally )?made up my mind[:,.]? ?(?P<o>.*)
    strict | let's lets | ^(?:ok(?:ay)?[,.]? |great[,!.]? |yes[,.]? |alright[,.]? |sure[,.]? |so,? |then,? |right,? |perfect[,!.]? )*(?:let's|lets|let us) (?:go with|use|stick with|do it with|settle on|pick|choose|take) (?P<o>.+)
    strict | going sticking | \b(?:i'm|we're|i am|we are) (?:going|sticking|staying) (?:with|for) (?P<o>(?!you\b|my (?:friends|family|dreams?|goals?)|our (?:dreams?|goals?)|it\b|a (?:walk|run|hike|swim)|him\b|her\b|them\b|it now).+)
    strict | plan | \bthe plan is (?:now )?to (?P<o>.+)
    strict | we'll i'll | ^(?:ok(?:ay)?[,.]? |great[,!.]? |yes[,.]? |alright[,.]? |so,? |then,? )*(?:we'll|i'll|we will|i will) (?:use|go with|go for|stick with|take|choose) (?P<o>(?!a look|care|you|it easy|that into|a break|some time).+)
    broad | agreed | ^agreed[,:-] (?P<o>(?:the|we|it's|on) .+)
    broad | chose picked selected | \bi (?:chose|picked|selected) (?P<o>(?!up\b|this\b|them\b|it\b|to\b).+)
    broad | let's lets | ^(?:ok(?:ay)?,? |so,? )*(?:let's|lets) (?:call it|name it|make it|book) (?P<o>(?!happen).+)
    broad | decided | \bdecided (?P<o>.+)
    """,
)

CHINESE = Table(
    {"B": r"(?:^|[，,。；;：:！!\s])(?:好|好的|行|可以|那么?|嗯|所以|最后|最终|大家|经过讨论)*[，,]?"},
    r"""
    strict | 决定 | {B}(?:我们?|我们团队|团队|大家|公司|咱们?)(?:都|已经|最后|最终|一致|刚刚?)*决定(?!权|了吗|好了)(?:了|要|把|不)?(?P<o>.+)
    strict | 最终决定 决定: 决定: 结论 | ^(?:最终|最后)?(?:决定|结论)(?:是)?[：:，,](?P<o>.+)
    strict | 就选 就用 就定 就按 就叫 就走 就这么定 就要 | (?:那|那么|还是|^|[，,。：:\s])(?:{B})?[^，,。；;？?]{{0,12}}就(?:选|用|定|按|叫|走|这么定|要)(?:在|为|了)?(?P<o>.+)
    strict | 选了 选定 敲定 商定 说定 说好 定了 定下 定在 定为 谈妥 拍板 选用 采用 | (?:我们?|大家|团队|名字|方案|时间|地点|最后|最终|^|[，,：:\s])[^，,。；;？?她他你]{{0,8}}(?:选了|选定|敲定|商定|说定|说好|定了|定下|定在|定为|谈妥|拍板|选用|采用)(?!吗|没)(?P<o>.*)
    strict | 投票 | (?:投票)(?:通过|选|决定)了?(?P<o>.+)
    strict | 想好了 | 我(?:已经)?想好了[，,：:]?(?P<o>.+)
    strict | 方案是 计划是 | (?:方案|计划)(?:就)?是(?P<o>.+)
    strict | 继续用 还是用 还是选 还是买 统一用 统一成 | (?:我们?|大家|咱们?|^|[，,\s])(?:就|最后|最终)?(?:继续用|还是用|还是选|还是买|统一用|统一成)(?P<o>.+)
    broad | 那就 | 那就(?P<o>.+)
    broad | 决定 | 决定(?P<o>.+)
    """,
    chinese=True,
)

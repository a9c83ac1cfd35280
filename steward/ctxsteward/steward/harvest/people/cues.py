# ruff: noqa: E501  -- a phrasing a line reads better than wrapped ones
"""Facts of a person that have a name in English: where they live, what they do, who belongs to them.

Rows as in `cues_en`, the label being the attribute; group ``v`` is the value, ``t`` the kind where the attribute ends in
``:``. They are tried on sentences of the first person only.

Facts of a person that have a name in Chinese; rows as in `attributes_en`.

How people correct: rows as in `cues_en`. Group ``v`` is what is right, ``w`` what was wrong.

How people settle something: rows as in `cues_en`; what was settled begins at ``o``.

How people state wishes in English: standing ones, plain ones, weak ones.

A row is ``strength | anchors | pattern``: the pattern is tried only on a sentence that holds one of the anchors as a
word (``a+b``: both), so that most sentences cost one look-up a word. ``{S}`` is the start of a clause, ``{DO}`` a verb that one gives
an assistant. Group ``o`` begins what the wish is about. The lists are hand-set; nothing is trained.

`standing`: holds until taken back ("from now on", "never", "call me"). `stated`: a plain preference; it stands unless
the task at hand is meant. `weak`: a liking or a request; it needs company.

How people state wishes in Chinese: standing ones, plain ones, weak ones.

Rows as in `cues_en`; an anchor is a string that the sentence holds. ``{S}`` is the start of a clause, ``{DO}`` a verb
that one gives an assistant, ``{STYLE}`` a manner of writing.
"""

from __future__ import annotations

import re

from .cue_table import CueTable
from .entity_values import VERBS
from .utterances import listed

_ATTRIBUTE_PARTS_EN = {
    "KIN": r"(?:wife|husband|spouse|partner|girlfriend|boyfriend|fianc[eé]e?|son|daughter|kid|child|baby|mother|mom|mum|father|dad|sister|brother|twin|grandmother|grandma|grandfather|grandpa|aunt|uncle|cousin|niece|nephew|boss|manager|assistant|landlord|landlady|doctor|dentist|lawyer|accountant|therapist|coach|teacher|neighbou?r|roommate|flatmate|best friend|friend|colleague|dog|cat|puppy|kitten|horse|parrot|rabbit|pet|hamster|turtle|school|company|team|startup|bakery|studio|store|shop|band)",
    "PLACE": r"(?P<v>(?:the )?[a-z][\w'.-]*(?: (?:of|de|la|los|san|new|[a-z][\w'.-]*)){0,2}?)",
    "ENDS": r"(?=[,.;!?)]|$| (?:with|and|but|for|since|last|in|near|where|because|these|right|now|at|on|by|so|this|next|a|two|three|from|to|when|after|before|which|who|as|all|together|again|until|originally|though|currently|about|ago|is|are|has)\b)",
    "MONTH": r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)",
    "JOB": r"(?P<v>(?:\w+[ -]){0,2}?(?:nurse|doctor|teacher|engineer|developer|programmer|designer|lawyer|chef|cook|baker|artist|musician|writer|author|journalist|photographer|student|accountant|architect|analyst|consultant|manager|director|scientist|researcher|professor|pilot|driver|mechanic|electrician|plumber|carpenter|farmer|firefighter|police officer|soldier|dentist|pharmacist|therapist|counselor|counsellor|psychologist|social worker|barber|hairdresser|waiter|waitress|bartender|actor|actress|dancer|singer|coach|trainer|translator|librarian|salesman|salesperson|realtor|banker|economist|biologist|chemist|physicist|mathematician|surgeon|vet|veterinarian|paramedic|judge|tailor|butcher|florist|gardener|freelancer|entrepreneur|founder|ceo|cto|product manager|data scientist|security guard|flight attendant|civil servant|stay-at-home \w+|homemaker|retiree))",
}  # fmt: skip

ATTRIBUTES_EN = CueTable(
    _ATTRIBUTE_PARTS_EN,
    r"""
    name | name name's | (?:^|[,;:.!] ?|\b(?:and|so|but|hi|hello|hey|ok|because|since|yes|well|actually|no),? )(?:my (?:full |first |real |given |legal )?name(?: is|'s)|the name's) (?P<v>(?!on\b|not\b|tag|is\b|the\b|in\b|at\b|spelled|wrong|a\b|already|still|also\b)[\w.'-]+(?: (?!and\b|by\b|but\b|from\b|with\b|not\b|for\b|please\b|in\b|on\b|i\b)[\w'-]+){{0,2}})
    name | called named | \bi(?:'m| am) (?:called|named) (?P<v>[\w.'-]+(?: (?!and\b|by\b|but\b)[\w'-]+)?)
    name | last surname | \bmy (?:last name|surname|family name) (?:is|'s)(?: spelled)? (?P<v>[\w'-]+)
    birthday | birthday birthday's | \bmy birthday(?: is|'s| falls| comes)?(?: on| in)?(?: the)? (?P<v>(?:\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {MONTH}|{MONTH}(?: the)? \d{{1,2}}(?:st|nd|rd|th)?)(?:,? \d{{4}})?|{MONTH}\b)
    birthday | born | \bi was born (?:on|in)(?: the)? (?P<v>(?:\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {MONTH}|{MONTH}(?: the)? \d{{1,2}}(?:st|nd|rd|th)?)(?:,? \d{{4}})?|\d{{4}}-\d\d-\d\d)
    birth_year | born | \bi was born in (?P<v>\d{{4}})\b
    origin | born grew raised | \bi (?:was (?:born(?: and raised)?|raised)|grew up) (?:in|near|around) {PLACE}{ENDS}
    origin | from+i from+i'm | \bi(?:'m| am| come)(?: originally)? from {PLACE}{ENDS}
    origin | hometown | \bmy (?:hometown|home town|home country|native country) is {PLACE}{ENDS}
    age | old turned turn turning | \bi(?:'m| am| just turned| turned| turn|'m turning| am turning| will turn) (?P<v>\d{{1,2}})(?: years old| this| last| next| on| in|[.,!]|$)
    home | live living based home house apartment reside | \b(?:i|we)(?:'m| am|'re| are)? (?:currently |now |still |both |all )?(?:live|living|based|reside|residing)(?: here| now| out| down| up)? (?:in|near|outside|just outside|at) {PLACE}{ENDS}
    home | home house apartment flat | \b(?:my|our) (?:home|house|apartment|flat|place) is (?:in|near|outside|at) {PLACE}{ENDS}
    home | moved relocated moving | \b(?:i|we)(?:'ve| have|'d| had)? (?:just |recently |finally |both |have )?(?:moved|relocated)(?: here| back| out| over| away)?(?: last \w+)? to {PLACE}{ENDS}
    user_id | id number | \bmy (?:user|customer|member|membership|account|employee|loyalty|frequent flyer) ?(?:id|number)(?: is|:|'s) (?P<v>[\w-]*\d[\w-]*)
    home_address | address | \bmy (?:home |current |new |mailing |shipping )?address is (?P<v>[^;!?]{{4,60}})
    phone | phone number cell mobile | \bmy (?:phone|cell|mobile|telephone)(?: number)?(?: is|'s|:) (?P<v>[\d+() .-]{{6,20}})
    email | email e-mail | \bmy (?:work |personal |private )?e-?mail(?: address)?(?: is|'s|:) (?P<v>\S+@\S+)
    job | work working am i'm job profession trained | \bi(?:'m| am| work| worked|'ve been working|'ve worked| have worked)?(?: working| employed| trained| now| currently| also| just| still| actually| only| mostly)* (?:as )?an? {JOB}\b
    job | job profession occupation living | \bmy (?:job|profession|occupation|day job|work) is (?:as |being )?(?:an? )?(?P<v>[\w -]{{3,40}}?)(?=[,.;!?]|$| (?:at|in|for|and|but|with)\b)
    employer | work working job | \bi(?:'m| am)? (?:currently |now |also |still )?(?:work|working|employed)(?: as [\w -]{{3,30}}?)? (?:at|for|with|by) (?P<v>(?:the |a |an )?[\w'&.-]+(?: [\w'&.-]+){{0,3}}?)(?=[,.;!?]|$| (?:as|in|and|but|for|since|on|where|now|full|part)\b)
    marital_status | married single divorced engaged widowed | \bi(?:'m| am| got|'ve been| just got)(?: now| happily| still| recently| newly)? (?P<v>married|single|divorced|engaged|widowed|separated)\b
    school | study studying major majoring student graduated | \bi(?:'m| am)?(?: currently)? (?:study|studying|major|majoring|go to school|graduated)(?: \w+)?(?: in| at| from) (?P<v>(?:the )?[\w'-]+(?: [\w'-]+){{0,3}}?){ENDS}
    kin: | named called is's name name's | \b(?:my|our) (?:\w+ )?(?P<t>{KIN})(?:'s name)?(?: is|'s)?(?: called| named)? (?P<v>(?!is\b|was\b|and\b|has\b|in\b|at\b|on\b|for\b|to\b|who\b|name\b|called\b|named\b|the\b|a\b|an\b|not\b|just\b|from\b|of\b)[\w'-]+)(?=[,.;!?]| (?:and|is|was|has|just|but|who|will|too|not)\b|$)
    kin: | named called | \b(?:i|we)(?:'ve| have)?(?: just| recently| also)? (?:have|got|adopted|had|own|bought|rescued)(?: got)?(?: just| recently)? (?:a|an|one|our|my) (?:\w+ ){{0,3}}?(?P<t>{KIN}) (?:named|called) (?P<v>[\w'-]+)
    children | kids children sons daughters | \b(?:i|we)(?:'ve| have)?(?: got| have)? (?P<v>two|three|four|five|six|seven|no|\d) (?:\w+ )?(?:kids|children|sons|daughters)\b
    car | drive | \bi drive (?:an?|my) (?P<v>(?:\d{{4}} )?[\w'-]+(?: [\w'-]+)?)(?=[,.;!?]|$| (?:and|to|but|for|that|which|now)\b)
    allergy | allergic | \b(?:i(?:'m| am)|peanuts|it)\b.{{0,20}}\ballergic to (?P<v>(?!me|my|the|it|that)[\w -]{{3,30}}?)(?=[,.;!?]|$| (?:so|and|but|since)\b)
    language | speak native | \b(?:i speak|my (?:native|first|mother) (?:language|tongue) is) (?P<v>[a-z]+)\b(?! to\b| with\b| up\b| at\b| for\b| in\b| about\b| of\b)
    time_zone | zone timezone | \b(?:i'm in|i am in|we're in|my time ?zone is) (?:the )?(?P<v>[\w+/:-]{{2,20}}(?: (?:time|standard time))?)(?: time ?zone)?
    """,
)


_ATTRIBUTE_PARTS_ZH = {
    "B": r"(?:^|[，,。；;：:！!？?、\s]|其实|现在|目前|因为|而且|所以|那|不过|对了|记住|记得|注意)",
    "KIN": r"(?:老婆|妻子|太太|爱人|老公|丈夫|先生|女朋友|男朋友|女友|男友|未婚妻|未婚夫|儿子|女儿|闺女|孩子|宝宝|妈妈|母亲|妈|爸爸|父亲|爸|姐姐|妹妹|哥哥|弟弟|姐|妹|哥|弟|奶奶|爷爷|外婆|外公|姥姥|姥爷|叔叔|阿姨|舅舅|表弟|表妹|堂弟|堂妹|侄子|侄女|老板|经理|助理|房东|医生|牙医|律师|会计|教练|老师|邻居|室友|同事|朋友|闺蜜|狗|猫|小狗|小猫|宠物|公司|学校|团队)",
    "W": r"[^，,。；;！!？?\s的了吗呢是]",
    "DATE": r"(?:\d{4}\s*年\s*)?[\d一二三四五六七八九十]{1,3}\s*月\s*[\d一二三四五六七八九十]{1,3}\s*[日号]?",
    "JOB": r"(?P<v>(?:[^，,。；;！!？?\s的了在]{0,6})(?:护士|医生|老师|教师|工程师|程序员|设计师|律师|厨师|面包师|艺术家|音乐家|作家|记者|摄影师|学生|会计|建筑师|分析师|顾问|经理|总监|科学家|研究员|教授|飞行员|司机|技工|电工|水管工|木匠|农民|消防员|警察|军人|牙医|药剂师|咨询师|社工|理发师|服务员|演员|舞者|歌手|教练|翻译|图书管理员|销售|银行职员|经济学家|兽医|法官|裁缝|园丁|自由职业者?|创始人|公务员|家庭主妇|产品经理|保安|空姐|空乘|研究生|博士生|大学生))",
}  # fmt: skip

ATTRIBUTES_ZH = CueTable(
    _ATTRIBUTE_PARTS_ZH,
    r"""
    name | 我叫 我的名字 我姓 我名字 的姓是 | {B}(?:我叫|我的?(?:全名|名字|大名)(?:是|叫|叫做)|我(?:的)?姓(?:是)?)[“「"]?(?!什么|你|他|她|我|不|了|来|去|车|人)(?P<v>{W}{{1,12}}?)[”」"]?(?=[，,。；;！!？?\s]|$)
    birthday | 生日 | 我(?:的)?生日(?:是|在|是在)?(?:每年)?(?P<v>{DATE})
    birthday | 出生 生于 | 我(?:是)?(?:在|于|生于|出生于)?\s*(?P<v>{DATE})\s*(?:出生|生)?(?:的)?
    birth_year | 出生 生的 年生 | 我(?:是)?(?:在|于)?\s*(?P<v>\d{{4}})\s*年(?:出生|生)(?:的)?
    age | 岁 | {B}我(?:今年|现在|刚满|都|已经|马上)*\s*(?P<v>[\d一二三四五六七八九十]{{1,3}})\s*岁
    origin | 老家 我来自 家乡 我是 出生在 长大 | {B}(?:我(?:的)?(?:老家|家乡)(?:是|在)|我来自|我(?:是)?(?:出生在|在)(?=[^，,。]{{1,8}}(?:出生|长大)))(?P<v>{W}{{2,8}}?)(?=出生|长大|人|[，,。；;！!\s]|$)
    home | 住在 家在 家住 定居 搬到 搬来 搬去 现居 | {B}(?:我|我们|我家|我们家|咱家|咱们)(?:现在|目前|一直|全家|都|就|还|去年|今年|前年|上个?月|刚|最近|已经|又|一家人?|[和跟同][^，,。；;！!？?]{{1,6}}?)*(?:住在|家在|家住|定居在?|现居|搬到了?|搬去了?|搬来了?)(?P<v>{W}{{2,10}}?)(?:了|住|定居)?(?=[，,。；;！!\s]|$)
    user_id | 用户名 账号 会员号 工号 编号 | 我的?(?:用户名|用户编号|账号|会员号|工号|会员编号)(?:是|为|：|:)\s*(?P<v>[\w-]*\d[\w-]*)
    home_address | 地址 | {B}(?:我的|我家的?|我现在的|收货)地址(?:是|为|：|:)(?P<v>[^，,。；;！!]{{4,40}})
    phone | 电话 手机 | 我的?(?:电话|手机)(?:号码?)?(?:是|为|：|:)\s*(?P<v>[\d+ -]{{6,20}})
    email | 邮箱 | 我的?(?:工作|个人)?邮箱(?:地址)?(?:是|为|：|:)\s*(?P<v>[\w.+-]+@[\w.-]+)
    job | 当 是 做 工作 职业 | {B}我(?:现在|目前|以前|其实)?(?:在[^，,。；;！!？?]{{1,14}}?)?(?:当|是一?[名个位]?|是|做|做一?[名个]|的工作是|的职业是)(?:一?[名个位])?{JOB}(?=[，,。；;！!\s]|$)
    employer | 上班 工作 任职 就职 | {B}我(?:现在|目前)?(?:在|就职于|任职于)(?P<v>{W}{{2,14}}?)(?:上班|工作|任职|就职)
    marital_status | 结婚 单身 离婚 订婚 已婚 未婚 | {B}我(?:们)?(?:是|去年|刚|还|已经|现在|目前|今年)*(?P<v>结婚|单身|离婚|订婚|已婚|未婚)(?:了|的|$|[，,。！!])
    kin: | 叫 名字 | {B}(?:我|我们|我家|咱)(?:家|的)?(?:那只|这只|大|小)?(?P<t>{KIN})(?:的名字)?(?:叫做?|是)(?!我|你|他|她|什么|来|了|不|人|谁|怎)(?P<v>{W}{{1,8}}?)(?=[，,。；;！!\s]|$)
    kin: | 叫 | {B}我们?[^，,。；;！!？?]{{0,8}}?(?:有|养了?|收养了?|领养了?|买了|生了)(?:一|两)?[只个条位匹]?(?:叫|名叫)(?P<v>{W}{{1,8}}?)的(?P<t>{KIN})
    kin: | 叫 | {B}我们?[^，,。；;！!？?]{{0,8}}?(?:有|养了?|收养了?|领养了?|买了|生了)(?:一|两)?[只个条位匹]?(?P<t>{KIN})[，,]?(?:叫|名字叫|名叫)(?P<v>{W}{{1,8}}?)(?=[，,。；;！!\s]|$)
    children | 孩子 儿子 女儿 | {B}(?:我|我们)有(?P<v>[一两二三四五六\d])个(?:孩子|儿子|女儿|小孩)
    car | 开 | {B}我开(?:的是)?(?:一|我的)?(?:辆|台)?(?P<v>[^，,。；;！!？?会车门]{{2,14}})(?=[，,。；;！!\s]|$)
    allergy | 过敏 | {B}我(?:对(?P<w>[^，,。；;的她他]{{1,12}}?)|(?!对|妹|弟|姐|哥|妈|爸|女|儿|朋|同|老|孩|家|们|丈|妻|奶|爷)(?P<v>[^，,。；;的她他对]{{1,8}}?))(?:严重|有点|都|也|会|重度|轻度)?过敏
    language | 母语 | 我的?母语是(?P<v>{W}{{2,6}})
    time_zone | 时区 东八区 | {B}(?:我|我们)(?:人)?在(?P<v>[东西][一二三四五六七八九十]+区|{W}{{2,8}}时区)
    """,
    chinese=True,
)


_T = r"(?:[^,.;!?]|[,.](?=\d))"
_END = r"(?=[,.;!?]|$)"
_NO = r"(?:^|[.!;] ?)(?:no[,.!]* |nope[,.!]* |wrong[,.!:]* |sorry[,.!]* |wait[,.!]* |actually[,.!]* |but |and |ah[,.!]* |oh[,.!]* |hey[,.!]* |please note[,:]? )*"

_DOES = "|".join(VERBS.split())

CORRECTIONS_EN = CueTable(
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

CORRECTIONS_ZH = CueTable(
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


DECISIONS_EN = CueTable(
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

DECISIONS_ZH = CueTable(
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


_WISH_PARTS_EN = {
    "S": r"(?:^|[,;:.!()—–-] ?|\b(?:and|so|but|then|also|ok|okay|hey|hi|oh|plus|well|btw|anyway|thanks|sorry|because|to|pls|plz|oh and|as well),? )(?:please |pls |plz |kindly |just |also |simply |do |can you |could you )*",
    "DO": r"(?:use|take|reply|respond|answer|write|speak|talk|give|show|tell|ask|keep|make|include|add|avoid|stop|skip|format|explain|address|send|put|start|end|begin|check|confirm|remind|round|cite|quote|list|provide|return|output|wrap|sign|translate|convert|stick|default|leave|omit|mention|assume|book|order|schedule|suggest|recommend|offer|summari[sz]e|double-check|name|number|indent|refer|spell|highlight|attach|save|commit|limit|verify|choose|seat|ship|deliver|bill|charge|contact|email|text|phone|cc|copy|print|display|set|link|break|structure|organi[sz]e|present|label|insert|delete|remove|push|merge|open|close|deploy|comment|document|refactor|import|consult|greet|apologi[sz]e|joke|lecture|guess|invent|repeat|interrupt|generate|produce|sugarcoat|bother|schedule|sort|group|encrypt|lock|back up|call me|wake|phone|ring|disturb|notify|alert|warn|share|store|log|reveal|disclose|forward|post|publish|run|test|plan|reserve|pick|say|follow|treat|have|wait)",
    "STYLE": r"(?:emojis?|emoticons?|smileys?|bullets?|bullet points?|bullet lists?|markdown|headings?|headers?|tables|bold|italics|jargon|buzzwords?|small talk|fluff|filler|preambles?|disclaimers?|apolog\w+|exclamation (?:marks?|points?)|semicolons?|hashtags?|pleasantries|flattery|compliments?|abbreviations?|acronyms?|slang|swearing|passive voice|em-? ?dashes|code blocks?|comments|footnotes?|caps|all caps|metaphors?|sarcasm|jokes?|lecturing|hedging|repetition|caveats|honorifics|first names?|nicknames?)",
    "OUT": r"(?:answers?|replies|reply|responses?|messages?|explanations?|emails?|texts?|output|summaries|reports?|tone|language|code|writing|sentences|paragraphs|style|suggestions?|updates?|wording|posts?|everything)",
    "LANG": r"(?:english|british english|american english|french|german|spanish|portuguese|italian|dutch|russian|chinese|mandarin|cantonese|japanese|korean|arabic|hindi|turkish|polish|swedish|danish|norwegian|finnish|greek|hebrew|ukrainian|czech|thai|vietnamese|indonesian|urdu|bengali|persian|catalan|romanian|hungarian|swahili|plain english|plain words|simple words|lay terms|layman's terms)",
    "IDLE": r"(?:give up|give in|say never|say die|stop (?:believing|dreaming|learning|being|trying)|quit|forget|be afraid|lose|let (?:anyone|it|them|go)|change|doubt|worry|remind(?:s|ed)? me of|keep (?:going|up|it up|dreaming)|ask for more|have to)",
    "FREQ": r"(?:always|generally|usually|typically|normally|strongly|definitely|much|really|personally|mostly|absolutely|vastly|far|honestly|still|also|greatly|simply|actually|just|tend to|would always|very much|clearly|kind of)",
    "DIET": r"(?:vegetarian|vegan|pescatarian|lactose[- ]intolerant|gluten[- ]free|gluten[- ]intolerant|diabetic|coeliac|celiac|teetotal(?:l?er)?|colou?r[- ]?blind|dyslexic|hard of hearing|deaf|left-handed|kosher|halal|a non-?smoker|a non-?drinker)",
}  # fmt: skip

PREFERENCES_EN = CueTable(
    _WISH_PARTS_EN,
    r"""
    standing | always never | {S}(?:always|never|never ever) (?!{IDLE})(?P<o>{DO}\b.*)
    standing | ever | {S}(?:don't|do not) ever (?!{IDLE})(?P<o>\w+.*)
    standing | from+now from+here from+today from+point from+day going+forward moving+forward henceforth | \b(?:from (?:now|here|today|this point|this day) (?:on|onwards?|forward)|(?:going|moving) forward|henceforth)\b,? (?:(?:i want|i'd like|i would like|i need|i expect|i prefer|please|always|never|only|just|you|we|don't|do not|no more|no|all|any|every)\b ?)?(?P<o>{DO}\b.*|(?<=want )you.*|(?<=like )you.*|(?<=you )(?:should|must|may|can|will|have).*|(?<=prefer ).*|(?<=no ).*|(?<=all )(?:of )?(?:your|my|the).*|(?<=every ).*\b(?:should|must)\b.*)
    standing | from+now from+here from+today from+point going+forward henceforth | ^(?!.*\b(?:i'll|i will|we'll|i'm|we're|i am)\b)(?=.*\b{DO}\b)(?=.*\b(?:me|my|you|your|in|the|a|to|all|any|every|it)\b)(?P<o>.*) (?:from (?:now|here|today|this point) (?:on|onwards?|forward)|going forward|henceforth)[.!]*$
    standing | future | \bin (?:the )?future,? (?:please |always |never |only |just |don't |do not |you (?:should|must) |i(?:'d| would) (?:like|prefer|rather) )+(?P<o>.*)
    standing | future | \bin (?:the )?future,? (?P<o>{DO}\b (?:me|my|the|a|an|all|any|only|it|in|your)\b.*)
    standing | reference | \bfor (?:future reference|the future|next time)\b[,:]? (?P<o>.*\b(?:i|i'm|my|we|please|you|don't|never|always)\b.*)
    standing | future | \bfor (?:all |any |every )?(?:my )?future (?:\w+ )?(?:bookings?|orders?|trips?|messages?|replies|requests?|tasks?|deliver\w+|invoices?|emails?|reports?|visits?|flights?|stays?|purchases?|sessions?|questions?|code|meetings?)\b,? (?P<o>.*)
    standing | rule default principle | \b(?:as a (?:general )?rule|by default|as a matter of principle|on principle|in principle)\b,? (?:of thumb,? )?(?P<o>(?:i|i'm|we|please|always|never|don't|do not|only|{DO})\b.*)
    standing | notice | \buntil further notice\b,? (?P<o>.*)
    standing | times | \bat all times\b,? (?P<o>{DO}\b.*)
    standing | times | {S}(?P<o>{DO}\b.*) at all times\b
    standing | whenever every each | ^(?:and |also |please |so )*(?:whenever|every time|each time|any ?time) (?:i|you|we|there's|there is)\b[^,]{{0,80}}(?:, |(?= (?:please|always|never|don't|do not) ) )(?:please |always |never |don't |do not |just |you should |you must |then |i want you to |only )*(?P<o>{DO}\b(?! (?:fails?|passes|is|are|was|runs?|works|comes|goes)\b).*)
    standing | whenever every each | {S}(?P<o>{DO}\b [^,]{{2,100}}?),? (?:whenever|every time|each time|any ?time) (?:i|you|we)\b
    standing | when | ^(?:and |also |please |so )*when (?:you|you're|writing|reviewing|answering|explaining|giving|coding|booking|replying|summari[sz]ing|translating|suggesting|recommending|talking|speaking|addressing)\b[^,]{{0,80}},? (?:please |always |never |don't |do not |just |you should |you must |only |be )*(?P<o>(?:{DO}|flag|prefer|blunt|brief|direct|honest|polite)\b.*)
    standing | stop quit | {S}(?:stop|quit) (?P<o>(?:using|adding|giving|apologi[sz]ing|calling|asking|saying|sending|writing|repeating|starting|ending|replying|responding|assuming|suggesting|explaining|putting|making|including|telling|lecturing|summari[sz]ing|offering|translating|hedging|recommending|thanking|complimenting|praising|flattering|interrupting|rounding|guessing|inventing|mentioning|quoting|reminding|emailing|texting|phoning|being so|ringing|bothering|patroni[sz]ing|changing my|reformatting|renaming|with the|with all the)\b.*)
    standing:name | call | {S}(?:you (?:can|may|could|should) )?(?:just )?call me (?P<v>(?!back|when|if|later|tomorrow|tonight|today|crazy|maybe|old|a |an |on |at |in |as |by |after|before|again|asap|now|anytime|any time|whenever|the |it |what|to |for |and |please|once|soon|or |with|from|up|out|over|next|this|right)[\w.'-]+(?: (?!instead|please|from|when|in|if|not|and|nobody|everyone|but|because|ok|by|at|for)[\w'-]+)?)
    standing:name | address refer | {S}(?:you (?:can|may|could|should) )?(?:address|refer to) me (?:as|by|with) (?P<v>[\w.'-]+(?: [\w'-]+){{0,2}})
    standing | call address | {S}(?:don't|do not|stop) (?:call|calling|address|addressing) me (?P<o>[\w.' -]+)
    standing:name | go | \bi go by (?P<v>[\w'-]+)(?! (?:bus|train|car|plane|bike|foot|the|my|a|what)\b)
    standing:pronouns | pronouns | \bpronouns (?:are|is|:) ?(?P<v>.+?)(?: please)?[.!]?$
    standing | in+all in+every in+each in+any | {S}(?:be|stay|keep it|make it|remain) (?:more |very |as |extra )?(?P<o>\w+(?: and \w+)?) in (?:all|every|each|any)(?: of)? (?:your|the|our) {OUT}\b
    standing | keep make write tone | {S}(?:keep|make|leave) (?P<o>(?:your|all|all your|every|the|any|all the|all of your) {OUT} (?:\w+ ){{0,2}}?(?:short|shorter|brief|concise|simple|formal|informal|casual|plain|long|detailed|neutral|polite|clean|to the point|under|below|within|in|at|friendly|professional|technical|minimal|direct|neat|tidy|crisp|terse|succinct|lower case|readable|accessible)\b.*)
    standing | keep | {S}keep (?:it|things|that) (?P<o>(?:short|brief|concise|formal|casual|simple)\b.*\b(?:always|with me|every time|in general|when you|unless)\b.*)
    standing | write give show send format put | {S}(?:write|give|show|send|format|put|quote|state|tell) (?:me |to me )?(?P<o>(?:all|every|any|each) (?:of )?(?:my|your|the|our)?\b ?\w+.*\b(?:in|as|with|without|to|by)\b.*)
    standing:answer_language | reply respond speak talk answer write language english french german spanish chinese | {S}(?:always |only )*(?:reply|respond|speak|talk|answer|write)(?: to| with| back)?(?: me| us| my \w+)?(?: back)?(?: only)?,? (?:only )?in (?P<o>(?P<v>{LANG})\b.*)
    standing | no | ^(?:and |also |but |ok |please |hey )*(?:absolutely |just )?no (?:more )?(?P<o>{STYLE})\b(?! (?:needed|necessary|yet|left))
    standing | use add include want need put | {S}(?:don't|do not|never|stop|avoid) (?:use|using|add|adding|include|including|put|putting|write|writing)? ?(?:any |the |so many |too many |unnecessary )*(?P<o>{STYLE}\b.*)
    standing | avoid skip drop | {S}(?:avoid|skip|drop|cut|lose|ditch|leave out|omit)(?: out)? (?:all |any |the |your )*(?P<o>{STYLE}\b.*)
    standing | want need | \bi (?:don't|do not|never) (?:want|need|like|care for) (?:any |to see |to read |the |your |to get )*(?P<o>{STYLE}\b.*)
    standing | metric imperial celsius fahrenheit kilometers kilometres miles hour iso spelling | {S}(?:always )?(?:use|give me|stick to|prefer|convert to|write in|show) (?P<o>(?:the )?(?:metric|(?:british|american|uk|us|canadian|australian) (?:english|spelling)|imperial|celsius|fahrenheit|kilomet\w+|24-hour|12-hour|iso)\b.*)
    standing | want like need expect | \bi (?:'d |would |do |really |just )*(?:want|like|need|expect|ask|'d like|would like) (?:that )?you to (?:always|never|stop|keep|only|not ever|consistently) (?P<o>.*)
    standing | rather prefer | \bi(?:'d| would)(?: much| really)? (?:rather|prefer(?: it)?(?: if| that)?) you (?P<o>(?:didn't|did not|don't|not|never|always|only|stopped|stop|kept|keep|used|use|would|wouldn't)\b.*)
    standing | should must | {S}you (?:should|must|have to|need to|are to|'re to|may|can) (?:always|never|only|please always) (?P<o>.*)
    standing | sure | {S}(?:make sure|be sure|ensure)(?: that)?(?: you| to)* (?:always|never)(?: you)? (?P<o>.*)
    standing | circumstances | \bunder no circumstances\b,? (?P<o>.*)
    standing | work learn understand think | \bi (?:work|learn|read|understand|think|focus) best (?P<o>(?:with|when|from|if|by|in)\b.*)
    standing | remember mind forget note fyi record know | {S}(?:please )?(?:remember|keep in mind|bear in mind|note|don't forget|do not forget|for the record|fyi|just so you know|so you know|be aware|so you're aware|take note)(?:,|:)? (?:that )?(?P<o>(?:i(?:'m| am| have| don't| do not| can't| cannot| need| only| never| always| prefer| use| like| hate| work| speak| live|'ve got| eat| drink)|my \w+(?: \w+)? (?:is|are|has|doesn't|can't|don't)|we(?:'re| are| have| use| don't| only| never| always| can't))\b.*)
    standing | mind | ^(?P<o>i(?:'m| am| have| don't| need| can't)\b.*)\bkeep (?:that|this|it) in mind\b
    standing:favorite | favorite favourite | \bmy (?:all-time |absolute |personal |very )*fav(?:ou?rite) (?P<t>\w+(?: \w+){{0,2}}?) (?:is|are|has to be|will always be|would be|has always been) (?P<v>[^,.;!?]+)
    standing:favorite | favorite favourite | ^(?P<v>[\w' -]+?) (?:is|are)(?: still| definitely| by far)? my (?:all-time |absolute |personal |very )*fav(?:ou?rite) (?P<t>\w+)
    standing:preferred | preferred go-to default usual regular preference | \bmy (?:preferred|go-to|default|regular|usual) (?P<t>\w+(?: \w+){{0,2}}?) (?:is|are|has to be|remains) (?P<v>[^,.;!?]+)
    standing | preference preferences | \bmy (?:strong |general |usual |personal |\w+ )?preferences? (?:is|are|would be|has always been|remains)(?: for| to have| to)? (?P<o>.*)
    standing | preference | \bi have a (?:strong |clear |slight |definite )?preference for (?P<o>.*)
    standing:allergy | allergic | \bi(?:'m| am) (?:\w+ )?(?:deathly |severely |badly |very |highly |mildly )?allergic to (?P<v>[\w -]+)
    standing:allergy | allergy allergies | \bi(?:'ve got| have|'ve)(?: got)? (?:an? )?(?:\w+ )?(?P<v>[\w-]+) allerg(?:y|ies)\b
    standing:diet | i'm i am | \bi(?:'m| am) (?:an? )?(?:strict |strictly |life-?long |ethical |mostly |fully |a bit |also |still |now )*(?P<v>{DIET})\b
    standing | eat drink tolerate touch consume do | \bi (?:really |still |also |simply |just )*(?:don't|do not|can't|cannot|never|won't) (?:eat|drink|tolerate|consume|touch|smoke|do) (?P<o>(?!that|this|it|there|anything|anymore|much|well|enough|so|too|here|very|all|any of|my|the|what|how|a lot|like|you|him|her|them|to)\w+.*)
    standing:diet | keep eat eating | \bi (?:keep|eat|cook|only eat|eat only|follow)(?: an?| strictly| strict)? (?P<v>kosher|halal|gluten-free|plant-based|vegan|vegetarian|low-carb|keto|dairy-free)\b
    standing | avoid | \bi (?:always |try to |have to |must |generally )*avoid (?P<o>(?!it|that|this|him|her|them|you|the|my|doing|being|thinking|talking)\w+.*)
    standing | only always never | \bi (?:only|always|never|exclusively) (?:ever )?(?:eat|drink|fly|wear|use|order|book|sit|pay|shop|stay|buy|rent|smoke|check|travel|ship) (?P<o>(?!to\b|it\b|that\b|up\b|the way)\w+.*)
    standing | only | \bi (?:eat|drink|fly|wear|use|order|book|buy|cook with|write in|code in|speak|read|watch) (?P<o>[\w' -]+) only\b
    standing:language | speak | \bi (?:only |mainly |mostly )?speak (?P<v>{LANG})\b(?! (?:well|badly|too))
    standing | always | \bi(?:'d| would) always rather (?P<o>.*)
    standing | from+now from+here from+today from+point going+forward henceforth | ^(?P<o>(?:\w+,? )?i(?:'d| would)? (?:like|want|need|prefer|expect) .{{3,120}}?),? (?:from (?:now|here|today|this point) on(?:wards?)?(?: out)?|going forward|henceforth)[.!]*$
    standing | anything+you everything+you whatever+you all+you | {S}(?P<o>{DO}\b [^?]{{2,80}}\b(?:anything|everything|whatever|all) (?:that )?you (?:send|write|make|say|give|produce|build|book|draft|order|post|show)\b.*)
    standing | anything+you everything+you whatever+you | ^(?:please,? )?(?:in |for |with )?(?:anything|everything|whatever) you (?:send|write|make|say|give|produce|build|book|draft|order|post|show)\b[^,]{{0,30}}, (?:please |always |never |don't |do not )*(?P<o>{DO}\b.*)
    standing | everywhere throughout | \b(?:i|we) (?P<o>(?:use|write|name|format|indent|log|deploy|test|spell|keep) [^,.;!?]{{3,60}} (?:everywhere|throughout|across the board))\b
    standing | like want need | \bi (?:really )?(?:don't|do not) (?:like|want|need|care for) (?P<o>[^,.;!?]{{3,50}}(?:,|;| so)+ (?:so )?(?:please )?(?:always |just )?(?:skip|avoid|leave|drop|don't|cut|keep|never|omit|spare)\b.*)
    standing:name | call | {S}call me by my (?:first|last|middle|full|given|nick|maiden) ?name(?:, (?P<v>[\w'-]+))?
    standing | can't cannot don't | ^(?:sorry,? )?(?:can't|cannot|don't) (?:do|eat|drink|have) (?P<o>(?:any )?(?:dairy|gluten|meat|pork|beef|fish|seafood|nuts|peanuts|sugar|alcohol|spicy|lactose|eggs|soy|shellfish|caffeine|wheat|red meat)\b.*)
    standing | always never only | \bi (?:(?:always|never)(?: ever)? (?:want|need|expect|accept|require)|only (?:ever )?(?:want|accept)) (?P<o>(?!to (?:be|help|make|give|go|do|become|win|travel|live|learn|feel|lose|forget|see you|have)\b|it\b|that\b|you\b|what\b|the best\b)\w+.*)
    standing | only never | \bi (?:only|never) (?:ever )?(?:read|watch|answer|respond to|reply to|use|write|listen to|open|click|print|trust|take) (?P<o>(?!it\b|that\b|this\b|about\b|my\b|the time\b|anything like|any of|a break|for granted)\w+.*)
    standing | ever | ^(?:and |also |please |so )*(?P<o>(?:don't|do not|no|never|not) [^.!?]{{3,120}}), (?:ever|not ever|period|full stop)[.!]*$
    standing | always time | ^(?!.*\b(?:he|she|they|it|we) (?:\w+s|did|was|were|won|lost)\b)(?P<o>[^?]{{3,120}}(?:[,:—-]) ?(?:\w+(?: \w+){{0,3}}, )?)(?:always|every time|each time|every single time)(?:, please)?[.!]*$
    standing | every all any | \b(?P<o>(?:every|all|any|each) (?!\w+ of (?:us|them)|of us|that|day|things?\b)(?:\w+ ){{1,3}}?(?:has to|have to|must|should|needs to|need to) (?:always |also )?(?:be|have|include|contain|come|go|use|start|end|fit|stay)\b .*)
    standing | important | \bit(?:'s| is) (?:very |really |super )?important (?:to me )?that you (?:always|never|only|don't|do not) (?P<o>.*)
    standing | spare | {S}spare me (?:the |all the |your )?(?P<o>.*)
    standing | default assume treat | {S}(?:default to|assume (?:that )?(?:i|i'm|my)|treat me (?:like|as)|talk to me (?:like|as)|explain (?:things|it|everything) (?:to me )?(?:like|as)) (?P<o>.+)
    standing | set make | {S}(?:set|make) (?P<o>[^,.;!?]{{2,60}}) (?:as )?(?:the|my|your) default\b
    standing | policy rule | \b(?:my|our|i have a|we have a) (?:\w+ )?(?:policy|rule|rules) (?:is|are|of|on|about|against)?:? ?(?P<o>.+)
    standing | must dealbreaker deal-breaker | ^(?P<o>[^,.;!?]{{3,60}}) (?:is|are) (?:an absolute |a |an )?(?:must|must-have|deal-?breaker|no-go|non-negotiable) for (?:me|us)\b
    standing | insist refuse | \bi (?:insist on|refuse to|won't accept|don't accept) (?P<o>(?!believe|give up)\w+.*)
    standing | hate like dislike | \bi (?:really )?(?:hate|don't like|dislike|can't stand) (?:being|to be) (?P<o>(?:called|addressed|contacted|phoned|emailed|texted|interrupted|reminded|rushed|asked)\b.*)
    stated | only | ^(?:and |also )*(?P<o>(?!the only|only|if only|not only)[\w' -]{{3,60}}) only,? please[.!]*$
    stated | need | ^(?:and |also |there's |you )*(?:no need (?:for|to)|don't need (?:to )?|do not need to|needn't|don't have to|don't bother (?:with|to)?) (?P<o>(?:explain|apologi[sz]e|thank|repeat|summari[sz]e|add|ask|say|be polite|be formal|remind|small talk|disclaimers?|apologies|pleasantries|an introduction|introductions|preamble)\b.*)
    standing | we always never only | \bwe (?:always|never|only) (?P<o>(?:use|deploy|ship|release|merge|write|test|book|pay|order|review|push|name|keep|run|commit|host|log|code|invoice|bill)\b.*)
    standing | person team | \bi(?:'m| am) (?:more of |very much |definitely |strictly |really )*an? (?P<o>(?P<v>\w+(?: \w+)?) (?:person|guy|girl|user|drinker|man|woman|kind of person))\b
    standing:time_zone | timezone zone | \bi(?:'m| am) (?:\w+ )?(?:in|on) (?:the )?(?P<v>[\w+/: -]{{2,30}}?) time ?zone\b
    standing:accessibility | wheelchair accessibility | \bi (?:need|use|require|am in|have) (?:a |an )?(?P<o>wheelchair\b.*)
    standing | hate can't cannot dislike don't annoys bothers drives | \b(?:i (?:really |absolutely |just |do |simply )*(?:hate|dislike|can't stand|cannot stand|don't like|can't bear)(?: it)? (?:when|how|if|that) |it (?:annoys|bothers|drives) me (?:\w+ )?when )(?P<o>(?:you|your|answers?|replies|responses?|messages?|emails?|explanations?|people call me|an? (?:answer|reply|response|message))\b.*)
    standing | love like appreciate prefer | \bi (?:really |absolutely |just |do |simply )*(?:love|like|appreciate|prefer) it (?:when|if) (?P<o>(?:you|your|answers?|replies|responses?|messages?|emails?|explanations?|an? (?:answer|reply|response|message))\b.*)
    stated | prefer | \bi {FREQ} prefer (?P<o>.*)
    stated | prefer | \b(?:i|we) (?:do |would )?prefer (?P<o>.*\b(?:over|to|rather than|instead of|than|when you|that you|if you|you to|not to be|to be|on|for|in|with|without|by)\b.*)
    stated | prefer | \b(?:i|we) prefer (?P<o>(?!not to say|to think|it that way|the (?:second|first|third|earlier|later|other)|this|that|one)\w+.*)
    stated | take like | \bi (?:like|take|want|have|drink|need) my (?P<t>coffee|tea|steak|eggs|burger|toast|whisky|whiskey|water|answers?|replies|explanations?|code|summaries|reports?|emails?|news|data|charts?|messages?|room|rooms|music|food|curry|pizza) (?P<v>[\w-]+.*)
    stated | hate | \bi (?:really |absolutely |truly )?(?:hate|loathe|detest) (?P<o>(?:phone calls|calls|meetings|emails|emojis|notifications|small talk|jargon|layovers|connections|surprises|spam|pop-?ups|reminders|bullet points)\b.*)
    stated | take | \bi (?:always|usually|generally|normally|only) (?:take|choose|pick|go for|ask for|get) (?P<o>(?:the |an? )?(?:window|aisle|middle|front|back|vegetarian|vegan|direct|nonstop|non-stop|early|late|quiet|cheapest|fastest|first|last|night|morning|evening)\b.*)
    stated | take do fly drive | \bi (?:don't|do not|never) (?:take|fly|drive|do|book|accept|use) (?P<o>(?:red-?eye|night|early|late|budget|connecting|economy|business|cash|credit|overnight|weekend|connections|layovers|calls|meetings)\b.*)
    weak | like love enjoy hate dislike adore detest prefer favor favour loathe | \b(?:i|we|i've|we've|i'd|we'd) (?:really |absolutely |just |do |also |truly |still |always |have |would |kind of |so |quite |totally |definitely |sort of |don't |do not |never |didn't |even )*(?:like|liked|love|loved|enjoy|enjoyed|hate|hated|dislike|adore|adored|detest|prefer|preferred|favou?r|loathe)\b (?!(?:it|that|this|how|your|you|them|these|those|when|to hear|to see|seeing|hearing|the (?:way|idea|sound|energy|vibe))\b(?! one)|to (?:help|check|know|learn more|come|join|chat|try|talk|do|be)\b)(?P<o>.*)
    weak | rather | \b(?:i|we)(?:'d| would| had) (?:much |really |definitely )?rather (?P<o>.*)
    weak | want need like love appreciate | \b(?:i|we)(?:'d| would)? (?:really |just |also |do |only |don't |do not |definitely )*(?:want|need|like|love|appreciate) (?!to\b(?! (?:sit|pay|use|fly|stay|avoid|keep|have|receive|be contacted|leave|depart|arrive|eat|drink)\b)|to (?:keep|have) (?:you|in touch)|your help|help|assistance|some (?:help|assistance|advice)|it\b|that\b|this\b(?! one)|you\b(?! to)|your\b|them\b|'em\b|people to|everyone to|others to|how\b|what\b|you to (?!keep|use|always|never|stop|write|be|only))(?P<o>.*)
    weak | fan into fond keen partial crazy obsessed interested happy used passionate fine good picky | \bi(?:'m| am| was|'ve (?:always )?been) (?:not |really |also |a |an |very |quite |so |pretty |huge |big |super |totally |happy |more )*(?:fan of|into|fond of|keen on|partial to|crazy about|obsessed with|interested in|happy with|used to|passionate about|fine with|good with|picky about) (?P<o>.*)
    weak | usually normally typically tend generally mostly often | \b(?:i|we) (?:usually|normally|typically|tend to|generally|mostly|often) (?P<o>.*)
    weak | stand bear without | \bi (?:can't|cannot|could never|could|can) (?:really )?(?:stand|bear|do without|do really without) (?P<o>.*)
    weak | favorite favourite go-to | \b(?:my|our)(?: all-time| absolute)? (?:fav(?:ou?rite)|go-to)\b(?P<o>.*)
    weak | ideally preferably possible | \b(?:ideally|preferably|if (?:at all )?possible)\b,? ?(?P<o>.*)
    weak | better+me best+me suits+me works+me matters+me important+me | \b(?P<o>.*)\b(?:works? (?:better|best|well) for me|suits me|better for me|best for me|matters to me|important to me|is (?:nicer|better) for me)\b
    weak | please | \bplease,? (?P<o>(?:don't |do not |no )(?:{DO}|no|only)\b.*|(?:use|keep|make|write|answer|reply|respond|speak|be|avoid|skip|include|format|put|only|no|leave out|seat|choose|pick)\b (?!sure|it clear|changes|the changes).*)
    weak | please | ^(?P<o>.*\b(?:seat|room|table|copy|version|only|one|flight|option|format|email|mail|text|english|french)\b.*),? please[.!]*$
    weak | make keep use give write don't do no avoid skip add send put be answer | ^(?:also |and |but |so |ok |okay |just |then |now |no[,:] )*(?:please )?(?:don't |do not )?(?P<o>(?!keep (?:it up|up|going|in touch|on|me posted|pushing|at it|dreaming|doing|being|making|working|inspiring|those|that)|make (?:sure|your)|be (?:sure|proud|careful|strong|safe|kind))(?:make|keep|use|give me|write|answer|avoid|skip|add|send me|put|be) .*)
    weak | can could would | ^(?:and |so |ok |also )*(?:can|could|would|will) you (?:please |maybe |just |always |also )*(?P<o>(?:make|keep|use|write|answer|reply|respond|give|call me|stop|avoid|speak|send|show|not)\b.*)
    """,
)


_WISH_PARTS_ZH = {
    "S": r"(?:^|[，,。；;：:！!、（(—\s])(?:请你?|麻烦你?|拜托|那|所以|但是?|而且|另外|还有|也|就|你|您|嗯|好|好的|对了|顺便说一下|顺便|记得|一定|还是|以后|那么|要|把){0,3}[，,]?",
    "DO": r"(?:用|回答|回复|回我|答|写|说|讲|给|发|寄|送|叫|称呼|问|确认|保持|加|附|标|注明|写明|列|提醒|告诉|告知|避免|省|跳过|订|预订|预约|安排|推荐|建议|翻译|总结|解释|输出|返回|生成|显示|展示|使用|采用|选|挑|按|保留|删|改|抄送|转|提交|部署|检查|看|先|把|将|放|换成|换算|四舍五入|空|分|引用|举|记|存|报|联系|通知|打电话|打扰|叫醒|道歉|重复|夸|客套|啰嗦|废话|猜|编|别|不要|不用|只|都|统一|附上|带|走|付|刷|坐|住|点|做|收|开|调|设|直说|省掉)",
    "STYLE": r"(?:表情符号|表情包|表情|颜文字|项目符号|列表|标题|表格|粗体|斜体|术语|行话|黑话|套话|废话|客套话?|客气话?|寒暄|铺垫|免责声明|感叹号|分号|破折号|缩写|英文缩写|英文单词|英文|成语|网络用语|敬语|比喻|玩笑|长句|短句|代码块|注释|脚注|Markdown|markdown|emoji|emojis|道歉|夸奖|恭维|啰嗦|官腔|翻译腔)",
    "OUT": r"(?:回答|回复|答案|答复|消息|邮件|解释|总结|报告|语气|文字|代码|内容|输出|说明|句子|风格|建议|文章|标题|介绍|讲解|方案)",
    "LANG": r"(?:简体中文|繁体中文|中文|英文|英语|法语|法文|德语|德文|西班牙语|葡萄牙语|意大利语|荷兰语|俄语|日语|日文|韩语|韩文|阿拉伯语|粤语|普通话|泰语|越南语|土耳其语|波兰语|大白话|白话|白话文|口语|简单的话|通俗的话|人话)",
    "I": r"(?:^|[，,。；;：:！!\s])(?:其实|说实话|老实说)?(?:我们?|咱们?|本人)(?:个人|自己|这边|这里|家里?|平时|平常|出差|出门|旅行|旅游|在家|在公司|上班|工作|(?:写|订|买|看|吃|喝|做|开)[^，,。；;她他你]{1,4}?)?",
    "LONG": r"(?:一直以来|一直|一向|向来|素来|历来|从来|总是|从小到大|从小|打小)(?:都|就|也|还|很|最|特别|非常|挺|比较|更|真的|十分){0,3}",
    "FREQ": r"(?:一向|一直|总是|通常|平时|向来|一般|始终|还是|明显|绝对|当然|比较|更|最|特别|尤其|个人|一贯|从来都|都|总的来说|其实|就|一般都|平时都|多半|历来)",
}  # fmt: skip

PREFERENCES_ZH = CueTable(
    _WISH_PARTS_ZH,
    r"""
    standing | 以后 今后 往后 从现在 从今 今天起 接下来 下次 将来 之后都 此后 | (?:以后|今后|往后|从现在(?:开始|起)|从今(?:天|日)?(?:开始|起|以后|往后)?|今天起|接下来|下次|将来|此后)(?!再说|再看|再讲|再议|想|可能|也许|会|的事|才|有机会|我(?:想|会|要(?!你)|打算|可能|也|就|再|能|们(?:想|会|要|可以|再|也|就|去))|咱|他|她|见)[，,]?(?P<o>[^。；;：:]{{0,24}}?(?P<k>请|都|一律|统一|务必|不要|别|不用|只|一定|全部?|要|{DO}).*)
    standing | 每次 每回 每当 凡是 一旦 | (?:每次|每回|每当|凡是|一旦)(?P<o>[^。；;：:]{{0,40}}?(?P<k>请|都要|都得|要|务必|不要|别|都给|都用|都先|都告诉|都提醒|都写|都加|给我|告诉我|提醒我|先问我|注明).*)
    standing | 一律 统一 始终 永远 务必 必须 总是 一直 默认 绝对 千万 | {S}(?P<o>[^，,。；;：:]{{0,24}}?(?P<k>一律|统一|始终|永远(?!要)|务必|默认|千万|绝对不要|绝对别|请总是|请一直|请必须)(?:都|要|不要|别|请)?{DO}.*)
    standing | 千万 绝对 永远 务必 切记 | {S}(?P<o>[^，,。；;：:]{{0,12}}?(?P<k>(?:千万|绝对|务必|切记)(?:不要|别|不能|不可以|要|得|先|请)?|永远(?:不要|别|不能|用|选|先|以|给我|把|保留|空))(?!在这|忘|放弃|担心|难过|客气|灰心|小看|错过).{{2,}})
    standing | 别再 不要再 不用再 不许再 | {S}(?P<o>(?:以后|周末|晚上|请)?(?:都)?(?:别再|不要再|不用再|不许再)(?!来了|走|哭|想|生气|等|闹|难过|担心|说了|见|犯|来).{{1,}})
    standing | 一定要先 一定先 之前 前先 | {S}(?P<o>.{{2,16}}(?:之前|以前|前)(?:请|都)?(?:一定|务必|都|得|必须)?(?:要)?先(?:问|看|跟|给|和|征求|确认|告诉|通知|检查).*)
    standing | 时候 时 | {S}(?:我|你)?(?:给我)?(?P<o>(?:写|回答|回复|解释|推荐|订|安排|总结|翻译|审查|评审|提到|问|介绍|报|选|画|做|改|说|称呼|讲|引用|review|Review)[^，,。；;]{{0,14}}(?:的时候|时候|时)[，,]?(?:请|都|要|先|务必|不要|别|用|给|一定|必须|直接|记得|得)+.+)
    standing | 喝不了 吃不了 吃不得 喝不得 碰不得 爬不了 坐不了 闻不了 | (?:^|[，,。；;：:！!\s])我[^，,。；;她他你]{{0,4}}(?P<o>(?:喝|吃|碰|爬|坐|闻)不(?:了|得)(?!那么|这么|这个|那个|了).{{1,}})
    standing | 的东西 的邮件 的文章 的回复 的文件 的内容 的消息 | {S}(?P<o>(?:给我|写给|发给|寄给)[^，,。；;]{{0,6}}的(?:东西|邮件|文章|回复|文件|内容|消息)(?:里|中)?(?:都|一律|全|请|别|不要|尽量).+)
    standing | 除非 | 除非[^。；;？?]{{2,30}}[，,]?(?:否则|不然)(?P<o>.{{0,4}}(?:都|一律|请|就)?(?:用|回|别|不要|给我|按|发).+)
    standing | 到处都用 全都用 一直用 全部用 都用 | (?:^|[，,。；;\s])我们[^，,。；;她他你]{{0,4}}(?:到处|全都|全部|一直|统一)都?(?P<o>(?:用|按|以|走).+)
    standing | 只带 只看 只用 只吃 只喝 只坐 只住 只走 | (?:^|[，,。；;：:！!\s])我[^，,。；;她他你]{{0,5}}(?P<o>只(?:带|看|用|吃|喝|坐|住|走)(?!了|过|是|有|到|见|得).{{1,}})
    standing | 给我 帮我 替我 | {S}(?P<o>(?:给我|帮我|替我)(?:写|订|安排|推荐|翻译|总结|选|买|约|查|做|回|发|预订|预约|审|改)[^，,。；;]{{0,14}}(?:的时候|时|时候)[，,]?(?!候).{{2,}})
    standing | 一律 一概 通通 | (?:^|[，,；;：:\s])[^，,。；;：:她他]{{0,12}}?(?P<k>一律|一概|通通)(?P<o>.{{2,}})
    standing | 请记住 你要记住 请牢记 请注意 | (?:请记住|你要记住|请牢记|请注意)[，,：:]?(?P<o>我.{{2,}})
    standing | 跟你说 告诉你 说明 提一下 | ^(?:对了[，,]?)?(?:先)?(?:跟你说|告诉你|说明|提)一?下?[，,：:]?(?P<o>我(?:是|不|只|对|从不|一向|习惯).{{1,}})
    standing | 别 不要 | {S}(?P<o>(?:别|不要)(?:再|老是?|总是?|每次都)?(?:在[^，,。；;]{{1,8}})?(?:加|写|用|放|总结|重复|解释|道歉|发|提|叫我|夸|催)[^，,。；;]{{0,12}}了[。！!]*)$
    standing | 底线 为准 默认是 | ^(?P<o>[^，,。；;？?]{{2,20}}(?:是我的底线|以[^，,。；;]{{1,10}}为准|默认是[^，,。；;]{{1,12}}))
    standing | 不接受 拒绝 | (?:^|[，,。；;：:！!\s])我(?P<o>(?:不接受|拒绝|一概不要).{{2,}})
    standing | 别给我 不要给我 | {S}(?P<o>(?:别|不要|不用)给我(?:推荐|发|安排|订|加|打|寄|看|用|选|推)(?!这|那).{{1,}})
    stated | 都要 都得 都必须 都请 都应该 | ^(?P<o>(?!我|你|他|她|大家|人|孩子|所有人|这|那|谁)[^，,。；;？?]{{2,10}}?(?:都要|都得|都必须|都请|都应该)(?!走|去|加油|努力|来|学会).{{1,}})
    stated | 不要 别 | ^(?P<o>(?:周[一二三四五六日末天]|星期[一二三四五六日天]|每天|晚上|上午|下午|早上|中午|假期|节假日|[^，,。；;]{{1,6}}点(?:之|以)?[前后])(?:都|请|就)?(?:不要|别)(?!忘).{{2,}})
    standing | 我的代码 我的文章 时 | {S}(?P<o>(?:审查|评审|修改|点评|看)我的(?:代码|文章|稿子|方案)(?:时|的时候)?[，,]?(?:请|要|直).+)
    standing:name | 叫我 喊我 称呼我 | (?:^|[，,。；;：:！!\s]|请|就|直接|都|可以|以后|你|大家|朋友|同事)(?:叫|喊|称呼)我(?:为|做|作)?(?!起|去|来|回|一|吃|怎|什么|们|帮|做饭|等|下楼|出|上|看|不|的名字|多)(?P<v>[^，,。；;！!？?\s就吧即]{{1,12}})
    standing | 称呼我 | {S}(?P<o>称呼我的?时候.*)
    standing | 叫我的名字 | (?P<o>叫我的名字.*)
    standing | 记住 记得 请记 记一下 备注 注意 别忘 顺便说 提醒一下 要知道 说明一下 | (?:记住|记得|请记下?|记一下|备注一下|备注|注意|别忘了?|顺便说一下|顺便说|提醒一下|要知道|说明一下)[，,：:]?(?:了)?(?P<o>(?:我|我们)(?!说过|们说|在哪|是谁|叫什么|刚才|昨天|上次|以前|小时候|记得)(?:是|不|只|对|从|一|更|最|习惯|喜欢|偏|用|订|住|的|吃|喝|讨厌|需要|坐|有|在|要).*)
    standing:allergy | 过敏 | (?:^|[，,。；;：:！!\s]|其实|因为|而且|不过)我(?:对(?P<w>[^，,。；;的她他]{{1,12}}?)|(?!对|妹|弟|姐|哥|妈|爸|女|儿|朋|同|老|孩|家|们|丈|妻|奶|爷)(?P<v>[^，,。；;的她他对]{{1,8}}?))(?:严重|有点|都|也|会|重度|轻度)?过敏
    standing:diet | 吃素 素食 纯素 清真 犹太洁食 忌口 乳糖不耐 麸质 糖尿病 色盲 色弱 轮椅 左撇子 夜猫子 早起 洁食 | (?:^|[，,。；;：:！!\s])(?:我们?)(?:家)?(?:是个?|就是|是|一直|只|也|都|已经|平时|一般|在|得|的餐食要求是|的餐食是)*(?P<v>[^，,。；;她他问]{{0,4}}(?:吃素|素食者?|纯素者?|全素|吃清真|清真|犹太洁食|洁食|忌口.{{0,6}}|乳糖不耐受?|麸质不耐受?|糖尿病|色盲|色弱|坐轮椅|左撇子|夜猫子|早起的人|只吃.{{0,4}}食品))
    standing | 从不 从来不 从来都不 向来不 一向不 绝不 | (?:^|[，,。；;：:！!\s])我[^，,。；;她他你]{{0,6}}?(?:从不|从来不|从来都不|向来不|一向不|绝不|历来不)(?!知道|觉得|后悔|怀疑|说谎|相信|敢|认)(?P<o>.{{1,}})
    standing | 不吃 不喝 不抽 不碰 不接 | (?:^|[，,。；;：:！!\s])(?:我|我们|我们家)(?:平时|一般|也|都|一直)?(?P<o>(?:不吃|不喝|不抽|不碰|不接)(?!了|饭|那边|这个|这|那|惊|亏|透|得|下|完|早|晚|午|东西|的).{{1,}})
    standing | 只吃 只喝 只用 只坐 只穿 只看 只买 只住 只要 只收 只认 只接 只说 | (?:^|[，,。；;：:！!\s])(?:我|我们)(?:平时|一般|一直|向来|从来|一向)?(?P<o>只(?:吃|喝|用|坐|穿|看|买|住|收|认|接|说|订|点|飞)(?!了|过|是|有|到|见|得).{{1,}})
    standing | 我们一向 我们一直 我们都 我们总是 我们从不 我们只 | 我们(?:一向|一直|总是|从不|从来不|只|都是)(?P<o>.{{0,10}}(?:上线|部署|发布|用|测试|提交|写|合并|评审|订|付|走).*)
    standing:favorite | 最喜欢 最爱 首选 最常用 | (?:^|[，,。；;：:！!\s])我(?:个人)?(?:最喜欢|最爱|首选|最常用|最常去)(?:吃|喝|看|听|用|去|玩)?的?(?P<t>[^，,。；;是]{{0,8}}?)(?:是|就是|还是|一直是)(?P<v>[^，,。；;！!]{{1,20}})
    standing:preferred | 我的首选 我的默认 我的偏好 我的习惯 我的要求 我的口味 我的饮食 我的座位 | 我的(?:[^，,。；;是]{{0,4}})(?P<t>首选[^，,。；;是]{{0,6}}|默认[^，,。；;是]{{0,6}}|偏好|习惯|要求|口味)(?:是|一直是|就是)(?P<v>[^。；;！!]{{1,30}})
    standing | 不要 别 不用 不需要 不想 少 | {S}(?:我)?(?:写给我的?[^，,。]{{0,6}}(?:里|中))?(?P<o>(?:不要|别|不用|不需要|不想|少|禁止|避免)(?:再)?(?:用|使用|加|带|说|写|讲|放|有|看到|看见|在.{{1,6}}看到|在.{{1,6}}用|在.{{1,6}}看见)?(?:任何|这么多|那么多|太多|各种|什么)?{STYLE}.*)
    standing | 别客套 别客气 别废话 别啰嗦 别道歉 别恭维 | {S}(?P<o>别(?:客套|废话|啰嗦|道歉|恭维|绕弯子|打官腔).*)
    standing | 回答 回复 答案 答复 消息 邮件 解释 总结 报告 语气 代码 输出 说明 方案 讲解 | {S}(?:你的|所有的?|每个|全部)?(?P<o>{OUT}(?:都|请|要|得|尽量|一律|必须|应该|最好|写得?|时|的时候|一定|务必|能)*(?:简短|简洁|简明|精简|精炼|短|详细|具体|长|正式|随意|口语|直接|干脆|控制在|不超过|少于|保持).*)
    standing | 保持 | {S}(?P<o>(?:请)?(?:一直|始终|都|都要)?保持.{{0,10}}(?:语气|风格|格式|口吻|简洁|简短|正式|礼貌).*)
    standing:answer_language | 用 说 讲 | {S}(?P<o>(?:只|都|尽量|统一|一律|全程|以后|直接|跟我|和我|给我|对我|说话|跟我说话)*(?:用|说|讲|改用)(?P<v>{LANG})(?:回答|回复|答复|回|答|跟我|和我|给我|对我|写|说|交流|沟通|聊|讲|就行|就好|即可|吧)?.*)
    standing | 公制 英制 摄氏 华氏 公里 英里 24小时制 二十四小时制 欧元 人民币 美元 ISO | {S}(?P<o>.{{0,10}}(?:都|请|默认|统一|一律)?(?:用|按|换算成|改成|以)(?:公制|英制|摄氏|华氏|公里|英里|24小时制|二十四小时制|欧元|人民币|美元|ISO).*)
    standing:time_zone | 时区 东八区 北京时间 | (?:^|[，,。；;：:！!\s])(?:我|我们)?(?:人)?在?(?P<v>[东西][一二三四五六七八九十]+区|[^，,。；;]{{2,8}}时区)
    standing | 我希望你 我要你 我想让你 希望你 | (?:我(?:希望|要|想让|需要)|希望)你(?:能|可以)?(?P<o>.{{0,4}}(?:以后|每次|始终|一直|都|不要|别|总是|一律|永远|务必|先|只|少).*)
    standing | 讨厌 受不了 不喜欢 烦 喜欢 反感 | (?:^|[，,。；;：:！!\s])我(?:很|最|特别|真的|非常|实在|比较|有点)?(?:讨厌|受不了|不喜欢|烦|反感|喜欢|不想要?)(?P<o>(?:别人|人家)?(?:你|一上来|回答|回复|答案|邮件里|消息里|别人叫我|人叫我).+)
    standing | 请直接 请始终 请一直 请总是 请永远 请务必 请绝对 请不要叫 请只 请都 | 请(?P<o>(?:直接叫|始终|一直|总是|永远|务必|绝对|不要叫我|别叫我|只(?:发|用|给|说|写|通过)|都).+)
    standing | 跟我说话 和我说话 给我的东西 写给我 跟我聊 | (?P<o>(?:跟我说话|和我说话|写给我的|跟我聊|给我的).{{0,8}}(?:用|别|不要|请|要).*)
    standing | 时间都 都按 都用 都写 都发 都寄 都抄送 所有 | {S}(?:所有|全部|每个|每封|每份|一切)(?P<o>.{{1,10}}(?:都|一律|全部|统一)(?:要|得|请|用|按|写|发|寄|抄送|简|不|以).*)
    standing | 里不要 里别 中不要 | {S}(?P<o>(?:邮件|消息|回答|回复|报告|代码|文章|总结|文档|写给我的东西|给我的东西)(?:里|中|上)面?(?:请)?(?:不要|别|不用|不准|不许).+)
    standing | 的时候给我 时给我 | {S}(?P<o>(?:解释|讲解|说明|回答|介绍|推荐)(?:的时候|时)(?:给我|都|要|请|先|带).+)
    standing:accessibility | 轮椅 | (?P<o>我.{{0,14}}(?:能进|要能|需要|得能|坐)轮椅.*)
    standing | 需要你 不用跟我 不用给我 不用向我 | {S}(?P<o>(?:你|您)?不用(?:跟|给|向|对)我.+(?:以后|都|一律|永远|总).*)
    standing | 永远选 永远要 永远用 | 我永远(?P<o>(?:选|要|用|坐|点|吃|喝|订).+)
    stated | 偏好 偏爱 更喜欢 更爱 更愿意 更倾向 倾向于 习惯 宁可 宁愿 更习惯 | (?:^|[，,。；;：:！!\s])(?:比起[^，,。]{{1,12}}[，,])?(?:我|我们|本人)?{FREQ}{{0,3}}(?<!她)(?<!他)(?:更喜欢|更爱|更愿意|更倾向于?|更习惯|偏好|偏爱|倾向于?|习惯(?:于|用|喝|吃|坐|住|早|晚|先|在|了)?)(?!了|性|就好|成)(?P<o>.{{1,}})
    stated | 宁可 宁愿 | (?:^|[，,。；;：:！!\s])我(?P<o>(?:宁可|宁愿).+(?:也不|不愿|都不).+)
    stated | 我一般 我平时 我通常 我都 | (?:^|[，,。；;：:！!\s])我(?:一般都|平时都|一般|平时|通常)(?P<o>(?:只)?(?:坐|住|喝|吃|用|穿|买|付|订|选|走|刷|飞|点).*)
    stated | 一直 一向 向来 素来 历来 总是 从小 | (?:{I}(?P<k>{LONG})|(?:^|[，,。；;：:！!\s])一直以来[，,]?(?:我|我们)都?)(?:在(?=用))?(?P<o>(?:只)?(?:坐|住|喝|吃|用|穿|买|付|订|选|走|刷|飞|点)(?!不[了上到起好惯来得着完动下]|[它他她你您了过完到]).+)
    stated | 一直 一向 向来 素来 历来 从来 总是 从小 打小 | (?:{I}(?P<k>{LONG})|(?:^|[，,。；;：:！!\s])一直以来[，,]?(?:我|我们)(?:都|就|很)*)(?:不太|不怎么|不大|不)?(?:喜欢|爱(?=[吃喝看听坐住用穿玩去逛做读走])|讨厌|反感|受不了|偏爱|钟爱|热爱)(?P<o>(?![它他她你您这那]|人家|别人|自己|一个人的).{{2,}})
    stated | 喝茶 喝咖啡 茶要 咖啡要 牛排要 | 我(?P<o>(?:喝茶|喝咖啡|的茶|的咖啡|的牛排|吃面|吃牛排)(?:要|都要|得|只|都|不).+)
    stated | 喜欢 讨厌 | (?:^|[，,。；;：:！!\s])我喜欢(?P<o>.{{2,14}}[，,].{{0,6}}(?:别|不要|不用|请).+)
    stated | 只发 只打 只用 请只 | {S}(?P<o>请只.+)
    weak | 喜欢 爱 讨厌 不喜欢 迷上 受不了 感兴趣 反感 爱好 | (?:我|我们|本人)[^，,。；;她他你]{{0,8}}?(?:喜欢|爱|讨厌|迷上|受不了|感兴趣|反感|厌恶|热爱|钟爱|迷恋)(?P<o>.*)
    weak | 想 想要 希望 要 需要 宁愿 宁可 打算 | (?:^|[，,。；;：:！!\s]|今天|这次|这回|航班|周末)(?:我|我们)(?:今天|这次|这回|还是|只|就|也|倒是|更)?(?:不太|不|很)?(?:想|想要|希望|要|需要|宁愿|宁可|更想)(?P<o>.+)
    weak | 最好 尽量 可以的话 如果可以 能的话 方便的话 更好 | (?:最好|尽量|可以的话|方便的话|能的话)(?P<o>.*)
    weak | 更好 更适合我 适合我 合我意 更好看 更顺手 对我 | (?P<o>.*(?:更好|适合我|合我意|更好看|更顺手|更方便|好一点))
    weak | 请 麻烦 | (?:请|麻烦)(?:你)?(?:帮我)?(?P<o>(?:不要|别|用|把|给|先|换|改|选|订|在|只|都|尽量|说|写|短|少|多).*)
    weak | 这次 这趟 这单 这回 今天 本次 此次 | (?:这次|这趟|这单|这回|今天|本次|此次)(?P<o>.*(?:要|用|写|给|别|不要|订|坐|选|不想|想).*)
    weak | 一般 通常 平时 经常 习惯 多半 | (?:我|我们)[^，,。；;]{{0,6}}(?:一般|通常|平时|经常|习惯|多半)(?P<o>.*)
    weak | 不要 别 用 写 短 改 给我 | ^(?:那|就|再|也|还)?(?P<o>(?:不要|别|用|写|改|给我|短|再短|换).+)
    weak | 能不能 可以 可不可以 能否 | (?:能不能|可不可以|能否|可以)(?:请)?(?:你)?(?P<o>(?:用|写|短|少|多|再|给|换|改|别|不|简|说|发|把|快|慢|详).*)
    weak | 不错 觉得 挺 | 我觉得(?P<o>.*(?:挺|很|更|比较|最)(?:适合|好|方便|舒服|顺).*)
    """,
    chinese=True,
)

# ruff: noqa: E501  -- a pattern a line reads better than wrapped ones
"""What a short statement of a user does to a thing, by its grammar rather than by a phrase that is known.

`cues` holds phrases; here are the shapes of sentences that settle, set, ask, forbid, end or lift something: a topic and
what it shall be ("The frame will be steel", "Paper: recycled", 地板铺橡木), somebody who takes an option ("we'll take
the corner booth"), a result ("Postgres won"), a state that ends a task ("the gate works again"). What a sentence tells
is read as a cue of its kind, so that it is weighed together with the words of `cues`. Questions, hearsay, guesses and
long sentences do nothing. Patterns are hand-set; each is searched once, in sentences of at most `LONGEST` characters.

>>> [cue.kind for _, cue in moods("The frame will be steel.", "the frame will be steel.")]
['decision']
>>> [cue.kind for _, cue in moods("Have you tried it?", "have you tried it?")]
[]
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from .cues import CueKind, CuePhrase

LONGEST = 100
"""Characters of a sentence that is read for its shape; longer ones are prose."""

_NUMBER = r"(?:[$€£¥]?\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|twelve|twenty|thirty|forty|fifty|hundred|half|zero)\b)"
_DAY = (
    r"\b(?:today|tomorrow|tonight|this (?:week|month|quarter|year)|next (?:week|month|year)|by \w+|before \w+|until \w+"
    r"|(?:in|by|before|this|next|until) (?:the (?:end|summer|autumn|spring|winter)|spring|summer|autumn|fall|winter|christmas))\b"
)
_THING = r"(?:the|my|our|this|that|his|her|their|all|each|every)\s+(?:[\w'&-]+\s+){0,3}?[\w'&-]+"
"""A noun phrase with its article."""
_TOPIC = r"(?!(?:it|he|she|they|i|we|you|this|that|there|what|who|which|one|people|somebody|someone|everybody|everyone|nothing|nobody|weather|today|tomorrow)\b)[a-z][\w'&-]*(?:\s+[\w'&-]+){0,4}?"
_STATUS = r"(?:ok|done|yes|no|none|true|false|stale|open|on|off|failed|idle|fine|new|old|up|down|unknown|[a-z]+ed|[a-z]+ing|[\d.,%]+)"
"""What a line of a status list says of a thing: nobody decided it."""
_LEAD = r"^(?:(?:so|ok|okay|alright|right|well|now|then|and|fine|good|looks like|by the way)\b[,:]?\s+)*"

_UNREAL = re.compile(
    r"\b(?:if|wonder\w*|maybe|perhaps|might|would(?! be)|could|guess|i think|they say|told me|heard|read|tried|seems?|probably|no idea|suppose|used to|whether|like how|as so often|by itself|once and)\b|\bhave you\b"
)
"""Words of a guess, a wish or hearsay."""


class _SentenceShapes(NamedTuple):
    """What sentences of one kind look like."""

    cue: CuePhrase
    shapes: tuple[str, ...]


def _shapes(kind: CueKind, weight: int, *shapes: str) -> _SentenceShapes:
    return _SentenceShapes(CuePhrase(kind, weight, "", (), False), shapes)


_DECIDES = _shapes(
    "decision",
    2,
    rf"{_LEAD}{_TOPIC}(?: will| ?'ll|'s going to| is going to| are going to| is gonna| are gonna| should| shall| is to| are to) be (?!a long|a while|lovely|fun|hard|great|nice|fine|done|good|able|there|here|over|late|gone|ready|[a-z]+ed\b)",
    rf"{_LEAD}(?:it'll be|it will be|it's going to be|it's gonna be|it's|it is|that's|that'll be|that makes it) (?!a long|just|not|so|too|very|really|hard|nice|fun|funny|weird|raining|like|about|time|been|only|getting)(?:[\w'&-]+ ){{1,5}}?(?:for|then|now)\b",
    r"\b(?:i|we)(?:'ll| will|'m|'re| am| are)(?: now| just| finally| all| definitely| both)* (?:take|taking|use|using|have|having|get|getting|buy|buying|book|booking|hire|hiring|pick|pick\w*|choos\w*|run|on|getting|move to|build|stay with|staying with|keep|keeping|put|putting|plant\w*|sign\w*|paint\w*|serv\w+|invit\w+|accept\w*)\b (?!to\b|there|here|it\b|old|tired|used|better|worse|fun|trouble|a look|a walk|a break|a great|a good|a hard|into)",
    r"\b(?:i|we)(?: now| just| finally| both| all| then|'ve|'d| have)* (?:take|took|taken|buy into|bought into|choose|accept|accepted|booked|hired|signed (?:up )?with|ended up|end up|went for|go for|commit\w*|bet on|say yes to|said yes to|(?:want|rather have)(?=.* for the\b)|selected|select|approved|confirmed|nailed down)\b (?!to\b|a walk|a look|a break|ages|it\b)",
    r"\b(?:made up (?:my|our) minds?|done deal|no more doubts|leave it at that|so we do that|got the job|gets the nod|got the nod|the winner|won\b,? so|came out on top|comes? out ahead|takes it|beats the rest|beat the rest|the board said yes|all (?:agreed|like|want|fine)|fine with|nobody objected|nobody minds|no objections?|call it a deal|shake hands on|thumbs up|that's the plan|is decided|are decided|is chosen|is booked|'s booked|final|for sure|my pick|our pick|my vote|our vote|the vote|votes?|favou?rite is|it's between us settled|question is (?:answered|closed)|topic is closed|can close the)\b",
    rf"{_LEAD}{_TOPIC} (?:becomes?|gets?|goes (?:with|in|into|next|on|by|through|over)|go (?:with|in|on|over)|runs? (?:on|over|through|in|with)|lives? in|will (?:use|run|have|get|go|come|open|start|stay|live)|gets? (?:written|built|painted|made|done)|stays?|opens? (?:in|with|on)|starts? (?:in|with)|is going to|are going to|'s going to|comes? from) (?!better|worse|old|late|dark|cold|tired|longer|to\b|bored|wrong|well|home|away|slow|back|out|the (?:day|way|point))",
    rf"{_LEAD}(?:let's|let us) (?:have|take|make|use|get|put|say|go|pick|choose|stay|keep|run|start|call|buy|book) (?!to\b|talk|see|it\b|a look|me\b)",
    rf"{_LEAD}(?:please )?(?:use|take|book|pick|choose|bring in|make|put|call|get|have|buy|hire|go) (?:[\w'.&-]+ ){{1,6}}?(?:as|for|on|down for)\b",
    r"^(?:put|mark|sign|count) (?:me|us|him|her|them) (?:down )?(?:for|in|up)\b",
    r"^(?:as (?:for|to)|regarding|about|on|for|re) (?:the |my |our |this |that )?(?:[\w'-]+ ){0,3}[\w'-]+(?: question| topic| issue| front)?[:,] (?:[\w'&.-]+ ?){1,6}[.!]?$",
    rf"^(?!note|reminder|fyi|edit|ps|example|question|update|warning|error|next|todo|to-do|one|another|add|also|done|finished|first|second|so\b|well\b)(?:the |my |our )?[\w'-]+(?: (?!is\b|are\b|was\b)[\w'-]+){{0,4}}: (?!{_STATUS}[.!]?$)(?:[\w'&.-]+ ?){{1,6}}[.!]?$",
    rf"{_LEAD}(?:the |a |an )?(?:(?!(?:came|went|got|made|took|saw|ran|sat|told|gave|left|swears|lives|works|looks|comes|waits|[a-z]+ed|i|i'\w+|we|he|she|they|you|it|is|are|was|were|has|have|had|do|did|does|will|can|thanks|thank|time|good|great|nice|sorry|nothing|food|money|waiting|looking)\b)[\w'&.-]+ ){{1,4}}(?:for|on) (?:the|my|our|this|that) (?:[\w'-]+ ?){{1,3}}(?:, ?(?:then|definitely|please|obviously|clearly|for sure|i'd say|thanks))?[.!]?$",
    rf"^(?:so |and )?{_THING} (?:is|are)(?: called| named| now| then)? (?!not|so|too|very|a bit|a little|done|fun|nice|great|[a-z]+ing\b|[a-z]+ed\b|where|what|how|why|like|on\b|in\b|still|also|fine|okay|good|bad|odd|slow)(?:the )?[a-z'&.-]+(?: (?!and\b|but\b|so\b|because\b)[a-z'&.-]+){{0,2}}[.!]?$",
)
_CHANGES = _shapes(
    "update",
    3,
    r"\b(?:is|are|'s|'re|will be|it's) (?:[\w'$€£.&:-]+ ){1,5}now\b",
    r"\bnow (?:on|in|at|with|for|goes|runs|means|costs|needs|starts|ends|comes)\b",
    r"\bnot (?:the )?(?:[\w'&-]+ ){1,3}(?:any longer|any more|anymore|after all)\b",
    r", not (?:the |on |in |at |for )?[\w'$&-]+(?: [\w'-]+)?[.!]?$",
    r"^not (?:the )?[\w'&-]+(?: [\w'-]+)?(?: but|,)",
    r"\b(?:reconsider\w*|rethought|rethink\w*|redecid\w*|slept on it|come round|came round|came around|come around|gone off|going off|cooled on|thought better|changed (?:our|my|their) minds?|(?:got|had) (?:the |that |it )?(?:[\w'-]+ )?wrong|recount\w*|counted again|miscount\w*|my bad|on reflection|second look|looked again)\b",
    r"\b(?:ditch\w*|drop(?:ped|ping|s)?|dump\w*|swap\w*|trad(?:e|ed|ing)|replac\w+|scrap\w*|abandon\w*|leaving|bin(?:ned|ning)) (?:the )?[\w'&-]+(?: (?:out )?for\b|, (?:tak|us|go|get|mov|buy|hir|the|we|i)|\b.* (?:in|for|with) )",
    r"(?:'s|\bis|\bare) out\b.*\b(?:in|instead|now)\b",
    r"\bout with\b",
    r"\bin with\b",
    r"\b(?:had to be|has been|have been|was|were|got|gets|been|being|is|are|'s) (?:pushed|moved|shifted|delayed|brought|put off|postponed|renamed|swapped|changed|raised|lowered|cut|extended|shortened|reduced|doubled|halved|bumped|upped)\b",
    r"\b(?:slips?|slipped|moves?|moved|shifts?|shifted|pushed|goes up|went up|go up|goes down|went down|grows?|shrinks?|shrank|stretch\w*|up(?:ped|ping)?|rise|rises|rose|fell|falls) (?:the [\w-]+ |it |that )?(?:to|by|from|on|out|back)?\b.*\d",
    r"^new [\w'-]+(?: [\w'-]+)?(?::| is| will)",
    r"\brenamed\b",
    r"\bis (?:called|named) .* now\b",
    r"\bafter all\b",
    r"\bfrom (?:next|this|now|today|tomorrow|monday|january|february|march|april|may|june|july|august|september|october|november|december)\b",
    r"\bthese days\b",
    r"\b(?:better|rather|make (?:it|that|the)|let's (?:say|make|lower|raise|cut|up|push|move)|will do|would do|is realistic|is the day|is enough|happy with|settle for|we can stretch|can go (?:up|down) to|more like)\b.*\d",
    r"\d.*\b(?:will do|is realistic|is the day|is enough|is fine|would do)\b",
    r"\b(?:can't|cannot|couldn't|won't) (?:make it|do it|come|deliver|take us)\b.*\bso\b",
    r"\b(?:was|were|is|are|got) (?:gone|too \w+|sold out|taken|cancelled|full),? (?:so|and we|we)\b",
    r"\b(?:we|i)(?:'d| would) rather\b.*\bso\b",
    r"\bin favou?r of\b",
    r"\bback to\b",
    r"\bthey gave (?:us|me)\b",
    r"\bno longer\b",
    r"^make (?:the )?[\w'-]+(?: [\w'-]+)? (?!sure|sense)[\w'-]+,",
    rf"^{_TOPIC} (?:goes|go|moves?|moved|switch\w*) to (?!the (?:gym|doctor|shop|beach|bathroom)|bed|sleep|school|work)[\w'&-]+,",
)
_AIMS = _shapes(
    "goal",
    3,
    r"\b(?:shoot|shooting|work|working|striv\w+|push|pushing|head|heading|fight|fighting|go|going|gun|gunning) (?:for|towards?) (?:a |an |the )?(?:[\w'-]+ )?(?:\d|[\w-]+)\b(?= \w|[.!])(?<!for a)(?<!for me)",
    r"^(?:our |my |the |a )?(?:objective|ambition|dream|vision|purpose|priority|target|goal|aim|success|end result|hope|wish|desired \w+)\b(?: (?:for|of|in) [\w ]+)?(?:: | is| means| would| should)",
    r"\bsuccess means\b",
    r"\bend result\b",
    rf"\b(?:i|we)(?: really| still| also| just|'d|'d really| would| do)* (?:want|love|like|hope|plan|intend|need|mean|wish|have) to (?:(?!know|see if|ask|understand|laugh|say|talk|thank|check if)\w+)\b.*(?:{_DAY}|{_NUMBER}|that's what counts)",
    rf"\b(?:trying|want|need|have|hope|aim|set out|determined) to (?:save|reach|get to|hit|reduce|cut|bring|grow|raise|double|halve|finish|ship|launch|achieve|win|lose|pay off)\b.*(?:{_NUMBER}|{_DAY})",
    r"^(?:by|before|until|within|at) (?:the )?[\w' -]{2,24},? (?:\w+ ){0,6}(?:should|must|has to|have to|shall|will|i want|we want|i'd love|i'd like|we need|there has)\b",
    rf"\b(?:get|bring|cut|reduce|keep|push|raise|drive|lower|grow|double|halve) (?:[\w'-]+ ){{1,4}}(?:below|under|above|over|to|by|down|up) (?:to )?(?:{_NUMBER}|half)",
    r"\b(?:all comes down to|what (?:i|we) (?:really |actually )?(?:want|need|care about)|ideally|what counts|that's what counts|what matters|the plan is|main thing is|the big one|a must for us|dream is|i'd be happy (?:if|with)|would be a success|we'd call it a success|the finish line|in the long run|trying to)\b",
    r"^(?:what )?success\b",
    r"\bwe(?:'re| are) working (?:towards|on getting)\b",
    r"\bthere has to be\b",
)
_FORBIDS = _shapes(
    "rule",
    3,
    r"\b(?:nothing but|not a (?:word|single|cent|penny|drop|soul)|off the table|a no\b|no go\b|no-go|not to be|not okay|not ok|not acceptable|taboo|verboten|hands? off|out of bounds|out of the question|at all times|by no means)",
    r"\b(?:doesn't|don't|does not|do not|isn't to|aren't to) (?:ever )?(?:go|leave|get|enter|touch|belong|reach|appear|show up|come) (?:to|into|in|near|anywhere|out|on|past|without|through|with)\b(?!.*\b(?:know|think)\b)",
    r"\b(?:don't|do not|never) (?:let|allow|give|tell|show|share|send|use|touch|open|put|bring|call|leave|mention|buy|add|deploy|push|delete)\b",
    r"\bnot a cent more\b",
    r"\bno one but\b",
    r"\bnobody but\b",
    r"\bno \w+ but\b",
    r"\bi don't want any\b",
    r"\bwe don't want any\b",
    r"\bi won't have\b",
    r"^(?:no|zero) [\w' -]{3,40}(?:\b(?:on|in|at|near|before|after|during|from|for|to)\b [\w' -]+)?[.!]$(?<!wonder\.)(?<!idea\.)",
    r"^(?:please )?(?:keep|leave) (?:the |my |our |all )?[\w' -]{2,40} (?:out of|away from|off|inside|within|in|alone|closed|locked|shut|private)\b",
    r"\b(?:use|stick to|stay with) [\w' -]+ (?:throughout|everywhere|only|at all times)\b",
    r"\b(?:off|closed|done|quiet|shut) (?:at|by|after|before) (?:\d|ten|eleven|nine|eight|seven|six|midnight|noon)",
    r"\b(?:can't|cannot|may not|must not|mustn't) (?:have|eat|use|cost|exceed|be|go|take|see|touch|leave)\b(?! (?:wait|believe|help))",
)
_ASKS = _shapes(
    "todo",
    3,
    r"^(?:also |and |then |so |but |now )?(?:i|we|someone|somebody|anyone|one of us) (?:still |really |also |just )*(?:have to|has to|need to|needs to|should|ought to|must(?: not forget to)?|gotta|better|shouldn't forget to|may have to) (?!know|say|admit|think|see\b|ask|understand|be\b|have\b|laugh|talk|wait|confess|agree|do with|go\b|live|feel|wonder|get to \d|get used)\w+",
    r"^(?:still )?(?:need|have|got) to (?!know|say|admit|laugh|be\b|go\b|agree|think)\w+",
    r"\b(?:haven't|hasn't|not) (?:[\w'-]+ ){1,5}yet\b",
    r"\bstill (?:has|have|needs?|wants?|missing|open|due|unpaid|unsent|undone)\b",
    r"\bwhat's (?:missing|left|open|next)\b",
    r"\bleft (?:to do|over is)\b",
    r"\bis (?:due|overdue|missing)\b",
    r"\b(?:add|put|write|jot|get) (?:[\w'-]+ ){0,5}(?:to|on|onto) (?:the|my|our) (?:list|pile|board|agenda|plate)\b",
    r"\b(?:make|take) a note\b",
    r"^reminder\b",
    r"^note to self\b",
    r"^open (?:point|item|question)\b",
    r"^next(?: up| thing)?[:,]",
    r"^(?:another|one more|last|first) (?:thing|point|item)\b[,:]",
    r"^add\b",
    r"\b(?:let's|let us|do|must|should|i|we) not forget\b",
    r"\bmust not forget\b",
    r"\bmustn't forget\b",
    r"\b(?:wants|needs|need|want) (?:to be )?(?:[a-z]+ing|[a-z]+ed)\b(?! of)",
    r"^(?:also|and|then|oh and|plus)[,]? (?!the\b|a\b|an\b|i\b|we\b|it\b|he\b|she\b|they\b|my\b|our\b|in\b|on\b|when\b|if\b|that\b|this\b|so\b|not\b|what\b|how\b|thanks\b)[a-z]+ (?:the|a|an|my|our|some|this|those)\b",
    r"\b(?:could|can|would|will) you (?:please |maybe |also )?(?!explain|tell|show|help|give|say|recommend|think|imagine|describe|believe|suggest)\w+ (?:the|a|an|my|our|this|that|those|some)\b",
)
_ENDS = _shapes(
    "over",
    3,
    r"\b(?:handled|dealt with|wrapped up|ticked|crossed|struck|strike|check(?:ed)? off|signed off|in the bag|out of the way|done with|done and dusted|one down|off my chest|no longer open|over and done|nailed|squared away|took care|seen to)\b",
    r": (?:check|done|yes|ok)[.!]?$",
    r"^(?:check|cross|strike|tick|scratch) (?:out |off )?the\b",
    rf"^(?:{_THING}|{_TOPIC})(?: (?:is|are|was|has been|have been|'s|works?|looks?|runs?))?(?:'s)? (?:up|live|in and \w+|out there|out of the door|there|ready|clean|gone|home|back up|behind (?:me|us)|complete|done|sorted|finished|all set|fine again|fine now|works again|again in order|in place)[.!,]?(?: |$)",
    r"\b(?:went out|went through|came back fine|came today|was here|has (?:her|his|their|its|the|my)|have (?:their|the)|got (?:her|his|their)|arrived|delivered|works again|working again|is in and|managed to|spoke to|talked to|got (?:the |it |that |my )?(?:[\w'-]+ )?(?:booked|done|fixed|sorted|printed|signed|paid|ordered))\b",
    r"\b(?:opened|launched|shipped|released|passed|finished|completed|reached|hit|won) (?:it|the|our|my|today|yesterday|last|this|on)\b",
    r"\bwithout stopping once\b",
    r"\b(?:are|is|'s) (?:up|live)[.!]?$",
)
_LIFTS = _shapes(
    "revoke",
    2,
    r"\b(?:is|are|'s|'re) (?:now |again |also |all )?(?:allowed|permitted|fine|okay|ok|welcome|free|open|legal|possible|acceptable|unlocked|back on the table)(?: again| now| too| with| on| in| for| from| these days|[.!]|$)",
    r"\b(?:can|may) (?:now |all |just |again |also )?(?:[\w'-]+ ){1,6}(?:now|again|too|any ?time|these days|from now on|freely|as well)\b",
    r"\b(?:anyone|anybody|everyone|everybody|whoever) (?:can|may|is allowed)\b",
    r"\b(?:doesn't|don't|needn't|isn't|aren't|does not|do not|no) (?:[\w'-]+ ){0,6}(?:any more|anymore|any longer|no longer)\b",
    r"\bno longer (?:limited|required|necessary|applies|apply|forbidden|needed|an issue|a problem|capped|locked)\b",
    r"\b(?:not necessary|unnecessary|isn't necessary|no need|no more \w+ needed|needn't|(?:can|could) be (?:forgotten|ignored|skipped|dropped|deleted|removed)|given up on|gave up on|giving up on|called off|cross out|(?:leave|leaving|left) (?:the |it )?[\w'-]* ?as (?:it|they)|outgrew|outgrown|been lifted|was lifted|lifted|relaxed|waived|abolished|skip (?:the|it)|not happening|off the list|don't bother|won't be needed|decided against|not going to)\b",
)
_REOPENS = _shapes(
    "again",
    3,
    r"\b(?:needs?|has to|have to|must|is|are|'s|it's) (?:[\w'-]+ ){0,3}(?:broken|open|due|undone|back|out|dirty|stuck|missing|again)(?: [\w'-]+){0,2} again\b",
    r"\b(?:is|'s|are) (?:broken|open|due|missing|back|needed|to do) again\b",
    r"\banother (?:round|go|try|pass|coat)\b",
    r"\bredo\b",
    r"\bre-?(?:opening|opened|open|booking|do|doing)\b",
    r"\bback on (?:the|my|our)\b",
    r"\b(?:order|send|do|book|pay|call|clean|fix|paint|print|write|buy|test|check) (?:it|them|that|the [\w -]+?) (?:again|once more|anew)\b",
    r"\b(?:came|come|sent|bounced|bounced it) back\b",
    r"\bbounced\b",
    r"\bgot lost\b",
    r"\bdidn't (?:work|hold|last|go through|stick)\b",
    r"\bundone\b",
    r"\bfell apart\b",
)
_ENGLISH = (_DECIDES, _CHANGES, _AIMS, _FORBIDS, _ASKS, _ENDS, _LIFTS, _REOPENS)

_ZH_UNREAL = re.compile(
    "好像|听说|也许|可能|不知道|他们说|大概|不得不说|挺|越看|真好|真多|老是|早就|要是|如果|书上|吗|呢|怎么|为什么|什么样|哪|有没有|还没想好|以前|老问|她|他|朋友|同事|妹妹|弟弟"
)
_ZH_VERB = "买|选|用(?!户|品|途|处)|走|上|放|请|接受?|铺|种|装|唱|去|拿|投|要|定|订在?|做|取名|叫|统一|约|交给|挑|租|住|坐|穿|刷|贴|配|吃|喝|加入|签|雇|听"
_ZH_DECIDES = _shapes(
    "decision",
    2,
    rf"^(?!我(?!们|选|要|定|拿|投)|你|今天|昨天|有)[^，。：！]{{2,10}}?(?:咱们?|我们?|就|还是|全|都|统一|最后|只能)*(?:{_ZH_VERB})(?!了|过|什么|是|到)[^，。！不没有]{{1,14}}(?:吧|了|好了|哪?家|那[个辆款桌])?[。！]?$",
    rf"^(?:那就|就|还是|咱们|我们|我)(?:{_ZH_VERB})?[^，。！不没]{{2,12}}(?:吧|了|好了)[。！]?$",
    r"[，,]就(?:她|他|它|这|那|[^，。]{1,8})[。！]?$",
    r"^(?!谢|行|好|嗯|对|哈|可以|没事|早|那|不过|其实|哦|哎|另外|后来|结果|然后|所以|今天|昨天|刚)[^，。：！]{1,10}(?:这事|的事|嘛)?[：，](?:再|要|买|选|就|还是|定|用)?(?!有|我|你|他|是|可|但|不|挺|真|老|也|[a-z]+[。！]?$|\d+[。！]?$)[^，。：！]{2,10}[。！]?$",
    rf"[，](?:还是|就|要|买|选|用|定|请|铺|装|唱|去)(?:{_ZH_VERB})?(?!有|了|不|是|没)[^，。！]{{1,12}}[。！]?$",
    "(?:胜出|赢了|想好了|不纠结|敲定|一票|大家都(?:同意|赞成|喜欢)|说好|只能是|没意见|拍了板|都行就|中标|最后是|订在|接受[^，。]{1,10}那家)",
    r"^[^，。]{2,8}(?:用|走|上|拿|接|换|跑在|写)\s?[A-Za-z]",
    "^(?:周|星期|礼拜|明|后|下)?.{0,4}我们要",
    rf"^[^，。：！]{{1,8}}就(?:{_ZH_VERB})[^，。！不没了]{{2,12}}，",
)
_ZH_CHANGES = _shapes(
    "update",
    3,
    "(?:(?:改|换|挪|推|提|移|调|扩|涨|降|减|加|放|缩|延)(?:到|成|为|去|约|名|用|了|点|[^，。]{1,4}去了)|往后推|重新考虑|想通|想了一|记岔|记错|退掉|替了|改约|改名|不要[^，。]{1,8}了|不用[^，。]{1,8}了)",
    r"(?:来不了|太贵|太慢|太小|不够|没货|卖完|下周起|从下|(?:降|涨|加|减|放)[^，。]{0,3}[，到]|\d[^，。]{0,6}(?:就够|就满足|我?就满意|也可以|也行))",
    r"^[^，。]{2,8}(?:还是|换|挪)[^，。是]{1,12}[，。]",
    "^(?:天气|时间|场地|人)[^，。]{1,6}，.*再[^，。]{1,6}[。！]?$",
    "^[^，。]{2,10}上[^，。]{1,8}吧，",
)
_ZH_AIMS = _shapes(
    "goal",
    3,
    r"(?:打算|盼着|希望|归根结底|努力(?:把|做|让)|冲(?:击|到)?\d|我们冲|就(?:算)?成功|就满足|就满意|就够了?[。！]|梦想|愿望|最重要|(?:压|降|提|涨|升|控制|做)(?:到|在|进)[^，。]{0,8}\d|得(?:到|有)?\d|想[^，。]{0,6}(?:前|把|做到|达到|一口气)|(?:前|底|之前)[^，。]{0,4}(?:要|得|想|必须)[^，。]{2,})",
    r"^最好",
    r"^(?:秋天|年底|月底|夏天|春天|冬天|圣诞|这个季度|今年|明年)[^，。]{0,3}[前底]?我?(?:想|要|得|把)",
)
_ZH_FORBIDS = _shapes(
    "rule",
    3,
    "(?:只有[^，。]{1,8}能|只收|只能|除了[^，。]{1,8}什么都不|离[^，。]{1,8}远点|不给|一直(?:锁|关)|不能用|一个字都别|[前后](?:得|要|必须)关|不穿|不许|不准|一分不能|顶多|我不要[^，。]{2,}|一点[^，。]{1,4}都不能|任何时候都)",
)
_ZH_ASKS = _shapes(
    "todo",
    3,
    "(?:记上|记得|就差|(?:我|我们)?该[^，。]{1,}了[。！]?$|还没[^，。想好]{1,4}[。！]?$|(?:要|得|该)(?:修|换|买|交|寄|扫|洗|打|取|送|订|约|写|刷|补|还|擦|清|去)[^，。]{0,8}[。！]?$|有空帮|(?:前|天|后)(?:还)?(?:要|得)[^，。]{2,}|还得|还要|麻烦[^，。]{2,})",
    "^(?:下一个|备忘|加一条|还有|另外|再就是|待办)[：，]?",
    "^我们?该[^，。]{2,}",
    "^谁去",
    "^谁来",
    "^(?:明天|今晚|下周|周末)?我(?:得|要|该)(?:给|把|去)?",
)
_ZH_ENDS = _shapes(
    "over",
    3,
    "(?:搞定|好啦|完啦|(?:好|完|到|走|掉|满|回来|出去|下来|出来|批|上|妥|清|过)了[，。！]|过[，。]|过[^，。]{0,2}了[。！]|已经|没问题了?[。！]|开张了|了了[。！]|办了|都弄了|齐了)",
    "^[^，。不没]{2,8}[^，。不没又]了[。！]?$",
)
_ZH_LIFTS = _shapes(
    "revoke",
    2,
    "(?:现在[^，。]{0,8}(?:可以|能|谁都能|行|让)|(?:又|都)(?:让|能|可以)[^，。]{1,8}了?|没关系了?|没事了|不需要|放开|放弃|谁都(?:能|可以)|可以[^，。]{1,8}了[。！]?$|能[^，。]{1,3}了[。！]?$|就那样吧|删了|够了|不(?!能|许|准|要|可|好|错)[^，。]{1,2}了[。！，]|不用[^，。]{1,3}[。！]?$|随便|解封|没必要)",
)
_ZH_REOPENS = _shapes(
    "again",
    3,
    "(?:又(?:坏|脏|漏|要|得|堵|乱|断)|再[^，。]{1,3}(?:一遍|一次|一回)|重(?:测|做|弄|写|订|交|来|新)|退回来|被(?:取消|退|打回)|白(?:做|弄)|没弄好|没通过)",
)
_CHINESE = (_ZH_DECIDES, _ZH_CHANGES, _ZH_AIMS, _ZH_FORBIDS, _ZH_ASKS, _ZH_ENDS, _ZH_LIFTS, _ZH_REOPENS)


def moods(text: str, low: str) -> Iterator[tuple[int, CuePhrase]]:
    """What a sentence does by its shape, as cues with their places; `low` is the sentence in lower case."""
    if not text or len(text) > LONGEST or text.rstrip("\"'”’ ").endswith(("?", "？")):
        return
    if not (text[0].isalpha() or text[0] in "\"'(“‘《「0123456789") or any(mark in text for mark in _CODE):
        return
    if text.isascii() or not _HAN.search(text):
        unreal, patterns = _UNREAL.search(low), _ENGLISH
    else:
        unreal, patterns = _ZH_UNREAL.search(low), _CHINESE
    for cue, opening, inside in _compiled(patterns):
        if unreal and cue.kind in _REAL:
            continue
        if match := (opening.match(low) or inside.search(low)):
            yield match.start(), cue


@lru_cache(maxsize=2)
def _compiled(kinds: tuple[_SentenceShapes, ...]) -> tuple[tuple[CuePhrase, re.Pattern[str], re.Pattern[str]], ...]:
    """For each kind the shapes of whole sentences, and those inside one: compiled when they are first needed.

    They share their anchors, so that at most places of a sentence one look at the next character is enough.
    """
    found: list[tuple[CuePhrase, re.Pattern[str], re.Pattern[str]]] = []
    for cue, shapes in kinds:
        opening = [shape[1:] for shape in shapes if shape.startswith("^")]
        words = [shape[2:] for shape in shapes if shape.startswith(r"\b")]
        others = [shape for shape in shapes if not shape.startswith(("^", r"\b"))]
        inside = [rf"\b(?:{'|'.join(words)})"] * bool(words) + others
        found.append((cue, re.compile("|".join(opening) or "(?!)"), re.compile("|".join(inside) or "(?!)")))
    return tuple(found)


_HAN = re.compile("[\u3400-\u9fff]")
_CODE = ("=", "{", "}", "|", ";", "://", "DEBUG", "INFO", "WARN")
"""In lines of code, tables and logs."""
_REAL = frozenset(("decision", "update", "goal", "todo"))
"""What a guess does not do."""

# ruff: noqa: E501  -- a pattern reads better in one line than wrapped
"""What scores like a fact and is none: requests, replies and small talk.

`is_small_talk` holds everywhere: greetings and catching up with nothing behind them. `is_errand` is what one says to an
assistant to get something done: a request, an acknowledgement, what one does not have or know. Of what is left inside a
task, `has_detail` tells what states something: a number, a name or a date is in it.

>>> from ..replayed import Replayed, Utterance
>>> from .hearing import listen
>>> def heard(text):
...     said = Utterance(ordinal=1, ref="§1", role="user", text=text, trust="user", principal="ann")
...     return listen(Replayed(source="s", session="s", principal="ann", format="openai", digest="", utterances=(said,))).sentences[0]
>>> [is_small_talk(heard(text)) for text in ("Been a busy week since we talked.", "Been a while, but I moved to Bonn in May.")]
[True, False]
>>> [is_errand(heard(text)) for text in ("Please cancel booking XK2 today.", "Booking XK2 is for 3 May.")]
[True, False]

Whether a sentence carries anything: a fact names somebody or something, an event, a number, an object.

"It went alright", "That's awesome" and "I felt so supported" score like facts and tell nobody anything later. Counted
are the things of a sentence: words that are neither everyday ones nor of feeling, praise and generality (`EMPTY`),
names that call nobody, numbers, times and events. `MIN_THINGS` of them make a fact; a sentence about "it", "that" or
"they", or about the other one alone ("you"), needs one more: what it is about stands elsewhere, or is nobody's fact. Of Chinese, whose words are not told apart, no sentence
is called vague. Hand-set; nothing is trained.

>>> [is_vague(text) for text in ("It went alright.", "That's awesome!", "I'm a huge fan.", "Since I was 17 or so.")]
[True, True, True, True]
>>> [is_vague(text) for text in ("I went to Woodhaven.", "I fractured my wrist.", "It was a reading of poems in Rome.")]
[False, False, False]
"""

from __future__ import annotations

import re

from ctxsteward.summarizers.language import STOP

from .utterances import Sentence, listed

MIN_LEFT_WORDS, MIN_LEFT_CHARS = 3, 6
"""What must stand beside small talk to be worth keeping: words, Chinese characters."""

_WORD = re.compile(r"[a-z][a-z'-]+|\d+")
_CHINESE = re.compile(r"[\u3400-\u9fff]")
_FILLERS = listed(
    """
    hey hi hello wow yeah yep oh ah man dude well busy hectic crazy week weeks day days month months lately really
    super quite pretty good great nice since last guess what's anyway btw lol haha lots lot everything things stuff
    """
)
_PLEASED = r"(?:great|good|nice|lovely|glad|happy|so good|awesome|wonderful|pleased)"
_SMALL_TALK = re.compile(
    r"\b(?:it'?s |it has |has |we've |i've )?been (?:an? |quite |such |so |super |really |too |pretty )*(?:[\w-]+ ){0,3}?(?:while|days?|weeks?|months?|time|minute|ages|forever|long|bit)\b(?: (?:since|that|for|without)\b[^,.;!?–—]{0,40})?"
    r"|\bsince (?:we|i|you|our)(?: (?:last|two|both))* (?:talked|chatted|spoke|caught up|met|saw|hung out|talk|chat|conversation)\b[^,.;!?–—]{0,25}"
    r"|\b(?:haven't|have not|hadn't) (?:talked|spoken|chatted|seen|heard|caught up|hung out)\b[^,.;!?–—]{0,40}?\b(?:while|bit|ages|forever|days?|weeks?|months?|time|long|minute)\b"
    r"|\blong time(?:,)? no (?:see|talk|chat|hear)\b"
    rf"|(?<!was )\b{_PLEASED} to (?:hear|see|chat|talk|catch up|meet)\b[^,.;!?–—]{{0,60}}"
    r"|\b(?:so much|a lot|lots|plenty|much)(?: of things)?(?:'s| has| have)? (?:happened|changed|been (?:going on|happening)|gone on)\b(?: (?:since|lately|recently)\b[^,.;!?–—]{0,40})?"
    r"|\b(?:you (?:won't|will not|'ll never|will never) believe|guess) (?:it|this|what)?\b(?: (?:happened|i (?:did|found|got)))?"
    r"|\b(?:i've|i have|we have|i|here's|here is) ?(?:got |have )?(?:something|some|an?)?(?: (?:\w+ ){0,2}news| (?:\w+ )?updates?| something)?(?: with you)? to (?:share|tell)(?: (?:with )?you)?\b"
    r"|\bhere(?:'s|\s+is|\s+are) some (?:\w+ )?news\b"
    r"|\b(?:how(?:'s| is| are| have)|what's) (?:it|everything|things|you|life|new|up|your (?:day|week|weekend))\b[^,.;!?–—]{0,25}"
    r"|\b(?:talk|chat|speak|see|catch|write) (?:to )?(?:you|ya|u) (?:soon|later|again|around|next \w+|tomorrow|on \w+day)\b|\bkeep (?:in touch|me posted)\b|\btake care\b"
    r"|\b(?:hope|hoping|wish|wishing) (?:you|everything|all|your|things)\b[^,.;!?–—]{0,60}|\bhave (?:a|an) (?:\w+ )?(?:good|great|nice|lovely|wonderful|safe|fun|awesome|amazing) [^,.;!?–—]{0,30}"
    r"|\bthanks?(?: you)?(?: so much| a lot| again)?(?: for)?\b[^,.;!?–—]{0,50}|\bi (?:really |truly |so |do )*appreciate (?:it|you|that|your)\b[^,.;!?–—]{0,40}"
    r"|\b(?:no doubt|come on|go for it)?[, ]*\byou(?:'ve| have)? got this\b|\bi(?:'m| am) (?:so |really |super |very )*(?:proud of|happy for|glad for|stoked for|excited for|rooting for) you\b[^,.;!?–—]{0,60}"
    r"|\b(?:can't|cannot) wait to (?:hear|see (?:you|it|what|how))\b[^,.;!?–—]{0,50}|\bi(?:'m| am) (?:all ears|here for you|doing (?:\w+ )?(?:good|great|well|fine|ok|okay))\b"
)
_SMALL_WORDS = (
    "been ", "since ", "haven't ", "have not ", "hadn't ", "long time", "to hear", "to see", "to chat", "to talk",
    "to catch up", "to meet", "happened", "changed", "going on", "happening", "gone on", "believe", "guess", "to share",
    "to tell", "news", "how's", "how is", "how are", "how have", "what's ", "talk ", "chat ", "speak ", "see ", "catch ",
    "write ", "keep in touch", "keep me posted", "take care", "hop", "wish", "have a", "thank", "appreciate", "got this",
    "of you", "for you", "wait to", "all ears", "doing ",
)  # fmt: skip
"""Small talk has one of these in it."""
_FIRST = listed("i i'm i've i'd i'll me my mine we we've we're our us")
_ABOUT_YOU = re.compile(
    r"(?:(?:wow|yeah|hey|yep|and|oh|so|man|aw+|no doubt|keep it up|great|nice)[,.!]* )*(?:[a-z]{2,12}, )?(?:you've|you're|you'll|you are|you have|you got|you seem|you look|your|let's)\b"
)
"""About the other one, or a proposal: no fact of the speaker."""
_DEED = re.compile(
    r"\b(?:i|we)(?:'ve| have)? (?:just |finally |also |recently )*(?:got (?:an?|the|my|our|into|married|engaged|promoted|hired|fired)\b(?! (?:\w+ ){0,2}(?:news|updates?)\b)|(?:went|started|joined|bought|won|lost|met|began|quit|sold|made|took|found|broke|left|built|wrote|ran|flew|adopted|moved|signed|finished|opened|launched|graduated|visited)\b)|\bbeen (?!keeping|happening|going|doing|dreaming)\w+ing\b"
)
"""Something that the speaker did."""
_CHINESE_SMALL_TALK = re.compile(
    r"好久不见|(?:真是|真的)?(?:好久|很久|有阵子|好一阵子?|好几[天周]|一段时间)(?:都)?没(?:有)?(?:聊|见|联系)[^，,。；;！!？?]{0,6}|(?:自从|从)?(?:我们|咱们?)?上次(?:聊|见|联系|通话)[^，,。；;！!？?]{0,10}"
    r"|最近(?:怎么样|还好|好吗|过得|如何|(?:真是|真的|一直|都|也|挺|太|很|特别)*忙)[^，,。；;！!？?]{0,8}|(?:这|上|那)(?:个)?(?:周|星期|礼拜|个月|阵子|几天)(?:过得|真是|真的|一直|都|也|挺|太|很|特别|可)*(?:忙|累|充实|乱)[^，,。；;！!？?]{0,6}"
    r"|发生了(?:好|很|太|不少|许)?(?:多|少)?(?:事情?|变化)[^，,。；;！!？?]{0,4}|你(?:绝对|肯定|一定)?(?:猜|想不到|不会相信)[^，,。；;！!？?]{0,8}|(?:有|告诉你)(?:个|一个|件)?(?:好|大)?(?:消息|事)(?:要|想)?(?:告诉|分享|说)?(?:你|给你)?"
    r"|(?:很|真|好|太)?高兴(?:见到|听到|认识|看到|能)[^，,。；;！!？?]{0,16}|保重|(?:下次|回头|改天|明天|有空)(?:再)?(?:聊|见|联系|说)|祝(?:你|您|大家|一切)[^，,。；;！!？?]{0,12}|(?:非常|十分|真的|真|太)?(?:谢谢|感谢|多谢)[^，,。；;！!？?]{0,16}"
    r"|为你(?:高兴|骄傲|开心)|你(?:一定|肯定)?(?:可以|能行|没问题)的?|期待[^，,。；;！!？?]{0,12}|吃了吗|(?:嗨|你好|您好|哈喽|早上好|晚上好|早安|晚安)"
)

_LEAD = r"^(?:(?:yes|yeah|yep|ok|okay|sure|alright|all right|great|perfect|no|well|so|then|after that|before that|once done|and|but|also|just|now|hi|hello|hey|thanks|thank you|fine|right|good|actually|there|instead|if possible|in that case|first|next|finally|everyone|team)[,.!]? +)*"
_REQUEST = re.compile(
    r"\bplease\b|\b(?:can|could|would|will|may|might) (?:you|we|i|someone|somebody|it)\b|\b(?:let's|let us|lets)\b|\blet me (?:know|see|check|think|try|speak|talk)\b"
    r"|\b(?:i|we)(?:'d|'ll| would| will| do| did| really| also| just| only| still| truly| simply| definitely| kind of| don't| do not| was| were)* (?:like|love|want|wanted|need|needed|wish|prefer|appreciate|rather|require|request|insist|expect|demand|hope|wonder|intend)\b"
    r"|\b(?:i'm|i am|i was|i've been|we're|we are|we were|been|just) (?:\w+ )?(?:looking|hoping|trying|wondering|calling|writing|reaching|contacting|asking|requesting|seeking|willing|open|ready|determined|interested|inquiring|happy|okay|ok|fine|good|planning|going|after) ?(?:to|for|in|if|about|out|with|on|because)?\b"
    r"|\b(?:i|we)(?:'ll| will| can| could| should| guess| think i'll|'m going to|'d better)+ (?:\w+ )?(?:go|use|take|try|look|wait|check|reach|need|have|pay|provide|stick|keep|book|give|choose|pick|do|be|call|consider|find|get|think|proceed|accept|pass|opt|decide|leave|contact|speak)\b"
    r"|\b(?:transfer|connect|help|assist|put|refer|direct|get|give|send|show|tell|walk|notify|inform|remind|refund|reimburse|compensate) (?:me|us)\b|\bhelp (?:with|from|in|on)\b|\b(?:proceed|go ahead|move forward|go) with\b|\bgo ahead\b|\bmake sure\b|\bis there (?:a|any|some)\b|\bany (?:way|chance|help|assistance|option)\b|\bwhat about\b|\bhow about\b|\bshould (?:be|i|we|you)\b|\b(?:must|there has to) be (?:something|a way|some)\b"
    rf"|{_LEAD}(?:cancel|book|change|use|upgrade|downgrade|add|remove|send|make|check|find|proceed|move|refund|transfer|connect|give|show|tell|keep|put|charge|apply|confirm|fix|run|create|write|update|implement|look|search|try|do|don't|stop|start|open|close|delete|rebook|reschedule|modify|switch|split|pay|select|choose|pick|submit|return|exchange|order|set|get|take|go|wait|skip|leave|print|list|explain|translate|summari[sz]e|rewrite|review|test|install|deploy|rename|refactor|debug|convert|compare|calculate|note|remember|forget|ignore|cover|reserve|issue|process|escalate|generate|read|turn)\b"
)
_LACK = re.compile(
    r"\b(?:don't|do not|can't|cannot|can not|didn't|did not|doesn't|haven't|couldn't|not|no longer|never) (?:\w+ ){0,2}?(?:have|had|remember|recall|know|see|think|mind|understand|find|got|access|provide|need|want|care|sure|certain|aware|ready|able|tell|believe|get|received|heard)\b"
    r"|\b(?:no idea|no clue|not sure|unsure|forgot|forgotten|unfortunately|i'm afraid|at hand|handy|off the top|lost my|misplaced|without (?:my|the)|unable to)\b|\bno (?:need|other|additional|extra|more|further|checked|travel|insurance|baggage|bags?)\b"
)
_REPLY = re.compile(
    r"\b(?:i (?:\w+ )?(?:understand|see|get|appreciate|hear|agree|believe|guess|suppose|thought|think|know|hope|feel|mean|read|noticed|heard|was told)|i'm (?:\w+ )?(?:sorry|certain|sure|glad|frustrated|upset|disappointed|unhappy|confused|worried|concerned|surprised|aware|afraid)|i am (?:\w+ )?(?:sorry|certain|sure|frustrated|upset|disappointed|confused|aware)|got it|makes sense|sounds? (?:good|great|fine|like|right)|(?:that|this|it|which) (?:works?|helps?|would be|will be|is (?:fine|great|good|perfect|correct|right|okay|ok|all|unacceptable|frustrating|disappointing|ridiculous|important|urgent|really|very|quite|a bit)|'s (?:fine|great|good|perfect|correct|right|okay|ok|all|unacceptable|frustrating|disappointing|ridiculous|important|urgent|really|very|quite|a (?:bit|shame)|too))|that's (?:fine|great|good|perfect|correct|right|okay|ok|all|unacceptable|frustrating|disappointing|ridiculous|really|very|quite|a (?:bit|shame|tough)|too)|thank you|thanks|no problem|no worries|my pleasure|never mind|you're welcome|important (?:to|for) me|really important|so important|if (?:that|it|this) (?:helps|works|matters|allows|is)|must be|there must|has to be|in that case|while i|none of|could work|would (?:work|be (?:a )?(?:good|great|fine|ideal|perfect|okay|ok|better|best|nice))|insistent|reading)\b"
)
_CHINESE_REQUEST = re.compile(
    r"请(?!假|客)|麻烦(?:你|您|帮|给|一下|把)|拜托|帮(?:我|忙|个忙|一下|他|她)|能不能|能否|可不可以|可以(?:帮|给|把|请|让|吗)|(?:给|替|为|让)我(?!的)|转(?:接|人工|给)|人工(?:客服|服务)|(?:我|我们|咱们?)(?:还|也|就|只|现在|真的|其实|很|非常|打算|想)*(?:想|要(?!好)|需要|希望|打算|准备|愿意|申请|要求|同意|选|用|先|接受)(?!不到|起|念)"
    r"|^(?:好[的吧]?[，,]?|嗯[，,]?|行[，,]?|那[就么]?|对[，,]?|是的[，,]?|然后|再|直接|赶紧|先|都|也)*(?:取消|订|改|换|退|查|加|减|升级|降级|用|发|写|做|给|删|搜|找|看|试|继续|办理?|处理|确认|翻译|总结|解释|运行|修|生成|比较|算|申请|安排|预订|去掉|把)|尽快|赶紧|怎么办|有没有(?:办法|可能|别的)|吧[。.!！~～]*$|一下[。.!！~～]*$"
)
_CHINESE_LACK = re.compile(
    r"不记得|记不(?:得|清|起|住)|忘(?:了|记)|没带|找不(?:到|着)|(?:没有?|没)(?:[\u3400-\u9fffA-Za-z]{0,8})(?:号码?|编号|单号|信息|记录|邮件|收到|看到|办法|问题|意见|别的|其他|印象)|不(?:太|是很|怎么)?(?:知道|清楚|确定|明白|懂|了解|需要|用了)|手头没|不在(?:手边|身边)|很遗憾|可惜"
)
_CHINESE_REPLY = re.compile(
    r"明白|理解|(?:谢|感)谢|知道了|收到|好的|没问题|没关系|抱歉|对不起|不好意思|失望|着急|生气|急(?:死|用)|难过|无语|太(?:慢|贵|差|过分|麻烦)|我(?:觉得|认为|以为|相信|同意|确定|肯定|看到你们|听说)|听起来|这样就?(?:好|行|可以)|(?:很|非常|特别|真的)重要|应该(?:有|能|可以|会)"
)
_DETAIL = re.compile(r"\d|(?<=[a-z,;:] )(?!I\b|I'|OK\b)[A-Z][\w'-]+|\b[A-Z]{2,}\b")
_CHINESE_DETAIL = re.compile(
    r"\d|[A-Z]{2,}|(?<![一二三四五六七八九十百千两])[一二三四五六七八九十百千两]++(?:岁|年|个|只|月|号|次|公斤|公里|块|元|天|周|人|口|张|件|晚|点)|[昨今明前后]天|周[一二三四五六日天]|叫[\u3400-\u9fff]{2,4}"
)


def is_small_talk(sentence: Sentence) -> bool:
    """Greeting and catching up, with nothing said beside it."""
    low = sentence.low
    if sentence.has_chinese:
        left, found = _CHINESE_SMALL_TALK.subn(" ", low)
        return found > 0 and len(_CHINESE.findall(left)) < MIN_LEFT_CHARS
    if _ABOUT_YOU.match(low) and sentence.words.isdisjoint(_FIRST):
        return True
    if not _may_be_small(low):
        return False
    left, found = _SMALL_TALK.subn(" ", low)
    if not found or _DEED.search(left):
        return False
    words = [word for word in _WORD.findall(left) if word not in STOP and word not in _FILLERS]
    return len(words) < MIN_LEFT_WORDS


def _may_be_small(low: str) -> bool:
    return any(words in low for words in _SMALL_WORDS)


def is_errand(sentence: Sentence) -> bool:
    """Something that an assistant is to do, is thanked for, or is told that one lacks."""
    if sentence.has_chinese:
        return any(one.search(sentence.low) for one in (_CHINESE_REQUEST, _CHINESE_LACK, _CHINESE_REPLY))
    return any(one.search(sentence.low) for one in (_REQUEST, _LACK, _REPLY))


def has_detail(sentence: Sentence) -> bool:
    """Whether it has a number, a name or a date in it."""
    detail = _CHINESE_DETAIL if sentence.has_chinese else _DETAIL
    return detail.search(sentence.heard) is not None


MIN_THINGS = 2
EMPTY = STOP | listed(
    """
    able absolutely achieve achieved achieving actually adapt adapting adventure advice again agree ain't alive alone along alright always amaze amazed
    amazing anyone anything anyway appreciate appreciated appreciation around attitude aware awesome away awful awkward back bad
    balance beautiful beauty become becoming believe believing belong best bet better big bit blast bless blessed blessing
    bond boost brave bravery breath brighten brightens bring bringing brings brought bunch busy calm calming can't care cared
    caring challenge challenged challenges challenging chance chances change changed changes changing chase chasing check chill close comfort comfortable
    comforting confidence confident connect connected connecting connection continue cool courage couple cozy crazy cute
    day days deal dealing decided decision dedication deep definitely describe determination determined difference different difficult
    difficulties discover dope doubt doubts dream dreams drive eager easy effort efforts else emotional emotions
    encourage encouraged encouragement encouraging energy enjoy enjoyable enjoyed enjoying enough entire especially even eventually ever everyone
    everything excite excited excitement exciting expect expecting experience experienced experiences explore exploring express expressing extra face faced
    facing fact faith family fan fans fantastic far feel feeling feelings feels felt figure figured finally find finding fine folks
    follow following forever forget forward found free fresh friend friends fulfill fulfilled fulfilling full fun funny future
    game-changer gave genre get gets getting give gives giving glad go goal goals goes going gone gonna good got gotta grateful gratitude great
    grow growing growth guess guide guided guiding guys handle hang happen happened happening happens happiness happy hard hard-working harder hardest
    head hear heard hearing heart heartbreaking heartwarming help helped helpful helping helps hey honest honestly hope hoped hopeful hopes hoping hour
    hours huge hype hyped idea ideas imagination imagine impact important impressed impressive improve improved improving incredible incredibly indescribable
    infectious inspiration inspire inspired inspires inspiring intense interest interested interesting issue issues journey joy joyful keep keeping keeps
    kept key kind kinda kindness kindness know known lately lead leading learn less let level life life-changing lifesaver light like listen listening little live lives
    living long look looked looking looks lot lots love loved lovely loves loving luck lucky main make makes making manage managed
    matter matters maybe mean meaning meaningful means memorable memories memory mental mind mindset minute miss missed mistakes moment moments
    month months mood motivate motivated motivates motivating motivation move moving nature necessary need needed needs nerve-wracking never new nice nobody none normal
    nothing notice noticed obstacles obvious offer often old open opportunities opportunity option options others otherwise outcome overwhelmed
    overwhelming pain part particular passion passionate past path paths patience peace peaceful people perfect perseverance person personal
    perspective pick place places plan planning plans play plus point positive positivity possibilities possibility possible potential power
    powerful practice prepare prepared present pretty priceless probably problem problems process productive progress proof proud pull pumped purpose
    pursue pursuing push pushed pushing put question questions quite ready real reality realize realized realizing reason reasons recent recently
    recharge relate relationship relationships relax relaxed relaxing relief remember remind reminded reminder reminds resilience resilient rest result results reward
    rewarding right risk rock rocking rough rules sad safe said same satisfying saw say saying scary scared see seeing seem seemed seems seen self-expression sense
    set since setback setbacks share shared shares sharing short shout show showed showing shows simple simply situation small smile smiles
    somebody somehow someone something sometimes somewhere soon soul sound sounds space spark special spend spending spent spirit spirits spread stand start
    started starting starts stay stayed staying step steps stick stop story strength stress stressed stressful strive strong stronger struggle struggled struggles struggling stuff
    style succeed success successful such suggestion suggestions super support supported supporting supportive sure surprise surprised surprising take takes taking
    talent talented talk talked talking taste tell telling tend terrible thank thankful thanks thing things think thinking though thought thoughtful thoughts
    thrill thrilled thriving time times today together told took top totally touch touched tough toughest toward towards track treasure tricky tried true truly trust try trying turn
    turned turning type unbelievable understand understanding unforgettable unique unreal upset useful usual usually value valuable values vibe vibes view vision wait
    waiting want wanted wants warm warmth watch watched watching way ways weird welcome welcoming well went wild win wish
    affect ahead beyond blessing carries childhood coming comfy decisions downs embrace enthusiasm faces fill fingers
    fond frustrated frustrating honor ones outlook photo photos pic picture pictures planned quit reach someday stuck
    surrounded throughout turnout ups words zone zones
    last next past week weeks weekend weekends night nights morning mornings evening evenings afternoon yesterday tomorrow tonight
    monday tuesday wednesday thursday friday saturday sunday january february march april may june july august september
    october november december spring summer autumn winter ago fri sat mon tue wed thu
    woah won wonder wonderful work worked working works world worry worried worst worth worthwhile wow wrong year years yep yet you've
    """
)
"""Words that stand for nothing of their own."""
_LATIN_WORD = re.compile(r"[a-z][a-z'-]+")
_TIME = re.compile(
    r"\b(?:yesterday|today|tonight|tomorrow|(?:last|next|this|past|every|each) (?:\w+ )?(?:week|weekend|month|year|summer|winter|spring|fall|autumn|night|mon|tues|wednes|thurs|fri|satur|sun|january|february|march|april|may|june|july|august|september|october|november|december)|(?:days?|weeks?|months?|years?) ago|for (?:\w+ ){0,2}(?:years|months|decades)|years? old|in (?:january|february|march|april|may|june|july|august|september|october|november|december))"
)
_EVENT = listed(
    "went won moved joined bought signed visited attended graduated born adopted finished lost quit began sold married divorced retired opened launched broke "
    "hired fired met flew passed enrolled registered volunteered built painted wrote published performed ran hiked camped traveled travelled celebrated "
    "received booked planted ordered cooked baked injured sprained crashed fixed repaired teaching studying reading writing painting"
)
_DIGIT = re.compile(r"\d")
_CALLED = re.compile(
    r"^(?:\W*(?i:hey|hi|hello|yeah|yep|yes|no|nope|wow|oh|thanks|thank you|sure|ok|okay|congrats|man|well)\b[,!.]* )+[A-Z][\w'-]+[,!.]*|, [A-Z][a-z]+[,.!?]|^[A-Z][a-z]+, "
)
_NAME = re.compile(r"(?<=[a-z,;:\"] )\"?(?!I\b)[A-Z][\w'-]+|\"[^\"]{2,60}\"|“[^”]{2,60}”")
_POINTING = re.compile(
    r"(?:(?:and|but|so|also|plus|yeah|yes|well|oh|wow|because|since|then|now|hey)[,!.]* )*(?:it|it's|it'd|it'll|that|that's|this|these|those|they|they're|they've|there|there's|he|he's|she|she's)\b"
)
_SECOND = listed("you your you're you've you'll you'd yourself")
_FIRST_PERSON = re.compile(r"\b(?:i|me|my|mine|we|us|our|ours)\b")
_CHINESE_CHARACTER = re.compile(r"[\u3400-\u9fff]")


def is_vague(text: str) -> bool:
    """Whether a sentence, as written, carries too little to be a fact."""
    if not text.isascii() and _CHINESE_CHARACTER.search(text):
        return False
    text = _CALLED.sub(" ", text).strip()
    low = text.lower().replace("’", "'")
    words = set(_LATIN_WORD.findall(low))
    is_of_other = not words.isdisjoint(_SECOND) and _FIRST_PERSON.search(low) is None
    needed = MIN_THINGS + (_POINTING.match(low) is not None or is_of_other)
    things = len({word.removesuffix("'s") for word in words - EMPTY if "'" not in word or word.endswith("'s")} - EMPTY)
    if things >= needed:
        return False
    names = len(_NAME.findall(text))
    if things + names == 0:
        return True
    things += names + (_DIGIT.search(low) is not None) + (_TIME.search(low) is not None)
    return things + (not words.isdisjoint(_EVENT)) < needed

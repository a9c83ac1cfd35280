# ruff: noqa: E501  -- a pattern reads better in one line than wrapped
"""Whether a sentence carries anything: a fact names somebody or something, an event, a number, an object.

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

from ctxsteward.summarizers.words import STOP

from .wordlists import listed

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
_WORD = re.compile(r"[a-z][a-z'-]+")
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
_FIRST = re.compile(r"\b(?:i|me|my|mine|we|us|our|ours)\b")
_CHINESE = re.compile(r"[\u3400-\u9fff]")


def is_vague(text: str) -> bool:
    """Whether a sentence, as written, carries too little to be a fact."""
    if not text.isascii() and _CHINESE.search(text):
        return False
    text = _CALLED.sub(" ", text).strip()
    low = text.lower().replace("’", "'")
    words = set(_WORD.findall(low))
    is_of_other = not words.isdisjoint(_SECOND) and _FIRST.search(low) is None
    needed = MIN_THINGS + (_POINTING.match(low) is not None or is_of_other)
    things = len({word.removesuffix("'s") for word in words - EMPTY if "'" not in word or word.endswith("'s")} - EMPTY)
    if things >= needed:
        return False
    names = len(_NAME.findall(text))
    if things + names == 0:
        return True
    things += names + (_DIGIT.search(low) is not None) + (_TIME.search(low) is not None)
    return things + (not words.isdisjoint(_EVENT)) < needed

# ruff: noqa: E501  -- a phrasing a line reads better than wrapped ones
"""How people state wishes in English: standing ones, plain ones, weak ones.

A row is ``strength | anchors | pattern``: the pattern is tried only on a sentence that holds one of the anchors as a
word (``a+b``: both), so that most sentences cost one look-up a word. ``{S}`` is the start of a clause, ``{DO}`` a verb that one gives
an assistant. Group ``o`` begins what the wish is about. The lists are hand-set; nothing is trained.

`standing`: holds until taken back ("from now on", "never", "call me"). `stated`: a plain preference; it stands unless
the task at hand is meant. `weak`: a liking or a request; it needs company.
"""

from __future__ import annotations

from .matching import Table

_PARTS = {
    "S": r"(?:^|[,;:.!()—–-] ?|\b(?:and|so|but|then|also|ok|okay|hey|hi|oh|plus|well|btw|anyway|thanks|sorry|because|to|pls|plz|oh and|as well),? )(?:please |pls |plz |kindly |just |also |simply |do |can you |could you )*",
    "DO": r"(?:use|take|reply|respond|answer|write|speak|talk|give|show|tell|ask|keep|make|include|add|avoid|stop|skip|format|explain|address|send|put|start|end|begin|check|confirm|remind|round|cite|quote|list|provide|return|output|wrap|sign|translate|convert|stick|default|leave|omit|mention|assume|book|order|schedule|suggest|recommend|offer|summari[sz]e|double-check|name|number|indent|refer|spell|highlight|attach|save|commit|limit|verify|choose|seat|ship|deliver|bill|charge|contact|email|text|phone|cc|copy|print|display|set|link|break|structure|organi[sz]e|present|label|insert|delete|remove|push|merge|open|close|deploy|comment|document|refactor|import|consult|greet|apologi[sz]e|joke|lecture|guess|invent|repeat|interrupt|generate|produce|sugarcoat|bother|schedule|sort|group|encrypt|lock|back up|call me|wake|phone|ring|disturb|notify|alert|warn|share|store|log|reveal|disclose|forward|post|publish|run|test|plan|reserve|pick|say|follow|treat|have|wait)",
    "STYLE": r"(?:emojis?|emoticons?|smileys?|bullets?|bullet points?|bullet lists?|markdown|headings?|headers?|tables|bold|italics|jargon|buzzwords?|small talk|fluff|filler|preambles?|disclaimers?|apolog\w+|exclamation (?:marks?|points?)|semicolons?|hashtags?|pleasantries|flattery|compliments?|abbreviations?|acronyms?|slang|swearing|passive voice|em-? ?dashes|code blocks?|comments|footnotes?|caps|all caps|metaphors?|sarcasm|jokes?|lecturing|hedging|repetition|caveats|honorifics|first names?|nicknames?)",
    "OUT": r"(?:answers?|replies|reply|responses?|messages?|explanations?|emails?|texts?|output|summaries|reports?|tone|language|code|writing|sentences|paragraphs|style|suggestions?|updates?|wording|posts?|everything)",
    "LANG": r"(?:english|british english|american english|french|german|spanish|portuguese|italian|dutch|russian|chinese|mandarin|cantonese|japanese|korean|arabic|hindi|turkish|polish|swedish|danish|norwegian|finnish|greek|hebrew|ukrainian|czech|thai|vietnamese|indonesian|urdu|bengali|persian|catalan|romanian|hungarian|swahili|plain english|plain words|simple words|lay terms|layman's terms)",
    "IDLE": r"(?:give up|give in|say never|say die|stop (?:believing|dreaming|learning|being|trying)|quit|forget|be afraid|lose|let (?:anyone|it|them|go)|change|doubt|worry|remind(?:s|ed)? me of|keep (?:going|up|it up|dreaming)|ask for more|have to)",
    "FREQ": r"(?:always|generally|usually|typically|normally|strongly|definitely|much|really|personally|mostly|absolutely|vastly|far|honestly|still|also|greatly|simply|actually|just|tend to|would always|very much|clearly|kind of)",
    "DIET": r"(?:vegetarian|vegan|pescatarian|lactose[- ]intolerant|gluten[- ]free|gluten[- ]intolerant|diabetic|coeliac|celiac|teetotal(?:l?er)?|colou?r[- ]?blind|dyslexic|hard of hearing|deaf|left-handed|kosher|halal|a non-?smoker|a non-?drinker)",
}  # fmt: skip

PREFERENCES = Table(
    _PARTS,
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

# ruff: noqa: E501  -- a phrasing a line reads better than wrapped ones
"""Facts of a person that have a name in English: where they live, what they do, who belongs to them.

Rows as in `cues_en`, the label being the attribute; group ``v`` is the value, ``t`` the kind where the attribute ends in
``:``. They are tried on sentences of the first person only.
"""

from __future__ import annotations

from .matching import Table

_PARTS = {
    "KIN": r"(?:wife|husband|spouse|partner|girlfriend|boyfriend|fianc[eé]e?|son|daughter|kid|child|baby|mother|mom|mum|father|dad|sister|brother|twin|grandmother|grandma|grandfather|grandpa|aunt|uncle|cousin|niece|nephew|boss|manager|assistant|landlord|landlady|doctor|dentist|lawyer|accountant|therapist|coach|teacher|neighbou?r|roommate|flatmate|best friend|friend|colleague|dog|cat|puppy|kitten|horse|parrot|rabbit|pet|hamster|turtle|school|company|team|startup|bakery|studio|store|shop|band)",
    "PLACE": r"(?P<v>(?:the )?[a-z][\w'.-]*(?: (?:of|de|la|los|san|new|[a-z][\w'.-]*)){0,2}?)",
    "ENDS": r"(?=[,.;!?)]|$| (?:with|and|but|for|since|last|in|near|where|because|these|right|now|at|on|by|so|this|next|a|two|three|from|to|when|after|before|which|who|as|all|together|again|until|originally|though|currently|about|ago|is|are|has)\b)",
    "MONTH": r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)",
    "JOB": r"(?P<v>(?:\w+[ -]){0,2}?(?:nurse|doctor|teacher|engineer|developer|programmer|designer|lawyer|chef|cook|baker|artist|musician|writer|author|journalist|photographer|student|accountant|architect|analyst|consultant|manager|director|scientist|researcher|professor|pilot|driver|mechanic|electrician|plumber|carpenter|farmer|firefighter|police officer|soldier|dentist|pharmacist|therapist|counselor|counsellor|psychologist|social worker|barber|hairdresser|waiter|waitress|bartender|actor|actress|dancer|singer|coach|trainer|translator|librarian|salesman|salesperson|realtor|banker|economist|biologist|chemist|physicist|mathematician|surgeon|vet|veterinarian|paramedic|judge|tailor|butcher|florist|gardener|freelancer|entrepreneur|founder|ceo|cto|product manager|data scientist|security guard|flight attendant|civil servant|stay-at-home \w+|homemaker|retiree))",
}  # fmt: skip

ATTRIBUTES = Table(
    _PARTS,
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

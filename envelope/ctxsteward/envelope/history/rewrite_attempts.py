"""Find untrusted text that names this product's own controls: budgets, sections, policies, versions.

Text never changes a budget, a section or a policy, whatever it says: those come from the operator's code. A message
that names them still deserves a finding, because somebody may be trying to change them. The session gets the finding
`rewrite_attempt`, and `context.rewrite_attempts` counts it. The text stays data and nothing else changes. The finding
is advice and no defence: hostile text that names no control of the product leaves no finding.

The search is for forms made of the names of the product's own fields, not for phrases:

- a field of `Budgets` or its key in a configuration: ``dynamic_tokens``, ``context.budget.dynamic``;
- a path into an envelope or profile: ``envelope.static``, ``profile.policies``;
- a section's name next to the noun "section" or "budget": ``the dynamic section``, ``budget of static``;
- a tag at the beginning of a line that is named like a section: ``<system>``, ``[static]``;
- keys of a profile in YAML or JSON: two of its blocks, or one block with a version or schema version.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ctxsteward.schemas import Finding, Message, TextPart
from ctxsteward.schemas.profile import ProfileDocument

from ..instruments import rewrite_attempt
from ..tokens.budgets import SECTIONS, Budgets

MAX_FINDINGS = 100
"""Most findings for one session; the counter goes on."""
_SECTION = "|".join(SECTIONS)
_FIELDS = "|".join(name for name in Budgets.model_fields if "_" in name)
_BLOCKS = ("persona", "policies", "rails", "surface", "meta")
assert set(_BLOCKS) <= set(ProfileDocument.model_fields)
_FORMS: dict[str, re.Pattern[str]] = {
    "budget field": re.compile(rf"(?<![\w.-])(?:{_FIELDS})(?![\w-])|\bcontext\.budgets?\.\w"),
    "path": re.compile(
        rf"(?<![\w./-])(?:envelope|profile|budgets?)\.(?:{_SECTION}|{'|'.join(_BLOCKS[:-1])})(?![\w(/-])"
    ),
    "section": re.compile(
        rf"(?<![\w-])(?:{_SECTION})[ \t](?:section(?:[ '’]s)?[ \t])?(?:budget|section)(?![\w-])"
        rf"|(?<![\w-])budget[ \t](?:of|for)[ \t](?:the[ \t])?(?:{_SECTION})(?![\w-])",
        re.IGNORECASE,
    ),
    "tag": re.compile(r"^[ \t]{0,8}(?:</?(?:system|static|dynamic)>|\[/?(?:static|dynamic)\])", re.MULTILINE),
}
# Every append looks for every form. A pattern is slow on a long text, and most texts have none of these words.
_WORDS: dict[str, tuple[str, ...]] = {
    "budget field": ("_tokens", "_fraction", "context.budget"),
    "path": ("envelope.", "profile.", "budget.", "budgets."),
    "section": ("sect", "budget"),
    "tag": ("system>", "static>", "dynamic>", "static]", "dynamic]"),
}
"""Words in lower case for each form; any text with the form has at least one of them."""
assert all(name.endswith(("_tokens", "_fraction")) for name in Budgets.model_fields if "_" in name)
_KEY = re.compile(
    r"""(?:^[ \t]{0,16}|[{,][ \t]?\n?[ \t]{0,16})["']?([a-z_]{4,15})["']?[ \t]?:(?=[ \t\n\[{"'0-9])""", re.MULTILINE
)
_VERSION_KEYS = frozenset(("schema_version", "profile_version", "version"))


def rewrite_findings(message: Message, ref: str) -> Iterator[Finding]:
    """Yield and count the finding for an untrusted message that names controls of the product."""
    if message.role in ("system", "developer"):
        return
    texts = [part.text for part in message.parts if isinstance(part, TextPart)]
    text = "\n".join((*texts, *(result.text for result in message.tool_results)))
    folded = text.casefold()
    possible = [name for name in _FORMS if any(word in folded for word in _WORDS[name])]
    forms = [name for name in possible if _FORMS[name].search(text)]
    keys = {match[1] for match in _KEY.finditer(text)} if any(block in text for block in _BLOCKS) else set()
    if (blocks := len(keys.intersection(_BLOCKS))) >= 2 or (blocks and keys & _VERSION_KEYS and keys & {*_BLOCKS[:4]}):
        forms.append("profile block")
    if not forms:
        return
    rewrite_attempt(message.role)
    found = f"names controls of the context ({', '.join(forms)}); it is data and changes nothing"
    yield Finding(kind="rewrite_attempt", ref=ref, field=message.role, text=found)

"""Lasting rules: a user says each of them once in a long talk with long replies; `FURTHER_MESSAGES` follow the last.

Somebody who has not seen the product's word lists has worded the rules. English rules are planted in BEAM chats if that
data is given. Otherwise, and in Chinese, they are planted in small talk with replies of several sentences.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import chain, cycle, islice, pairwise

from pydantic import TypeAdapter
from ruamel.yaml import YAML

from ctxsteward.schemas.message import Wire

from ..asked_chats import AskedChat
from ..canaries import Half, filled
from ..phrasings import Language, Texts, small_talk
from .talks import Talk, line_shows, marked_statement, window_lines

RULES_PER_TALK = 5
EXCHANGES_BEFORE = (2, 16)
"""Least and most exchanges before each rule."""
FURTHER_MESSAGES = 300
_ACKNOWLEDGED: Mapping[Language, str] = {"en": "Noted.", "zh": "好的。"}
Exchange = tuple[str, str]
"""A user message and the assistant's reply."""


@cache
def _rules(half: Half) -> Mapping[Language, Texts]:
    text = files(__package__).joinpath(f"rules_{half}.yaml").read_text(encoding="utf-8")
    return TypeAdapter(Mapping[Language, Texts]).validate_python(YAML(typ="safe").load(text))


def rule_talks(half: Half, chats: Sequence[AskedChat] = ()) -> Iterator[Talk]:
    """Yield talks with a few rules each, every rule in one talk."""
    exchanges = [pair for chat in chats for pair in _exchanges(chat)]
    for language, rules in _rules(half).items():
        for number, first in enumerate(range(0, len(rules), RULES_PER_TALK)):
            rng = random.Random(f"rules {language} {number} {half}")
            talk = _small_talk(language, half, rng)
            if exchanges and language == "en":
                start = rng.randrange(len(exchanges))
                talk = cycle(exchanges[start:] + exchanges[:start])
            yield _talk(f"rules {language} {number + 1}", rules[first : first + RULES_PER_TALK], language, talk, rng)


def _talk(name: str, rules: Texts, language: Language, talk: Iterator[Exchange], rng: random.Random) -> Talk:
    statements = tuple(marked_statement(rule) for rule in rules)
    # An exchange that shows a rule by chance would count for it.
    others = (
        pair
        for pair in talk
        if not any(line_shows(window_lines("\n".join(pair)), statement.words) for statement in statements)
    )
    planted = ((statement.text, _ACKNOWLEDGED[language]) for statement in statements)
    before = chain.from_iterable((*islice(others, rng.randint(*EXCHANGES_BEFORE)), rule) for rule in planted)
    further = islice(others, FURTHER_MESSAGES // 2)
    messages: list[Wire] = []
    for user, assistant in chain(before, further):
        messages += [{"role": "user", "content": user}, {"role": "assistant", "content": assistant}]
    return Talk(name=name, messages=tuple(messages), statements=statements)


def _exchanges(chat: AskedChat) -> Iterator[Exchange]:
    """Yield each user message with its reply."""
    for first, second in pairwise(chat.wires):
        if (first["role"], second["role"]) == ("user", "assistant"):
            yield str(first["content"]), str(second["content"])


def _small_talk(language: Language, half: Half, rng: random.Random) -> Iterator[Exchange]:
    """Yield questions about things, with replies of four to twelve sentences about more of them."""
    pool = small_talk(language).of("docs" if half == "dev" else "ci")
    while True:
        subject = rng.choice(list(pool.subjects.values()))
        slots = {"thing": subject.things}
        answers = [filled(rng.choice(subject.answers), rng, slots) for _ in range(rng.randint(4, 12))]
        yield filled(rng.choice(subject.asks), rng, slots), "\n".join(answers)

"""Chats with an assistant as talks: the user statements that the data's questions need (BEAM, see `asked_chats`).

Each pair of a question and a user message that answers it is a statement: the sentence of the message that shares most
words with the data's answer, weighted by rarity in the chat. Its deciding words are the rarest of the shared words, or
of all words of the sentence if it shares fewer than two.
"""

from __future__ import annotations

import re
from collections import Counter
from math import log

from ctxsteward.language.words import sentences

from ..asked_chats import AskedChat
from .talks import Talk, UserStatement

DECIDING_WORDS = 4
_WORD = re.compile(r"[$€£]?\d[\d,.:/-]*\d%?|\d%?|[^\W\d_]{4,}")


def chat_talk(chat: AskedChat) -> Talk:
    """Return the whole chat as a talk, with the user statements that its questions need."""
    messages = chat.wires
    ids = (str(new.id) for new in chat.messages)
    users = {id: str(wire["content"]) for id, wire in zip(ids, messages, strict=True) if wire["role"] == "user"}
    spread = Counter(word for message in messages for word in _words(str(message["content"])))
    rarity = {word: log(len(messages) / count) for word, count in spread.items()}
    found: dict[tuple[str, tuple[str, ...]], UserStatement] = {}
    for question in chat.questions:
        answer = _words(question.answer or question.text)
        for text in (users[id] for id in question.evidence if id in users):
            said = [line for span in sentences(text) if _words(line := text[span.start : span.stop])]
            if not said:
                continue
            sentence = max(said, key=lambda line: sum(rarity[word] for word in _words(line) & answer))
            shared = _words(sentence) & answer
            candidates = shared if len(shared) > 1 else _words(sentence)
            words = tuple(sorted(candidates, key=lambda word: (-rarity[word], word))[:DECIDING_WORDS])
            found[sentence, words] = UserStatement(text=sentence, words=words)
    return Talk(name=chat.name, messages=messages, statements=tuple(found.values()))


def _words(text: str) -> set[str]:
    """Return the figures and the words of four letters or more."""
    return set(_WORD.findall(text.casefold()))

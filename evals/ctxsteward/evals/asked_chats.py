"""Measure recall on chats with long assistant replies and questions: the files of BEAM.

A folder holds pairs of files, ``100K-1-chat.json`` (batches of turns: ``role``, ``content``, ``id``) and
``100K-1-probing_questions.json`` (ability → questions with ``source_chat_ids``, nested). A message's content loses the
mark that its generator left at the end (``->-> 1,15``). Questions without evidence in the chat are left out.

A folder's chats, in the order of their numbers, form two halves: the first for development, the rest *held out*, which
is measured only on request and with a notice. A figure is the mean over questions of the share of evidence shown word
for word, separately for messages of users and of the assistant: whole messages, and *by passage*, where the passage of
a message that answers counts if four fifths of it are shown in one piece. That passage shares most words with the
data's own answer, weighted by rarity among the passages of the message. At 170 questions a difference under 3.5 points
is noise.

Source: Tavakoli et al., BEAM (ICLR 2026), github.com/mohammadtavakoli78/BEAM.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from math import ceil
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

from ctxsteward.envelope import Budgets, EnvelopeBuilder, Selector, open_store
from ctxsteward.envelope.history.tool_groups import NewMessage
from ctxsteward.envelope.transcripts.strict_json import decode, show
from ctxsteward.language.passages import passage_spans
from ctxsteward.language.words import terms
from ctxsteward.schemas import InputError
from ctxsteward.schemas.errors import InvalidTranscript

from .recall import asked, recall_budgets

Half = Literal["development", "held-out"]
BUDGETS_TOKENS = (900, 2_000, 4_000)
_MARK, _MARKED_CHARS = "->->", 40
"""Mark before the short remainder that a generator left behind a message."""
_NUMBER = re.compile(r"-(\d+)-chat\.json\Z")
_ANSWERS = (
    "answer",
    "ideal_answer",
    "ideal_response",
    "ideal_summary",
    "instruction_being_tested",
    "preference_being_tested",
    "rubric",
)
PASSAGE_SHOWN = 0.8
"""Fraction of a passage that must stand in one piece to count as shown."""
Roles = Literal["user", "assistant"]


class ChatQuestion(NamedTuple):
    """A question about a chat, and the ids of the messages that answer it."""

    text: str
    evidence: tuple[str, ...]
    answer: str = ""
    """Answer and rubric of the data."""


class AskedChat(NamedTuple):
    """A chat and its questions."""

    name: str
    messages: tuple[NewMessage, ...]
    questions: tuple[ChatQuestion, ...]

    @property
    def wires(self) -> tuple[dict[str, Any], ...]:
        """The messages as a provider takes them."""
        return tuple(cast("dict[str, Any]", new.message) for new in self.messages)


class ChatRecall(NamedTuple):
    """Percent of the evidence that a ranking shows at one budget, mean over questions."""

    budget_tokens: int
    user: float
    assistant: float
    user_passages: float
    assistant_passages: float
    user_questions: int
    assistant_questions: int


# -- the files -----------------------------------------------------------------------------------------------------


def is_chat_folder(path: Path) -> bool:
    """Return whether a folder holds such chats."""
    return path.is_dir() and any(path.glob("*-chat.json"))


def read_chats(folder: Path, half: Half = "development") -> list[AskedChat]:
    """Read one half of a folder's chats; raise `InvalidTranscript` with file and place, `InputError` without chats."""
    numbered = sorted(
        (int(match[1]), path) for path in folder.glob("*-chat.json") if (match := _NUMBER.search(path.name))
    )
    if len(numbered) < 2:
        raise InputError(
            f"{folder}: need at least two files named *-NUMBER-chat.json, one per half; found {len(numbered)}"
        )
    middle = (len(numbered) + 1) // 2
    files = numbered[:middle] if half == "development" else numbered[middle:]
    return [_read(path) for _, path in files]


def _read(path: Path) -> AskedChat:
    messages = tuple(_messages(decode(path.read_bytes(), str(path), ""), str(path)))
    message_ids = {message.id for message in messages}
    asked = path.with_name(path.name.replace("-chat.json", "-probing_questions.json"))
    if not asked.is_file():
        raise InvalidTranscript(str(asked), "", "is missing", f"expected the questions of {path.name}")
    document = decode(asked.read_bytes(), str(asked), "")
    if not isinstance(document, dict):
        raise InvalidTranscript(str(asked), "", f"found {show(document)}", "expected an object of abilities")
    questions: list[ChatQuestion] = []
    for ability, rows in document.items():
        if not isinstance(rows, list):
            raise InvalidTranscript(str(asked), ability, f"found {show(rows)}", "expected a list of questions")
        for at, row in enumerate(rows):
            text = row.get("question") if isinstance(row, dict) else None
            if not isinstance(text, str):
                raise InvalidTranscript(str(asked), f"{ability}[{at}]", f"found {show(row)}", "expected a `question`")
            evidence = tuple(id for id in dict.fromkeys(_ids(row.get("source_chat_ids"))) if id in message_ids)
            if evidence:
                answer = " ".join(text_found for name in _ANSWERS for text_found in _texts(row.get(name)))
                questions.append(ChatQuestion(text, evidence, answer))
    return AskedChat(path.name.removesuffix("-chat.json"), messages, tuple(questions))


def _messages(document: object, source: str) -> Iterator[NewMessage]:
    if not isinstance(document, list):
        raise InvalidTranscript(source, "", f"found {show(document)}", "expected a list of batches with `turns`")
    for number, batch in enumerate(document):
        turns = batch.get("turns") if isinstance(batch, dict) else None
        if not isinstance(turns, list):
            raise InvalidTranscript(source, f"[{number}]", f"found {show(batch)}", "expected a list `turns`")
        for at, turn in enumerate(turns):
            for place, row in enumerate(turn if isinstance(turn, list) else [turn]):
                yield _message(row, source, f"[{number}].turns[{at}][{place}]")


def _message(row: object, source: str, where: str) -> NewMessage:
    if not isinstance(row, dict) or not isinstance(row.get("content"), str):
        raise InvalidTranscript(source, where, f"found {show(row)}", "expected `role`, `content` and `id`")
    if row.get("role") not in ("user", "assistant"):
        raise InvalidTranscript(source, f"{where}.role", f"found {show(row.get('role'))}", "expected user or assistant")
    wire = {"role": row["role"], "content": unmarked(row["content"])}
    return NewMessage(message=wire, id=str(row.get("id")))


def unmarked(text: str) -> str:
    """Remove the generator's mark at the end.

    >>> unmarked("Can you help me? ->-> 1,15"), unmarked("a ->-> b is an arrow, and then there is more text to read")
    ('Can you help me?', 'a ->-> b is an arrow, and then there is more text to read')
    """
    before, mark, behind = text.rpartition(_MARK)
    return before.rstrip() if mark and len(behind) <= _MARKED_CHARS else text


def _texts(node: object) -> Iterator[str]:
    if isinstance(node, str):
        yield node
    elif isinstance(node, list):
        for inner in node:
            yield from _texts(inner)


def _ids(node: object) -> Iterator[str]:
    """Yield the message ids in nested lists and objects."""
    if isinstance(node, dict):
        node = list(node.values())
    if isinstance(node, list):
        for inner in node:
            yield from _ids(inner)
    elif isinstance(node, int | str):
        yield from re.findall(r"\d+", str(node))


# -- measuring -----------------------------------------------------------------------------------------------------


def measure_chats(
    chats: Sequence[AskedChat],
    selector: Callable[[], Selector],
    *,
    budgets_tokens: Sequence[int] = BUDGETS_TOKENS,
    tokenizer: str = "o200k_base",
    defaults: bool = False,
    tell: Callable[[str], None] = lambda text: None,
) -> list[ChatRecall]:
    """Measure a selector by budget: of recall only, or with `defaults` of the whole window at the shipped settings."""
    rows = []
    for budget_tokens in budgets_tokens:
        shares: dict[tuple[str, str], list[float]] = defaultdict(list)
        budgets = recall_budgets(budget_tokens, defaults=defaults)
        for chat in chats:
            tell(f"{budget_tokens} tokens, chat {chat.name}")
            for role, whole, passages in _shares(chat, selector(), budgets, tokenizer):
                shares[role, "whole"].append(whole)
                shares[role, "passages"].append(passages)
        rows.append(
            ChatRecall(
                budget_tokens,
                _mean(shares["user", "whole"]),
                _mean(shares["assistant", "whole"]),
                _mean(shares["user", "passages"]),
                _mean(shares["assistant", "passages"]),
                len(shares["user", "whole"]),
                len(shares["assistant", "whole"]),
            )
        )
    return rows


def _mean(shares: Sequence[float]) -> float:
    return round(100 * sum(shares) / max(1, len(shares)), 1)


def _shares(
    chat: AskedChat, selector: Selector, budgets: Budgets, tokenizer: str
) -> Iterator[tuple[str, float, float]]:
    """Yield role, share of whole evidence and share of answering passages shown, by question and role."""
    builder = EnvelopeBuilder(tokenizer=tokenizer, budgets=budgets, selector=selector)
    with open_store("memory:") as store:
        session = store.session(chat.name)
        entries = {entry.event.id: entry for entry in session.extend(chat.messages)}
        builder.build(session)
        for question in chat.questions:
            evidence = [entries[id] for id in question.evidence]
            _, text = asked(builder, session, selector, question.text, [entry.ordinal for entry in evidence])
            for role in ("user", "assistant"):
                originals = [entry.message.text for entry in evidence if entry.message.role == role]
                if originals:
                    whole = sum(original in text for original in originals)
                    passages = sum(
                        original in text or _stands(answering_passage(original, question.answer or question.text), text)
                        for original in originals
                    )
                    yield role, whole / len(originals), passages / len(originals)


def answering_passage(text: str, answer: str) -> str:
    """Return the passage of a message that shares most words with an answer; rare words count most."""
    passages = [text[span.start : span.stop].strip() for span in passage_spans(text)]
    held = [set(terms(passage)) for passage in passages]
    spread = Counter(term for words in held for term in words)
    asked = set(terms(answer))
    worth = [sum(1 / spread[term] for term in words & asked) for words in held]
    return passages[worth.index(max(worth))] if passages else text


def _stands(passage: str, text: str) -> bool:
    """Return whether `PASSAGE_SHOWN` of a passage stands in the text in one piece."""
    size = max(1, ceil(len(passage) * PASSAGE_SHOWN))
    return any(passage[start : start + size] in text for start in range(len(passage) - size + 1))

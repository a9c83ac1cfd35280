"""What reads other people's text costs no more than in proportion to its length, whatever the text.

Every compiled pattern of the product is pumped: those of its modules, wherever they are kept, and those that its
functions write in place. Each is run as its module runs it (`match`, `search` …) over texts that repeat one pump,
and beside it over a harmless text of the same length. So are the functions that read messages. What is compared is
the thread's processor time, with a generous floor, the best of several tries: a quadratic pattern is far over it. What
is a little over it, as much is on a busy machine, is compared with half of its text. The everyday run pumps 6 kB, into
a pattern half of the pumps, which are drawn anew each time; `CTXSTEWARD_SOAK=1` pumps 20 kB and 60 kB of all.

A pattern must not begin in the middle of what it repeats (a look-behind says so), nor give back what it took
(possessive quantifiers). Source: Davis et al., The impact of regular expression denial of service in practice (2018).
"""

from __future__ import annotations

import ast
import gc
import importlib
import inspect
import json
import pkgutil
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, NamedTuple

import pytest

from ctxsteward.envelope import Budgets, EnvelopeBuilder
from ctxsteward.envelope.audit.alignment import folded
from ctxsteward.envelope.cards import keywords
from ctxsteward.envelope.compaction.losses import probes
from ctxsteward.envelope.layout.fragments import excerpt
from ctxsteward.envelope.layout.rows import bullet_text, cited, continued, rows_of
from ctxsteward.envelope.recall.model_tools import answer_search
from ctxsteward.envelope.recall.room import named, outputs_named
from ctxsteward.envelope.render.text import PromptSpan, parse, render_spans
from ctxsteward.envelope.testing import CharTokenizer, memory_store
from ctxsteward.language import operators as wording
from ctxsteward.language.figures import figures
from ctxsteward.language.foreign_text import mask_foreign_text
from ctxsteward.language.passages import passage_spans
from ctxsteward.language.values import typed_values
from ctxsteward.language.words import clause_spans, sentences, terms
from ctxsteward.schemas import InputError
from ctxsteward.steward.ingest.redaction import Redactor, redacted_json
from ctxsteward.steward.reconcile.features import claim_features
from ctxsteward.summarizers.bullets import quote, without_opening
from ctxsteward.summarizers.salience import read_sentence

from .examples import SOAK, drawn

PACKAGES = ("schemas", "store", "language", "envelope", "summarizers", "steward", "evals", "flows", "console")
ROOT = Path(__file__).parents[1]
PUMPS = (
    " ",
    "\n",
    "\r",
    "\t",
    "\x0b",
    "\u2028",
    "a",
    "A",
    "1",
    "-",
    "_",
    ".",
    ",",
    "/",
    "@",
    "#",
    "§",
    "§1 ",
    "'",
    '"',
    "`",
    "([",
    "{<",
    "\\",
    "|",
    "=",
    ": ",
    "a ",
    "a.",
    "a-",
    "1.",
    "1,",
    "a\n",
    "“",
    "是",
    "，",
    "一",
    "一个",
    " not ",
    "**",
    "a/-",
    "a--",
    "-1",
    "a@a",
    "http://a",
    "20 May ",
    '"a":',
    "a/",
    "\u0301",
    "</a><a>",
    "no, ",
    "A a",
)
HARMLESS = "The quick brown fox jumps over 13 lazy dogs, then rests. "
ROOT = Path(__file__).parents[1]
SIZES = (20_000, 60_000) if SOAK else (6_000,)
TIMES = 10
"""What a pump may cost of a harmless text of its size."""
FLOOR_SECONDS = 0.15 if SOAK else 0.03
FAR = 3
"""Times what is allowed: up to there, what is over it is asked whether it grows as its text does."""
GROWTH = 2.5
"""What a text of double length may cost, in halves: 2 is in proportion, 4 is quadratic."""
LIMIT_SECONDS = 2.0 if SOAK else 0.5
"""Of processor time, that of all threads: nothing that is pumped runs longer."""
RUNS = {"match", "fullmatch", "search", "finditer", "findall", "sub", "split"}


class Pumped(NamedTuple):
    """Something that reads a text."""

    name: str
    read: Callable[[str], object]


class TooLong(Exception):
    """The limit was reached."""


def seconds(read: Callable[[str], object], text: str) -> float:
    """Processor time of one reading; the limit where it takes longer."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TooLong

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, LIMIT_SECONDS)
    gc.disable()  # a large heap of the tests before is nothing that the text costs
    started = time.thread_time()
    try:
        read(text)
        return time.thread_time() - started
    except TooLong:
        return LIMIT_SECONDS
    finally:
        gc.enable()
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def text_of(pump: str, size: int) -> str:
    return (pump * (size // len(pump) + 1))[:size]


def out_of_proportion(read: Callable[[str], object], text: str) -> bool:
    """A processor that others load takes longer for the whole and for its half alike."""
    tries = [(seconds(read, text), seconds(read, text[: len(text) // 2])) for _ in range(5)]
    whole, half = (min(times) for times in zip(*tries, strict=True))
    return whole > GROWTH * half


def slow(pumped: Pumped, pumps: Sequence[str] = PUMPS) -> Iterator[str]:
    """The pumps that this reads too slowly, at the first size at which there are any."""
    found = False
    for size in SIZES:
        harmless = seconds(pumped.read, text_of(HARMLESS, size))
        allowed = max(FLOOR_SECONDS, TIMES * harmless)
        for pump in pumps:
            text = text_of(pump, size)
            spent = seconds(pumped.read, text)
            for _ in range(2):  # a process that did something else meanwhile is asked again
                spent = min(spent, seconds(pumped.read, text)) if spent > allowed else spent
            if spent > allowed and (spent > FAR * allowed or out_of_proportion(pumped.read, text)):
                found = True
                yield f"{pumped.name}: {size:,} characters of {pump!r} take {spent:.3f} s, not {allowed:.3f}"
        if found:
            return


# -- all patterns ----------------------------------------------------------------------------------------------------


def modules() -> tuple[ModuleType, ...]:
    found = []
    for name in PACKAGES:
        package = importlib.import_module(f"ctxsteward.{name}")
        found.append(package)
        for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not info.name.endswith("__main__"):
                try:
                    found.append(importlib.import_module(info.name))
                except ImportError:  # of an extra that is not installed
                    continue
    return tuple(found)


def made_late(value: object) -> object:
    """What a cached function of no arguments makes at its first call, such as a pattern out of a list of words."""
    asks = getattr(value, "__wrapped__", None)
    if not hasattr(value, "cache_info") or asks is None or inspect.signature(asks).parameters:
        return value
    try:
        return value()  # type: ignore[operator]
    except InputError:  # it asks the environment for what is not set here
        return None


def held(value: object, depth: int = 0) -> Iterator[re.Pattern[str]]:
    """The patterns in a value: in containers and in our own values, too."""
    if isinstance(value, re.Pattern):
        if isinstance(value.pattern, str):
            yield value
    elif depth > 5 or isinstance(value, (str, bytes, type, ModuleType)):
        return
    elif isinstance(value, dict):
        for item in (*value, *value.values()):
            yield from held(item, depth + 1)
    elif isinstance(value, (list, tuple, set, frozenset)):
        for item in value:
            yield from held(item, depth + 1)
    elif type(value).__module__.startswith("ctxsteward"):
        names = {name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())}
        for item in (*getattr(value, "__dict__", {}).values(), *(getattr(value, name, None) for name in names)):
            yield from held(item, depth + 1)


def written_in_place(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Calls such as ``re.sub("…", …)``: their line and function, and the pattern."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="re"), attr=str(how)), args=[ast.Constant(value=str(text)), *_]
            ) if how in RUNS:
                yield f"{node.lineno} {how}", text


def runs(modules: Iterable[ModuleType]) -> tuple[dict[tuple[str, str], set[str]], dict[str, set[str]], dict[str, str]]:
    """How names are run, by module and name; how unnamed patterns are, by module; and patterns written in place."""
    named_runs: dict[tuple[str, str], set[str]] = {}
    other_runs: dict[str, set[str]] = {}
    in_place: dict[str, str] = {}
    for module in modules:
        if module.__file__ is None:
            continue
        tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if not isinstance(node, ast.Attribute) or node.attr not in RUNS:
                continue
            if isinstance(node.value, ast.Name):
                pattern = vars(module).get(node.value.id)
                if isinstance(pattern, re.Pattern):
                    named_runs.setdefault((str(pattern.pattern), ""), set()).add(node.attr)
                    continue
            if node.attr != "split":  # texts are split, too
                other_runs.setdefault(module.__name__, set()).add(node.attr)
        for where, pattern in written_in_place(tree):
            in_place.setdefault(pattern, f"{module.__name__}:{where}")
    return named_runs, other_runs, in_place


def runner(pattern: re.Pattern[str], how: str) -> Callable[[str], object]:
    match how:
        case "match" | "fullmatch":
            return getattr(pattern, how)  # type: ignore[no-any-return]
        case "search":
            return pattern.search
        case _:
            return lambda text: sum(1 for _ in pattern.finditer(text))


def patterns() -> tuple[Pumped, ...]:
    """Every pattern, as it is run."""
    read = modules()
    named_runs, other_runs, in_place = runs(read)
    found: dict[tuple[str, int, str], Pumped] = {}
    for module in read:
        for name, value in list(vars(module).items()):
            own = list(vars(value).values()) if isinstance(value, type) else [made_late(value)]
            if isinstance(value, type) and value.__module__ != module.__name__:
                continue
            for pattern in (one for item in own for one in held(item)):
                ways = named_runs.get((pattern.pattern, "")) or set()
                if not isinstance(value, re.Pattern) or not ways:
                    ways = ways | other_runs.get(module.__name__, set()) or {"search"}
                for way in {"finditer" if way in ("findall", "sub", "split") else way for way in ways}:
                    key = (pattern.pattern, pattern.flags, way)
                    found.setdefault(key, Pumped(f"{module.__name__}.{name}.{way}", runner(pattern, way)))
    for text, where in in_place.items():
        pattern = re.compile(text)
        way = where.rpartition(" ")[2]
        found.setdefault((text, pattern.flags, way), Pumped(where, runner(pattern, way)))
    return tuple(found.values())


def test_all_patterns_are_found_and_no_text_makes_one_slow() -> None:
    """In a process of its own: what other tests have left running costs processor time, too."""
    command = [sys.executable, "-W", "ignore", "-m", "tests.test_linear"]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    found: dict[str, list[str]] = json.loads(printed.splitlines()[-1])
    assert len(found) > 350
    assert "ctxsteward.envelope.layout.rows._BREAK.finditer" in found
    assert "ctxsteward.envelope.compaction.losses._VALUES.finditer" in found
    assert {name.split(".")[1] for name in found} >= set(PACKAGES) - {"schemas", "flows"}
    assert [text for texts in found.values() for text in texts] == []


def test_a_little_over_the_floor_is_slow_where_it_grows_faster_than_its_text(monkeypatch: pytest.MonkeyPatch) -> None:
    def working(rounds: Callable[[int], int]) -> Pumped:
        return Pumped("it", lambda text: sum(range(rounds(len(text)))) if text[0] != HARMLESS[0] else None)

    spent = min(seconds(working(lambda size: 100 * size).read, text_of("a", SIZES[0])) for _ in range(5))

    monkeypatch.setattr(sys.modules[__name__], "FLOOR_SECONDS", spent / 2)
    assert next(slow(working(lambda size: 100 * size), "a"), None) is None
    assert next(slow(working(lambda size: 100 * size * size // SIZES[0]), "a"), None) is not None


@pytest.mark.parametrize("pattern", [r"\s*x", r"(a+)+!", r"[^\S\n]*§", r"\w+@\w+\."])
def test_a_slow_pattern_is_found(pattern: str) -> None:
    assert next(slow(Pumped("it", re.compile(pattern).search)), None) is not None


# -- functions that read texts ---------------------------------------------------------------------------------------


def _listed(read: Callable[[str], Any]) -> Callable[[str], object]:
    return lambda text: list(read(text))


def _sentences_read(text: str) -> object:
    return [read_sentence(text[piece.start : piece.stop], "user") for piece in sentences(text)]


importlib.import_module("ctxsteward.envelope.recall.session_index")  # numpy cannot be imported again after `TooLong`


def _enveloped(text: str) -> object:
    """A session that holds the text in every role, compacted, recalled and rendered."""
    session = memory_store().session("s")
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    session.append({"role": "user", "content": "look at the valve"})
    session.append({"role": "assistant", "content": None, "tool_calls": [call]})
    session.append({"role": "tool", "tool_call_id": "c", "content": f"valve {text}"})
    session.append({"role": "assistant", "content": f"valve {text}"})
    session.append({"role": "user", "content": f"the valve {text}"})
    session.append({"role": "assistant", "content": "done"})
    session.append({"role": "user", "content": "what about the valve in §3?"})
    session.note("plan", text)
    envelope = EnvelopeBuilder(tokenizer=CharTokenizer(), budgets=Budgets(dynamic_tokens=2_000)).build(session)
    return envelope.render("text"), answer_search(session, "valve")


READERS: dict[str, Callable[[str], object]] = {
    "rows": continued,
    "bullets": bullet_text,
    "passages": passage_spans,
    "rows read": rows_of,
    "citations read": cited,
    "prompt": lambda text: parse("123456789", render_spans("123456789", [PromptSpan("dynamic user §1", text)])),
    "probes": probes,
    "excerpt": lambda text: excerpt(text, cap_tokens=200, ref="§1", tokens=len(text), count=len),
    "named": outputs_named,
    "named in a question": lambda text: named(f"§1 the tool output {text}", 0, lambda _: pytest.fail("none is there")),
    "terms": terms,
    "keywords": keywords,
    "folded": folded,
    "sentences": _listed(sentences),
    "sentences read": _sentences_read,
    "clause_spans": clause_spans,
    "quote": quote,
    "opening": without_opening,
    "values": typed_values,
    "heard": mask_foreign_text,
    "redacted": Redactor(),
    "redacted JSON": lambda text: redacted_json(text, Redactor()),
    "figures": figures.__wrapped__,
    "drift sentences": wording.sentences_of.__wrapped__,
    "drift tokens": wording.tokens.__wrapped__,
    "claim_features": claim_features,
}


@pytest.mark.parametrize("name", READERS)
def test_no_text_makes_a_reader_slow(name: str) -> None:
    assert list(slow(Pumped(name, READERS[name]))) == []


@pytest.mark.parametrize("pump", PUMPS if SOAK else ("\r", "\x0b", "\u2028", "a", "一"), ids=ascii)
def test_no_text_makes_a_build_slow(pump: str) -> None:
    size = SIZES[-1]
    harmless = seconds(_enveloped, text_of(HARMLESS, size))
    spent = min(seconds(_enveloped, text_of(pump, size)) for _ in range(2))
    assert spent <= max(1.0, TIMES * harmless)


if __name__ == "__main__":
    by_name: dict[str, list[str]] = {}
    for pumped in patterns():
        by_name.setdefault(pumped.name, []).extend(slow(pumped, drawn(PUMPS, len(PUMPS) // 2, pumped.name)))
    print(json.dumps(by_name))

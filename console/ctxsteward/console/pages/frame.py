"""The frame of the pages: their addresses, links, languages, texts and templates.

A `Place` names a page. `Frame.href` is the one function that makes links: live pages have paths such as
``/sessions/ID/calls/12``, static ones are files such as ``en/sessions/ID/call-12.html``. A new page needs a row in
`ROUTES`. A link to a page that is not written becomes its text alone.

Texts of the frame come from ``texts.yaml``, each in every one of `LANGUAGES`. Texts of sessions are not trusted: Jinja
escapes them, and `seen` writes out characters that are invisible or change the direction of writing, so that a reader
sees every character. Pages have no inline script and no inline style, load nothing from other hosts, and work
without script; `POLICY` makes the browser enforce this. The same values give the same bytes.

An unknown language raises `InputError`. Sources: CSP level 3 (W3C), UAX #9 (directional formatting characters).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from posixpath import dirname, relpath
from typing import Any, Literal, NamedTuple
from urllib.parse import quote, unquote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from ruamel.yaml import YAML

from ctxsteward.schemas import InputError
from ctxsteward.store.names import part_of

from .sentences import meaning, translated

LANGUAGES = ("en", "zh")
"""Language tags; the first is the default."""
NAMES = {"en": "English", "zh": "中文"}
POLICY = "default-src 'self'; style-src 'self'; img-src 'self' data:"
ASSETS = ("pages.css", "pages.js", "context-meter.js", "icon.svg", "htmx.min.js", "htmx.LICENSE.txt")
"""Files that pages load. Only live pages load htmx, which is shipped as its authors publish it."""
DOCUMENTATION = "https://ctxsteward.github.io/ctxsteward/"
TABS = ("sessions", "steward", "evals")

Mode = Literal["live", "static"]


class Place(NamedTuple):
    """A page, or an anchor on a page."""

    name: str
    """Name of a route in `ROUTES`."""
    session: str = ""
    """Id of the session; for pages of the steward, name of the profile; for a person's page, the principal."""
    number: int = 0
    """Number of the call, message or version."""
    since: int = 0
    """Number of the earlier call or version in a comparison."""
    page: int = 1
    query: tuple[tuple[str, str], ...] = ()
    """Query of a live page; static pages ignore it."""
    anchor: str = ""

    @property
    def bare(self) -> Place:
        """The same page without query and anchor."""
        return self._replace(query=(), anchor="")


class Route(NamedTuple):
    """Patterns of a page's addresses; ``{session}``, ``{number}`` and ``{since}`` are filled in."""

    live: str
    static: str
    """Path without ``.html``; later pages of a listing append ``-2`` and so on."""


ROUTES: dict[str, Route] = {
    "sessions": Route("sessions", "index"),
    "timeline": Route("sessions/{session}", "sessions/{session}/index"),
    "call": Route("sessions/{session}/calls/{number}", "sessions/{session}/call-{number}"),
    "diff": Route("sessions/{session}/calls/{number}/since/{since}", "sessions/{session}/diff-{since}-{number}"),
    "losses": Route("sessions/{session}/losses", "sessions/{session}/losses"),
    "messages": Route("sessions/{session}/messages", "sessions/{session}/messages"),
    "message": Route("sessions/{session}/messages/{number}", "sessions/{session}/message-{number}"),
    "health": Route("sessions/{session}/health", "sessions/{session}/health"),
    "person": Route("people/{session}", "people/{session}"),
    "evals": Route("evals", "evals"),
    "steward": Route("steward", "steward"),
    "profile": Route("steward/{session}", "steward/{session}/index"),
    "version": Route("steward/{session}/versions/{number}/since/{since}", "steward/{session}/version-{since}-{number}"),
    "widget": Route("widget", "widget"),
}
"""Routes by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """The surroundings of one page: links, texts, language."""

    at: Place
    language: str = LANGUAGES[0]
    mode: Mode = "live"
    root: str = ""
    """Path under which live pages are mounted, without a slash at its end."""
    tabs: tuple[Place, ...] = tuple(map(Place, TABS))
    """Pages that the bar at the top links to."""
    written: frozenset[Place] | None = None
    """Places that have a page, or None if all have one."""

    def __post_init__(self) -> None:
        if self.language not in LANGUAGES:
            raise InputError(
                f"lang: {self.language!r:.20} is no language of these pages; take {' or '.join(LANGUAGES)}"
            )

    def href(self, place: Place, language: str = "") -> str:
        """Return the link to a place, or an empty text if it has no page."""
        language = language or self.language
        if self.written is not None and place.bare not in self.written:
            return ""
        if self.mode == "live":
            asked = [*place.query, *([("page", str(place.page))] if place.page > 1 else [])]
            asked += [("lang", language)] if language != LANGUAGES[0] else []
            path = _filled(ROUTES[place.name].live, place, quote(quote(place.session, safe=""), safe=""))
            link = f"{self.root}/{path}" + (f"?{urlencode(asked)}" if asked else "")
        else:
            link = quote(relpath(static_path(place, language), dirname(static_path(self.at, self.language))))
        return f"{link}#{quote(place.anchor)}" if place.anchor else link

    def asset(self, name: str) -> str:
        """Return the link to one of `ASSETS`."""
        if self.mode == "live":
            return f"{self.root}/assets/{name}"
        return relpath(f"assets/{name}", dirname(static_path(self.at, self.language)))

    def text(self, key: str, **values: object) -> str:
        """Return the text of this key in the frame's language; values are filled in, whole numbers with commas."""
        return _filled_in(key, self.language, values)

    def say(self, sentence: str) -> Markup:
        """Return a sentence of a command in the frame's language, escaped; an unknown one stays English."""
        if self.language == LANGUAGES[0]:
            return seen(sentence)
        other = translated(sentence)
        return Markup('<span lang="en">{}</span>').format(seen(sentence)) if other is None else seen(other)

    def meaning(self, kind: str) -> str:
        """Return what a finding of this kind means, if the frame is not in the language of its text."""
        return "" if self.language == LANGUAGES[0] else meaning(kind)

    def entry(self, kind: str) -> str:
        """Return the address of the documentation's entry for findings of this kind."""
        return f"{DOCUMENTATION}troubleshooting/#{quote(kind)}"

    @property
    def tab(self) -> str:
        """Name of the tab that this page belongs to."""
        return "steward" if self.at.name in ("profile", "version") else "sessions" if self.at.session else self.at.name

    def moved(self, at: Place) -> Frame:
        """Return this frame for another page."""
        return replace(self, at=at)

    def page(self, template: str, **values: Any) -> str:
        """Render a page from a template that extends ``base.html.j2``; there, `f` is the frame and `t` its texts."""
        return render(template, f=self, t=self.text, say=self.say, languages=NAMES, policy=POLICY, **values)


def _filled_in(key: str, language: str, values: Mapping[str, object]) -> str:
    """Return a text of `texts` with its values filled in; a page without a frame is in the first language."""
    shown = {name: f"{value:,}" if isinstance(value, int) else value for name, value in values.items()}
    return texts()[key][language].format_map(shown)


def static_path(place: Place, language: str) -> str:
    """Return the file of a place, relative to the folder of the pages."""
    page = f"-{place.page}" if place.page > 1 else ""
    return f"{language}/{_filled(ROUTES[place.name].static, place, part_of(place.session))}{page}.html"


def _filled(pattern: str, place: Place, session: str) -> str:
    return pattern.format(session=session, number=place.number, since=place.since)


def place_of(path: str, asked: Mapping[str, str]) -> Place | None:
    """Return the place that a live path, relative to `Frame.root`, names; None if it names no page.

    >>> place_of("sessions/trip-42/calls/3", {"page": "2", "q": "hana"})
    Place(name='call', session='trip-42', number=3, since=0, page=2, query=(('q', 'hana'),), anchor='')
    """
    for name, pattern in _patterns().items():
        match = pattern.fullmatch(path.strip("/"))
        if match is not None:
            parts = match.groupdict()
            session = unquote(unquote(parts.get("session") or ""))
            page = asked.get("page", "1")
            query = tuple(sorted((key, value) for key, value in asked.items() if key not in ("page", "lang")))
            return Place(
                name,
                session,
                int(parts.get("number") or 0),
                int(parts.get("since") or 0),
                int(page) if re.fullmatch("[1-9][0-9]{0,8}", page) else 1,
                query,
            )
    return None


@cache
def _patterns() -> dict[str, re.Pattern[str]]:
    number = "[1-9][0-9]{0,8}"
    return {
        name: re.compile(
            route.live.replace("{session}", "(?P<session>[^/]+)")
            .replace("{number}", f"(?P<number>{number})")
            .replace("{since}", f"(?P<since>{number})")
        )
        for name, route in ROUTES.items()
    }


@cache
def texts() -> dict[str, dict[str, str]]:
    """Return every text of the frame, by key and language."""
    read = YAML(typ="safe").load((files(__package__) / "texts.yaml").read_text(encoding="utf-8"))
    return {key: dict(zip(LANGUAGES, both, strict=True)) for key, both in read.items()}


# -- templates ----------------------------------------------------------------------------------------------------

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e0fff]"
)
"""Matches control characters except tab and line feed, directional formatting, characters without width (except the
joiners of scripts and emoji), and lone surrogates."""


def seen(text: object) -> Markup:
    """Escape an untrusted text, and write out its invisible characters in a marked span.

    >>> print(seen("pay \\u202e<b>"))
    pay <span class="unseen">\\u202e</span>&lt;b&gt;
    """
    plain_text = str(text)
    parts: list[Markup] = []
    start = 0
    for match in _UNSEEN.finditer(plain_text):
        written = match[0].encode("unicode_escape", "surrogatepass").decode()
        parts += (escape(plain_text[start : match.start()]), Markup('<span class="unseen">{}</span>').format(written))
        start = match.end()
    return Markup("").join((*parts, escape(plain_text[start:])))


def plain(text: object) -> str:
    """Write out the invisible characters of a text for an attribute or a title, without markup."""
    return _UNSEEN.sub(lambda match: match[0].encode("unicode_escape", "surrogatepass").decode(), str(text))


def _ordinal(ref: str) -> int:
    """Return the ordinal of the message that a reference names, or 0."""
    match = re.match(r"§([1-9]\d{0,11})(?:\.\d+(?:-\d+)?)?$", ref, re.ASCII)
    return int(match[1]) if match else 0


MESSAGES, CALLS = 50, 200
"""Number of a session's messages, and of its calls, on one page."""


def page_of_message(ordinal: int) -> int:
    """Return the page of the log that shows this message."""
    return (ordinal - 1) // MESSAGES + 1


def page_of_call(number: int, count: int, size: int = CALLS) -> int:
    """Return the page of the timeline that shows this one of `count` calls; page 1 shows the newest."""
    return (count - number) // size + 1


def window(numbers: int, at: int, beside: int = 3) -> Sequence[int]:
    """Return the page numbers for a pager: the first, the last, and those near `at`; 0 marks omitted pages."""
    named = sorted({1, numbers, *range(max(1, at - beside), min(numbers, at + beside) + 1)})
    bar: list[int] = []
    for number in named:
        if bar and number > bar[-1] + 1:
            bar.append(0)
        bar.append(number)
    return bar


_templates = Environment(
    loader=PackageLoader("ctxsteward.console.pages"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_templates.globals |= {
    "t": lambda key, **values: _filled_in(key, LANGUAGES[0], values),
    "say": seen,
    "place": Place,
    "window": window,
    "page_of": page_of_message,
    "page_with": page_of_call,
}
_templates.filters |= {"seen": seen, "plain": plain, "number": lambda value: f"{value:,}", "ordinal": _ordinal}


def render(name: str, **values: Any) -> str:
    """Render the template of this name; the same values give the same text."""
    return _templates.get_template(name).render(values)


def asset(name: str) -> bytes:
    """Return the content of one of `ASSETS`; raise `KeyError` for another name."""
    if name not in ASSETS:
        raise KeyError(name)
    folder = "templates" if name == "pages.css" else "assets"
    return (files(__package__) / folder / name.replace("pages.css", "style.css")).read_bytes()

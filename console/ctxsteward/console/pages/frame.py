"""The frame of the pages: where they lie, how they lead to each other, their language, and what may stand in them.

A `Place` names a page. `Frame.href` is the one function that makes links: live pages have paths such as
``/sessions/ID/calls/12``, static ones are files beside each other, ``en/sessions/ID/call-12.html``. A new page is a row
of `ROUTES`; a page that is not written has no link, and its text stands there alone.

Texts of the frame come from ``texts.yaml``, every one in each of `LANGUAGES`. Texts of sessions are nobody's: Jinja
escapes them, and `seen` writes out what has no shape of its own or turns the direction of writing, so that what a
reader sees is what is there. Pages hold no inline script and no inline style, load nothing from elsewhere, and work
without script; `POLICY` says so to the browser. The same values give the same bytes.

Raises `InputError` for a language that is none. Sources: CSP level 3 (W3C), UAX #9 (directional formatting characters).
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

LANGUAGES = ("en", "zh")
"""By their tags; the first is what a reader gets who asks for none."""
NAMES = {"en": "English", "zh": "中文"}
POLICY = "default-src 'self'; style-src 'self'; img-src 'self' data:"
ASSETS = ("pages.css", "pages.js", "context-meter.js", "icon.svg", "htmx.min.js", "htmx.LICENSE.txt")
TABS = ("sessions", "steward", "evals")
"""What pages load, from beside them. htmx serves live pages alone, and is here as its authors publish it."""

Mode = Literal["live", "static"]


class Place(NamedTuple):
    """A page, or a place on it."""

    name: str
    """One of `ROUTES`."""
    session: str = ""
    """Its id; of a page of the steward, the name of the profile."""
    number: int = 0
    """Of a call, a message or a version."""
    since: int = 0
    """Of the earlier call or version of a comparison."""
    page: int = 1
    query: tuple[tuple[str, str], ...] = ()
    """What a live page is asked for; a static one has no answer."""
    anchor: str = ""

    @property
    def bare(self) -> Place:
        """The page without the place on it."""
        return self._replace(query=(), anchor="")


class Route(NamedTuple):
    """Where pages of a name lie; ``{session}``, ``{number}`` and ``{since}`` are filled in."""

    live: str
    static: str
    """Without its ending; pages after the first have ``-2`` and so on behind it."""


ROUTES: dict[str, Route] = {
    "sessions": Route("sessions", "index"),
    "timeline": Route("sessions/{session}", "sessions/{session}/index"),
    "call": Route("sessions/{session}/calls/{number}", "sessions/{session}/call-{number}"),
    "diff": Route("sessions/{session}/calls/{number}/since/{since}", "sessions/{session}/diff-{since}-{number}"),
    "losses": Route("sessions/{session}/losses", "sessions/{session}/losses"),
    "messages": Route("sessions/{session}/messages", "sessions/{session}/messages"),
    "message": Route("sessions/{session}/messages/{number}", "sessions/{session}/message-{number}"),
    "health": Route("sessions/{session}/health", "sessions/{session}/health"),
    "evals": Route("evals", "evals"),
    "steward": Route("steward", "steward"),
    "profile": Route("steward/{session}", "steward/{session}/index"),
    "version": Route("steward/{session}/versions/{number}/since/{since}", "steward/{session}/version-{since}-{number}"),
    "widget": Route("widget", "widget"),
}
"""By name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """What is around one page."""

    at: Place
    language: str = LANGUAGES[0]
    mode: Mode = "live"
    root: str = ""
    """Path under which live pages are mounted, without a slash at its end."""
    tabs: tuple[Place, ...] = tuple(map(Place, TABS))
    """What the bar at the top leads to."""
    written: frozenset[Place] | None = None
    """The places that have a page; None: all."""

    def __post_init__(self) -> None:
        if self.language not in LANGUAGES:
            raise InputError(
                f"lang: {self.language!r:.20} is no language of these pages; take {' or '.join(LANGUAGES)}"
            )

    def href(self, place: Place, language: str = "") -> str:
        """The link to a place; empty where that has no page."""
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
        """The link to one of `ASSETS`."""
        if self.mode == "live":
            return f"{self.root}/assets/{name}"
        return relpath(f"assets/{name}", dirname(static_path(self.at, self.language)))

    def text(self, key: str, **values: object) -> str:
        """The text of this key in the frame's language, with its values filled in; numbers have their commas."""
        return _filled_in(key, self.language, values)

    @property
    def tab(self) -> str:
        """Which of the tabs this page is under."""
        return "steward" if self.at.name in ("profile", "version") else "sessions" if self.at.session else self.at.name

    def moved(self, at: Place) -> Frame:
        """The same around another page."""
        return replace(self, at=at)

    def page(self, template: str, **values: Any) -> str:
        """A whole page out of this template, which extends ``base.html.j2``; `f` is the frame there, `t` its texts."""
        return render(template, f=self, t=self.text, languages=NAMES, policy=POLICY, **values)


def _filled_in(key: str, language: str, values: Mapping[str, object]) -> str:
    """A page that is one file by itself has no frame, and is in the first language."""
    shown = {name: f"{value:,}" if isinstance(value, int) else value for name, value in values.items()}
    return texts()[key][language].format_map(shown)


def static_path(place: Place, language: str) -> str:
    """The file of a place, below the folder of all of them."""
    page = f"-{place.page}" if place.page > 1 else ""
    return f"{language}/{_filled(ROUTES[place.name].static, place, part_of(place.session))}{page}.html"


def _filled(pattern: str, place: Place, session: str) -> str:
    return pattern.format(session=session, number=place.number, since=place.since)


def place_of(path: str, asked: Mapping[str, str]) -> Place | None:
    """The place that a live path names, below where pages are mounted; None: it is no page.

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
    """Every text of the frame, by key and language."""
    read = YAML(typ="safe").load((files(__package__) / "texts.yaml").read_text(encoding="utf-8"))
    return {key: dict(zip(LANGUAGES, both, strict=True)) for key, both in read.items()}


# -- templates ----------------------------------------------------------------------------------------------------

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e0fff]"
)
"""Controls but tab and line feed, directional formatting, what has no width (not the joiners of scripts and emoji),
lone surrogates."""


def seen(text: object) -> Markup:
    """A text of anybody's, escaped; what a reader could not see is written out.

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
    """The same for an attribute or a title: what could not be seen is written out, and nothing is marked."""
    return _UNSEEN.sub(lambda match: match[0].encode("unicode_escape", "surrogatepass").decode(), str(text))


def _ordinal(ref: str) -> int:
    """Of the message that a reference names; 0: it names none."""
    match = re.match(r"§([1-9]\d{0,11})(?:\.\d+(?:-\d+)?)?$", ref, re.ASCII)
    return int(match[1]) if match else 0


MESSAGES, CALLS = 50, 200
"""Messages of a session, and calls, on one page."""


def page_of_message(ordinal: int) -> int:
    """The page of the log that has this message."""
    return (ordinal - 1) // MESSAGES + 1


def page_of_call(number: int, count: int, size: int = CALLS) -> int:
    """The page of the timeline that has this call of so many; page 1 has the newest."""
    return (count - number) // size + 1


def window(numbers: int, at: int, beside: int = 3) -> Sequence[int]:
    """Numbers for a bar of pages: the first, the last, and those beside this one; 0 stands for pages left out."""
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
    "place": Place,
    "window": window,
    "page_of": page_of_message,
    "page_with": page_of_call,
}
_templates.filters |= {"seen": seen, "plain": plain, "number": lambda value: f"{value:,}", "ordinal": _ordinal}


def render(name: str, **values: Any) -> str:
    """Fill the template of this name; the same text for the same values."""
    return _templates.get_template(name).render(values)


def asset(name: str) -> bytes:
    """What one of `ASSETS` holds; raises `KeyError` for another name."""
    if name not in ASSETS:
        raise KeyError(name)
    folder = "templates" if name == "pages.css" else "assets"
    return (files(__package__) / folder / name.replace("pages.css", "style.css")).read_bytes()

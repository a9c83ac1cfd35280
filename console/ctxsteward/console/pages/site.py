"""The pages of one tenant, live (`Site.answer`) and as files (`Site.write`); both use the table `VIEWS`.

A server mounts `answer` under any path; it returns status, media type and bytes for a path and its query. A written
folder opens from the disk: ``index.html`` leads to the first language, each language has its own folder, and the files
that pages load are in ``assets``. The same store gives the same bytes. Links lead only to written pages: in a long
session only the newest calls have their own pages, while the timeline lists all calls.

A live page reads its session anew. Writing reads each session once. A missing page is answered with status 404, one
that cannot be shown with 422; each gives the reason in one line.

`Site.write` raises `InputError` if the folder contains other files or something cannot be read.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from ctxsteward.envelope import Store
from ctxsteward.envelope.cascade.continuity import handoff_of
from ctxsteward.schemas import ContextError, InputError, ReferenceNotFound
from ctxsteward.schemas.errors import without_secrets

from ..steward.versions import texts
from . import timeline as drawn
from .evals import history_contents
from .frame import ASSETS, CALLS, LANGUAGES, MESSAGES, TABS, Frame, Place, asset, place_of, static_path
from .health import COMPACTS, WARNS, health_of_call
from .inspector import compare_calls, inspect_call
from .people import person_of
from .profiles import evidence_links, governed_profile, profile_rows, text_changes, version_difference
from .sessions import (
    LOSSES,
    SessionSource,
    loss_kinds,
    loss_rows,
    losses_page,
    messages_page,
    pages_of,
    session_ids,
    sessions_page,
    whole_message,
)

TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".txt": "text/plain; charset=utf-8",
    ".svg": "image/svg+xml",
}
HTML = "text/html; charset=utf-8"
DONE = frozenset(
    (
        "approve",
        "accept",
        "more",
        "reject",
        "edit",
        "promote",
        "rollback",
        "unchanged",
        "prune",
        "not_pruned",
    )
)
"""Results of an action that a page may confirm."""
SAMPLES = ("idle", "0.42", "0.84", "0.96", "offline")
"""States of the widget, which its page shows as samples."""
HANDOFF_MOMENT = "1970-01-01T00:00:00Z"
"""Date of every handoff here: pages do not show it, and the same store must give the same bytes."""
STATIC_CALLS, STATIC_LOSSES = 40, 5000
"""Calls of a session that get their own pages in files, and losses on one page of a file."""
MARK_FILE = "written-by-ctxsteward-view.txt"
"""File that lists the files written into a folder. A folder with it may be written again; listed files may go."""
_OWN = re.compile(r"index\.html|(?:assets|en|zh)/(?!.*(?:^|/)\.{1,2}(?:/|$))[A-Za-z0-9%_.~/-]+")


class Answer(NamedTuple):
    """Answer to a request for a page."""

    status: int
    kind: str
    """Media type."""
    body: bytes


@dataclass(frozen=True, kw_only=True)
class Site:
    """The data and settings from which pages are made."""

    store: Store
    tenant: str = "default"
    root: str = ""
    """Path under which live pages are mounted, without a slash at its end."""
    tabs: tuple[Place, ...] = tuple(map(Place, TABS))
    sessions: tuple[str, ...] | None = None
    """Ids of the sessions that are shown; None for all of the tenant's."""
    history: Path | None = None
    """File of eval results (`ctxsteward evals run --history`)."""
    price: float | None = None
    """Dollars for a million prompt tokens."""
    may: frozenset[str] = frozenset()
    """Permissions of the user on live pages: `write` (compact), `steward` (decide)."""
    given: Mapping[str, Any] = field(default_factory=dict)
    """Values that a service supplies for the requested page: `health`, `compaction`, `problem`, `form`."""
    kept: dict[str, SessionSource] | None = field(default=None, repr=False)
    """Cache of the sessions that were read; None if each page reads anew."""

    def reading(self, id: str) -> SessionSource:
        """Return the data of a session; raise `ReferenceNotFound` if it is not shown here."""
        if self.kept is not None and id in self.kept:
            return self.kept[id]
        if self.sessions is not None and id not in self.sessions:
            raise ReferenceNotFound(f"session {id!r:.80}", "", "it is not among those that are shown")
        read = SessionSource(self.store, self.tenant, id)
        if self.kept is not None:
            self.kept[id] = read
        return read

    # -- live ---------------------------------------------------------------------------------------------------

    def answer(self, path: str, asked: Mapping[str, str]) -> Answer:
        """Answer a request for a path below `root`."""
        if path.startswith("assets/"):
            name = path.removeprefix("assets/")
            if name in ASSETS:
                return Answer(200, TYPES[Path(name).suffix], asset(name))
        language = asked.get("lang", "")
        place = Place("sessions") if not path.strip("/") else place_of(path, asked)
        frame = Frame(
            at=place or Place("sessions"),
            language=language if language in LANGUAGES else LANGUAGES[0],
            root=self.root,
            tabs=self.tabs,
        )
        if place is None or place.name not in VIEWS:
            return _failed(frame, 404, "")
        try:
            return Answer(200, HTML, self.page(frame))
        except (KeyError, FileNotFoundError) as error:
            return _failed(frame, 404, str(error))
        except ContextError as error:
            return _failed(frame, 422, str(error))

    def page(self, frame: Frame) -> bytes:
        """Render the page at the frame's place."""
        template, values = VIEWS[frame.at.name]
        return frame.page(template, **values(self, frame)).encode()

    # -- files --------------------------------------------------------------------------------------------------

    def write(self, folder: Path, *, calls: int | None = STATIC_CALLS) -> int:
        """Write the pages as files, and return their number. The newest `calls` of a session (None: all) get pages."""
        earlier = _written_before(folder)
        if self.history is not None:
            history_contents(self.history)  # raises before anything is written
        site = replace(self, kept={})
        places = tuple(site._places(calls))
        frame = Frame(at=Place("sessions"), mode="static", tabs=self.tabs, written=frozenset(places))
        names = []
        for name, body in site._files(frame, places):
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(body)
            names.append(name)
        for name in earlier.difference(names):
            (folder / name).unlink(missing_ok=True)
        (folder / MARK_FILE).write_text("".join(f"{name}\n" for name in sorted(names)), encoding="utf-8")
        return sum(name.endswith(".html") for name in names)

    def _files(self, frame: Frame, places: Sequence[Place]) -> Iterator[tuple[str, bytes]]:
        """Yield the name and content of each file."""
        yield from ((f"assets/{name}", asset(name)) for name in ASSETS if not name.startswith("htmx"))
        yield "index.html", frame.page("front.html.j2", to="index.html").encode()
        for place in places:
            here = frame.moved(place)
            template, made = VIEWS[place.name]
            values = made(self, here)  # read once for all languages
            for language in LANGUAGES:
                yield static_path(place, language), replace(here, language=language).page(template, **values).encode()

    def _places(self, calls: int | None) -> Iterator[Place]:
        """Yield all pages to write, in their order."""
        ids = session_ids(self.store, self.tenant, self.sessions)
        yield from (
            Place("sessions", page=page)
            for page in range(1, sessions_page(self.store, self.tenant, only=ids).pages + 1)
        )
        if self.history is not None:
            yield Place("evals")
        yield Place("widget")
        if self.sessions is None:
            yield from self._governed_places()
        for id in ids:
            read = self.reading(id)
            count = len(read.calls)
            yield from (Place("timeline", id, page=page) for page in range(1, pages_of(count, CALLS) + 1))
            yield Place("health", id)
            for number in range(1 if calls is None else max(1, count - calls + 1), count + 1):
                if read.calls[number - 1].prompt_tokens:
                    yield Place("call", id, number)
                    if number > 1 and read.calls[number - 2].prompt_tokens:
                        yield Place("diff", id, number, number - 1)
            losses = losses_page(loss_rows(read.session, ()), size=STATIC_LOSSES)
            yield from (Place("losses", id, page=page) for page in range(1, losses.pages + 1))
            for page in range(1, pages_of(len(read.session), MESSAGES) + 1):
                yield Place("messages", id, page=page)
                shown = messages_page(read.session, {}, page=page)
                yield from (Place("message", id, message.ordinal) for message in shown.rows if message.is_cut)

    def _governed_places(self) -> Iterator[Place]:
        rows = profile_rows(self.store, self.tenant, with_pages=True)
        if rows:
            yield Place("steward")
        for name, entry in rows:
            pages = governed_profile(self.store, self.tenant, name).questions.pages
            yield from (Place("profile", name, page=page) for page in range(1, pages + 1))
            numbers = range(max(2, entry.version - STATIC_CALLS + 1), entry.version + 1)
            yield from (Place("version", name, number, number - 1) for number in numbers)


def _written_before(folder: Path) -> set[str]:
    """Return the files that an earlier run wrote into the folder; raise `InputError` if it contains others."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: a file; name a folder for the pages")
    mark = folder / MARK_FILE
    if not mark.is_file():
        if folder.is_dir() and any(folder.iterdir()):
            raise InputError(f"{folder}: holds other files; name an empty folder, or one that this command wrote")
        return set()
    names = mark.read_text(encoding="utf-8", errors="replace").split("\n")
    return {name for name in names if _OWN.fullmatch(name)}


def _failed(frame: Frame, status: int, why: str) -> Answer:
    page = frame.page("failure.html.j2", status=status, why=without_secrets(why))
    return Answer(status, HTML, page.encode())


# -- what each page shows -----------------------------------------------------------------------------------------


def _sessions(site: Site, frame: Frame) -> dict[str, Any]:
    query = dict(frame.at.query).get("q", "")
    shown = sessions_page(site.store, site.tenant, query=query, page=frame.at.page, only=site.sessions)
    return {"shown": shown, "tenant": site.tenant, "query": query}


def _timeline(site: Site, frame: Frame) -> dict[str, Any]:
    read = site.reading(frame.at.session)
    shown = drawn.timeline_page(read.session.id, read.calls, page=frame.at.page, price=site.price)
    return {
        "shown": shown,
        "tokens": drawn.tokens_plot(shown),
        "cost": drawn.cost_plot(shown),
        "overview": drawn.overview_plot(shown),
        "messages": len(read.session),
    }


def _call(site: Site, frame: Frame) -> dict[str, Any]:
    read = site.reading(frame.at.session)
    shown = inspect_call(site.store, read.session.id, frame.at.number, tenant=site.tenant, calls=read.calls)
    return {
        "shown": shown,
        "priced": drawn.priced_call(shown.call, site.price),
        "bar": drawn.prompt_bar(shown),
        "bars": drawn.section_bars(shown),
    }


def _diff(site: Site, frame: Frame) -> dict[str, Any]:
    read, at = site.reading(frame.at.session), frame.at
    shown = compare_calls(site.store, read.session.id, at.number, at.since, tenant=site.tenant, calls=read.calls)
    counts = {}
    for status in ("kept", "new", "changed", "dropped"):
        tokens = [unit.tokens for unit in (*shown.shown, *shown.dropped) if unit.status == status]
        counts[status] = (len(tokens), sum(tokens))
    return {"shown": shown, "counts": counts}


def _losses(site: Site, frame: Frame) -> dict[str, Any]:
    read, asked = site.reading(frame.at.session), dict(frame.at.query)
    query, kind, rows = asked.get("q", ""), asked.get("kind", ""), loss_rows(read.session, read.calls)
    size = STATIC_LOSSES if frame.mode == "static" else LOSSES
    shown = losses_page(rows, query=query, kind=kind, page=frame.at.page, size=size)
    return {"shown": shown, "query": query, "kind": kind, "kinds": loss_kinds(rows)}


def _messages(site: Site, frame: Frame) -> dict[str, Any]:
    read = site.reading(frame.at.session)
    return {"shown": messages_page(read.session, read.spans, page=frame.at.page)}


def _message(site: Site, frame: Frame) -> dict[str, Any]:
    read = site.reading(frame.at.session)
    return {"message": whole_message(read.session, frame.at.number, read.spans)}


def _health(site: Site, frame: Frame) -> dict[str, Any]:
    read, given = site.reading(frame.at.session), site.given
    shown = given.get("health") or health_of_call(read.session, read.calls[-1] if read.calls else None)
    handoff = handoff_of(read.session, now=lambda: HANDOFF_MOMENT) if read.session.state.task else None
    return {
        "shown": shown,
        "compaction": given.get("compaction"),
        "handoff": handoff,
        "warns": WARNS,
        "compacts": COMPACTS,
        "calls": len(read.calls),
    } | _acting(site, frame)


def _person(site: Site, frame: Frame) -> dict[str, Any]:
    shown = person_of(site.store, site.tenant, frame.at.session, site.sessions)
    return {"shown": shown, "quoted": shlex.quote(shown.name)}


def _acting(site: Site, frame: Frame) -> dict[str, Any]:
    """Return the user's permissions, the action just done, and the refusal of an action."""
    done = dict(frame.at.query).get("done", "")
    return {
        "may": site.may if frame.mode == "live" else frozenset(),
        "done": done if done in DONE else "",
        "problem": without_secrets(site.given.get("problem", "")),
        "form": site.given.get("form", {}),
    }


def _profile(site: Site, frame: Frame) -> dict[str, Any]:
    shown = governed_profile(site.store, site.tenant, frame.at.session, page=frame.at.page)
    links = evidence_links(site.store, site.tenant, lambda id: site.sessions is None or id in site.sessions)
    return {"shown": shown, "ordinal_in": links} | _acting(site, frame)


def _version(site: Site, frame: Frame) -> dict[str, Any]:
    at = frame.at
    found = version_difference(site.store, site.tenant, at.session, at.since, at.number)
    return {"found": found, "changes": text_changes(texts(found.old), texts(found.new))}


def _widget(site: Site, frame: Frame) -> dict[str, Any]:
    live = frame.mode == "live"
    ids = session_ids(site.store, site.tenant, site.sessions) if live else []
    asked = dict(frame.at.query).get("session", "")
    return {"session": asked if asked in ids else ids[0] if ids else "", "samples": SAMPLES, "source": site.root}


VIEWS: dict[str, tuple[str, Callable[[Site, Frame], dict[str, Any]]]] = {
    "sessions": ("sessions.html.j2", _sessions),
    "timeline": ("timeline.html.j2", _timeline),
    "call": ("call.html.j2", _call),
    "diff": ("diff.html.j2", _diff),
    "losses": ("losses.html.j2", _losses),
    "messages": ("messages.html.j2", _messages),
    "message": ("message.html.j2", _message),
    "health": ("health.html.j2", _health),
    "person": ("person.html.j2", _person),
    "evals": ("evals_page.html.j2", lambda site, frame: history_contents(site.history, frame.say)),
    "steward": (
        "profiles.html.j2",
        lambda site, frame: {"rows": profile_rows(site.store, site.tenant), "tenant": site.tenant},
    ),
    "profile": ("profile.html.j2", _profile),
    "version": ("version.html.j2", _version),
    "widget": ("widget.html.j2", _widget),
}
"""The template of each page, and the function that makes its values."""

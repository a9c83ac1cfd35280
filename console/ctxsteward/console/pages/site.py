"""The pages of one tenant, live (`Site.answer`) and as files (`Site.write`); both make them by the table `VIEWS`.

A server mounts `answer` under any path; it gives the status, the type and the bytes for a path and its query. A folder
of files opens from the disk: ``index.html`` leads to the first language, each language has its own folder, ``assets``
lie beside them. The same store gives the same bytes. Only what is written has links.

Raises `InputError` where the folder holds something else; `OSError` where it cannot be written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from ctxsteward.envelope import Store

from .frame import ASSETS, LANGUAGES, Frame, Place, asset, place_of, static_path, window
from .sessions import sessions_page

TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".txt": "text/plain; charset=utf-8",
}
HTML = "text/html; charset=utf-8"


class Answer(NamedTuple):
    """To a request for a page."""

    status: int
    kind: str
    """Media type."""
    body: bytes


@dataclass(frozen=True, kw_only=True)
class Site:
    """What pages are made from."""

    store: Store
    tenant: str = "default"
    root: str = ""
    """Path under which live pages are mounted, without a slash at its end."""
    tabs: tuple[Place, ...] = (Place("sessions"), Place("evals"))
    sessions: tuple[str, ...] | None = None
    """Those that are shown; None: all of the tenant's."""

    def answer(self, path: str, asked: Mapping[str, str]) -> Answer:
        """What a request below `root` gets."""
        if path.startswith("assets/"):
            name = path.removeprefix("assets/")
            return Answer(200, TYPES[Path(name).suffix], asset(name)) if name in ASSETS else _missing()
        place = Place("sessions") if not path.strip("/") else place_of(path, asked)
        if place is None or place.name not in VIEWS:
            return _missing()
        language = asked.get("lang", LANGUAGES[0])
        frame = Frame(
            at=place, language=language if language in LANGUAGES else LANGUAGES[0], root=self.root, tabs=self.tabs
        )
        return Answer(200, HTML, VIEWS[place.name](self, frame).encode())

    def write(self, folder: Path) -> int:
        """Write the pages as files; how many that are."""
        places = frozenset({Place("sessions")})
        files = {f"assets/{name}": asset(name) for name in ASSETS if not name.startswith("htmx")}
        for language in LANGUAGES:
            for place in sorted(places):
                frame = Frame(at=place, language=language, mode="static", tabs=self.tabs, written=places)
                files[static_path(place, language)] = VIEWS[place.name](self, frame).encode()
        for name, body in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(body)
        return len(files)


def _missing() -> Answer:
    return Answer(404, "text/plain; charset=utf-8", b"no such page\n")


def _sessions(site: Site, frame: Frame) -> str:
    asked = dict(frame.at.query)
    shown = sessions_page(site.store, site.tenant, query=asked.get("q", ""), page=frame.at.page, only=site.sessions)
    return frame.page("sessions.html.j2", shown=shown, numbers=window(shown.pages, shown.page))


VIEWS: dict[str, Callable[[Site, Frame], str]] = {"sessions": _sessions}
"""What makes the pages of each name."""

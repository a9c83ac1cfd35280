"""Which pages the site has, and how a link that works in the repository works there too.

A page is a Markdown file of the repository or one that the build makes. Files in `docs/` are found, not listed: a new
guide, note or example is on the site with the next build. `Site.staged` gives a page's text for the site: links to
other pages lead to them, links to files that are no pages lead to the repository on the web, a flow chart is drawn.

Raises `BrokenLink` for a relative link or an anchor that leads nowhere.
Source of the anchors: the way GitHub names headings (lower case, punctuation out, blanks to hyphens, ``-1`` for twins).
"""

from __future__ import annotations

import ast
import posixpath
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parents[2]
START = "README.md"
PROJECT_PAGES = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md", "ARCHITECTURE.md")
FIRST_PAGES = ("index", "tutorial", "how-to", "install", "when-not-to-use-it")
"""What a new user reads."""
FIRST_GUIDES = (
    "choose-a-budget",
    "guide-chat-service",
    "guide-fastapi",
    "guide-integrations",
    "troubleshooting",
    "keep-a-store",
)
"""Guides that most users need; others follow by name."""
MAINTAINED = frozenset(("architecture", "benchmarks", "contributing", "sealed-split"))
"""Pages for who works on the code, besides the design notes. Any other page that is no guide is a concept."""

FOLDERS = {"reference/api": "Python", "reference/schemas": "JSON Schemas", "design": "Design notes"}
"""Groups within a group."""

FENCE = re.compile(r"^(?P<mark>```+|~~~+)(?P<info>[^\n]*)\n(?P<body>.*?)^(?P=mark)[ ]*$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)
INDENTED = re.compile(r"(?:(?<=\n\n)|\A)(?:(?: {4}|\t)[^\n]*(?:\n|\Z)|[ \t]*\n(?= {4}|\t))+")
LINK = re.compile(r"(?P<before>!?\[(?:[^\[\]]|\[[^\[\]]*\])*\]\()(?P<target>[^()\s]+)(?P<after>(?:\s+\"[^\"]*\")?\))")
HEADING = re.compile(r"^(#{1,6})[ \t]+(.+?)[ \t]*#*[ \t]*$", re.MULTILINE)


class BrokenLink(ValueError):
    """A relative link or an anchor of a page that leads nowhere."""


class Link(NamedTuple):
    """One link of a page, as written."""

    page: str
    """Path in the repository."""
    target: str
    line: int


class SitePage(NamedTuple):
    """A page of the site."""

    path: str
    """On the site: ``guide-chat-service.md``."""
    title: str
    text: str
    source: str | None
    """Path in the repository; None: made by the build."""


def outside_code(text: str, change: Callable[[str], str]) -> str:
    """The text with `change` done to what is neither a fence, nor indented code, nor a code span."""
    marks: list[str] = []

    def hidden(found: re.Match[str]) -> str:
        marks.append(found[0])
        return f"\x00{len(marks) - 1}\x00"

    for pattern in (FENCE, INDENTED, CODE):
        text = pattern.sub(hidden, text)
    text = change(text)
    while "\x00" in text:
        text = re.sub("\x00(\\d+)\x00", lambda found: marks[int(found[1])], text)
    return text


def links_of(page: str, text: str) -> Iterator[Link]:
    """Each link that is no code; lines count from 1."""
    blanked = FENCE.sub(lambda found: "\n" * found[0].count("\n"), text)
    blanked = INDENTED.sub(lambda found: "\n" * found[0].count("\n"), blanked)
    blanked = CODE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), blanked)
    for found in LINK.finditer(blanked):
        yield Link(page, found["target"], blanked[: found.start()].count("\n") + 1)


def slug(heading: str) -> str:
    """The anchor of a heading.

    >>> slug("Runs: `playing` a [cascade](x.md)"), slug("What is §12_a?")
    ('runs-playing-a-cascade', 'what-is-12_a')
    """
    said = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").replace("*", "")
    said = unicodedata.normalize("NFC", said).strip().lower()
    return re.sub(r"[^\w\- ]", "", said).replace(" ", "-")


def anchors_of(text: str) -> frozenset[str]:
    """The anchors of a page's headings."""
    plain = FENCE.sub("", text)
    seen: Counter[str] = Counter()
    found = []
    for _, heading in HEADING.findall(plain):
        name = slug(heading)
        found.append(f"{name}-{seen[name]}" if seen[name] else name)
        seen[name] += 1
    return frozenset((*found, *re.findall(r'<a (?:id|name)="([^"]+)"', plain)))


def title_of(text: str, otherwise: str) -> str:
    """A page's first heading, without what its group says already."""
    found = HEADING.search(FENCE.sub("", text))
    title = found[2].replace("`", "") if found else otherwise
    said = re.sub(r"^Guide:? (?:to )?", "", title)
    return said[:1].upper() + said[1:]


def repository_pages() -> dict[str, str]:
    """Each Markdown file that is a page: its path in the repository and on the site."""
    pages = {START: "index.md"}
    pages |= {name: name.lower().replace("_", "-") for name in PROJECT_PAGES if (ROOT / name).is_file()}
    for path in sorted((ROOT / "docs").rglob("*.md")):
        inside = path.relative_to(ROOT / "docs")
        if inside.parts[0] != "site":
            pages[f"docs/{inside.as_posix()}"] = inside.as_posix()
    return pages


def examples() -> list[Path]:
    """Files of `docs/examples`, folders in it too."""
    found = sorted(path for path in (ROOT / "docs" / "examples").rglob("*") if path.is_file())
    return [path for path in found if path.suffix in (".py", ".yml", ".yaml", ".jsonl", ".toml", ".sh")]


def example_pages() -> Iterator[SitePage]:
    """A page for each runnable example, and one that lists them."""
    rows = []
    for path in examples():
        source = path.relative_to(ROOT).as_posix()
        text = path.read_text(encoding="utf-8")
        said = (ast.get_docstring(ast.parse(text)) or "") if path.suffix == ".py" else ""
        said = re.sub(r"``(.+?)``", r"`\1`", said)
        name = path.relative_to(ROOT / "docs" / "examples").as_posix()
        kind = {".py": "python", ".jsonl": "json", ".toml": "toml", ".sh": "sh"}.get(path.suffix, "yaml")
        page = f"examples/{name}.md"
        body = f"# {name}\n\n{said}\n\n```{kind}\n{text.rstrip()}\n```\n"
        yield SitePage(page, name, body, source)
        rows.append(f"| [{name}]({name}.md) | {said.splitlines()[0] if said else ''} |")
    listed = "\n".join(
        [
            "# Examples",
            "",
            "Each Python file runs as it is, and a test compares what it prints.",
            "",
            "| file | shows |",
            "|---|---|",
            *rows,
        ]
    )
    yield SitePage("examples/index.md", "Examples", listed + "\n", "docs/examples")


def design_index(pages: dict[str, str]) -> SitePage:
    """The list of design notes."""
    rows = ["# Design notes", "", "Goal, decision, what was rejected, and the test that guards it.", ""]
    for source, path in pages.items():
        if path.startswith("design/"):
            text = (ROOT / source).read_text(encoding="utf-8")
            rows.append(f"- [{title_of(text, path)}]({path.removeprefix('design/')})")
    return SitePage("design/index.md", "Design notes", "\n".join(rows) + "\n", "docs/design")


def _fence(found: re.Match[str]) -> str:
    """A chart drawn; of other fences the language alone, for the site's Markdown takes no more ("python no-run")."""
    language, *more = found["info"].split() or [""]
    if language == "mermaid":
        return flow_chart(found["body"])
    return found[0].replace(found["info"], language, 1) if more else found[0]


def _anchored(cell: re.Match[str]) -> str:
    """The first cell of a row, with an anchor for each finding or error that it names."""
    named = re.sub(r"`(\w+)`", r'<a id="\1"></a>`\1`', cell[1])
    return f"| {named} |"


class Site:
    """All pages, and where links lead."""

    def __init__(self, made: list[SitePage], repository: str) -> None:
        """`made`: what the build makes of code; `repository`: address of a file of it on the web, without the path."""
        sources = repository_pages()
        self.repository = repository
        self.pages: dict[str, SitePage] = {}
        for source, path in sources.items():
            text = (ROOT / source).read_text(encoding="utf-8")
            self.pages[path] = SitePage(path, title_of(text, path), text, source)
        for page in (*example_pages(), design_index(sources), *made):
            self.pages[page.path] = page
        self.of_source = {page.source: page.path for page in self.pages.values() if page.source is not None}

    def staged(self, page: SitePage) -> str:
        """Its text for the site."""
        text = FENCE.sub(_fence, page.text)
        if page.path == "troubleshooting.md":
            text = re.sub(r"^\| (`.*?) \|", _anchored, text, flags=re.MULTILINE)
        if page.source is None or page.path.endswith("/index.md") or page.path.startswith("examples/"):
            return text
        return outside_code(text, lambda plain: LINK.sub(lambda found: self._moved(page, found), plain))

    def _moved(self, page: SitePage, found: re.Match[str]) -> str:
        target, hash_, anchor = found["target"].partition("#")
        if "://" in target or target.startswith("mailto:") or not target:
            return found[0]
        assert page.source is not None
        wanted = posixpath.normpath(posixpath.join(posixpath.dirname(page.source), target))
        return f"{found['before']}{self._place(page, wanted, target)}{hash_}{anchor}{found['after']}"

    def _place(self, page: SitePage, wanted: str, target: str) -> str:
        here = posixpath.dirname(page.path)
        if wanted in self.of_source:
            return posixpath.relpath(self.of_source[wanted], here or ".")
        if wanted.startswith("docs/img/"):
            return posixpath.relpath(wanted.removeprefix("docs/"), here or ".")
        if not (ROOT / wanted).exists():
            raise BrokenLink(f"{page.source}: {target} leads nowhere")
        return f"{self.repository}/{wanted}"

    def navigation(self) -> list[dict[str, object]]:
        """Groups of pages, in the order of the site."""
        groups: dict[str, list[str]] = {
            name: [] for name in ("Start", "Guides", "Concepts", "Reference", "Examples", "Project", "Maintainers")
        }
        for page in self.pages.values():
            groups[self._group(page)].append(page.path)
        order = {f"{name}.md": at for at, name in enumerate((*FIRST_PAGES, *FIRST_GUIDES))}
        nav: list[dict[str, object]] = []
        for name, paths in groups.items():
            paths.sort(key=lambda path: (order.get(path, len(order)), not path.endswith("index.md"), path))
            if paths:
                nav.append({name: self._entries(paths)})
        return nav

    def _entries(self, paths: list[str]) -> list[dict[str, object]]:
        """Pages below one another; those of a folder of the reference in a group of their own."""
        listed: list[dict[str, object]] = []
        inside: dict[str, list[dict[str, object]]] = {}
        for path in paths:
            title = self.pages[path].title
            folder = FOLDERS.get(posixpath.dirname(path))
            if folder is None:
                listed.append({title: path})
            else:
                inside.setdefault(folder, []).append({title: path})
        for name, entries in inside.items():
            listed.append({name: entries})
        return listed

    def _group(self, page: SitePage) -> str:
        folder, stem = posixpath.dirname(page.path), Path(page.path).stem
        if page.path in {f"{name}.md" for name in FIRST_PAGES}:
            return "Start"
        if folder.startswith("design") or stem in MAINTAINED:
            return "Maintainers"
        if folder.startswith(("reference", "examples")):
            return folder.partition("/")[0].capitalize()
        if page.source in PROJECT_PAGES:
            return "Project"
        return "Guides" if stem.startswith("guide-") or stem in (*FIRST_GUIDES, "deploy") else "Concepts"


# -- flow charts ---------------------------------------------------------------------------------------------------

BOX = re.compile(r'^\s*(\w+)\["<b>(.*?)</b><br>(.*?)"\]\s*$', re.MULTILINE)
ARROW = re.compile(r"^\s*(\w+) (-->|-\.->) (\w+)\s*$", re.MULTILINE)
WIDE, HIGH, GAP, ROW = 280, 46, 24, 84


def flow_chart(text: str) -> str:
    """A ``flowchart TD`` of named boxes and arrows as inline SVG: no script has to be fetched to see it."""
    boxes = {name: (head, about) for name, head, about in BOX.findall(text)}
    arrows = [(above, kind, below) for above, kind, below in ARROW.findall(text)]
    if not boxes or {name for above, _, below in arrows for name in (above, below)} - set(boxes):
        raise ValueError("a mermaid fence that is no flow chart of named boxes: draw it, or show it as text")
    level = dict.fromkeys(boxes, 0)
    for _ in boxes:  # the longest way down to each box
        for above, kind, below in arrows:
            if kind == "-->":
                level[below] = max(level[below], level[above] + 1)
    rows: dict[int, list[str]] = {}
    for name in boxes:
        rows.setdefault(level[name], []).append(name)
    width = max(len(row) for row in rows.values()) * (WIDE + GAP) + GAP
    place = {
        name: (width / 2 + (at - (len(row) - 1) / 2) * (WIDE + GAP), GAP + depth * ROW)
        for depth, row in rows.items()
        for at, name in enumerate(row)
    }
    parts = [f'<svg viewBox="0 0 {width} {GAP + (max(rows) + 1) * ROW}" role="img" style="max-width:{width}px">']
    parts.append(
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" '
        'orient="auto"><path d="M0 0L8 4L0 8z" fill="currentColor"/></marker></defs>'
    )
    for above, kind, below in arrows:
        (x1, y1), (x2, y2) = place[above], place[below]
        dashes = "" if kind == "-->" else ' stroke-dasharray="4 4"'
        parts.append(
            f'<path d="M{x1:.0f} {y1 + HIGH:.0f}L{x2:.0f} {y2:.0f}" fill="none" stroke="currentColor"{dashes} '
            'marker-end="url(#tip)"/>'
        )
    for name, (x, y) in place.items():
        head, about = boxes[name]
        parts.append(
            f'<rect x="{x - WIDE / 2:.0f}" y="{y}" width="{WIDE}" height="{HIGH}" rx="6" fill="none" '
            'stroke="currentColor"/>'
        )
        parts.append(
            f'<text x="{x:.0f}" y="{y + 19}" text-anchor="middle" font-weight="600" font-size="14" '
            f'fill="currentColor">{escape(head)}</text>'
        )
        parts.append(
            f'<text x="{x:.0f}" y="{y + 36}" text-anchor="middle" font-size="12" '
            f'fill="currentColor">{escape(about)}</text>'
        )
    return f"<div>{''.join(parts)}</svg></div>"

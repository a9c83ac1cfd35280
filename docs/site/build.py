"""Build the documentation: Markdown of the repository and of the code in, a site of plain files out.

    python docs/site/build.py --zensical .venv-docs/bin/zensical --out site    # what `make docs` runs
    python docs/site/build.py --out site --check                               # judge a site that was built

Strict: a warning of the builder, a link or anchor that leads nowhere, and anything that a browser would fetch from
another host end the build. Writes `llms.txt` (what there is, one line a page) and `llms-full.txt` (the text of all) and
each page's Markdown beside it. Exit code 1 and the places where something is wrong.
Source: the form of llms.txt as proposed at llmstxt.org.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pages import CODE, ROOT, BrokenLink, Site
from reference import reference_pages

STAGED = ROOT / ".site"
"""Where the builder finds pages and configuration."""
LOADS = {
    **dict.fromkeys(("img", "script", "iframe", "source", "video", "audio", "embed", "input"), "src"),
    **dict.fromkeys(("use", "image"), "href"),
    "object": "data",
}
"""What a browser fetches without being asked; of `link` see `LOADED_RELATIONS`."""
LOADED_RELATIONS = frozenset(
    ("stylesheet", "icon", "shortcut", "preload", "modulepreload", "prefetch", "preconnect", "dns-prefetch", "manifest")
)
NEEDS_SCRIPTS_FROM_ELSEWHERE = frozenset(("mermaid", "arithmatex", "glightbox", "pyodide"))
"""Classes for which the theme's script fetches another."""


def project() -> dict[str, object]:
    table: dict[str, object] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return table


def settings(site: Site, url: str, description: str, repository: str) -> str:
    """The builder's configuration. No `repo_url`: with one, the theme asks that host for its stars."""
    nav = ",\n  ".join(inline(entry) for entry in site.navigation())
    return f"""[project]
site_name = "ctxsteward"
site_url = {json.dumps(url)}
site_description = {json.dumps(description)}
docs_dir = "pages"
site_dir = "built"
use_directory_urls = true
nav = [
  {nav},
  {{"Source" = {json.dumps(repository)}}}
]
[project.theme]
custom_dir = "theme"
language = "en"
font = false
features = ["content.code.copy", "navigation.footer", "navigation.indexes", "navigation.top", "navigation.path",
  "navigation.prune", "search.highlight", "toc.follow"]
[[project.theme.palette]]
media = "(prefers-color-scheme: light)"
scheme = "default"
[[project.theme.palette]]
media = "(prefers-color-scheme: dark)"
scheme = "slate"
[project.markdown_extensions]
tables = {{}}
sane_lists = {{}}
toc.permalink = true
toc.slugify = {{object = "pymdownx.slugs.slugify", kwds = {{case = "lower"}}}}
pymdownx.highlight.pygments_lang_class = true
pymdownx.superfences = {{}}
[project.validation]
invalid_links = true
invalid_link_anchors = true
"""


def inline(value: object) -> str:
    """A value of a TOML document on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {inline(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(inline, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def for_builder(text: str) -> str:
    """GitHub's Markdown as this builder wants it: a blank line before a list, no backslash before a bar in code."""
    lines: list[str] = []
    fence = None
    for line in text.splitlines():
        mark = re.match(r"(```+|~~~+)", line)
        if mark:
            fence = None if fence == mark[1] else fence or mark[1]
        before = lines[-1] if lines else ""
        item = re.match(r"(?:[-*+]|\d+\.) ", line)
        if fence is None and item and before.strip() and not re.match(r"\s|(?:[-*+]|\d+\.) |[|#<]", before):
            lines.append("")
        if fence is None and line.startswith("|"):
            line = CODE.sub(lambda found: found[0].replace("\\|", "|"), line)
        lines.append(line)
    return "\n".join(lines) + "\n"


def stage(site: Site, url: str, description: str, repository: str) -> None:
    """Write pages, pictures, schemas and configuration for the builder."""
    shutil.rmtree(STAGED, ignore_errors=True)
    folder = STAGED / "pages"
    for page in site.pages.values():
        path = folder / page.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(for_builder(site.staged(page)), encoding="utf-8")
    shutil.copytree(ROOT / "docs" / "img", folder / "img")
    for path in (ROOT / "schemas" / "ctxsteward" / "schemas" / "json").glob("*.json"):
        shutil.copy(path, folder / "reference" / "schemas" / path.name)
    shutil.copytree(ROOT / "docs" / "site" / "theme", STAGED / "theme")
    (STAGED / "zensical.toml").write_text(settings(site, url, description, repository), encoding="utf-8")


def render(zensical: Path, out: Path) -> None:
    """Run the builder; what it warns of ends the build."""
    command = [str(zensical.absolute()), "build", "--strict", "--clean"]
    done = subprocess.run(command, cwd=STAGED, capture_output=True, text=True, check=False)
    said = re.sub(r"\x1b\[[\d;]*m", "", done.stdout + done.stderr)
    if done.returncode or re.search(r"\bwarning|\berror", said, re.IGNORECASE):
        raise SystemExit(f"{said}\n{zensical}: exit code {done.returncode}")
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(STAGED / "built", out)


def entries(name: str, inside: object) -> Iterator[tuple[str, str]]:
    """Titles and paths of the pages of a part of the navigation, groups in it too."""
    if isinstance(inside, str):
        yield name, inside
    elif isinstance(inside, list):
        for entry in inside:
            for title, further in entry.items():
                yield from entries(title, further)


def first_sentence(text: str) -> str:
    """Of a page, below its heading."""
    for block in re.split(r"\n\s*\n", text):
        if block and not re.match(r"[#!|<`>-]|    |\*[^*]", block):
            said = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(block.split()))
            return re.split(r"(?<=[.:])\s", said)[0].rstrip(":")
    return ""


def write_for_models(site: Site, url: str, description: str, out: Path) -> None:
    """`llms.txt`, `llms-full.txt`, and each page as Markdown."""
    listed, whole = ["# ctxsteward", "", f"> {description}", ""], []
    for group in site.navigation():
        ((name, inside),) = group.items()
        listed += [f"## {name}", ""]
        for title, path in entries(name, inside):
            text = site.staged(site.pages[path])
            said = first_sentence(text)
            listed.append(f"- [{title}]({url}{path}){f': {said}' if said else ''}")
            whole.append(f"<!-- {path} -->\n\n{text}")
            (out / path).parent.mkdir(parents=True, exist_ok=True)
            (out / path).write_text(text, encoding="utf-8")
        listed.append("")
    (out / "llms.txt").write_text("\n".join(listed), encoding="utf-8")
    (out / "llms-full.txt").write_text("\n".join(whole), encoding="utf-8")


# -- judging what was built ----------------------------------------------------------------------------------------


class BuiltPage(HTMLParser):
    """A page's anchors, what it links to, and what it makes a browser fetch."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.lost_items: list[str] = []
        self._paragraph: list[str] | None = None
        self.feed(text)

    def handle_data(self, data: str) -> None:
        if self._paragraph is not None:
            self._paragraph.append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag == "p" and self._paragraph is not None:
            self.lost_items += re.findall(r"^(?:[-*+]|\d+\.) .{0,40}", "".join(self._paragraph), re.MULTILINE)
            self._paragraph = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "p":
            self._paragraph = []
        self.anchors |= {given[name] for name in ("id", "name") if given.get(name)}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag in LOADS and given.get(LOADS[tag]):
            self.loads.append(given[LOADS[tag]])
        if tag == "link" and LOADED_RELATIONS & set(given.get("rel", "").lower().split()):
            self.loads.append(given.get("href", ""))
        self.loads += [one.split()[0] for one in given.get("srcset", "").split(",") if one.strip()]
        self.loads += re.findall(r"url\(\s*['\"]?([^'\")]+)", given.get("style", ""))
        self.loads += [
            f"{name}: a script from elsewhere"
            for name in given.get("class", "").split()
            if name in NEEDS_SCRIPTS_FROM_ELSEWHERE
        ]


def faults(out: Path, url: str) -> list[str]:
    """Links and anchors that lead nowhere, what another host would be asked for, and lists that came out as prose."""
    out = out.resolve()
    pages = {path: BuiltPage(path.read_text(encoding="utf-8")) for path in sorted(out.rglob("*.html"))}
    found = [] if pages else [f"{out}: no page"]
    for path, page in pages.items():
        name = path.relative_to(out).as_posix()
        found += [f"{name}: loads {load}" for load in page.loads if _is_elsewhere(load)]
        found += [f"{name}: a list in a paragraph: {line}" for line in page.lost_items]
        for link in page.links:
            target, anchor = _target(link, path, out, urlsplit(url).path)
            if target is None:
                continue
            if not target.is_file():
                found.append(f"{name}: {link} leads nowhere")
            elif anchor and target in pages and anchor not in pages[target].anchors:
                found.append(f"{name}: {link}: no such anchor")
    for path in out.rglob("*.css"):
        text = re.sub(r"/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        loads = re.findall(r"(?:url\(\s*|@import\s+)['\"]?([^'\")\s]+)", text)
        found += [f"{path.relative_to(out)}: loads {load[:80]}" for load in loads if _is_elsewhere(load)]
    return found


def _target(link: str, page: Path, out: Path, base: str) -> tuple[Path | None, str]:
    """The file that a link of a page means, None for another host's, and the anchor in it."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return None, ""
    wanted = unquote(parts.path)
    if wanted.startswith("/"):
        target = out / wanted.removeprefix(base).strip("/")
    else:
        target = page.parent / wanted if wanted else page
    target = target.resolve()
    return (target / "index.html" if target.is_dir() else target), unquote(parts.fragment)


def _is_elsewhere(load: str) -> bool:
    return (
        load.startswith("//") or ": a script" in load or urlsplit(load).scheme in ("http", "https", "ws", "wss", "ftp")
    )


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "site")
    parser.add_argument("--zensical", type=Path, help="the builder; without it pages are staged and judged only")
    parser.add_argument("--check", action="store_true", help="judge what stands in --out")
    given = parser.parse_args(argv)
    table = project()
    urls = table["urls"]
    assert isinstance(urls, dict)
    url, repository, description = urls["Documentation"], urls["Source"], str(table["description"])
    if not given.check:
        try:
            site = Site(reference_pages(), f"{repository}/blob/main")
            stage(site, url, description, repository)
        except BrokenLink as error:
            print(error, file=sys.stderr)
            return 1
        if given.zensical is None:
            print(f"{len(site.pages)} pages in {STAGED.relative_to(ROOT)}")
            return 0
        render(given.zensical, given.out)
        write_for_models(site, url, description, given.out)
    found = faults(given.out, url)
    print("\n".join(found), file=sys.stderr)
    print(f"{sum(1 for _ in given.out.rglob('*.html'))} pages, {len(found)} faults: {given.out}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

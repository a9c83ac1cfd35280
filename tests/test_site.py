"""The documentation's site: what is on it, where its links lead, and what the build refuses."""

from __future__ import annotations

import importlib
import json
import re
import shutil
import sys
import tomllib
from collections import Counter
from pathlib import Path
from types import ModuleType

import click
import pytest
from click.testing import CliRunner
from hypothesis import given, settings, strategies as st

from ctxsteward.console.cli import cli
from ctxsteward.schemas.findings import FINDING_KINDS

from .dashboards.definitions import ALERTS, INSTRUMENTS
from .examples import examples
from .needs import LINTERS

ROOT = Path(__file__).parents[1]
SCRIPTS = ROOT / "docs" / "site"
ZENSICAL = ROOT / ".venv-docs" / "bin" / "zensical"


def script(name: str) -> ModuleType:
    """A script of `docs/site`, which is no package."""
    if str(SCRIPTS) not in sys.path:
        sys.path.insert(0, str(SCRIPTS))
    return importlib.import_module(name)


pages, reference, build = script("pages"), script("reference"), script("build")
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


# -- links in the repository -------------------------------------------------------------------------------


def dead_links(path: Path, text: str) -> list[str]:
    """Relative links and anchors that lead nowhere, as a reader of the repository meets them."""
    found = []
    for link in pages.links_of(str(path), text):
        target, _, anchor = link.target.partition("#")
        if "://" in target or target.startswith("mailto:"):
            continue
        aim = (path.parent / target).resolve() if target else path
        if not aim.exists():
            found.append(f"{link.line}: {link.target}")
        elif anchor and aim.suffix == ".md":
            known = pages.anchors_of(text if aim == path else aim.read_text(encoding="utf-8"))
            if anchor not in known:
                found.append(f"{link.line}: {link.target}")
    return found


def test_every_relative_link_and_anchor_leads_somewhere() -> None:
    assert {path: dead for path in DOCUMENTS if (dead := dead_links(path, path.read_text(encoding="utf-8")))} == {}


def test_dead_links_are_found_and_code_is_no_link(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    (tmp_path / "other.md").write_text("# One two\n\n## One two\n")
    text = (
        "# Page: `code`\n[a](other.md) [b](other.md#one-two-1) [c](#page-code) [d](https://x.example/#y)\n"
        "[e](gone.md)\n![f](gone.svg)\n[g](other.md#three)\n[h](#page)\n"
        "`[i](gone.md)`\n\n```text\n[j](gone.md)\n```\n\n    [k](gone.md)\n"
    )
    page.write_text(text)
    assert dead_links(page, text) == ["3: gone.md", "4: gone.svg", "5: other.md#three", "6: #page"]


@pytest.mark.parametrize(
    ("heading", "anchor"),
    [
        ("What is stored where", "what-is-stored-where"),
        ("flows, console", "flows-console"),
        ("S3: what it was tried with", "s3-what-it-was-tried-with"),
        ("`store fsck` & `gc`", "store-fsck--gc"),
        ("A [link](x.md) here", "a-link-here"),
        ("Größe § 12_a", "größe--12_a"),
        ("参考 one", "参考-one"),
    ],
)
def test_a_heading_has_the_anchor_that_github_gives_it(heading: str, anchor: str) -> None:
    assert pages.slug(heading) == anchor
    assert pages.anchors_of(f"# {heading}\n\n## {heading}\n") == {anchor, f"{anchor}-1"}


@settings(max_examples=examples(200))
@given(
    st.lists(st.sampled_from(["a\n", "\n", "```\n", "    code\n", "`x`", "``y`z``", "[l](t.md)", "- b\n", "|`c`|\n"]))
)
def test_nothing_that_is_code_is_changed_and_nothing_is_lost(parts: list[str]) -> None:
    text = "".join(parts)
    assert pages.outside_code(text, lambda plain: plain) == text
    shouted = pages.outside_code(text, lambda plain: plain.replace("l", "L"))
    assert len(shouted) == len(text)
    assert shouted.lower() == text.lower()


# -- what is on the site -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def site() -> object:
    return pages.Site(reference.reference_pages(), "https://code.example/blob/main")


def paths(part: object) -> list[str]:
    if isinstance(part, str):
        return [part]
    entries = part.values() if isinstance(part, dict) else part
    return [path for entry in entries for path in paths(entry)]  # type: ignore[attr-defined]


def test_every_document_and_example_is_on_the_site_once(site: object) -> None:
    """A new one is found, not listed."""
    documents = {path.relative_to(ROOT).as_posix() for path in DOCUMENTS}
    files = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs" / "examples").rglob("*.py")}
    shown = {page.source for page in site.pages.values()}  # type: ignore[attr-defined]
    counted = Counter(paths(site.navigation()))  # type: ignore[attr-defined]
    assert (documents | files) - shown == set()
    assert set(counted) == set(site.pages)  # type: ignore[attr-defined]
    assert set(counted.values()) == {1}


def test_the_navigation_begins_with_what_users_do(site: object) -> None:
    groups = site.navigation()  # type: ignore[attr-defined]
    assert [next(iter(group)) for group in groups] == [
        "Start",
        "Guides",
        "Concepts",
        "Reference",
        "Examples",
        "Project",
        "Maintainers",
    ]
    assert paths(groups[0]) == ["index.md", "tutorial.md", "how-to.md", "install.md", "when-not-to-use-it.md"]
    assert paths(groups[1])[:3] == ["choose-a-budget.md", "guide-chat-service.md", "guide-fastapi.md"]
    assert {"benchmarks.md", "design/index.md", "sealed-split.md"} < set(paths(groups[-1]))


def test_a_link_leads_on_the_site_to_what_it_leads_to_in_the_repository(site: object) -> None:
    made = pages.SitePage(
        "design/900.md",
        "x",
        "[a](../cost.md#b) [c](../../README.md) [d](../../pyproject.toml) ![e](../img/evals.png) [f](001-packaging.md) "
        "[g](../examples/judges.py) `[h](../cost.md)` [i](https://x.example)",
        "docs/design/900.md",
    )
    assert site.staged(made) == (  # type: ignore[attr-defined]
        "[a](../cost.md#b) [c](../index.md) [d](https://code.example/blob/main/pyproject.toml) ![e](../img/evals.png) "
        "[f](001-packaging.md) [g](../examples/judges.py.md) `[h](../cost.md)` [i](https://x.example)"
    )
    with pytest.raises(pages.BrokenLink, match=r"docs/design/900.md: \.\./gone\.md leads nowhere"):
        site.staged(made._replace(text="[a](../gone.md)"))  # type: ignore[attr-defined]


def test_every_promised_name_has_its_part(site: object) -> None:
    promised = json.loads((ROOT / "tests" / "promised_names.json").read_text(encoding="utf-8"))
    missing = [
        f"{door}: {name}"
        for door, names in promised.items()
        for name in names
        if f"\n## {name}\n" not in site.pages[f"reference/api/{door}.md"].text  # type: ignore[attr-defined]
    ]
    assert missing == []


def test_a_part_says_signature_types_docstring_and_errors(site: object) -> None:
    text = site.pages["reference/api/envelope.md"].text  # type: ignore[attr-defined]
    part = text.partition("\n### Session.append\n")[2].partition("\n##")[0]
    assert "def append(" in part
    assert "id: str | None = None" in part
    builder = text.partition("\n## EnvelopeBuilder\n")[2].partition("\n## ")[0]
    assert "[Budgets](#budgets)" in builder
    assert "Raises `UnknownModel`" in builder
    budgets = text.partition("\n## Budgets\n")[2].partition("\n## ")[0]
    assert "| `dynamic_tokens` | `int` | `DEFAULT_DYNAMIC_TOKENS` |" in budgets


def test_every_command_and_option_is_on_the_page_of_commands(site: object) -> None:
    text = site.pages["reference/cli.md"].text  # type: ignore[attr-defined]
    seen = 0

    def look(command: click.Command, path: str) -> None:
        nonlocal seen
        seen += 1
        assert re.search(rf"^#+ {re.escape(path)}$", text, re.MULTILINE), path
        part = re.split(rf"^#+ {re.escape(path)}\n", text, flags=re.MULTILINE)[1].split("\n#")[0]
        for option in command.params:
            if isinstance(option, click.Option) and not option.hidden:
                assert option.opts[0] in part, (path, option.opts)
        if isinstance(command, click.Group):
            context = click.Context(command)
            for name in command.list_commands(context):
                inner = command.get_command(context, name)
                assert inner is not None
                if not inner.hidden:
                    look(inner, f"{path} {name}")

    look(cli, "ctxsteward")
    assert seen > 40


def test_a_page_of_commands_leaves_their_help_as_it_was() -> None:
    @click.group(context_settings={"help_option_names": ["-h", "--help"]})
    def tool() -> None: ...

    @tool.group()
    def inner() -> None: ...

    @inner.command()
    def leaf() -> None: ...

    assert "## tool inner leaf" in "\n".join(reference.command_part(tool, "tool"))
    for arguments in ([], ["inner"], ["inner", "leaf"]):
        assert "-h, --help" in CliRunner().invoke(tool, [*arguments, "--help"]).stdout


def test_every_published_schema_has_a_page_with_its_properties(site: object) -> None:
    folder = ROOT / "schemas" / "ctxsteward" / "schemas" / "json"
    for path in folder.glob("*.json"):
        text = site.pages[f"reference/schemas/{path.name.partition('.')[0]}.md"].text  # type: ignore[attr-defined]
        for name in json.loads(path.read_text(encoding="utf-8")).get("properties", {}):
            assert f"| `{name}` |" in text, (path.name, name)


def test_every_instrument_and_alert_is_in_the_reference(site: object) -> None:
    text = site.pages["reference/telemetry.md"].text  # type: ignore[attr-defined]
    assert [one.name for one in INSTRUMENTS if f"| `{one.name}` |" not in text] == []
    assert [alert["alert"] for alert in ALERTS if f"| `{alert['alert']}` |" not in text] == []


def test_a_finding_has_an_anchor(site: object) -> None:
    text = site.staged(site.pages["troubleshooting.md"])  # type: ignore[attr-defined]
    assert [kind for kind in FINDING_KINDS if f'<a id="{kind}"></a>`{kind}`' not in text] == []


def test_a_flow_chart_is_drawn_and_what_cannot_be_drawn_is_refused() -> None:
    drawn = pages.flow_chart('flowchart TD\n    a["<b>a</b><br>one"]\n    b["<b>b</b><br>two & three"]\n    a --> b\n')
    assert drawn.count("<rect") == 2
    assert "two &amp; three" in drawn
    with pytest.raises(ValueError, match="no flow chart"):
        pages.flow_chart("sequenceDiagram\n  a->>b: x\n")


# -- the build ---------------------------------------------------------------------------------------------

needs_zensical = pytest.mark.skipif(not ZENSICAL.exists(), reason=LINTERS)


@needs_zensical
def test_the_site_builds_without_a_warning_and_fetches_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "STAGED", tmp_path / "staged")
    out = tmp_path / "site"
    assert build.main(["--zensical", str(ZENSICAL), "--out", str(out)]) == 0

    urls = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]
    listed = (out / "llms.txt").read_text(encoding="utf-8")
    assert listed.startswith("# ctxsteward\n\n> ")
    for address in re.findall(r"^- \[[^\]]+\]\(([^)]+)\)", listed, re.MULTILINE):
        assert (out / address.removeprefix(urls["Documentation"])).is_file(), address
    assert (out / "llms-full.txt").read_text(encoding="utf-8").count("<!-- ") > 60
    assert "Content-Security-Policy" in (out / "index.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("planted", "found"),
    [
        ('<a href="../b/#there">x</a><a href="/base/b/">y</a><a href="https://x.example">z</a><img src="c.png">', None),
        ('<img src="https://x.example/y.png">', "loads https://x.example/y.png"),
        ('<script src="//x.example/y.js"></script>', "loads //x.example/y.js"),
        ('<link rel="preconnect" href="https://x.example">', "loads https://x.example"),
        ('<p style="background:url(http://x.example/z)">', "loads http://x.example/z"),
        ('<pre class="mermaid">a</pre>', "loads mermaid: a script from elsewhere"),
        ('<a href="../gone/">x</a>', "../gone/ leads nowhere"),
        ('<a href="/base/gone/">x</a>', "/base/gone/ leads nowhere"),
        ('<a href="../b/#gone">x</a>', "../b/#gone: no such anchor"),
        ('<a href="#gone">x</a>', "#gone: no such anchor"),
        ("<p>Two things:\n- one\n- two</p>", "a list in a paragraph: - one"),
    ],
)
def test_what_a_built_page_may_not_hold_is_found(tmp_path: Path, planted: str, found: str | None) -> None:
    for name, body in (("a", planted), ("b", '<h1 id="there">b</h1>')):
        (tmp_path / name).mkdir()
        (tmp_path / name / "index.html").write_text(f"<html><body>{body}</body></html>", encoding="utf-8")
    told = build.faults(tmp_path, "https://docs.example/base/")
    assert told[:1] == ([f"a/index.html: {found}"] if found else [])


def test_a_style_sheet_that_fetches_from_elsewhere_is_found(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("<p>x</p>", encoding="utf-8")
    sheet = tmp_path / "x.css"
    sheet.write_text("/* https://x.example */ @import 'https://x.example/y.css'; a{background:url(data:image/png,x)}")
    assert build.faults(tmp_path, "https://docs.example/") == ["x.css: loads https://x.example/y.css"]
    sheet.write_text("a{background:url(../x.png)}")
    assert build.faults(tmp_path, "https://docs.example/") == []
    assert build.faults(tmp_path / "nothing", "https://docs.example/") == [f"{tmp_path / 'nothing'}: no page"]


@needs_zensical
def test_a_warning_of_the_builder_ends_the_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    staged = tmp_path / "staged"
    monkeypatch.setattr(build, "STAGED", staged)
    (staged / "pages").mkdir(parents=True)
    shutil.copytree(SCRIPTS / "theme", staged / "theme")
    (staged / "pages" / "index.md").write_text("# Start\n\n[away](gone.md)\n")
    few = type("Few", (), {"navigation": lambda self: [{"Start": "index.md"}]})()
    (staged / "zensical.toml").write_text(build.settings(few, "https://x.example/", "d", "https://x.example"))
    with pytest.raises(SystemExit, match=r"gone\.md"):
        build.render(ZENSICAL, tmp_path / "site")
    assert not (tmp_path / "site").exists()

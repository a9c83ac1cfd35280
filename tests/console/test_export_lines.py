"""``ctxsteward export lines``: approved records as a block of AGENTS.md or SKILL.md that a repeat replaces."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from ruamel.yaml import YAML

from ctxsteward.console.cli import cli
from ctxsteward.envelope import Profile, open_store
from ctxsteward.schemas.profile import MetaRecord

WHEN = "2026-11-22T04:00:00+00:00"
EURO = MetaRecord(id="euro", text="Money is shown in euro.", sources=("s-3§8", "s-4§9"), approved=True)
CALM = MetaRecord(id="calm", text="Prefers calm answers.", sources=("s-7§12",))
DATED = MetaRecord(
    id="end", text="Never write --> or <!-- in a reply.", sources=("s-1§2",), approved=True, ts="2026-11-01T00:00:00Z"
)
BLOCK = """\
<!-- ctxsteward lines of support: written by `ctxsteward export lines`, which replaces this block -->
- Money is shown in euro. <!-- euro, version 1, s-3§8 s-4§9, 2026-11-22T04:00:00+00:00 -->
- Never write --&gt; or &lt;!-- in a reply. <!-- end, version 1, s-1§2, 2026-11-01T00:00:00Z -->
<!-- end of ctxsteward lines of support -->
"""


@pytest.fixture
def store(tmp_path: Path) -> str:
    uri = f"file:{tmp_path}/store"
    with open_store(uri) as opened:
        for name, meta in (("support", (EURO, CALM, DATED)), ("silent", (CALM,))):
            opened.profiles(name).commit(Profile(name=name, meta=meta), who="ada", why="first", when=WHEN)
    return uri


def exported(store: str, *arguments: str, profile: str = "support") -> tuple[int, str]:
    result = CliRunner().invoke(cli, ["export", "lines", profile, "--store", store, *arguments])
    return result.exit_code, result.output


def test_a_line_has_its_id_version_evidence_and_date_and_learned_records_stay_out(store: str) -> None:
    assert exported(store, "--as", "agents") == (0, BLOCK)


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_repeat_replaces_the_block_where_it_stands_and_no_other_byte(
    store: str, tmp_path: Path, newline: str
) -> None:
    path = tmp_path / "AGENTS.md"
    old = "<!-- ctxsteward lines of support: an older export -->\n- Old.\n<!-- end of ctxsteward lines of support -->\n"
    frame = ("# Ours\n\nBuild with make.  \n\n{}\nAfter it, an end without a line break: ü").replace("\n", newline)
    path.write_bytes(frame.format(old.replace("\n", newline)).encode())

    for _ in range(2):
        assert exported(store, "--as", "agents", "--out", str(path)) == (0, "")
        assert path.read_bytes().decode() == frame.format(BLOCK.replace("\n", newline))


def test_a_file_without_a_block_gets_one_at_its_end(store: str, tmp_path: Path) -> None:
    path = tmp_path / "AGENTS.md"
    path.write_text("# Ours", encoding="utf-8")

    exported(store, "--as", "agents", "--out", str(path))

    assert path.read_text(encoding="utf-8") == f"# Ours\n\n{BLOCK}"


def test_a_new_skill_has_the_name_and_description_that_skills_need(store: str, tmp_path: Path) -> None:
    path = tmp_path / "SKILL.md"

    for _ in range(2):
        exported(store, "--as", "skill", "--out", str(path))

    _, head, body = path.read_text(encoding="utf-8").split("---\n", 2)
    assert body == f"\n{BLOCK}"
    assert YAML(typ="safe").load(head) == {
        "name": "support",
        "description": "Lines of the profile support that people approved. Follow them in every task.",
    }


@pytest.mark.parametrize(
    ("content", "profile", "says"),
    [
        (b"<!-- ctxsteward lines of support: x -->\n", "support", "1 beginnings and 0 ends"),
        (BLOCK.encode() * 2, "support", "2 beginnings and 2 ends"),
        (b"\xff\xfe", "support", "cannot be read as UTF-8 text"),
        (b"", "silent", "version 1 has no record that people approved"),
        (b"", "unknown", "unknown"),
    ],
    ids=["no end", "two blocks", "no text", "nothing approved", "no such profile"],
)
def test_what_does_not_fit_is_refused_and_the_file_stays(
    store: str, tmp_path: Path, content: bytes, profile: str, says: str
) -> None:
    path = tmp_path / "AGENTS.md"
    path.write_bytes(content)

    code, output = exported(store, "--as", "agents", "--out", str(path), profile=profile)

    assert (code, says in output) == (2, True), output
    assert path.read_bytes() == content

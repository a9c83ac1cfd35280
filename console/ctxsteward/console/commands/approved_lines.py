"""A profile's approved records as a marked block of Markdown, for AGENTS.md and SKILL.md.

    <!-- ctxsteward lines of support: written by `ctxsteward export lines`, which replaces this block -->
    - Money is shown in euro. <!-- euro, version 2, s-3§8 s-4§9, 2026-11-22T04:00:00+00:00 -->
    <!-- end of ctxsteward lines of support -->

Raises `InputError` for a file that is not UTF-8 or whose markers do not fit. Sources: agents.md (plain Markdown, no
fixed form); agentskills.io, specification (a SKILL.md begins with YAML that has `name` and `description`).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal, get_args

from ctxsteward.schemas import InputError
from ctxsteward.store.profiles.versions import Version

LineForm = Literal["agents", "skill"]
LINE_FORMS: tuple[LineForm, ...] = get_args(LineForm)
_NO_NAME = re.compile(r"[^a-z0-9]+")


def read_text_file(path: Path) -> str:
    """Return a file's text with its own line ends, or "" if it does not exist."""
    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"--out {path}: it cannot be read as UTF-8 text ({error}); name another file") from None


def with_block(text: str, version: Version, form: LineForm, *, where: str) -> str:
    """Return the text of a file with the block of this version in place of an earlier one, or at the end."""
    name = version.profile.name
    begin, end = f"<!-- ctxsteward lines of {name}: ", f"<!-- end of ctxsteward lines of {name} -->"
    approved = [record for record in version.profile.meta if record.approved]
    if not approved:
        raise InputError(f"profile {name!r}: version {version.number} has no record that people approved")
    rows = [f"{begin}written by `ctxsteward export lines`, which replaces this block -->"]
    for record in approved:
        since = record.ts or version.changelog.when
        provenance = f"{record.id}, version {version.number}, {' '.join(record.sources)}, {since}"
        rows.append(f"- {_plain(record.text)} <!-- {_plain(provenance)} -->")
    newline = "\r\n" if "\r\n" in text else "\n"
    block = newline.join((*rows, end))
    counts = text.count(begin), text.count(end)
    start, stop = text.find(begin), text.find(end)
    if counts == (0, 0):
        if not text and form == "skill":
            text = f"---\nname: {_NO_NAME.sub('-', name.lower()).strip('-')}\n"
            text += f"description: Lines of the profile {name} that people approved. Follow them in every task.\n---\n"
        gap = newline if text and not text.endswith("\n") else ""
        return f"{text}{gap}{newline if text else ''}{block}{newline}"
    if counts != (1, 1) or stop < start:
        line = text[: max(start, stop)].count("\n") + 1
        what = f"{counts[0]} beginnings and {counts[1]} ends of the block of profile {name!r}"
        raise InputError(f"--out {where}: {what}, near line {line}; leave one of each, or none")
    return text[:start] + block + text[stop + len(end) :]


def _plain(text: str) -> str:
    """Return a text as one line that neither opens nor closes a comment."""
    return " ".join(text.replace("<!--", "&lt;!--").replace("-->", "--&gt;").split())

"""Prompts as files: a version line, and text with ``$slots``. Reports name version and digest.

    version: 1
    ---
    You shorten …  $messages

`PromptFolder(path)` overrides the shipped files one by one. Text of a conversation goes into a slot as JSON, a message
per line, between two marks. The marks are digests of that text, so no text can end its slot early. Text in a slot is
never expanded again. A file without a version or with other slots than its own raises `InputError`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from string import Template

from ctxsteward.schemas import InputError

SLOTS = {
    "history_bullets": frozenset(("budget_tokens", "standing", "messages", "mark")),
    "prefix_bullets": frozenset(("budget_tokens", "messages", "mark")),
    "run_sections": frozenset(("budget_tokens", "standing", "messages", "mark")),
    "prefix_sections": frozenset(("budget_tokens", "messages", "mark")),
    "card_summary": frozenset(("most_chars", "messages", "mark")),
    "handoff_sections": frozenset(("most_lines", "messages", "mark")),
    "repair": frozenset(("fault",)),
}
"""Slots of each prompt."""
_VERSION = re.compile(r"version: (\d{1,6})\n---\n")


@dataclass(frozen=True, slots=True)
class PromptFile:
    """One prompt."""

    name: str
    version: int
    text: str
    digest: str
    """SHA-256 of the file, hexadecimal."""

    @property
    def label(self) -> str:
        """Name, version and short digest, as reports show them."""
        return f"{self.name} {self.version} {self.digest[:12]}"

    def fill(self, **slots: str | int) -> str:
        """Return the prompt with every slot filled."""
        return Template(self.text).substitute(slots)


def read_prompt(name: str, text: str, source: str) -> PromptFile:
    """Parse a prompt from the text of a file."""
    match = _VERSION.match(text)
    if match is None:
        raise InputError(f"{source}: it does not begin with a version; write `version: 1`, `---`, then the prompt")
    body = text[match.end() :].strip()
    found = frozenset(Template(body).get_identifiers())
    if not Template(body).is_valid() or found != SLOTS[name]:
        wrong = ", ".join(f"${slot}" for slot in sorted(found ^ SLOTS[name])) or "a lone $"
        raise InputError(f"{source}: {wrong}; it has the slots {', '.join(f'${slot}' for slot in sorted(SLOTS[name]))}")
    return PromptFile(name, int(match[1]), body, sha256(text.encode()).hexdigest())


@cache
def shipped_prompt(name: str) -> PromptFile:
    """Return the shipped prompt of this name."""
    text = files("ctxsteward.summarizers").joinpath("templates", f"{name}.md").read_text(encoding="utf-8")
    return read_prompt(name, text, f"{name}.md")


class PromptFolder:
    """Prompts of a folder, and the shipped prompt for each file that the folder lacks."""

    def __init__(self, folder: str | Path | None = None) -> None:
        self._folder = None if folder is None else Path(folder)
        self._read: dict[str, PromptFile] = {}
        if self._folder is not None and not self._folder.is_dir():
            raise InputError(f"prompts {self._folder}: no such folder")

    def check(self) -> None:
        """Read every prompt now, to report a bad file before the first call. Later changes of files have no effect."""
        for name in SLOTS:
            self._read[name] = self.get(name)

    def get(self, name: str) -> PromptFile:
        """Return the prompt of this name."""
        if name in self._read:
            return self._read[name]
        file = None if self._folder is None else self._folder / f"{name}.md"
        if file is None or not file.is_file():
            return shipped_prompt(name)
        try:
            return read_prompt(name, file.read_text(encoding="utf-8"), str(file))
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{file}: it cannot be read as UTF-8 ({type(error).__name__}); save it anew") from None


def marked(rows: Iterable[dict[str, str] | list[str]]) -> tuple[str, str]:
    """Return rows as JSON lines, and a mark that occurs in none of them."""
    text = "\n".join(json.dumps(row, ensure_ascii=False, separators=(",", ": ")) for row in rows)
    return text, f"=={sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}=="

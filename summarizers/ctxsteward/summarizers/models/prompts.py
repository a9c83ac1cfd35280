"""Prompts as files: a version line, and text with ``$slots``; reports name version and digest.

    version: 1
    ---
    You shorten …  $messages

A folder of yours (`PromptFolder(path)`) overrides the shipped files one by one. Text of a conversation goes into a slot
as JSON, a line a message, between two marks that are digests of that text, so that no text can end its own place; text
in a slot is never expanded again. Raises `InputError` for a file without a version, or with other slots than its own.
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
"""Of each prompt."""
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
        """As reports name it."""
        return f"{self.name} {self.version} {self.digest[:12]}"

    def fill(self, **slots: str | int) -> str:
        """The prompt with every slot filled."""
        return Template(self.text).substitute(slots)


def read_prompt(name: str, text: str, source: str) -> PromptFile:
    """A prompt out of a file's text."""
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
    """The prompt of this name as it is shipped."""
    text = files("ctxsteward.summarizers").joinpath("templates", f"{name}.md").read_text(encoding="utf-8")
    return read_prompt(name, text, f"{name}.md")


class PromptFolder:
    """Prompts of a folder, the shipped ones where it has none."""

    def __init__(self, folder: str | Path | None = None) -> None:
        self._folder = None if folder is None else Path(folder)
        self._read: dict[str, PromptFile] = {}
        if self._folder is not None and not self._folder.is_dir():
            raise InputError(f"prompts {self._folder}: no such folder")

    def check(self) -> None:
        """Read every prompt now, so that a bad file is told before the first call; later changes do not count."""
        for name in SLOTS:
            self._read[name] = self.get(name)

    def get(self, name: str) -> PromptFile:
        """The prompt of this name."""
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
    """Rows as JSON lines, and a mark that stands in none of them."""
    text = "\n".join(json.dumps(row, ensure_ascii=False, separators=(",", ": ")) for row in rows)
    return text, f"=={sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}=="

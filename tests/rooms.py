"""The picture of the rooms in ARCHITECTURE.md, drawn from the imports of the code.

    python -m tests.rooms            # write the picture anew
    python -m tests.rooms --print    # show it

An arrow goes from a room to one that it imports. Arrows that follow from two others are left out. A dotted arrow points
up: it is there, and should not be.
"""

from __future__ import annotations

import sys

from .house import ROOT, imports, modules

PAGE = ROOT / "ARCHITECTURE.md"
BEGIN, END = "<!-- rooms: written by `python -m tests.rooms` -->\n", "<!-- end of rooms -->\n"
ABOUT = {
    "console": "the command line",
    "flows": "Prefect",
    "evals": "suites and gates",
    "steward": "the nightly batch",
    "envelope": "one model call",
    "summarizers": "text into cited bullets",
    "store": "what lasts",
    "language": "words and rules of English and Chinese",
    "schemas": "values and their JSON Schemas",
}
"""From the top down; a room that is not there is not drawn."""


def arrows() -> set[tuple[str, str]]:
    """Pairs of rooms of which the first imports the second, for types or lazily as well."""
    read = modules()
    names = frozenset(module.name for module in read)
    pairs = {(module.name, other) for module in read for other in imports(module, names)}
    rooms = {(above.partition(".")[0], below.partition(".")[0]) for above, below in pairs}
    return {(above, below) for above, below in rooms if above != below and above in ABOUT}  # `__main__` is no room


def picture() -> str:
    """The block of the page, markers included."""
    found = arrows()
    order = [room for room in ABOUT if any(room in pair for pair in found)]
    down = {(above, below) for above, below in found if order.index(above) < order.index(below)}
    shown = {
        (above, below)
        for above, below in down
        if not any((above, mid) in down and (mid, below) in down for mid in order)
    }
    lines = [f'    {room}["<b>{room}</b><br>{ABOUT[room]}"]' for room in order]
    lines += [f"    {above} --> {below}" for above, below in sorted(shown)]
    lines += [f"    {above} -.-> {below}" for above, below in sorted(found - down)]
    return "\n".join([f"{BEGIN}```mermaid", "flowchart TD", *lines, f"```\n{END}"])


def with_picture(page: str) -> str:
    before, _, rest = page.partition(BEGIN)
    return before + picture() + rest.partition(END)[2]


if __name__ == "__main__":
    if "--print" in sys.argv:
        print(picture())
    else:
        PAGE.write_text(with_picture(PAGE.read_text(encoding="utf-8")), encoding="utf-8")

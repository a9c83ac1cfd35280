"""Reading a conversation for what replaces what: corrections, other values for the same thing, revoked rules.

Where an earlier message is shown again, the later one has to stand beside it. Each message is read once, up to
`READ_CHARS` of its text; rules of `updates`. Of a sentence nothing is remembered that cannot be replaced or replace.
"""

from __future__ import annotations

from collections.abc import Sequence

from ctxsteward.schemas import Replacing, SourceMessage

from .backlog import source_statements, texts
from .updates import Updates

READ_CHARS = 2_000


def replacing() -> Replacing:
    """A reader for one conversation: give it every message once, in ordinal order.

    >>> from ctxsteward.schemas import Message
    >>> said = "My budget is 90,000 yen.", "A week in Kyoto.", "Change of plan: my budget is 120,000 yen."
    >>> read = replacing()
    >>> [read(SourceMessage(ref=f"§{n}", message=Message.from_wire({"role": "user", "content": text})))
    ...  for n, text in enumerate(said, 1)]
    [(), (), ('§1',)]
    """
    updates = Updates()

    def read(message: SourceMessage) -> Sequence[str]:
        gone: dict[str, None] = {}
        for text in texts((message,)):
            for statement in source_statements((text._replace(text=text.text[:READ_CHARS]),)):
                for old in updates.add(statement):
                    gone.update(dict.fromkeys(updates.statements[old].refs))
        gone.pop(message.ref, None)
        return tuple(gone)

    return read

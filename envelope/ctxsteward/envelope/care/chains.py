"""Checks of a chain: every number there, every code right, every link on the one before, no tail lost.

A link that cannot be read breaks the line: what follows it is checked by its own code and on its own predecessor.
A chain whose last links are gone is whole in itself; that it was longer is known to the journal alone, which has noted
the highest number it has seen (the witness).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ctxsteward.schemas import Damaged, ObjectMissing, UnsupportedVersion

from ..chain import Chain, Link, follows
from ..objects.names import numbered
from ..objects.port import ObjectInfo
from .tally import Tally


def sound_links(chain: Chain, listed: Mapping[int, ObjectInfo], seen: int, tally: Tally) -> Iterator[Link]:
    """Links that can be read, in order, each checked; `seen` is the witness's number."""
    last = max(listed, default=0)
    before: Link | None = None
    for number in range(1, last + 1):
        link = _read(chain, number, tally)
        if link is not None:
            _check_parent(chain, before, link, tally)
            yield link
        before = link
    for number in range(last + 1, seen + 1):  # a listing that ran beside a commit may have left it out
        link = _read(chain, number, tally, missing="tail_missing", why=f"the chain ends at {last}, not at {seen}")
        if link is not None:
            yield link


def _read(
    chain: Chain, number: int, tally: Tally, *, missing: str = "link_missing", why: str = "later ones are there"
) -> Link | None:
    key = numbered(chain.folder, number)
    tally.count("links")
    try:
        return chain.read(number)
    except ObjectMissing:
        tally.found(missing, key, f"it is not there; {why}")
    except UnsupportedVersion as error:
        tally.found("later_version", key, str(error))
    except Damaged:
        tally.found("link_altered", key, "it is not what was committed here")
    return None


def _check_parent(chain: Chain, before: Link | None, link: Link, tally: Tally) -> None:
    known = link.number == 1 or before is not None
    if known and not follows(link, before):
        key = numbered(chain.folder, link.number)
        tally.found("link_misplaced", key, f"it does not follow link {link.number - 1}")

"""Images of past messages: found in their provider's own blocks, shown in those same blocks, never re-encoded.

An image is known by its data or URL, not by the message it came in, so that one that was passed on is shown once. Its
digest stays in the process. What it costs is said by `ctxsteward.envelope.images`, never by the length of its data.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ctxsteward.schemas import Message, Wire
from ctxsteward.schemas.cascade import Source

if TYPE_CHECKING:
    from .past import PastMessage

Form = Literal["openai", "anthropic"]
SHOWN_ALREADY = "[image already shown]"
_FORMS: dict[object, Form] = {"image_url": "openai", "image": "anthropic"}


class PastImage(NamedTuple):
    """An image and the message that held it."""

    block: Wire
    """The provider's own; shared with the original."""
    form: Form
    key: bytes
    held_by: PastMessage

    @property
    def attempt(self) -> int | None:
        """Which sounding made it."""
        return self.held_by.attempt


def images_in(message: Message, held_by: PastMessage) -> Iterator[PastImage]:
    """The images of a message, those in its tool results included."""
    for block in _image_blocks(message.wire.get("content")):
        yield PastImage(block, _FORMS[block["type"]], image_key(block), held_by)


def _image_blocks(content: object) -> Iterator[Wire]:
    for block in content if isinstance(content, list) else ():
        if not isinstance(block, dict):
            continue
        if block.get("type") in _FORMS:
            yield block
        elif block.get("type") == "tool_result":
            yield from _image_blocks(block.get("content"))


def image_key(block: Wire) -> bytes:
    """The same for the same image, whichever provider's block it is in."""
    image = block.get("image_url", block.get("source"))
    if isinstance(image, dict):
        image = image.get("url") or image.get("data") or json.dumps(image, sort_keys=True)
    text = str(image)
    data = text.partition(",")[2] if text.startswith("data:") else text
    return hashlib.sha256(data.encode()).digest()


def chosen_images(images: Sequence[PastImage], source: Source) -> list[PastImage]:
    """Those that the source's filter lets through."""
    match source.images_filter:
        case "last":
            return list(images[-1:])
        case "last_n":
            return list(images[-source.images_count :])
        case _:
            return list(images)


def image_messages(label: str, images: Iterable[PastImage], role: str) -> Iterator[tuple[Wire, list[PastImage]]]:
    """Labelled messages of images, one for each run of the same provider's blocks.

    Images of a numbered attempt follow a line with the attempt's number and the image's place in it.
    """
    runs: list[list[PastImage]] = []
    for image in images:
        if runs and runs[-1][-1].form == image.form:
            runs[-1].append(image)
        else:
            runs.append([image])
    counts: dict[int, int] = {}
    for run in runs:
        content: list[Wire] = [{"type": "text", "text": label}]
        for image in run:
            if image.attempt is not None:
                counts[image.attempt] = counts.get(image.attempt, 0) + 1
                line = f"[Attempt {image.attempt}, image {counts[image.attempt]}]:"
                content.append({"type": "text", "text": line})
            content.append(image.block)
        yield {"role": role, "content": content}, run


def without_images(wire: Wire, hidden: set[bytes] | None, text: str = SHOWN_ALREADY) -> Wire:
    """The message with a line of text for each image in `hidden` (None: for every one); itself where there is none."""
    content = wire.get("content")
    if not isinstance(content, list):
        return wire
    shown = [_without(block, hidden, text) for block in content]
    return wire if all(new is old for new, old in zip(shown, content, strict=True)) else {**wire, "content": shown}


def _without(block: Any, hidden: set[bytes] | None, text: str) -> Any:
    if not isinstance(block, dict):
        return block
    if block.get("type") in _FORMS:
        return {"type": "text", "text": text} if hidden is None or image_key(block) in hidden else block
    if block.get("type") == "tool_result":
        return without_images(block, hidden, text)
    return block

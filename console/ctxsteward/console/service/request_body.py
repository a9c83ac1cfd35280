"""Reading a JSON body: it is bounded before it is parsed, and checked in a worker thread.

A body of 4 MB may contain two million numbers, or a hundred thousand faults. So its values are counted before any is
created, a list stops at its first fault, and the work is done outside the event loop, which serves other requests.

Too many values, or fields that do not fit, raise `Refusal` (`invalid`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute
from pydantic import TypeAdapter, ValidationError

from ctxsteward.envelope.transcripts.strict_json import decode
from ctxsteward.schemas.errors import InvalidTranscript

from .access import FieldFault, Refusal, field_faults

MAX_VALUES = 100_000
"""Most values of one body: numbers, texts, lists and objects. As Python objects they take about 20 MB at most."""
MAX_FAULTS = 20
"""Most faults that a refusal lists."""
# Possessive, and an unclosed text takes the rest of the body, so that every body is scanned in linear time.
_STRING = re.compile(rb'"[^"\\]*+(?:\\.?[^"\\]*+)*+"?', re.DOTALL)
_MARKS = (b",", b"[", b"{")
DOES_NOT_FIT = "the request does not fit; `errors` says where"


def values_in(body: bytes) -> int:
    """Return an upper bound on the number of values in a JSON text; stop counting beyond `MAX_VALUES`.

    >>> values_in(b'{"a": [1, 2, "3, 4, [5]"], "b": {}}')
    7
    """
    count, texts, end = 1, 0, 0
    for text in _STRING.finditer(body):
        count += sum(body.count(mark, end, text.start()) for mark in _MARKS)
        texts, end = texts + 1, text.end()
        if max(count, texts // 2) > MAX_VALUES:  # a value has at most two texts, its key and itself
            return max(count, texts // 2)
    return count + sum(body.count(mark, end) for mark in _MARKS)


def read_body(body: bytes, form: TypeAdapter[Any] | None) -> Any:
    """Parse a JSON body strictly, and check it against the model of its route."""
    if values_in(body) > MAX_VALUES:
        raise Refusal("invalid", f"the body holds more than {MAX_VALUES:,} JSON values; send less in one request")
    try:
        value = decode(body, "body", "")
    except InvalidTranscript as error:
        raise Refusal("invalid", str(error)) from error
    if form is None:
        return value
    try:
        return form.validate_python(value)
    except ValidationError as error:
        errors = error.errors(include_url=False, include_context=False, include_input=False)
        faults = field_faults([{**fault, "loc": ("body", *fault["loc"])} for fault in errors[:MAX_FAULTS]])
        raise Refusal("invalid", DOES_NOT_FIT, errors=faults) from None


class StrictRequest(Request):
    """Request that reads JSON strictly: no repeated key, NaN or lone surrogate, bounded depth and number of values."""

    body_form: TypeAdapter[Any] | None = None
    """Model of the body of this route; None for any JSON."""

    async def json(self) -> Any:
        """Return the checked body; the framework passes an instance of the route's model on unchanged."""
        body = await self.body()
        return await self.app.state.service.parse(read_body, body, self.body_form)


class StrictRoute(APIRoute):
    """Route that reads its body with `StrictRequest`, and refuses unknown query parameters: a mistyped ``dry_run`` must
    not be ignored."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        known = {parameter.alias for parameter in self.dependant.query_params}
        sent: Any = None if self.body_field is None else self.body_field.field_info.annotation
        form = None if sent is None else TypeAdapter(sent)

        async def strictly(request: Request) -> Response:
            if unknown := set(request.query_params) - known:
                faults = [FieldFault(where=f"query.{name[:60]}", what="no such parameter") for name in sorted(unknown)]
                raise Refusal("invalid", DOES_NOT_FIT, errors=faults[:MAX_FAULTS])
            strict = StrictRequest(request.scope, request.receive)
            strict.body_form = form
            return await handle(strict)

        return strictly

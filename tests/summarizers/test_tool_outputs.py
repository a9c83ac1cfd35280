"""Tool outputs: two or three bullets with the shape, the errors and the identifiers."""

from __future__ import annotations

import json

from ctxsteward.schemas import Message, SummarizerInput
from ctxsteward.schemas.summary import SourceMessage
from ctxsteward.summarizers import extractive


def bullets(result: str, *, name: str = "lookup", arguments: str = "{}") -> list[tuple[str, tuple[str, ...]]]:
    call = {"id": "c1", "type": "function", "function": {"name": name, "arguments": arguments}}
    wires = (
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": result},
    )
    messages = tuple(SourceMessage(ref=f"§{i + 4}", message=Message.from_wire(w)) for i, w in enumerate(wires))
    return [(b.text, b.citations) for b in extractive(SummarizerInput(messages=messages), budget_tokens=4000).bullets]


def test_a_record_shows_its_identifiers_verbatim() -> None:
    assert bullets('{"order_id": "W2378156", "note": "x", "status": "shipped"}', arguments='{"order": 7}') == [
        ('lookup {"order": 7}: "order_id": "W2378156"…"status": "shipped"', ("§4", "§5"))
    ]


def test_a_long_list_shows_its_keys_and_its_count() -> None:
    rows = [{"title": f"row {i}", "score": i / 7, "body": "lorem ipsum " * 3} for i in range(240)]
    assert ("lookup: JSON with keys title, score, body; 240 rows", ("§5",)) in bullets(json.dumps(rows))


def test_an_error_field_is_quoted() -> None:
    text, _ = bullets('{"error": "reservation not found"}')[0]
    assert '"error": "reservation not found"' in text


def test_a_log_shows_its_error_line_and_its_length() -> None:
    log = "\n".join(["start of run", *("tick" for _ in range(40)), "ERROR disk full on sda1", "bye"])
    texts = [text for text, _ in bullets(log)]
    assert any("ERROR disk full on sda1" in text for text in texts)
    assert any(text.endswith("start of run…bye…43 lines") for text in texts)


def test_a_table_shows_its_columns_and_rows() -> None:
    table = "name|kind|size\n" + "\n".join(f"a{i}|b|c" for i in range(20))
    assert any("table with columns name, kind, size; 21 rows" in text for text, _ in bullets(table))


def test_identical_results_are_cited_at_their_newest_place() -> None:
    wires = [
        {"role": "tool", "tool_call_id": f"c{i}", "content": '{"order_id": "W1"}', "name": "lookup"} for i in range(3)
    ]
    messages = tuple(SourceMessage(ref=f"§{i + 1}", message=Message.from_wire(w)) for i, w in enumerate(wires))
    found = extractive(SummarizerInput(messages=messages), budget_tokens=4000).bullets
    assert [b.citations for b in found] == [("§3",)]


def test_the_second_result_of_one_message_is_cited_by_its_part() -> None:
    content = [
        {"type": "tool_result", "tool_use_id": "a", "content": "order W1111111 found"},
        {"type": "tool_result", "tool_use_id": "b", "content": "order W2222222 found"},
    ]
    message = Message.from_wire({"role": "user", "content": content})
    source = SummarizerInput(messages=(SourceMessage(ref="§12", message=message),))
    found = extractive(source, budget_tokens=4000).bullets
    assert [b.citations for b in found] == [("§12.1",), ("§12.2",)]

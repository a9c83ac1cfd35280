"""The examples run, and print what is written here."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from .needs import CLIENTS

EXAMPLES = Path(__file__).parents[1] / "docs" / "examples"
GENERATED = Path(__file__).parents[1] / "clients" / "python" / "ctxsteward_client"
PRINTED = {
    "agent_loop": """
in the excerpt: False
answer: 213 orders used up its retry budget of 2, now without pg-replica-3
13632 characters in the log, 382 tokens in the request
""",
    "chat_service": """
123 messages in the log, 368 of 500 tokens sent
the frame number is in the request: True
and in the log, word for word: My bicycle is a Kestrel K7, frame number FN-20417.
""",
    "forget_a_person": """
shown before: True
forgot 1 message in 1 session
shown after: False
ben's words stay: Ticket 0 is done.
§1 of session 'team-7' was erased by privacy desk on 2026-11-22T09:00:00Z: request 17
""",
    "http_client": """
['My budget is 90,000 yen.', 'Which sights fit into it?']
True when it is sent again
{'content': 'My budget is 90,000 yen.', 'role': 'user'}
this tenant has no session of this name
exit code 0
""",
    "judges": """
I have looked.
VERDICT: no
""",
    "model_summaries": """
scripted with prefix_bullets 2: 2 bullets, refused: {}
- The deposit of booking BK-2093 is 120 EUR. (§3)
- Never call before nine. (§5)
session s-42 has spent $0.000219
""",
    "nightly_steward": """
promoted: due 3, harvested 3, absorbed 6, reconciled 4, admitted 1, fitted 1, staged 1, promoted 1
version 2 says: Never use emojis in your answers, please. (from chat-ada§3 and chat-hana§3)
""",
    "rebuild_and_audit": """
the same envelope as then: True
findings in what was sent: 0
after somebody altered it: injected_text messages[7].content
""",
    "way_back": """
[1] Bicycle 0 squeaks.
Bicycle 2 squeaks. Bicycle 7 squeaks.
""",
}


@pytest.mark.parametrize("name", PRINTED)
def test_an_example_prints_what_is_written_here(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    if name == "http_client" and not GENERATED.is_dir():
        pytest.skip(CLIENTS)
    path = EXAMPLES / f"{name}.py"
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out == PRINTED[name].lstrip()


def test_every_example_in_a_folder_is_run_by_a_test_of_its_own() -> None:
    """Those need packages that are not everybody's: their tests run where these are."""
    tests = "\n".join(path.read_text("utf-8") for path in EXAMPLES.parents[1].joinpath("tests").rglob("*_*.py"))
    inside = [path.relative_to(EXAMPLES) for path in EXAMPLES.rglob("*.py") if path.parent != EXAMPLES]
    assert [path for path in inside if path.stem not in tests or path.parts[0] not in tests] == []


def test_every_example_is_listed_and_short() -> None:
    assert sorted(PRINTED) == sorted(path.stem for path in EXAMPLES.glob("*.py"))
    assert [path.name for path in EXAMPLES.glob("*.py") if len(path.read_text("utf-8").splitlines()) > 60] == []

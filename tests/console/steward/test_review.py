"""``ctxsteward steward review``: what people are shown of a record that waits, their answers, what is remembered."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from ctxsteward.console.cli import cli
from ctxsteward.console.steward.context import open_context
from ctxsteward.console.steward.review import ReviewerAnswer, answer
from ctxsteward.schemas import InputError
from ctxsteward.store.profiles.text import references_of

from .scenes import QUICK_N, Desk, fixes, run, transcript, value

PICKUP = "Correction: pickup in Bonn ends at 18:00."
WORDS = "The depot in Bonn hands parcels out until 18:00."


def pickup(desk: Desk) -> str:
    """The claim that three customers make."""
    return next(str(one["id"]) for one in value("review", *desk.where)["records"] if one["text"] == PICKUP)


def decide(desk: Desk, name: str, *args: str, code: int = 0) -> Any:
    return value("review", *args, "--as", name, *desk.where, code=code, **desk.as_(name))


def asked(desk: Desk, *more: str, code: int | None = None) -> dict[str, dict[str, Any]]:
    """Records that wait, by text."""
    return {one["text"]: one for one in value("review", *more, *desk.where, code=code)["records"]}


def night(desk: Desk, *more: str, date: str = "2026-12-01", code: int | None = None) -> Any:
    return value("run", "--night", date, *more, *desk.where, code=code)


# -- what is shown ------------------------------------------------------------------------------------------------


def test_a_record_is_shown_with_its_line_evidence_reason_and_effect(desk: Desk) -> None:
    id_ = pickup(desk)
    told = run("review", *desk.where).stdout.splitlines()
    at = told.index(f"- {PICKUP} [{references_of([id_])[id_]}]")
    assert told[at : at + 9] == [
        f"- {PICKUP} [{references_of([id_])[id_]}]",
        f"  {id_}: candidate",
        f"  dora-2§3 dora, 2026-11-21: “{PICKUP}”",
        "  emil-2§3 emil, 2026-11-21: “A small correction: pickup in Bonn ends at 18:00.”",
        f"  hana-1§3 hana, 2026-11-21: “{PICKUP}”",
        "  Draft: + policies.pickup-bonn-ends: Pickup in Bonn ends at 18:00.",
        "  Effect: The frozen cases, replayed before and after: no figure changes. Drift WARN; 2 people must approve.",
        "  Why you: 3 people say this of the service, and neither a tool of your own nor a rule in force says the "
        "same: is it right?",
        told[at + 8],
    ]
    assert told[at + 8].startswith(
        "  To expect: It came up in 3 of 15 transcripts, with 3 people, on 2026-11-21. It costs "
    )
    assert told[at + 8].endswith(" of the 144 tokens that all such lines may have in each prompt.")


def test_a_fix_is_shown_with_what_was_done_otherwise_and_how_that_ended(desk: Desk, tmp_path: Path) -> None:
    for number in (901, 902, 903, 904):
        fixes(tmp_path / "logs", number)
    for number, succeeded in ((901, True), (902, True), (903, False), (904, None)):
        path = tmp_path / "logs" / f"r{number}.json"
        told = json.loads(path.read_text())
        told["ctxsteward"] |= {} if succeeded is None else {"succeeded": succeeded}
        path.write_text(json.dumps(told))
    night(desk, "--transcripts", str(tmp_path / "logs"))
    (fix,) = (one for text, one in asked(desk).items() if text.startswith("`refund` refuses the payment in"))
    assert fix["tried"] == [{"action": fix["tried"][0]["action"], "succeeded": 5, "failed": 1, "untold": 1}], (
        "three are shipped"
    )
    assert fix["contrast"] == []
    assert "Of 6 runs that did so 5 succeeded and 1 failed; of 1 more nobody says how they ended." in fix["effect"]
    assert {span["relation"] for span in fix["evidence"]} >= {"supports", "recovers"}


def booking(folder: Path, number: int, does: str, succeeded: bool | None, who: str | None = None) -> None:
    """A run in which a day is refused, and then written otherwise or left out."""

    def step(answer: str, **arguments: str) -> list[dict[str, Any]]:
        call = {"name": "reserve", "arguments": json.dumps({"order": "A17", **arguments})}
        id_ = f"call_{len(arguments.get('day', ''))}"
        return [
            {"role": "assistant", "content": None, "tool_calls": [{"id": id_, "type": "function", "function": call}]},
            {"role": "tool", "tool_call_id": id_, "content": answer},
        ]

    right = {"write": {"day": "2026-02-01"}, "omit": {}}[does]
    messages = [
        {"role": "user", "content": f"Reserve a slot for order {number}."},
        *step("Error: invalid day, wrong format", day="1/2/2026"),
        *step("{}", **right),
        {"role": "assistant", "content": "Done."},
    ]
    told = {"session": f"b{number}", "principal": who or f"user-{number}"}
    told |= {} if succeeded is None else {"succeeded": succeeded}  # type: ignore[dict-item]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"b{number}.json").write_text(json.dumps({"ctxsteward": told, "messages": messages}))


def test_the_contrast_is_what_runs_did_instead_and_how_they_ended(desk: Desk, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    for number, run_ in enumerate([("write", True), ("write", True), ("omit", False), ("omit", None)]):
        booking(logs, number, *run_)
    night(desk, "--transcripts", str(logs))
    (fix,) = (one for text, one in asked(desk).items() if text.startswith("`reserve` "))
    assert fix["text"] == "`reserve` rejects `day`: write it as YYYY-MM-DD."
    assert fix["contrast"] == [
        "Of runs that did this: 2 succeeded.",
        "Of runs that did “leave out day”: 1 failed, 1 ended nobody says how.",
    ]
    assert fix["waits"] == "It has worked in fewer than 3 runs that succeeded."
    assert "It came up in 4 of 19 transcripts, with 4 people or tasks, on " in fix["effect"]
    assert "Of 2 runs that did so 2 succeeded and 0 failed." in fix["effect"]
    lines = run("review", *desk.where).stdout.splitlines()
    assert f"  {fix['contrast'][1]}" in lines


def test_a_fix_that_worked_for_too_few_says_for_how_many(desk: Desk, tmp_path: Path) -> None:
    for number in range(4):
        booking(tmp_path / "logs", number, "write", True, who="kim")
    night(desk, "--transcripts", str(tmp_path / "logs"))
    (fix,) = (one for text, one in asked(desk).items() if text.startswith("`reserve` "))
    assert (fix["reasons"], fix["waits"]) == (
        ["hint", "needs_principals"],
        "It has worked for 1 person or task, and it takes 3 to reach everybody without you.",
    )


def test_the_page_begins_with_lines_and_their_evidence_and_says_what_review_says(desk: Desk, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    run("status", "--html", str(page), *desk.where)
    text, id_ = page.read_text(encoding="utf-8"), pickup(desk)
    told = [line.strip() for line in run("review", *desk.where).stdout.splitlines()[2:-1]]
    plain = text.replace("&#39;", "'").replace("&#34;", '"')
    places = [plain.index(line) for line in told]
    assert (len(told) > 30, places[0]) == (True, plain.index(f"- {PICKUP} [{references_of([id_])[id_]}]"))
    first = plain.index("In force for everybody"), plain.index("hana-2§5 hana, 2026-11-22: “Never use emojis")
    assert [*first, places[0], plain.index("<h2>Records")] == sorted([*first, places[0], plain.index("<h2>Records")])
    for command in ("--approve {}", '--reject {} --reason "…"', '--edit {} --text "…"'):
        assert f"ctxsteward steward review {command.format(id_)} --as NAME\n" in plain


# -- answers ------------------------------------------------------------------------------------------------------


def test_what_was_rejected_is_not_asked_again_until_evidence_of_another_kind_comes(desk: Desk, tmp_path: Path) -> None:
    id_ = pickup(desk)
    refused = decide(desk, "ada", "--reject", id_, "--reason", "only until May")
    assert (refused["kind"], refused["verdict"], refused["state"]) == ("record", "reject", "rejected")
    assert PICKUP not in asked(desk)
    assert "ada rejected it: “only until May”" in run("why", id_, *desk.where).stdout
    earlier = {"text": PICKUP, "who": "ada", "when": refused["when"], "note": "only until May"}
    assert (one := asked(desk, "--all")[PICKUP])["rejected"] == [earlier]
    assert one["waits"] == "ada rejected it."
    assert (
        f"Before: ada rejected it on {refused['when'][:10]}: “only until May”"
        in run("review", "--all", *desk.where).stdout
    )

    logs = tmp_path / "logs"
    transcript(
        logs / "kim.json", "Until when?", "Until 20:00.", PICKUP, principal="kim", started="2026-11-25T10:00:00Z"
    )
    night(desk, "--transcripts", str(logs))
    assert PICKUP not in asked(desk), "more of the same is nothing new"

    confirmed(logs / "lee.json")
    settings = tmp_path / "settings.yaml"
    settings.write_text("confirming_tools: {depots: [pickup_ends]}\n")
    night(desk, "--transcripts", str(logs), "--settings", str(settings), date="2026-12-02")
    again = asked(desk)[PICKUP]
    assert (again["status"], again["rejected"]) == ("rejected", [earlier])
    assert again["waits"] == "ada rejected it; since then a tool of your own has said the same."
    assert decide(desk, "ben", "--approve", id_)["state"] == "approved"
    assert PICKUP not in asked(desk)


def confirmed(path: Path) -> None:
    """A conversation in which a tool says what its user says."""
    call = {"id": "c1", "type": "function", "function": {"name": "depots", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "Until when is the depot open?"},
        {"role": "assistant", "content": "Until 20:00."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": json.dumps({"city": "Bonn", "pickup_ends": "18:00"})},
        {"role": "user", "content": PICKUP},
    ]
    told = {"session": path.stem, "principal": path.stem, "started": "2026-11-26T10:00:00Z"}
    path.write_text(json.dumps({"ctxsteward": told, "messages": messages}))


def test_an_edit_keeps_its_sources_and_survives_nights_until_it_is_in_force(desk: Desk) -> None:
    id_ = pickup(desk)
    before = value("why", id_, *desk.where)
    made = decide(desk, "ada", "--edit", id_, "--text", WORDS, "--reason", "plainer")
    assert {name: made[name] for name in ("verdict", "who", "state", "text", "approved", "people")} == {
        "verdict": "edit",
        "who": "ada",
        "state": "waiting",
        "text": WORDS,
        "approved": 0,
        "people": 1,
    }
    night(desk)
    after = value("why", id_, *desk.where)
    assert (after["record"]["text"], after["spans"]) == (WORDS, before["spans"])
    assert (after["record"]["status"], after["record"]["reasons"]) == ("vetted", ["edited"])
    assert after["record"]["review"] == {
        "state": "awaiting",
        "who": ["ada"],
        "when": made["when"],
        "note": "plainer",
        "text": WORDS,
    }
    waits = f"ada gave it these words on {made['when'][:10]}; somebody else must approve them."
    assert (asked(desk)[WORDS]["waits"], PICKUP in asked(desk)) == (waits, False)

    mine = run("review", "--approve", id_, "--as", "ada", *desk.where, code=2, **desk.as_("ada")).stderr
    assert "'ada' gave it these words; somebody else must approve them" in mine
    decide(desk, "ben", "--approve", id_)
    held = night(desk, date="2026-12-02", code=3)
    (request,) = value("review", *desk.where, code=3)["requests"]
    assert any(line.startswith(f"+ {WORDS} [") for line in held["changes"])
    decide(desk, "ada", "--approve", request["id"])
    commits = f"`ctxsteward steward promote {request['id']}` or the next night brings it into force"
    assert run("review", *desk.where).stdout.splitlines()[0] == f"request {request['id']} is approved: {commits}"
    assert night(desk, date="2026-12-03")["outcome"] == "promoted"
    (line,) = (one for one in desk.head().meta if one.id == id_)
    assert (line.text, line.approved) == (WORDS, True)
    assert set(line.sources) <= {f"{span['session']}{span['ref']}" for span in before["spans"]}
    assert night(desk, date="2026-12-04")["outcome"] == "unchanged"


def test_edited_words_are_kept_and_sound_for_whoever_checks_the_store(desk: Desk) -> None:
    id_ = pickup(desk)
    decide(desk, "ada", "--edit", id_, "--text", WORDS)
    for command in (["gc", "--grace", "0m"], ["fsck", "--read-data"]):
        done = CliRunner().invoke(cli, ["store", *command, *desk.where])
        assert done.exit_code == 0, done.output
    assert WORDS in asked(desk)
    written = b"".join(path.read_bytes() for path in (desk.root / "store" / "objects").rglob("*") if path.is_file())
    assert (WORDS.encode() in written, len(written) > 10_000) == (False, True)


def test_forgetting_who_said_it_takes_the_edited_words_as_well(desk: Desk) -> None:
    id_ = pickup(desk)
    decide(desk, "ada", "--edit", id_, "--text", WORDS)
    for who in ("dora", "emil", "hana"):
        run("forget", "--principal", who, "--who", "ada", "--why", "request 17", *desk.where)
    assert {PICKUP, WORDS} & asked(desk, "--all").keys() == set()
    with open_context(desk.where[1], "default", None) as place:
        ((_, body),) = place.record_reviews.links()
        assert place.store.vault("default").tombstone(body["text"]["key"]) is not None


def test_an_answer_to_words_that_were_changed_meanwhile_is_refused(desk: Desk) -> None:
    id_ = pickup(desk)
    decide(desk, "ada", "--edit", id_, "--text", WORDS)
    with open_context(desk.where[1], "default", None) as place, pytest.raises(InputError) as refused:
        answer(place, ReviewerAnswer(id=id_, decision="approve", secret=desk.tokens["ben"], seen=PICKUP))
    assert str(refused.value) == f"record {id_} says something else now: “{WORDS}”; look at it again"


# -- one key each -------------------------------------------------------------------------------------------------


class Terminal:
    """A command on a terminal of its own."""

    def __init__(self, fd: int, process: subprocess.Popen[bytes]) -> None:
        self._fd, self.process, self.screen = fd, process, ""

    def until(self, text: str, seconds: float = 30.0) -> str:
        """Read until this is shown, behind what was read before."""
        end, seen = time.monotonic() + seconds, ""
        while text not in seen:
            assert time.monotonic() < end, f"{text!r} is not shown: {self.screen[-800:]}"
            if select.select([self._fd], [], [], 0.2)[0]:
                try:
                    data = os.read(self._fd, 65536).decode(errors="replace").replace("\r", "")
                except OSError:  # it has ended
                    data = ""
                assert data, f"{text!r} was not shown: {self.screen[-800:]}"
                seen, self.screen = seen + data, self.screen + data
        return seen

    def press(self, key: str) -> None:
        """A key, once single ones are waited for: what comes before that is thrown away."""
        end = time.monotonic() + 15
        while termios.tcgetattr(self._fd)[3] & termios.ICANON:
            assert time.monotonic() < end, "no key is waited for"
            time.sleep(0.01)
        self.type(key)

    def type(self, text: str) -> None:
        os.write(self._fd, text.encode())


@contextmanager
def terminal(desk: Desk, *args: str, **more: str) -> Iterator[Terminal]:
    outside, inside = pty.openpty()
    plain = {name: text for name, text in os.environ.items() if name not in ("EDITOR", "VISUAL", "CTXSTEWARD_TOKEN")}
    env = plain | {"TERM": "dumb", "COLUMNS": "400", "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **more}
    code = (  # as quick as in this process: cheap keys, and one of the gate's shipped cases
        "from ctxsteward.console.cli import main; from ctxsteward.steward.gate import settings; "
        "from ctxsteward.steward.release import actors; whole = settings.shipped(); "
        "settings.shipped = lambda: whole.model_copy(update={'cases': whole.cases[:1]}); "
        f"actors._SCRYPT['n'] = {QUICK_N}; main()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, "steward", *args, *desk.where],
        stdin=inside,
        stdout=inside,
        stderr=inside,
        env=env,
        start_new_session=True,
    )
    os.close(inside)
    try:
        yield Terminal(outside, process)
    finally:
        process.kill()
        process.wait()
        os.close(outside)


ASK = "r reject, e edit, l later, s show more, q quit: "


def test_on_a_terminal_one_key_answers_each_question(desk: Desk) -> None:
    before = list(asked(desk).values())
    with terminal(desk, "review", "--as", "ada", CTXSTEWARD_TOKEN=desk.tokens["ada"]) as screen:
        assert PICKUP in screen.until(ASK)
        for key, shown in (("s", PICKUP), ("x", ASK)):
            screen.press(key)
            assert shown in screen.until(ASK)
        screen.press("r")
        screen.until("why")
        screen.type("\n")
        assert "nothing was decided: a rejection needs a reason" in screen.until(ASK)
        screen.press("r")
        screen.until("why")
        screen.type("only until May\n")
        assert "ada rejected record" in screen.until(ASK)
        screen.press("l")
        screen.until(ASK)
        screen.press("e")
        screen.until("its words")
        screen.type("Take the order_id from get_user before booking.\n")
        assert "somebody else must approve them" in screen.until(ASK)
        screen.press("a")
        assert "ada approved record" in screen.until(ASK)
        screen.press("q")
        screen.until("3 of 5 answered")
        assert screen.process.wait(30) == 0
    states = {one["id"]: value("why", one["id"], *desk.where)["record"] for one in before[:5]}
    reviews = [(one["review"] or {}).get("state") for one in states.values()]
    assert reviews == ["rejected", None, "awaiting", "approved", None]
    assert {one["id"] for one in value("review", *desk.where)["records"]} == {
        before[1]["id"],
        before[2]["id"],
        *[one["id"] for one in before[4:]],
    }
    assert desk.tokens["ada"] not in screen.screen


def test_an_editor_is_opened_on_the_words_and_a_token_is_asked_for_until_one_serves(desk: Desk, tmp_path: Path) -> None:
    editor = tmp_path / "editor.sh"
    editor.write_text(f'#!/bin/sh\ncp "$1" {tmp_path}/seen\nprintf "%s" "{WORDS}" > "$1"\n')
    editor.chmod(0o700)
    with terminal(desk, "review", EDITOR=str(editor)) as screen:
        screen.until(ASK)
        for name, says in (("otto", "actor 'otto' is no reviewer"), ("ben", "ben gave other words to record")):
            screen.press("e")
            screen.until("token: ")
            screen.type(f"{desk.tokens[name]}\n")
            assert says in screen.until(ASK)
        screen.press("l")
        screen.until(ASK)
        screen.press("\x03")
        screen.until("1 of 5 answered")
        assert screen.process.wait(30) == 0
    assert (tmp_path / "seen").read_text() == f"{PICKUP}\n"
    assert asked(desk)[WORDS]["reasons"] == ["edited"]
    assert desk.tokens["ben"] not in screen.screen


def test_a_request_is_answered_by_a_key_as_well(desk: Desk) -> None:
    id_ = desk.record()
    decide(desk, "ada", "--approve", id_)
    night(desk, code=3)
    (request,) = value("review", *desk.where, code=3)["requests"]
    with terminal(desk, "review", CTXSTEWARD_TOKEN=desk.tokens["ben"]) as screen:
        assert f"request {request['id']}: drift" in screen.until(ASK)
        screen.press("e")
        assert "a request is approved or rejected whole" in screen.until(ASK)
        screen.press("s")
        assert "+ meta." in screen.until(ASK)
        screen.press("a")
        assert f"ben approved request {request['id']}" in screen.until(ASK)
        screen.press("q")
        assert screen.process.wait(30) == 0

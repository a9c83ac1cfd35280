"""What people do on the live pages, without a browser: who may, what is refused, and how full a session is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ctxsteward.console.pages import Site
from ctxsteward.console.pages.health import health_of, health_of_call
from ctxsteward.console.pages.profiles import governed_profile, text_changes
from ctxsteward.envelope import Budgets, EnvelopeBuilder, Store, open_store, past_calls

from ..steward.conftest import desk, night, quick_keys, staffed
from ..steward.scenes import Desk, value
from ..test_view import check, taken_apart
from .serving import FREE, Served, served, tenants

__all__ = ["desk", "night", "quick_keys", "staffed"]
SMALL = Budgets(dynamic_tokens=400)


def filled(session: str, store: Store, messages: int) -> None:
    store.session(session).extend(
        {"role": "user", "content": f"Rule {n}: keep room {n} at {n} degrees."} for n in range(messages)
    )


def form(at: Served, path: str, code: int, **fields: str) -> Any:
    answer = at.client.post(path, data=fields)
    assert answer.status_code == code, answer.text[:400]
    return answer


LEVELS = {"nothing said": (0, "idle"), "a little": (4, "healthy"), "near": (20, "warning"), "full": (40, "critical")}


@pytest.mark.parametrize(("messages", "level"), LEVELS.values(), ids=LEVELS)
def test_how_full_a_session_is(messages: int, level: str) -> None:
    at = served(budgets=SMALL)
    filled("s", at.store, messages)
    told = at.get("/api/sessions/s/health")
    assert (told["level"], told["messages"], told["next_call"]) == (level, messages, True)
    assert told["utilization"] == max(told["budget_utilization"], told["window_utilization"])
    assert told["budget_utilization"] == pytest.approx(told["dynamic_tokens"] / 400, abs=1e-3)
    assert told["threshold_tokens"] == 360
    page = at.client.get("/sessions/s/health").text
    assert f'class="level {level}"' in page
    assert at.store.journal.length(at.store.at("default", "s").key) == at.store.at("default", "s").state.position


def test_a_history_beyond_the_model_s_window_is_critical_and_says_how_much_it_needs() -> None:
    at = served(model="gpt-4")
    filled("s", at.store, 600)
    told = at.get("/api/sessions/s/health")
    assert (told["level"], told["messages"]) == ("critical", 600)
    assert told["prompt_tokens"] > told["window_tokens"] == 6_144
    page = at.client.get("/sessions/s/health?preview=1")
    assert page.status_code == 200
    assert 'value="prune"' in page.text
    assert (
        form(at, "/sessions/s/health", 303, action="prune")
        .headers["location"]
        .startswith("/sessions/s/health?done=prune")
    )
    assert at.get("/api/sessions/s/health")["level"] != "critical"


def test_a_compaction_is_undone_by_a_button_and_what_does_not_fit_is_told(tmp_path: Path) -> None:
    at = served(budgets=Budgets(dynamic_tokens=4_000))
    filled("s", at.store, 40)
    assert 'value="undo"' not in at.client.get("/sessions/s/health").text
    form(at, "/sessions/s/health", 422, action="undo")
    at.post("/api/sessions/s/compact", {"keep_tokens": 100})
    page = at.client.get("/sessions/s/health").text
    assert 'value="undo"' in page
    assert "Show these again" in page
    before = len(at.store.at("default", "s").state.groups)
    assert form(at, "/sessions/s/health", 303, action="undo").headers["location"].endswith("done=undo")
    assert len(at.store.at("default", "s").state.groups) == 40 > before
    assert "are shown again" in at.client.get("/sessions/s/health?done=undo").text
    at.post("/api/sessions/s/compact", {"keep_tokens": 100})
    tight = served(at.store, budgets=Budgets(dynamic_tokens=300))
    assert "dynamic_tokens=" in form(tight, "/sessions/s/health", 422, action="undo").text


def test_the_page_says_why_a_session_cannot_be_compacted_into_the_window() -> None:
    at = served(model="gpt-4")
    at.store.session("s").append({"role": "user", "content": "Keep this word for word. " * 2_000})
    page = at.client.get("/sessions/s/health?preview=1")
    assert page.status_code == 422
    assert 'class="level critical"' in page.text
    assert "shorten the newest message" in page.text


def test_health_of_the_newest_call_is_that_of_its_figures() -> None:
    store, builder = open_store("memory:"), EnvelopeBuilder("gpt-4o", budgets=SMALL)
    filled("s", store, 20)
    session = store.session("s")
    assert health_of_call(session, None).prompt_tokens == 0
    before = health_of(session, builder)
    builder.build(session)
    (call,) = past_calls(store, "s")
    found = health_of_call(session, call)
    same = ("level", "utilization", "prompt_tokens", "dynamic_tokens", "dynamic_budget_tokens", "threshold_tokens")
    assert [getattr(found, name) for name in same] == [getattr(before, name) for name in same]
    assert not found.next_call


def test_pruning_asks_for_the_scope_and_tells_what_it_did(tmp_path: Path) -> None:
    of = tenants(tmp_path, budgets=SMALL)
    at = of.served
    at.client.headers.update(of.as_(of.acme))
    rows = [{"message": {"role": "user", "content": f"Rule {n}: keep room {n} at {n} degrees."}} for n in range(60)]
    at.post("/api/sessions/s/messages", {"messages": rows})
    preview = at.client.get("/sessions/s/health?preview=1").text
    assert 'value="prune"' in preview
    assert at.get("/api/sessions/s/health")["compactions"] == 0
    at.client.headers.update(of.as_(of.reader))
    assert 'value="prune"' not in at.client.get("/sessions/s/health?preview=1").text
    form(at, "/sessions/s/health", 403, action="prune")
    at.client.headers.update(of.as_(of.other))
    form(at, "/sessions/s/health", 404, action="prune")
    at.client.headers.update(of.as_(of.acme))
    assert form(at, "/sessions/s/health?lang=zh", 303, action="prune").headers["location"] == (
        "/sessions/s/health?done=prune&lang=zh"
    )
    assert at.get("/api/sessions/s/health")["compactions"] == 1
    form(at, "/sessions/s/health", 422, action="other")
    assert "Compacted." in at.client.get("/sessions/s/health?done=prune").text
    assert "data-toast>" not in at.client.get("/sessions/s/health?done=<b>sold").text


@pytest.fixture
def office(desk: Desk) -> Served:
    return served(open_store(desk.where[1]), limits=FREE)


PROFILE = "/steward/fernhollow-desk"
REFUSED = {
    "no token": ({"action": "approve", "id": "x"}, "no token: write the token"),
    "that of the process": ({"action": "rollback", "version": "1", "note": "x", "token": "-"}, "no token"),
    "a token of nobody": ({"action": "approve", "token": "nobody"}, "token"),
    "a rejection without a reason": ({"action": "reject", "id": "x", "token": "t"}, "needs a reason"),
    "a rollback without a reason": ({"action": "rollback", "version": "1", "token": "t"}, "needs a reason"),
    "no version": ({"action": "rollback", "version": "99", "note": "x", "token": "t"}, "from 1 to 2"),
    "no number": ({"action": "rollback", "version": "1'", "note": "x", "token": "t"}, "from 1 to 2"),
    "nothing": ({"action": "sell"}, "the form says what to do"),
}


def test_what_is_refused_is_told_on_the_page(office: Served, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where this process has a token in its environment: nobody answers with that."""
    monkeypatch.setenv("CTXSTEWARD_TOKEN", desk.tokens["otto"])
    record = desk.record()
    for case, (fields, said) in REFUSED.items():
        page = form(office, PROFILE, 422, **{"id": record} | fields).text
        assert said in page.partition('role="alert"')[2].partition("</p>")[0], case
    assert office.store.profiles("fernhollow-desk").newest().number == 2


def test_an_answer_is_that_of_the_command_line_and_signed_by_its_person(office: Served, desk: Desk) -> None:
    id = desk.record()
    seen = next(one["text"] for one in value("review", *desk.where)["records"] if one["id"] == id)
    stale = form(office, PROFILE, 422, action="approve", id=id, seen="other words", token=desk.tokens["ada"]).text
    assert "says something else now" in stale
    kept = form(office, PROFILE, 422, action="reject", id=id, note="", text="kept words", token="secret-1").text
    assert ("kept words" in kept, "secret-1" in kept) == (True, False)
    assert form(office, PROFILE, 303, action="approve", id=id, seen=seen, token=desk.tokens["ada"]).headers[
        "location"
    ] == (f"{PROFILE}?done=approve")
    record = value("why", id, *desk.where)["record"]
    assert (record["review"]["state"], record["review"]["who"]) == ("approved", ["ada"])
    assert "secret-1" not in str(office.log)
    by_reviewer = form(office, PROFILE, 422, action="promote", id=id, token=desk.tokens["ada"]).text
    assert "ada" in by_reviewer.partition('role="alert"')[2]
    form(office, PROFILE, 303, action="rollback", version="1", note="a try", token=desk.tokens["otto"])
    (newest, *_) = value("log", *desk.where)
    assert (newest["version"], newest["who"], newest["restores"], newest["why"]) == (3, "otto", 1, "a try")


def test_a_draft_is_shown_with_its_patch_and_accepted_on_the_page(office: Served, desk: Desk) -> None:
    page = office.client.get(PROFILE).text
    assert "Draft: + policies.pickup-bonn-ends: Pickup in Bonn ends at 18:00." in page
    assert page.count('value="accept"') == 1, "nothing else is drafted"
    id = next(one["id"] for one in value("review", *desk.where)["records"] if "draft" in one)
    told = form(office, PROFILE, 303, action="accept", id=id, token=desk.tokens["ada"]).headers["location"]
    assert told == f"{PROFILE}?done=more", "a second person must approve it beside locked lines"
    (request,) = value("review", *desk.where, code=3)["requests"]
    assert (request["approved"], request["people"]) == (1, 2)


def test_where_nobody_is_configured_nothing_is_approved(night: Path, tmp_path: Path) -> None:
    from shutil import copytree

    at = served(open_store(f"file:{copytree(night, tmp_path / 'store')}"))
    page = at.client.get(PROFILE).text
    assert ("nobody" in page.lower(), 'value="approve"' in page) == (True, False)
    assert "nobody is configured to review" in form(at, PROFILE, 422, action="approve", id="x", token="t").text
    assert "say who you are" in form(at, PROFILE, 422, action="rollback", version="1", note="x").text
    form(at, PROFILE, 303, action="rollback", version="1", note="x", who="Ada")


def test_a_token_without_the_scope_reads_and_decides_nothing(tmp_path: Path) -> None:
    of = tenants(tmp_path)
    for token in (of.acme, of.reader):
        of.served.client.headers.update(of.as_(token))
        form(of.served, PROFILE, 403, action="approve")
    of.served.client.headers.update(of.as_(of.steward))
    form(of.served, PROFILE, 404, action="approve")


BAD_FORMS = {
    "JSON": (b"{}", "application/json", 415),
    "too large": (b"a=" + b"x" * 20_000, "application/x-www-form-urlencoded", 413),
    "too many fields": (b"&".join(b"a=1" for _ in range(30)), "application/x-www-form-urlencoded", 422),
    "not UTF-8": (b"a=\xff", "application/x-www-form-urlencoded", 422),
}


@pytest.mark.parametrize(("body", "kind", "code"), BAD_FORMS.values(), ids=BAD_FORMS)
def test_what_is_no_form_is_refused(body: bytes, kind: str, code: int) -> None:
    answer = served().client.post(PROFILE, content=body, headers={"content-type": kind})
    assert answer.status_code == code, answer.text


def test_pages_of_the_steward_as_files(desk: Desk, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with open_store(desk.where[1]) as store:
        store.session("dora-2").extend({"role": "user", "content": f"Message {n}"} for n in range(4))
        Site(store=store).write(out)
        shown = governed_profile(store, "default", "fernhollow-desk")
    apart = taken_apart(out)
    check(out, apart)
    assert {name for name in apart if name.startswith("en/steward")} == {
        "en/steward.html",
        "en/steward/fernhollow-desk/index.html",
        "en/steward/fernhollow-desk/version-1-2.html",
    }
    page = apart["en/steward/fernhollow-desk/index.html"]
    assert page.tags["form"] == 0
    assert [one.record.text for one in shown.questions.rows if one.record.text not in "".join(page.text)] == []
    assert any("sessions/dora-2/messages.html#m3" in link for _, link in page.links)
    asked = [one["id"] for one in value("review", *desk.where)["records"]]
    assert [one.record.id for one in shown.questions.rows] == asked


def test_what_two_texts_differ_in() -> None:
    found = text_changes({"a": "1", "b": "2", "c": "3"}, {"c": "3", "b": "9", "d": "4"})
    assert [tuple(one) for one in found] == [
        ("dropped", "a", "1", ""),
        ("changed", "b", "2", "9"),
        ("new", "d", "", "4"),
    ]

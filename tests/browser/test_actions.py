"""What people do on the pages, done by a browser: with the mouse, with the keyboard alone, and without scripts."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.request import Request, urlopen

import pytest
from playwright.sync_api import Browser, Page, expect

from ctxsteward.envelope import open_store

from .conftest import DESK, Served, Watched, looking

NEW_WORDS = "Pickup in Bonn ends at 18:00 on weekdays."


@pytest.fixture
def window(browser: Browser, served: Served) -> Iterator[Watched]:
    with looking(browser, served) as watched:
        yield watched
        faults = [
            fault for fault in watched.faults if "422" not in fault
        ]  # of what is refused, a browser says so itself
        assert (faults, watched.page.evaluate("window.ran")) == ([], [])


def candidate(page: Page, words: str) -> str:
    """Id of the candidate whose line has these words."""
    found = page.locator("section.question", has_text=words).first.get_attribute("id")
    assert found is not None
    return found


def say_yes(page: Page) -> None:
    expect(page.locator("dialog[open]")).to_be_visible()
    page.locator("dialog[open] [data-yes]").click()


def answered(page: Page, id: str, token: str, button: str, **fields: str) -> None:
    """Fill in the form of a question and press a button."""
    question = page.locator(f"#{id}")
    question.locator("details.answer > summary").click()
    question.locator("input[name=token]").fill(token)
    for name, text in fields.items():
        question.locator(f"input[name={name}]").fill(text)
    question.get_by_role("button", name=button, exact=True).click()


def test_prune_with_a_preview_and_its_price(window: Watched, served: Served) -> None:
    page = window.page
    window.open(served.at("sessions/full/health"))
    before = page.locator("#live .figure dd").all_inner_texts()
    page.get_by_role("button", name="Show what would leave").click()
    expect(page.locator("#preview")).to_contain_text("→")
    page.get_by_role("button", name="Prune now").click()
    page.locator("dialog[open] [data-no]").click()
    expect(page.locator("dialog[open]")).to_have_count(0)
    page.get_by_role("button", name="Prune now").click()
    say_yes(page)
    expect(page.locator("[data-toasts]")).to_contain_text("Compacted")
    after = page.locator("#live .figure dd").all_inner_texts()
    assert (int(after[2]), int(after[0].replace(",", "")) < int(before[0].replace(",", ""))) == (
        int(before[2]) + 1,
        True,
    )
    assert "done=" not in page.url


def test_a_candidate_is_rejected_with_a_reason_that_is_told_afterwards(window: Watched, served: Served) -> None:
    page = window.page
    window.open(served.at(f"steward/{DESK}"))
    id = candidate(page, "`book` rejects `pickup_date`")
    answered(page, id, served.tokens["ada"], "Reject")
    expect(page.locator("dialog[open]")).to_have_count(0)  # the browser asks for the reason first
    page.locator(f"#{id} input[name=note]").fill("The tool is changed next week.")
    page.locator(f"#{id}").get_by_role("button", name="Reject").click()
    say_yes(page)
    expect(page.locator("[data-toast]")).to_contain_text("Rejected")
    expect(page.locator(f"#{id}")).to_have_count(0)


def test_a_candidate_is_edited_and_approved_by_somebody_else_and_promoted_and_rolled_back(
    window: Watched, served: Served
) -> None:
    page = window.page
    window.open(served.at(f"steward/{DESK}"))
    id = candidate(page, "pickup in Bonn ends at 18:00")
    answered(page, id, served.tokens["ada"], "Edit", text=NEW_WORDS)
    say_yes(page)
    expect(page.locator("[data-toast]")).to_contain_text("somebody else")
    answered(page, id, served.tokens["ada"], "Approve")
    say_yes(page)
    expect(page.locator("[role=alert]")).to_contain_text("somebody else")
    answered_again = page.locator(f"#{id} details.answer")
    expect(answered_again).to_have_attribute("open", "")
    page.locator(f"#{id} input[name=token]").fill(served.tokens["ben"])
    page.locator(f"#{id}").get_by_role("button", name="Approve").click()
    say_yes(page)
    expect(page.locator("[data-toast]")).to_contain_text("Approved")
    waits = page.locator(f"#{id}")
    waits.locator("input[name=token]").fill(served.tokens["ada"])
    waits.get_by_role("button", name="Promote").click()
    say_yes(page)
    expect(page.locator("[role=alert]")).to_contain_text("ada")  # is no operator
    head = page.locator("#versions tbody th").first.inner_text()
    waits.locator("input[name=token]").fill(served.tokens["otto"])
    waits.get_by_role("button", name="Promote").click()
    say_yes(page)
    expect(page.locator("[role=alert]")).to_contain_text("must still approve request")  # it is staged, and waits
    request = page.locator("section.question", has_text="drift").first
    answered(page, request.get_attribute("id") or "", served.tokens["ben"], "Approve")
    say_yes(page)
    expect(page.locator("[data-toast]")).to_contain_text("Approved")
    request.locator("input[name=token]").fill(served.tokens["otto"])
    request.get_by_role("button", name="Promote").click()
    say_yes(page)
    expect(page.locator("[data-toast]")).to_contain_text("A new version is in force")
    newest = page.locator("#versions tbody tr").first
    assert int(newest.locator("th").inner_text()) == int(head) + 1
    newest.get_by_role("link").click()
    expect(page.locator(".unit.new")).to_contain_text(NEW_WORDS)
    page.go_back()
    page.get_by_text("Choose a version").click()
    page.locator("#rb-version").select_option(head)
    page.locator("#rb-note").fill("Bonn closes earlier again.")
    page.locator("#rb-token").fill(served.tokens["otto"])
    page.get_by_role("button", name="Roll back").click()
    say_yes(page)
    expect(page.locator("[data-toast]")).to_contain_text("Rolled back")
    expect(page.locator("#versions tbody tr").first).to_contain_text(f"restores {head}")
    with open_store(served.store) as store:
        assert NEW_WORDS not in {record.text for record in store.profiles(DESK).newest().profile.meta}


def test_nothing_is_decided_without_a_token_nor_by_a_page_of_another_site(served: Served) -> None:
    import http.client

    port = int(served.url.rsplit(":", 1)[1].strip("/"))

    def post(body: str, **headers: str) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        kind = {"content-type": "application/x-www-form-urlencoded"}
        connection.request("POST", f"/steward/{DESK}", body, kind | headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, text

    for token in ("", "-", "wrong"):
        status, text = post(f"action=rollback&version=1&note=x&token={token}")
        assert (status, 'role="alert"' in text, f'value="{token}"' in text and token != "") == (422, True, False)
    assert post("action=rollback", origin="http://evil.invalid")[0] == 403
    assert post("action=rollback", **{"sec-fetch-site": "cross-site"})[0] == 403
    assert post("action=nothing")[0] == 422


def test_a_citation_leads_to_its_original(window: Watched, served: Served) -> None:
    page = window.page
    window.open(served.at("sessions/trip/calls/24"))
    bullets = page.locator("details.block", has_text="bullets").first
    if bullets.get_attribute("open") is None:
        bullets.locator("> summary").click()
    bullets.locator("details > summary").first.click()
    reference = bullets.locator("blockquote.original a.ref").first
    named = reference.inner_text()
    reference.click()
    message = page.locator(f"#m{named.strip('§')}")
    expect(message).to_be_in_viewport()
    assert page.url.endswith(f"#m{named.strip('§')}")


def test_evidence_leads_to_the_message_where_the_session_is_here(window: Watched, served: Served) -> None:
    window.open(served.at(f"steward/{DESK}"))
    assert window.page.locator("blockquote.original .ref").count() > 3


def test_language_and_theme(window: Watched, served: Served) -> None:
    page = window.page
    window.open(served.at("sessions/trip"))
    page.get_by_role("link", name="中文").click()
    expect(page.locator("html")).to_have_attribute("lang", "zh")
    expect(page.get_by_role("link", name="时间线", exact=True)).to_be_visible()
    paper = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(paper)
    page.locator("[data-theme-toggle]").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert page.evaluate(paper) != light
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.get_by_role("link", name="English").click()
    expect(page.locator("html")).to_have_attribute("lang", "en")


def walk_to(page: Page, name: str) -> None:
    """Tab until something of this name has the focus."""
    for _ in range(80):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent.trim()") == name:
            assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
            return
    raise AssertionError(f"Tab does not come to {name}")


def test_a_session_is_found_and_pruned_by_keyboard_alone(window: Watched, served: Served) -> None:
    page = window.page
    window.open(served.at("sessions?q=trip"))
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    walk_to(page, "trip")
    page.keyboard.press("Enter")
    page.wait_for_url("**/sessions/trip")
    walk_to(page, "Health")
    page.keyboard.press("Enter")
    page.wait_for_url("**/health")
    walk_to(page, "Show what would leave")
    page.keyboard.press("Enter")
    page.wait_for_url("**preview=1**")
    if page.get_by_role("button", name="Prune now").count():
        walk_to(page, "Prune now")
        page.keyboard.press("Enter")
        expect(page.locator("dialog[open]")).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.locator("dialog[open]")).to_have_count(0)
        assert page.evaluate("document.activeElement.textContent") == "Prune now"
    else:
        expect(page.locator("#preview")).to_contain_text("Nothing would leave")


def test_forms_work_without_scripts(browser: Browser, served: Served) -> None:
    with looking(browser, served, java_script_enabled=False) as window:
        page = window.page
        window.open(served.at("sessions/plain/health"))
        page.get_by_role("button", name="Show what would leave").click()
        page.get_by_role("button", name="Prune now").click()
        expect(page.locator("[data-toast]")).to_contain_text("Compacted")
        window.open(served.at(f"steward/{DESK}?lang=zh"))
        id = candidate(page, "`get_order` does not find")
        question = page.locator(f"#{id}")
        question.locator("details.answer > summary").click()
        question.locator("input[name=token]").fill(served.tokens["ben"])
        question.locator("input[name=note]").fill("这个工具下周会变。")
        question.get_by_role("button", name="拒绝").click()
        expect(page.locator("[data-toast]")).to_contain_text("已拒绝")
        assert window.faults == []


def test_a_page_of_health_is_renewed_when_the_session_goes_on(window: Watched, served: Served) -> None:
    page = window.page
    window.open(served.at("sessions/s-0007/health"))
    messages = page.locator("#live .figure dd").nth(1)
    expect(messages).to_have_text("1")
    page.wait_for_timeout(300)
    body = b'{"messages":[{"message":{"role":"assistant","content":"Noted."}}]}'
    asked = Request(served.at("api/sessions/s-0007/messages"), body, {"content-type": "application/json"})
    with urlopen(asked, timeout=60) as answer:
        assert answer.status == 200
    expect(messages).to_have_text("2", timeout=30_000)


def test_the_widget_asks_prunes_and_leaves_nothing_behind(window: Watched, served: Served) -> None:
    page = window.page
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "/api/" in request.url else None)
    window.open(served.at("widget?session=meter"))
    states = [meter.locator(".state").inner_text() for meter in page.locator("context-meter[sample]").all()]
    assert states == ["Idle", "Healthy", "Over 80 %", "Over 90 %", "–"]
    live = page.locator("context-meter[session]")
    bar = live.get_by_role("meter")
    expect(live.locator(".share")).to_contain_text("%")
    before = int(bar.get_attribute("aria-valuenow") or "0")
    live.get_by_role("button", name="Prune", exact=True).click()
    live.locator("dialog[open]").get_by_role("button", name="Prune now").click()
    expect(live.locator("[role=status]")).to_contain_text("Compacted")
    page.wait_for_function(
        "(was) => Number(document.querySelector('context-meter[session]').shadowRoot"
        ".querySelector('[role=meter]').ariaValueNow) < was",
        arg=before,
    )
    live.evaluate("(one) => one.setAttribute('refresh', '1')")
    page.wait_for_timeout(1_300)
    count = len(asked)
    assert count > 3
    live.evaluate("(one) => { window.gone = one; one.remove(); }")
    page.wait_for_timeout(1_500)
    assert len(asked) == count
    page.evaluate("() => document.querySelector('main').append(window.gone)")
    page.wait_for_function("() => window.gone.shadowRoot.querySelector('.share').textContent.includes('%')")
    page.wait_for_timeout(200)
    assert len(asked) > count


def test_the_widget_says_when_nobody_answers(browser: Browser, served: Served) -> None:
    with looking(browser, served) as window:
        page = window.page
        window.open(served.at("widget?session=full"))
        page.route("**/api/**", lambda route: route.abort())
        meter = page.locator("context-meter[session]")
        meter.evaluate("(one) => one.setAttribute('refresh', '1')")
        expect(meter.locator("[role=status]")).to_have_text("The service does not answer")
        page.unroute("**/api/**")
        expect(meter.locator(".state")).not_to_have_text("–", timeout=20_000)

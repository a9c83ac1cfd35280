"""Who may ask for what: tokens, tenants, scopes, logins of browsers, and pages of other sites."""

from __future__ import annotations

import hmac
import json
import stat
from pathlib import Path
from typing import Any

import pytest

from ctxsteward.console.service import access
from ctxsteward.console.service.access import TokenFile, add_token, read_tokens, revoke_token
from ctxsteward.console.service.desk import ServiceLimits
from ctxsteward.schemas import InputError

from .serving import FREE, Tenants, served, tenants

GETS = ("envelope", "reports", "handoff", "refs/1", "preview")
POSTS = ("build", "compact", "compact?dry_run=true")
MESSAGE = {"messages": [{"message": {"role": "user", "content": "The code is 4711."}}]}


@pytest.fixture
def two(tmp_path: Path) -> Tenants:
    """Tenant acme has a session that was built."""
    made = tenants(tmp_path)
    made.served.post("/api/sessions/vault/messages", MESSAGE, headers=made.as_(made.acme))
    made.served.post("/api/sessions/vault/build", headers=made.as_(made.acme))
    return made


def told(answer: Any) -> tuple[int, dict[str, str], str]:
    """An answer without its request id."""
    headers = {name: value for name, value in answer.headers.items() if name != "x-request-id"}
    return answer.status_code, headers, answer.text.replace(answer.headers["x-request-id"], "ID")


# -- tokens -----------------------------------------------------------------------------------------------------------


def bad_tokens(two: Tenants) -> dict[str, list[tuple[str, str]]]:
    good = two.acme
    return {
        "none": [],
        "another": [("authorization", "Bearer ctxs_" + "a" * 43)],
        "one letter more": [("authorization", f"Bearer {good}x")],
        "one letter less": [("authorization", f"Bearer {good[:-1]}")],
        "another scheme": [("authorization", f"Basic {good}")],
        "no scheme": [("authorization", good)],
        "empty": [("authorization", "Bearer ")],
        "two words": [("authorization", f"Bearer {good} {good}")],
        "twice": [("authorization", f"Bearer {good}"), ("authorization", f"Bearer {good}")],
        "very long": [("authorization", "Bearer " + "a" * 9_000)],
        "not ASCII": [("authorization", "Bearer tökén")],
        "its hash": [("authorization", f"Bearer {access.digest_of(good)}")],
        "a cookie of nobody": [("cookie", "ctxsteward_login=abc")],
        "the token as a cookie": [("cookie", f"ctxsteward_login={good}")],
        "in the query": [],
    }


def test_every_bad_token_gets_the_same_answer_and_learns_nothing(two: Tenants) -> None:
    client = two.served.client
    answers = {}
    for name, headers in bad_tokens(two).items():
        query = f"?token={two.acme}&access_token={two.acme}" if name == "in the query" else ""
        encoded = [(key, value.encode("latin-1")) for key, value in headers]
        for path in ("/api/sessions", "/api/sessions/vault/envelope", "/api/sessions/nobody/refs/1", "/no/such/route"):
            answers[name, path] = told(client.get(path + query, headers=encoded))  # type: ignore[arg-type]
    assert len({json.dumps(one) for one in answers.values()}) == 1
    status, headers, text = next(iter(answers.values()))
    assert (status, headers["www-authenticate"]) == (401, 'Bearer realm="ctxsteward"')
    assert json.loads(text)["type"] == "urn:ctxsteward:problem:unauthorized"


def test_a_revoked_token_is_refused_like_one_that_never_was(two: Tenants) -> None:
    client, clock = two.served.client, [0.0]
    on = served(two.served.store, limits=FREE, tokens=TokenFile(two.path, clock=lambda: clock[0]))
    before = on.client.get("/api/sessions", headers=two.as_(two.acme))
    assert before.status_code == 200
    revoke_token(two.path, "acme app")
    clock[0] += access.LOOK_SECONDS
    never = told(client.get("/api/sessions", headers=two.as_("ctxs_" + "b" * 43)))
    assert told(on.client.get("/api/sessions", headers=two.as_(two.acme))) == never
    assert on.client.get("/api/sessions", headers=two.as_(two.reader)).status_code == 200


def test_a_token_file_that_cannot_be_read_any_more_lets_nobody_in(two: Tenants) -> None:
    clock = [0.0]
    on = served(two.served.store, limits=FREE, tokens=TokenFile(two.path, clock=lambda: clock[0]))
    text = two.path.read_text()
    for broken in ("tokens: [", "tokens:\n- {name: x}\n", None):
        two.path.unlink() if broken is None else two.path.write_text(broken)
        clock[0] += access.LOOK_SECONDS
        for headers in (two.as_(two.acme), two.as_("ctxs_nobody")):
            answer = on.client.get("/api/sessions", headers=headers)
            assert answer.status_code == 503
            assert str(two.path) not in answer.text
    two.path.write_text(text)
    clock[0] += access.LOOK_SECONDS
    assert on.client.get("/api/sessions", headers=two.as_(two.acme)).status_code == 200


def test_every_entry_is_compared_in_constant_time(two: Tenants) -> None:
    compared: list[str] = []

    def spy(known: str, shown: str) -> bool:
        compared.append(known)
        return hmac.compare_digest(known, shown)

    tokens = TokenFile(two.path, same=spy)
    for secret, is_known in ((two.acme, True), (two.steward, True), ("", False), ("nobody", False)):
        compared.clear()
        assert (tokens.owner(secret) is not None) == is_known
        assert compared == [entry.sha256 for entry in read_tokens(two.path)]
    assert TokenFile.__init__.__defaults__[-1] is hmac.compare_digest  # type: ignore[index]


def test_a_token_file_holds_no_token_and_only_its_owner_reads_it(two: Tenants) -> None:
    text = two.path.read_text()
    assert not [secret for secret in (two.acme, two.other, two.reader, two.steward) if secret in text]
    assert stat.S_IMODE(two.path.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tokens: 3\n", "tokens"),
        ("tokens:\n- {name: a, tenant: b, scopes: [read], sha256: xy}\n", "sha256"),
        ("tokens:\n- {name: a, tenant: b, scopes: [admin], sha256: " + "0" * 64 + "}\n", "scopes"),
        ("tokens:\n- {name: a, tenant: b, scopes: [], sha256: " + "0" * 64 + "}\n", "scopes"),
        ("token: []\n", "token"),
        ("- a\n", "tokens"),
    ],
)
def test_a_token_file_that_is_none_is_refused_with_its_place(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "tokens.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=said) as refused:
        TokenFile(path)
    assert str(path) in str(refused.value)


def test_a_name_is_given_once(tmp_path: Path) -> None:
    path = tmp_path / "tokens.yaml"
    add_token(path, "ann", "acme", ("read",))
    with pytest.raises(InputError, match="there is a token named 'ann'"):
        add_token(path, "ann", "acme", ("read",))
    with pytest.raises(InputError, match="no token named 'bob'; there are: ann"):
        revoke_token(path, "bob")


# -- tenants ----------------------------------------------------------------------------------------------------------


def test_a_session_of_somebody_else_and_none_at_all_are_the_same_to_every_route(two: Tenants) -> None:
    client, other = two.served.client, two.as_(two.other)
    for method, routes in (("GET", GETS), ("POST", POSTS)):
        for route in routes:
            foreign, absent = (
                told(client.request(method, f"/api/sessions/{name}/{route}", headers=other))
                for name in ("vault", "none")
            )
            assert foreign == absent, route
            assert foreign[0] == 404
            assert "4711" not in foreign[2]


def test_an_address_of_another_tenant_s_envelope_is_not_found(two: Tenants) -> None:
    address = two.served.get("/api/sessions/vault/envelope", headers=two.as_(two.acme))["address"]
    two.served.post("/api/sessions/own/messages", MESSAGE, headers=two.as_(two.other))
    path = f"/api/sessions/own/envelope?address={address}"
    assert "4711" not in json.dumps(two.served.get(path, 404, headers=two.as_(two.other)))


SPOKEN_FOR = {
    "x-tenant": "acme",
    "x-forwarded-user": "acme app",
    "x-forwarded-for": "127.0.0.1",
    "x-real-ip": "127.0.0.1",
    "x-principal": "acme app",
    "x-scopes": "read write steward",
    "x-original-url": "/api/sessions/secret/envelope",
    "forwarded": "for=127.0.0.1;proto=https",
    "cookie": "ctxsteward=acme",
}


def test_no_header_but_the_token_says_who_asks(two: Tenants) -> None:
    on = two.served
    on.post(
        "/api/sessions/secret/messages",
        {"messages": [{"message": {"role": "user", "content": "hi"}}]},
        headers=two.as_(two.acme),
    )
    for name, value in SPOKEN_FOR.items():
        on.get("/api/sessions/secret/envelope", 401, headers={name: value})
        on.get("/api/sessions/secret/envelope", 404, headers={**two.as_(two.other), name: value})
        on.post("/api/sessions/secret/build", {}, 403, headers={**two.as_(two.reader), name: value})


def test_two_tenants_sessions_of_one_name_are_two(two: Tenants) -> None:
    body = {"messages": [{"message": {"role": "user", "content": "Another."}}]}
    two.served.post("/api/sessions/vault/messages", body, headers=two.as_(two.other))
    found = [two.served.get("/api/sessions/vault/refs/1", headers=two.as_(one)) for one in (two.acme, two.other)]
    assert [one["message"]["content"] for one in found] == ["The code is 4711.", "Another."]


# -- scopes -----------------------------------------------------------------------------------------------------------


def test_a_token_that_reads_does_not_write(two: Tenants) -> None:
    for route, body in (("messages", MESSAGE), ("build", None), ("compact", None)):
        problem = two.served.post(f"/api/sessions/vault/{route}", body, 403, headers=two.as_(two.reader))
        assert problem["detail"] == "this needs a token with the scope `write`"
    assert two.served.get("/api/sessions/vault/refs/1", headers=two.as_(two.reader))
    assert len(two.served.store.at("acme", "vault")) == 1


# -- browsers ---------------------------------------------------------------------------------------------------------


def test_a_browser_logs_in_with_a_token_and_gets_a_cookie_that_is_no_token(two: Tenants) -> None:
    client = two.served.client
    page = {"accept": "text/html"}
    assert client.get("/", headers=page).headers["location"] == "/login"
    assert "<form" in client.get("/login").text
    refused = client.post("/login", data={"token": "ctxs_nobody"})
    assert (refused.status_code, refused.headers.get("set-cookie")) == (401, None)
    answer = client.post("/login", data={"token": f" {two.acme} "})
    cookie = answer.headers["set-cookie"]
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(cookie.split("; "))
    assert two.acme not in cookie
    shown = client.get("/", headers=page)  # the client keeps the cookie
    assert shown.status_code == 200
    assert "vault" in shown.text
    assert client.get("/api/sessions").status_code == 200
    client.post("/logout")
    client.cookies.set("ctxsteward_login", cookie.partition("=")[2].partition(";")[0])
    assert client.get("/api/sessions").status_code == 401


def test_a_cookie_is_secure_where_the_connection_is(two: Tenants) -> None:
    answer = two.served.client.post("https://127.0.0.1/login", data={"token": two.acme})
    assert "Secure" in answer.headers["set-cookie"].split("; ")


def test_a_revoked_token_ends_its_logins(two: Tenants) -> None:
    clock = [0.0]
    on = served(two.served.store, limits=FREE, tokens=TokenFile(two.path, clock=lambda: clock[0]))
    on.client.post("/login", data={"token": two.acme})
    assert on.client.get("/api/sessions").status_code == 200
    revoke_token(two.path, "acme app")
    clock[0] += access.LOOK_SECONDS
    assert on.client.get("/api/sessions").status_code == 401


def test_logins_are_few_and_end_by_themselves(two: Tenants) -> None:
    clock = [0.0]
    limits = ServiceLimits(requests_per_second=None, logins=2, login_seconds=60)
    on = served(two.served.store, limits=limits, tokens=TokenFile(two.path, clock=lambda: 0.0), clock=lambda: clock[0])
    cookies = []
    for _ in range(3):
        answer = on.client.post("/login", data={"token": two.acme})
        cookies.append(answer.headers["set-cookie"].partition(";")[0])
        on.client.cookies.clear()
    codes = [on.client.get("/api/sessions", headers={"cookie": cookie}).status_code for cookie in cookies]
    assert codes == [401, 200, 200]
    clock[0] = 60
    assert on.client.get("/api/sessions", headers={"cookie": cookies[-1]}).status_code == 401


def test_where_no_token_is_asked_for_there_is_nothing_to_log_in_to() -> None:
    client = served(limits=FREE).client
    assert [client.get("/login").headers["location"], client.post("/login").headers["location"]] == ["/", "/"]


# -- pages of other sites ---------------------------------------------------------------------------------------------

HOSTS = {
    "127.0.0.1": 200,
    "127.0.0.1:8731": 200,
    "localhost:80": 200,
    "LOCALHOST": 200,
    "[::1]:8731": 200,
    "desk.lan": 200,
    "evil.example": 421,
    "127.0.0.1.evil.example": 421,
    "": 421,
    "127.0.0.1@evil.example": 421,
    "[::1].evil": 421,
}


@pytest.mark.parametrize(("host", "code"), HOSTS.items())
def test_a_service_of_one_user_answers_under_names_of_this_machine_alone(host: str, code: int) -> None:
    on = served(limits=FREE, hosts=("127.0.0.1", "localhost", "[::1]", "desk.lan"))
    for path in ("/api/sessions", "/", "/healthz"):
        assert on.client.get(path, headers={"host": host}).status_code == code, path


ORIGINS: dict[str, tuple[dict[str, str], int]] = {
    "no browser": ({}, 200),
    "its own page": ({"origin": "http://127.0.0.1"}, 200),
    "its own page, as browsers say": ({"origin": "http://127.0.0.1", "sec-fetch-site": "same-origin"}, 200),
    "typed in": ({"sec-fetch-site": "none"}, 200),
    "another site": ({"origin": "http://evil.example"}, 403),
    "another port": ({"origin": "http://127.0.0.1:81"}, 403),
    "another scheme": ({"origin": "https://127.0.0.1"}, 403),
    "a sandboxed frame": ({"origin": "null"}, 403),
    "another site without an origin": ({"sec-fetch-site": "cross-site"}, 403),
    "a sibling": ({"sec-fetch-site": "same-site"}, 403),
}


@pytest.mark.parametrize(("headers", "code"), ORIGINS.values(), ids=ORIGINS)
def test_a_page_of_another_site_cannot_write(headers: dict[str, str], code: int) -> None:
    on = served(limits=FREE)
    on.post("/api/sessions/s/messages", MESSAGE, code, headers=headers)
    assert on.store.exists("s") == (code == 200)


@pytest.mark.parametrize(("headers", "code"), ORIGINS.values(), ids=ORIGINS)
def test_nor_can_it_with_the_cookie_of_a_login(headers: dict[str, str], code: int, two: Tenants) -> None:
    two.served.client.post("/login", data={"token": two.acme})
    two.served.post("/api/sessions/s/messages", MESSAGE, code, headers=headers)


def test_a_program_with_a_token_is_no_page_and_may_come_from_anywhere(two: Tenants) -> None:
    headers = {**two.as_(two.acme), "origin": "http://elsewhere.example", "host": "api.example"}
    two.served.post("/api/sessions/s/messages", MESSAGE, headers=headers)


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
def test_a_form_s_body_is_no_json(kind: str) -> None:
    on = served(limits=FREE)
    answer = on.client.post("/api/sessions/s/messages", content=json.dumps(MESSAGE), headers={"content-type": kind})
    assert answer.status_code == 415
    assert not on.store.exists("s")

"""The guide to the HTTP service tells the truth: its commands run against a service of the demo, and print this."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from .console.service.test_process import Running, running
from .needs import CURL_AND_JQ
from .shell import Shell
from .test_guide_nightly_steward import shown

GUIDE = Path(__file__).parents[1] / "docs" / "guide-http-service.md"


def test_the_demo_is_served_as_the_guide_shows_and_its_store_is_gone_afterwards(tmp_path: Path) -> None:
    (tmp_path / "temporary").mkdir()
    with running(tmp_path, "--demo", TMPDIR=str(tmp_path / "temporary")) as service:
        assert service.ask("GET", "/api/sessions/demo/envelope")[1]["metrics"]["compactions"] > 0
        profiles = {item["profile"] for item in service.ask("GET", "/api/profile/versions")[1]["items"]}
        assert profiles == {"fernhollow-desk", "fernhollow-oncall"}
        assert "demo" in service.ask("GET", "/")[1]
        assert service.ask("GET", "/sessions/demo/calls/3")[0] == 200
        check_commands(service, tmp_path)
        assert service.stop()[0] == 0
    assert list((tmp_path / "temporary").iterdir()) == []


def check_commands(service: Running, folder: Path) -> None:
    """The guide's commands, in a folder of their own."""
    missing = [name for name in ("curl", "jq") if shutil.which(name) is None]
    if missing:
        pytest.skip(CURL_AND_JQ)
    commands = shown(GUIDE.read_text(encoding="utf-8"))
    assert len(commands) > 12
    (folder / "guide").mkdir()
    shell = Shell(folder / "guide", {"API": service.told["url"].rstrip("/")})
    for one in commands:
        done = shell.run(one.command)
        assert (one.command, done.stdout.rstrip("\n")) == (one.command, one.printed.rstrip("\n")), done.stderr


def test_what_the_guide_says_of_limits_is_so() -> None:
    from ctxsteward.console.service import bodies
    from ctxsteward.console.service.app import HEADER_SECONDS
    from ctxsteward.console.service.desk import ServiceLimits
    from ctxsteward.console.service.request_body import MAX_VALUES

    limits, text = ServiceLimits(), " ".join(GUIDE.read_text(encoding="utf-8").split())
    assert limits.body_bytes == 4 << 20
    for said in (
        f"{limits.messages:,} messages a request",
        f"{limits.requests} requests at once",
        f"headers within {HEADER_SECONDS:g} s",
        f"a body within {limits.body_seconds:g} s",
        f"{limits.open_sessions} open sessions",
        f"{limits.listeners} listeners",
        f"{MAX_VALUES:,} JSON values",
        f"a history of {bodies.MAX_HISTORY:,}",
        f"{bodies.MAX_PARTS} parts",
        f"{bodies.MAX_FIELDS} fields a message",
        f"{bodies.MAX_TEXT_CHARS:,} characters a text",
        f"{bodies.MAX_TOOLS} tools",
        f"{limits.bodies_bytes >> 20} MB of bodies",
        f"{limits.threads} worker threads",
        f"{limits.anonymous_body_bytes >> 10} KB that arrives within {limits.anonymous_body_seconds:g} s",
        f"{limits.anonymous_requests} such requests at once",
        f"(`--build-seconds`, {limits.build_seconds:g})",
    ):
        assert said in text, said
    assert limits.tenant_requests * 2 == limits.requests
    assert limits.tenant_threads * 2 == limits.threads
    assert limits.login_seconds == 8 * 3600
    assert re.search("a cookie for eight hours", text)

"""``ctxsteward steward digest``: a week (ISO 8601, UTC) in sentences.

The first screen of 20 lines has the lines in force and the requests that wait. Then follow removals with their reasons,
rejections, and the errors in most transcripts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any

import click

from ctxsteward.schemas import InputError
from ctxsteward.schemas.profile import instant
from ctxsteward.schemas.profile_changes import ChangelogEntry
from ctxsteward.steward.release.changelog import markdown_text

from ..terminal.output import print_json, write_text
from .context import StewardContext
from .questions import count, questions
from .records import LedgerView, ProfileOptions, about_a_profile, reason_text, records_at
from .versions import texts

MAX_ERRORS = 5
FIRST_LINES = 4
"""Lines of a list before the rest is only counted, so that the first two lists fit on one screen."""
_WEEK = re.compile(r"(\d{4})-W(\d{2})")
_BY_ID = re.compile(r"^(?:night|request) \S+?(?:, |$)")
"""How the reason of a commit begins that names a night or a request by its id."""


def week_of(text: str | None, today: str) -> date:
    """Return the Monday of a week such as ``2026-W48``, or of this week for None; raise `InputError`."""
    if text is None:
        day = date.fromisoformat(today)
        return day - timedelta(days=day.weekday())
    match = _WEEK.fullmatch(text)
    try:
        return date.fromisocalendar(int(match[1]), int(match[2]), 1) if match else date.fromisoformat("")
    except ValueError:
        raise InputError(f"--week {text[:40]}: no such week; write one such as 2026-W48") from None


def digest_document(place: StewardContext, records: LedgerView, monday: date) -> dict[str, Any]:
    """The changes of a profile in one week, and the requests that wait now."""
    start = datetime.combine(monday, datetime.min.time(), UTC).timestamp()
    stop = start + timedelta(weeks=1).total_seconds()
    asked = questions(place, records, replays=0).questions
    in_force: list[dict[str, Any]] = []
    taken_out: list[dict[str, Any]] = []
    for entry in place.versions.told():
        if not start <= instant(entry.when) < stop:
            continue
        commit = {"version": entry.version, "when": entry.when, "who": entry.who}
        before = texts(place.versions.at(entry.version - 1).profile if entry.version > 1 else None)
        after = texts(place.versions.at(entry.version).profile)
        if entry.version == 1:
            in_force.append(commit | {"text": None, "entries": len(after)})
            continue
        for key, text in after.items():
            if before.get(key) != text:
                named = None if key.startswith("meta.") else key
                in_force.append(commit | {"text": text, "entry": named, "instead_of": before.get(key)})
        for key, text in before.items():
            if key not in after:
                taken_out.append(commit | {"text": text, "why": _why_out(records, entry, key)})
    errors = records.ledger.recurring(start, stop)[:MAX_ERRORS]
    year, week, _ = monday.isocalendar()
    return {
        "profile": place.profile,
        "week": f"{year}-W{week:02}",
        "first": str(monday),
        "last": str(monday + timedelta(days=6)),
        "in_force": in_force,
        "taken_out": taken_out,
        "version": place.head or None,
        "lines": len(place.versions.newest().profile.meta) if place.head else 0,
        "requests": len(place.pending()),
        "waiting": [
            {"text": one.record.text, "why": one.waits, "draft": one.change and one.change.at} for one in asked
        ],
        "rejected": sorted(_rejected(place, records, start, stop), key=lambda row: (row["when"], row["text"])),
        "errors": [{"text": records.by_id[id].text, "transcripts": n} for id, n in errors if id in records.by_id],
    }


def _why_out(records: LedgerView, entry: ChangelogEntry, key: str) -> str:
    reason = _BY_ID.sub("", entry.why)
    because = f": {reason}" if reason else ""
    if entry.restores is not None:
        return f"{entry.who} brought version {entry.restores} back{because}"
    block, _, id = key.partition(".")
    if block != "meta":
        return f"it was proposed so{because}"
    record = records.by_id.get(id)
    if record is None:
        return "its evidence is no longer there"
    return "others are worth more" if record.status == "active" else reason_text(record)


def _rejected(place: StewardContext, records: LedgerView, start: float, stop: float) -> Iterator[dict[str, Any]]:
    for id, refused in place.record_reviews.rejections().items():
        record = records.by_id.get(id)
        if record is not None and record.status == "rejected" and start <= instant(refused.when) < stop:
            yield {"text": record.text, "who": refused.who, "when": refused.when, "why": refused.note}
    for request in place.requests():
        for each in request.verdicts:
            if each.verdict == "reject" and start <= instant(each.when) < stop:
                what = request.note or f"a change of {request.author}'s after version {request.parent}"
                yield {"text": what, "who": each.who, "when": each.when, "why": each.note}


def digest_text(week: Mapping[str, Any]) -> str:
    """The digest as Markdown, in sentences."""
    learnt = count(week["lines"], "learnt line", "learnt lines")
    stands = f"Version {week['version']} is in force, with {learnt}" if week["version"] else "Nothing is in force"
    lines = [
        f"# Week {week['week']} of {markdown_text(week['profile'])}",
        "",
        f"From {week['first']} to {week['last']}. {stands}.",
        "",
    ]
    waits = f"What waits for people: {len(week['waiting']) + week['requests']:,}"
    for heading, rows, nothing, more in (
        ("What came into force", map(_came, week["in_force"]), "Nothing came into force.", "log"),
        (waits, _waits(week), "Nothing waits.", "review"),
        ("What was taken out", map(_went, week["taken_out"]), "Nothing was taken out.", "log"),
        ("What was rejected", map(_refused, week["rejected"]), "Nothing was rejected.", ""),
        (
            "Errors that came up most in its transcripts",
            map(_came_up, week["errors"]),
            "No error with a known remedy.",
            "",
        ),
    ):
        told = [f"- {markdown_text(row)}" for row in rows]
        if more and len(told) > FIRST_LINES:
            rest = f"- and {len(told) - FIRST_LINES:,} more: `ctxsteward steward {more}`"
            told = [*told[:FIRST_LINES], rest]
        lines += [f"## {heading}", "", *(told or [nothing]), ""]
    return "\n".join(lines).rstrip() + "\n"


def _came(row: Mapping[str, Any]) -> str:
    if row["text"] is None:
        return f"On {row['when'][:10]}, version 1 by {row['who']}: the first, with {row['entries']:,} entries"
    what = f"{row['entry']} says “{row['text']}”" if row["entry"] else f"“{row['text']}”"
    instead = f" instead of “{row['instead_of']}”" if row["instead_of"] else ""
    return f"On {row['when'][:10]}, in version {row['version']} by {row['who']}: {what}{instead}"


def _went(row: Mapping[str, Any]) -> str:
    return f"On {row['when'][:10]}, in version {row['version']}: “{row['text']}”, because {row['why']}."


def _waits(week: Mapping[str, Any]) -> Iterator[str]:
    if week["requests"]:
        changes = "A change waits" if week["requests"] == 1 else f"{week['requests']:,} changes wait"
        yield f"{changes} for approval as a whole."
    for row in week["waiting"]:
        draft = f" (drafted for {row['draft']})" if row["draft"] else ""
        yield f"“{row['text']}”{draft} {row['why']}"


def _refused(row: Mapping[str, Any]) -> str:
    why = f"“{row['why']}”" if row["why"] else "no reason was given"
    return f"On {row['when'][:10]} {row['who']} rejected “{row['text']}”: {why}"


def _came_up(row: Mapping[str, Any]) -> str:
    return f"In {row['transcripts']:,} {'transcript' if row['transcripts'] == 1 else 'transcripts'}: “{row['text']}”"


@click.command()
@click.option("--week", metavar="WEEK", help="Week to show, such as 2026-W48; default: the current week so far.")
@click.option("--out", type=click.Path(), metavar="FILE", help="Write Markdown to this file.")
@about_a_profile()
def digest(week: str | None, out: str | None, where: ProfileOptions, as_json: bool) -> None:
    """Summarize a week in sentences: what came into force, what waits, what was removed and why, what was rejected.

    It also lists the tool errors that occurred in most transcripts of that week and have a known remedy.
    """
    with where.open() as place, records_at(place) as records:
        document = digest_document(place, records, week_of(week, place.here.today))
    if out is not None:
        write_text(out, digest_text(document))
    if as_json:
        print_json(document)
    elif out is None:
        click.echo(digest_text(document), nl=False)

"""``ctxsteward demo``: the whole story on the shipped incident, offline."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from ..failures import FOUND
from ..options import common, telemetry
from ..output import print_json, table_console

if TYPE_CHECKING:
    from ..demo import DemoData, DemoRun, Narrator


@click.command(short_help="Tell the whole story on shipped data, offline.")
@common
@click.pass_context
@telemetry
def demo(ctx: click.Context, as_json: bool, store: str, tenant: str) -> None:
    """Replay the shipped incident, a day on call, under a small budget, and check what comes out.

    Writes to a temporary store unless --store is given. Exits 1 if one of its own checks fails.
    """
    from .. import demo as story

    given = ctx.get_parameter_source("store") is not click.core.ParameterSource.DEFAULT
    narrator = None if as_json else _narrator()
    with _store_uri(store if given else None) as uri:
        run, shipped = _tell(uri, tenant, narrator)
    if as_json:
        print_json(story.summary(run, shipped))
    if not all(check.passed for check in run.checks):
        raise click.exceptions.Exit(FOUND)


def _narrator() -> Narrator:
    from ..demo import Narrator

    return Narrator(table_console())


@contextmanager
def _store_uri(given: str | None) -> Iterator[str]:
    if given is not None:
        yield given
        return
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="ctxsteward-demo-") as folder:
        yield f"file:{folder}"


def _tell(uri: str, tenant: str, narrator: Narrator | None) -> tuple[DemoRun, DemoData]:
    from .. import demo as story
    from ..stores import open_uri

    shipped, builder = story.load_shipped(), story.make_builder()
    store = open_uri(uri)
    try:
        if narrator:
            narrator.comes_in(shipped, builder)
        run, session = story.replay_shipped(
            shipped, builder, store, tenant, narrator.compacted if narrator else lambda *_: None
        )
        story.check_calls(run)
        story.check_window(run)
        story.check_originals(run, session, shipped)
        if narrator:
            narrator.window(run)
            narrator.originals(session, shipped)
        if uri != "memory:":  # as another process would find it
            store.close()
            store = open_uri(uri)
        story.check_rebuild(run, store, tenant)
        if narrator:
            narrator.closing(run, shipped)
    finally:
        store.close()
    return run, shipped

"""``ctxsteward serve``: serve the JSON API and the pages over HTTP, and manage the service's tokens.

Without tokens the service is for one user of this machine, and listens on the loopback alone. The modules of the
service need the extra `console` and are imported when it starts.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.resources import files
from ipaddress import ip_address
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from ctxsteward.envelope import Profile, Store
from ctxsteward.schemas import InputError

from ..terminal.failures import CONSOLE, STEWARD, missing, need
from ..terminal.options import (
    budget_option,
    common,
    json_option,
    model_option,
    read_builder,
    read_profile,
    telemetry,
    tenant_option,
    utc_now,
)
from ..terminal.output import note, print_json
from ..terminal.stores import open_uri

LOOPBACK, PORT, BACKLOG = "127.0.0.1", 8731, 256
SCOPES = ("read", "write", "steward", "erase")
tokens_option = click.option(
    "--tokens",
    "tokens_path",
    type=click.Path(dir_okay=False, path_type=Path),
    envvar="CTXSTEWARD_TOKENS",
    metavar="FILE",
    help="Tokens and their permissions (YAML); `serve token add` writes the file.",
)


@click.group(invoke_without_command=True)
@click.option("--host", default=LOOPBACK, show_default=True, metavar="ADDRESS", help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=PORT, show_default=True, help="Port; 0: any free one.")
@tokens_option
@click.option("--allow-host", "hosts", multiple=True, metavar="NAME", help="Accept this host name too; repeatable.")
@click.option("--profile", type=click.Path(), metavar="FILE", help="Profile (YAML) for sessions that name none.")
@click.option("--eval-history", type=click.Path(path_type=Path), metavar="FILE", help="File of `evals run --history`.")
@click.option(
    "--rate",
    type=click.FloatRange(min=0),
    default=100,
    show_default=True,
    metavar="N",
    help="Most requests per second from one tenant; 0: no limit.",
)
@click.option(
    "--stop-seconds",
    type=click.FloatRange(min=1),
    default=30,
    show_default=True,
    metavar="N",
    help="Seconds that running requests get to finish after a stop signal.",
)
@click.option(
    "--build-seconds",
    type=click.FloatRange(min=0.1),
    default=15,
    show_default=True,
    metavar="N",
    help="Time limit of a build; after it, the build skips compaction and recall and reports that.",
)
@click.option("--demo", is_flag=True, help="Serve the shipped demo from a temporary store.")
@click.option("--openapi", is_flag=True, help="Print the OpenAPI document and exit.")
@model_option("Model of builds that name none.")
@budget_option("A field of Budgets, such as dynamic_tokens=4000; repeatable.")
@telemetry
@common
@click.pass_context
def serve(
    ctx: click.Context,
    host: str,
    port: int,
    tokens_path: Path | None,
    hosts: tuple[str, ...],
    profile: str | None,
    eval_history: Path | None,
    rate: float,
    stop_seconds: float,
    build_seconds: float,
    demo: bool,
    openapi: bool,
    model: str,
    budgets: tuple[str, ...],
    as_json: bool,
    store: str,
    tenant: str,
) -> None:
    """Serve the JSON API and the pages over HTTP until a stop signal.

    Each request is logged as a line of JSON on stderr. --json prints the address as JSON.
    """
    if ctx.invoked_subcommand is not None:
        return
    need(CONSOLE, "serve")
    from ..service.access import TokenFile
    from ..service.app import StoppableServer, create_app
    from ..service.desk import LOOPBACK_HOSTS, ServiceLimits, ServiceSettings
    from .demo import DYNAMIC_TOKENS

    if openapi:
        with open_uri("memory:", tenant) as empty:
            document = create_app(ServiceSettings(store=empty)).openapi()
        click.echo(json.dumps(document, indent=2, ensure_ascii=False))
        return
    from ctxsteward.envelope.audit import auditor as audits
    from ctxsteward.envelope.telemetry.sdk import scraped
    from ctxsteward.steward.night import telemetry as nights

    tokens = None if tokens_path is None else TokenFile(tokens_path)
    if tokens is None and not is_loopback(host):
        raise InputError(
            f"--host {host}: without tokens it listens on the loopback alone; make some with `ctxsteward serve token "
            "add NAME --tokens FILE`, and pass --tokens FILE"
        )
    if demo:
        budgets = (f"dynamic_tokens={DYNAMIC_TOKENS}", *budgets)  # of the calls that the pages show
    builder, governed = read_builder(model, budgets), read_profile(profile)
    if demo and eval_history is None:
        eval_history = Path(str(files("ctxsteward.console") / "data" / "demo-evals.jsonl"))
    listening = _listen(host, port)
    with ExitStack() as stack:
        stack.enter_context(listening)
        opened = stack.enter_context(_demo_store(tenant) if demo else open_uri(store, tenant))
        settings = ServiceSettings(
            store=opened,
            tenant=tenant,
            tokens=tokens,
            hosts=(*LOOPBACK_HOSTS, *hosts),
            profile=governed,
            model=model,
            budgets=builder.budgets if budgets else None,
            eval_history=eval_history,
            log=lambda row: print(json.dumps(row, ensure_ascii=True), file=sys.stderr, flush=True),
            scrape=stack.enter_context(scraped((audits.board(), nights.board()))),
            limits=ServiceLimits(
                requests_per_second=rate or None, burst=max(1, round(2 * rate)), build_seconds=build_seconds
            ),
        )
        address, at = listening.getsockname()[:2]
        url = f"http://{f'[{address}]' if ':' in address else address}:{at}/"

        def ready() -> None:
            if as_json:
                print_json({"url": url, "pid": os.getpid(), "store": opened.uri, "tenants": tokens is not None})
            else:
                click.echo(f"serving {url}")
            sys.stdout.flush()

        StoppableServer(create_app(settings), stop_seconds).serve_on(listening, ready)


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address.

    >>> [is_loopback(host) for host in ("127.0.0.1", "localhost", "::1", "0.0.0.0", "example.org")]
    [True, True, True, False, False]
    """
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _listen(host: str, port: int) -> socket.socket:
    # The protocol is named, unlike in `create_server`: asyncio sends small packets at once only on such sockets.
    listening = socket.socket(
        socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP
    )
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(BACKLOG)
        return listening
    except OSError as error:
        listening.close()
        what = (error.strerror or str(error)).lower()
        raise InputError(f"--host {host} --port {port}: cannot listen there: {what}; choose another --port") from error


@contextmanager
def _demo_store(tenant: str) -> Iterator[Store]:
    """Yield a store with the shipped demo: a session, versions of a profile, a night, a change that needs approval."""
    from .demo import load_shipped, make_builder, replay_shipped

    with TemporaryDirectory(prefix="ctxsteward-demo-") as folder:
        uri = f"file:{folder}/store"
        if missing(STEWARD):
            note("the steward's pages stay empty; pip install 'ctxsteward[steward]' fills them")
        else:
            note("running a night over the shipped transcripts")
            _demo_night(uri, tenant)
        with open_uri(uri, tenant) as store:
            shipped = load_shipped()
            note("replaying the shipped demo into a store that is gone afterwards")
            profile: Profile = shipped.profile
            store.profiles(profile.name, tenant=tenant).commit(
                profile, who="shipped demo", why="the profile of the demo", when=utc_now(), parent=0
            )
            replay_shipped(shipped, make_builder(), store, tenant, lambda step, report: None)
            yield store


def _demo_night(uri: str, tenant: str) -> None:
    """Run the shipped night, and stage a change of a locked policy for two people to approve."""
    from ..steward.context import shipped_folder
    from ..steward.night import NightOptions, ready, run_prepared
    from ..steward.promotion import ProposalOptions, proposed

    with ready(NightOptions(store=uri, tenant=tenant)) as night:
        run_prepared(night, lambda boundary: None)
        text = (shipped_folder() / "profile.yaml").read_text(encoding="utf-8")
        changed = Profile.from_yaml(text.replace("within 30 days", "within 45 days").replace("value: 30", "value: 45"))
        asked = ProposalOptions(file=changed, note="longer returns before the holidays")
        proposed(night.place, asked, "shipped demo")


# -- tokens ---------------------------------------------------------------------------------------------------------


@serve.group()
def token() -> None:
    """Tokens of a service: add, revoke, list."""


def _file(path: Path | None) -> Path:
    need(CONSOLE, "serve")
    if path is None:
        raise InputError("say which file: --tokens FILE")
    return path


@token.command()
@click.argument("name")
@click.option("--scope", "scopes", multiple=True, type=click.Choice(SCOPES), help="Repeatable; default: read, write.")
@tokens_option
@json_option
@tenant_option
def add(name: str, scopes: tuple[Any, ...], tokens_path: Path | None, as_json: bool, tenant: str) -> None:
    """Create a token NAME for --tenant and print it once; the file stores only its hash."""
    from ..service.access import add_token

    path, chosen = _file(tokens_path), scopes or ("read", "write")
    secret = add_token(path, name, tenant, chosen)
    if as_json:
        print_json({"name": name, "tenant": tenant, "scopes": list(chosen), "token": secret})
    else:
        click.echo(secret)


@token.command()
@click.argument("name")
@tokens_option
@json_option
def revoke(name: str, tokens_path: Path | None, as_json: bool) -> None:
    """Revoke the token NAME; a running service refuses it within a second."""
    from ..service.access import revoke_token

    path = _file(tokens_path)
    revoke_token(path, name)
    print_json({"revoked": name}) if as_json else click.echo(f"revoked {name}")


@token.command(name="list")
@tokens_option
@json_option
def list_tokens(tokens_path: Path | None, as_json: bool) -> None:
    """List the tokens of all tenants by name, without their secrets."""
    from ..service.access import read_tokens

    rows = [entry.model_dump(mode="json", exclude={"sha256"}) for entry in read_tokens(_file(tokens_path))]
    if as_json:
        print_json(rows)
        return
    for row in rows:
        state = " (revoked)" if row["revoked"] else ""
        click.echo(f"{row['name']}  {row['tenant']}  {', '.join(row['scopes'])}{state}")

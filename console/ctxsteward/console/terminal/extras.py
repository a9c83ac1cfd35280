"""Optional packages of commands: which are there, and what to install where one is missing.

Packages are looked for, never imported: a worker process that failed to import one would put every transcript into
quarantine.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import NamedTuple

from ctxsteward.schemas import InputError


class Package(NamedTuple):
    """One optional package."""

    module: str
    distribution: str
    extra: str
    use: str


STEWARD = (
    Package("jsonpatch", "jsonpatch", "steward", "patches between versions"),
    Package("rensa", "rensa", "steward", "near-duplicates"),
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

EXTRAS = (*STEWARD, *FLOWS, *S3, *CONSOLE)
"""All of them."""

Finder = Callable[[str], object]
"""What finds a top-level module by name; None: it is not there."""


def missing(packages: tuple[Package, ...], find: Finder = find_spec) -> list[Package]:
    """Those that are not installed.

    >>> [package.module for package in missing(S3, find=lambda name: None)]
    ['boto3']
    """
    return [package for package in packages if not _is_there(package.module, find)]


def need(packages: tuple[Package, ...], what: str) -> None:
    """Raise `InputError` where one is missing; `what` needs them."""
    gone = missing(packages)
    if gone:
        extra = gone[0].extra
        names = ", ".join(package.distribution for package in gone)
        raise InputError(f"{what} needs the extra `{extra}` ({names}); pip install 'ctxsteward[{extra}]'")


def installed(package: Package) -> str | None:
    """The version that is installed; None: it is not."""
    try:
        return version(package.distribution)
    except PackageNotFoundError:
        return None


def _is_there(module: str, find: Finder) -> bool:
    try:
        return find(module) is not None
    except (ImportError, ValueError):
        return False

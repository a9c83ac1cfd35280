"""The shipped transcripts and profile of a customer desk: what a first night runs on where there is nothing else.

They lie in the package. Their night is tonight, as any night is.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ctxsteward.envelope import Profile, Store

WHO, WHY = "shipped demo", "the profile of the shipped transcripts"
_FOLDER = ("data", "steward")


def transcripts() -> str:
    """Their folder."""
    return str(_folder() / "transcripts")


def is_shipped(uri: str) -> bool:
    """Whether a source is this folder, of this installation or of another one.

    >>> is_shipped(transcripts()), is_shipped("logs")
    (True, False)
    """
    return uri.replace("\\", "/").endswith("/ctxsteward/console/data/steward/transcripts")


def profile() -> Profile:
    """The governed text that the first night starts from."""
    from ctxsteward.envelope import Profile

    return Profile.load(_folder() / "profile.yaml")


def commit_profile(store: Store, tenant: str, when: str) -> str:
    """Make it a version of its own, once; its name."""
    shipped = profile()
    store.profiles(shipped.name, tenant=tenant).commit(shipped, who=WHO, why=WHY, when=when, parent=None)
    return shipped.name


def _folder() -> Path:
    return Path(str(files("ctxsteward.console").joinpath(*_FOLDER)))

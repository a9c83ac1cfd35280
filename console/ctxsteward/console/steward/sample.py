"""The shipped transcripts and profile of a customer desk: what a first night runs on where there is nothing else.

They lie in the package. Their night is tonight, as any night is.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from ctxsteward.envelope import Profile, Store

SHIPPED_WHO, SHIPPED_WHY = "shipped demo", "the profile of the shipped transcripts"
_SHIPPED_FOLDER = ("data", "steward")


def shipped_transcripts() -> str:
    """Their folder."""
    return str(_shipped_folder() / "transcripts")


def is_shipped(uri: str) -> bool:
    """Whether a source is this folder, of this installation or of another one.

    >>> is_shipped(shipped_transcripts()), is_shipped("logs")
    (True, False)
    """
    return uri.replace("\\", "/").endswith("/ctxsteward/console/data/steward/transcripts")


def shipped_profile() -> Profile:
    """The governed text that the first night starts from."""
    return Profile.load(_shipped_folder() / "profile.yaml")


def commit_shipped_profile(store: Store, tenant: str, when: str) -> str:
    """Make it a version of its own, once; its name."""
    shipped = shipped_profile()
    store.profiles(shipped.name, tenant=tenant).commit(
        shipped, who=SHIPPED_WHO, why=SHIPPED_WHY, when=when, parent=None
    )
    return shipped.name


def _shipped_folder() -> Path:
    return Path(str(files("ctxsteward.console").joinpath(*_SHIPPED_FOLDER)))


def source_name(uri: str) -> str:
    """A source as people know it."""
    return "the shipped transcripts" if is_shipped(uri) else uri

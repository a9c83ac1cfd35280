"""Machines over one object store, anew for each test."""

from __future__ import annotations

import pytest

from .machines import World


@pytest.fixture
def world() -> World:
    return World()

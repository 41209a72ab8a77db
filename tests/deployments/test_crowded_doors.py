"""Tests of a process whose files are all in use by open connections.

Such connections neither block other users nor end the process.
"""

from __future__ import annotations

import asyncio

import pytest

from tests.soak import soak_doors

CROWD = 500


@pytest.mark.whole_only
@pytest.mark.parametrize("name", soak_doors.DOORS)
def test_f100_a_door_answers_others_while_a_crowd_holds_more_connections_than_files(name, tmp_path, monkeypatch):
    monkeypatch.setattr(soak_doors, "FILES", 400)
    monkeypatch.setattr(soak_doors, "HELD_S", 4.0)
    with soak_doors.open_door(name, tmp_path) as (address, process, log):
        for kind in ("silent", "one byte of a body"):
            _, failed = asyncio.run(soak_doors.crowd_once(address, name, kind, CROWD))
            assert failed == 0
        assert process.poll() is None
        assert log.stat().st_size < 10_000

"""``lookout nightly`` as a process, on the log that the demo Space writes itself, read without any mapping."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from deployments.demo.turn_log import TURNS, TurnLog
from tests.flows.nights_of_the_demo import SUITE, replies

ENDED = datetime(2026, 3, 1, 2, 0, tzinfo=UTC)
UNTIL = ("--until", "2026-03-01T02:00")


@pytest.fixture
def space(tmp_path: Path) -> Path:
    """A folder with the log of 25 turns and a configuration that names it."""
    shutil.copy(SUITE, tmp_path / "suite.jsonl")
    log = TurnLog(tmp_path)
    for number, (question, reply) in enumerate(list(replies().items())[:25]):
        at = ENDED - timedelta(minutes=number + 1)
        log.write(at=at, session_id=f"s{number}", question=question, reply=reply, latency_ms=900.0)
    (tmp_path / "lookout.toml").write_text(
        f'data_folder = "data"\n[targets.demo]\nurl = "http://127.0.0.1:9"\nsuite = "suite.jsonl"\n'
        f'[targets.demo.traffic.sources.turns]\nkind = "file"\nat = "{TURNS}"\n'
    )
    return tmp_path


@pytest.mark.prefect
def test_the_plan_is_shown_before_anything_is_spent_then_the_night_is_graded(space, lookout):
    planned = lookout("nightly", "--plan", "--json", *UNTIL, cwd=space)
    assert planned.returncode == 0, planned.stderr
    plan = json.loads(planned.stdout)
    assert [(one["conversations"], one["drawn"]) for one in plan["strata"]] == [(25, 10)]
    graded = lookout("nightly", "--json", *UNTIL, cwd=space)
    assert graded.returncode == 0, graded.stderr
    report = json.loads(graded.stdout)
    assert (report["read"], report["drawn"], report["graded_by"]) == (25, 10, "rules")
    assert report["notice_count"] == 0
    assert report["severe"]["rate"] == 0
    assert json.loads(lookout("nightly", "--json", *UNTIL, cwd=space).stdout) == report

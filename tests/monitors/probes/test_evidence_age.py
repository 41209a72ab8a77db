"""Test that screenshots are deleted after a time that depends on what they show.

No other file in a data folder is changed.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pydantic import ValidationError

from flows.maintenance.findings import find_ids_of_cases_not_correct
from monitors.gate.evaluate import RunFacts, evaluate_results
from monitors.gate.settings import GateSettings
from monitors.probes.evidence_age import EvidenceSettings, RemovedEvidence, remove_old_evidence
from monitors.records.grades import Aspect, FailureKind
from monitors.reports.results_json import format_results_json
from tests.builders import NOON, TARGET, case_result, gold_case

NOW = datetime(2026, 6, 1, tzinfo=UTC)
SETTINGS = EvidenceSettings(days=14, failure_days=90)


def put(path: Path, days: float) -> Path:
    """Create a file of ten bytes that is ``days`` old."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"0123456789")
    then = (NOW - timedelta(days=days)).timestamp()
    os.utime(path, (then, then))
    return path


def aged(folder: Path, *failed: str, known: bool = True, now: datetime = NOW) -> RemovedEvidence:
    """Remove old evidence from ``folder`` and return what was removed. The cases in ``failed`` count as failed.

    If ``known`` is false, it is unknown which cases failed.
    """
    return remove_old_evidence(
        folder, SETTINGS, now=now, failed_cases=lambda _run: frozenset(failed) if known else None
    )


def left(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_right_cases_go_first_and_failures_later(tmp_path: Path) -> None:
    evidence = tmp_path / "runs" / "r" / "evidence"
    put(evidence / "right.case.r0.t0.jpg", 15)
    put(evidence / "leak.r1.t0.jpg", 15)
    put(evidence / "leak.r1.t0.zip", 91)
    put(evidence / "young.r0.t1.jpg", 13)
    assert aged(tmp_path, "leak") == RemovedEvidence(files=2, bytes=20)
    assert {"runs/r/evidence/leak.r1.t0.jpg", "runs/r/evidence/young.r0.t1.jpg"} < set(left(tmp_path))


def test_evidence_of_ungraded_cases_expires_like_that_of_failures(tmp_path: Path) -> None:
    put(tmp_path / "runs" / "killed" / "evidence" / "a.r0.t0.jpg", 60)
    assert aged(tmp_path, known=False).files == 0
    assert aged(tmp_path, known=False, now=NOW + timedelta(days=31)).files == 1


def test_results_are_read_once_for_each_run(tmp_path: Path) -> None:
    put(tmp_path / "runs" / "r" / "evidence" / "leak.r0.t0.jpg", 20)
    read: list[Path] = []

    def failed(run: Path) -> frozenset[str]:
        read.append(run)
        return frozenset({"leak"})

    for night in range(3):
        remove_old_evidence(tmp_path, SETTINGS, now=NOW + timedelta(days=night), failed_cases=failed)
    assert len(read) == 1


def test_an_empty_folder_goes_with_its_last_picture(tmp_path: Path) -> None:
    run = tmp_path / "runs" / "r"
    put(run / "evidence" / "leak.r0.t0.jpg", 20)
    put(run / "jobs" / "leak.r0.json", 20)
    aged(tmp_path, "leak")
    aged(tmp_path, "leak", now=NOW + timedelta(days=80))
    assert left(tmp_path) == []
    assert list(run.iterdir()) == []


def test_f90_journal_reports_and_other_peoples_files_stay(tmp_path: Path) -> None:
    preserved = [
        put(tmp_path / "journal" / "a.jsonl", 900),
        put(tmp_path / "warehouse.duckdb", 900),
        put(tmp_path / "runs" / "r" / "results.json", 900),
        put(tmp_path / "runs" / "r" / "report.html", 900),
        put(tmp_path / "elsewhere" / "evidence" / "b.r0.t0.jpg", 900),
    ]
    link = tmp_path / "runs" / "linked"
    link.symlink_to(tmp_path / "elsewhere")
    (tmp_path / "runs" / "r" / "evidence").symlink_to(tmp_path / "elsewhere" / "evidence")
    assert aged(tmp_path).files == 0
    assert all(path.exists() for path in preserved)


def test_the_doctors_pictures_age_too(tmp_path: Path) -> None:
    put(tmp_path / "doctor" / "bot-20260101T000000.png", 15)
    put(tmp_path / "doctor" / "bot-20260531T000000.png", 1)
    assert aged(tmp_path) == RemovedEvidence(files=1, bytes=10)


def test_which_cases_failed_is_read_from_the_results(tmp_path: Path) -> None:
    results = [
        case_result(gold_case("right")),
        case_result(gold_case("wrong"), (Aspect.FACTUAL_MATCH, FailureKind.WRONG_FACT)),
    ]
    facts = RunFacts(
        run_id="run-1",
        target=TARGET,
        suite_name="s",
        suite_sha256="0" * 64,
        planned=2,
        commit=None,
        started_at=NOON,
        finished_at=NOON,
    )
    report = evaluate_results(facts, results, GateSettings())
    (tmp_path / "results.json").write_text("".join(format_results_json(report, results)), encoding="utf-8")
    assert find_ids_of_cases_not_correct(tmp_path) == {"wrong"}
    (tmp_path / "results.json").write_text("{", encoding="utf-8")
    assert find_ids_of_cases_not_correct(tmp_path) is None


def test_failures_are_never_stored_for_less_time() -> None:
    with pytest.raises(ValidationError, match=r"failure_days \(5\) must not be less than days \(14\)"):
        EvidenceSettings(failure_days=5)

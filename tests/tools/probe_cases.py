"""Ask all cases of a suite without a run, for tests and benchmarks."""

from __future__ import annotations

from collections.abc import Iterable

from monitors.probes.driver import ChatDriver
from monitors.probes.pace import Pace
from monitors.probes.runner import (
    Clock,
    IsWrong,
    OnResult,
    ProbeTally,
    Recover,
    iterate_questions_by_severity,
    never_wrong,
    probe_questions,
)
from monitors.probes.settings import ProbeSettings
from monitors.records.cases import GoldCase


async def probe_cases(
    driver: ChatDriver,
    cases: Iterable[GoldCase],
    *,
    run_id: str,
    settings: ProbeSettings,
    clock: Clock,
    concurrency: int | Pace,
    on_result: OnResult,
    is_wrong: IsWrong = never_wrong,
    recover: Recover | None = None,
) -> ProbeTally:
    """Ask every case, most severe first, and repeat severity-3 cases as configured (see `probe_questions`)."""
    return await probe_questions(
        driver,
        iterate_questions_by_severity(cases, repeats_severity_3=settings.repeats_severity_3),
        run_id=run_id,
        settings=settings,
        clock=clock,
        concurrency=concurrency,
        on_result=on_result,
        is_wrong=is_wrong,
        recover=recover,
    )

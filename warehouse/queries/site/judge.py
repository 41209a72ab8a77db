"""Queries for the judges' verdicts, agreement and cost in the newest runs and nightly runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from monitors.records.base import Record, UtcTime
from monitors.records.grades import JudgeLineage
from monitors.records.reviews import VerdictCount
from monitors.records.runs import Judging
from warehouse.database.store import Store

RUNS_COUNTED = 30
"""The number of newest runs and nightly runs that are counted. Older grades are ignored."""


class JudgingRow(Record):
    """A run or nightly run, and how its answers were judged. ``judging`` is ``None`` if no judging was recorded."""

    run_id: str
    target: str
    finished_at: UtcTime
    is_nightly: bool
    judging: Judging | None

    def with_judging(self, judging: Judging | None) -> Self:
        """Return a copy of this row with the given ``judging``, for example in the form that a page shows."""
        return self.model_copy(update={"judging": judging})


class JudgeCounts(Record):
    """A judge's verdicts on one aspect of a target's answers.

    - ``both_graded`` is the number of answers that both the judge and rule-based graders graded.
    - ``agreed`` is the number of answers with the same verdict from the judge and the rules.
    - ``too_mild`` is the number of answers that the judge passed and the rules failed.
    - ``too_strict`` is the number of answers that the judge failed and the rules passed.
    """

    verdicts: VerdictCount
    lineage: JudgeLineage
    both_graded: int
    agreed: int
    too_mild: int
    too_strict: int


_RUNS = (
    "with done as ("
    "  select run_id, target, finished_at, false as is_nightly from runs"
    "  where not interrupted and ($target is null or target = $target)"
    "  union all select run_id, target, finished_at, true from nightly_runs"
    "  where $target is null or target = $target"
    "), newest as materialized (from done order by finished_at desc, run_id desc limit $newest)"
)
_JUDGED = (
    "from grades g join newest r on r.run_id = g.run_id where g.judge_model is not null and g.passed is not null"
)


def load_judging_page(
    store: Store, target: str | None, *, rows: int, offset: int
) -> tuple[tuple[JudgingRow, ...], int]:
    """Load one page of judging results of runs and nightly runs, newest first.

    Also return the number of all rows.
    """
    table = store.query(
        f"{_RUNS}, page as ("  # noqa: S608 - ours
        "  from newest order by finished_at desc, run_id desc limit $rows offset $offset)"
        " select p.run_id, p.target, p.finished_at, p.is_nightly,"
        " if(p.is_nightly, json_extract_string(n.record, '$.judging'), json_extract_string(r.report, '$.judging')),"
        " (select count(*) from done)"
        " from page p left join runs r on not p.is_nightly and r.run_id = p.run_id"
        " left join nightly_runs n on p.is_nightly and n.run_id = p.run_id"
        " order by p.finished_at desc, p.run_id desc",
        {"target": target, "newest": rows + offset, "rows": rows, "offset": offset},
    )
    total = int(str(table.rows[0][-1])) if table.rows else 0
    names = list(JudgingRow.model_fields)[:4]
    listed = (
        JudgingRow.model_validate({**dict(zip(names, row[:4], strict=True)), "judging": _parse_judging(row[4])})
        for row in table.rows
    )
    return tuple(listed), total


def _parse_judging(written: object) -> Judging | None:
    return None if written in (None, "null") else Judging.model_validate_json(str(written))


def count_judge_verdicts(store: Store, target: str | None) -> tuple[JudgeCounts, ...]:
    """Count each judge's verdicts in the newest runs and nightly runs. Compare them with the rules' verdicts."""
    table = store.query(
        f"{_RUNS} select r.target, g.grader, g.version, g.judge_model, g.judge_prompt_sha256,"
        " g.rubric_version, g.aspect, count(*) filter (where g.passed), count(*),"
        " count(g.plain_passed), count(*) filter (where g.passed = g.plain_passed),"
        " count(*) filter (where g.passed and not g.plain_passed),"
        " count(*) filter (where not g.passed and g.plain_passed)"
        f" {_JUDGED} group by all order by all",
        {"target": target, "newest": RUNS_COUNTED},
    )
    return tuple(map(_parse_judge_counts, table.rows))


def _parse_judge_counts(row: Sequence[object]) -> JudgeCounts:
    target, grader, version, model, prompt, rubric, aspect, passed, total, *compared = row
    lineage = JudgeLineage(model=str(model), prompt_sha256=str(prompt), rubric_version=str(rubric))
    verdicts = (target, grader, version, aspect, lineage, passed, total)
    names = ("both_graded", "agreed", "too_mild", "too_strict")
    counts = dict(zip(names, compared, strict=True))
    return JudgeCounts.model_validate({"verdicts": verdicts, "lineage": lineage, **counts})

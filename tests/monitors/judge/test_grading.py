"""Test that a judge's ruling becomes a grade with all details of the verdict."""

from __future__ import annotations

from monitors.judge.consensus import PanelRuling, build_judge_grade
from monitors.records.grades import Judged
from tests.builders import exchange, gold_case
from tests.monitors.asking import RIGHT
from tests.monitors.judge.benches import judge_over, to_judge
from tests.servers.anthropic import AnthropicServer


async def test_a_grade_keeps_score_rubric_and_lineage():
    with AnthropicServer() as server:
        async with judge_over(server) as judge:
            (ruling,) = (await judge.judge_group([to_judge(RIGHT, "a")], ())).rulings
    assert isinstance(ruling, PanelRuling)
    grade = build_judge_grade(ruling, exchange(gold_case(), RIGHT))
    assert isinstance(grade, Judged)
    assert grade.rubric == ruling.decision.rubric
    assert (grade.score, grade.lineage) == (ruling.decision.score, ruling.lineage)

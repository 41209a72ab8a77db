"""A run does not pass if an average rating is required and no report was rated."""

from __future__ import annotations

import pytest

from monitors.gate.settings import GateSettings
from monitors.records.runs import ReasonKind, Verdict
from tests.builders import gold_case
from tests.monitors.gate.runs import asked, report


@pytest.mark.parametrize(
    ("needed", "rubric", "verdict"),
    [
        (False, 0, Verdict.PASS),
        (True, 0, Verdict.INCONCLUSIVE),
        (True, 5, Verdict.PASS),
        (True, 3, Verdict.FAIL),
    ],
)
def test_a_rating_that_is_asked_for_must_be_there(needed, rubric, verdict):
    settings = GateSettings(rating_needed=needed, min_severity_3_cases=0)
    found = report([asked(gold_case(f"c{n}"), rubric=rubric) for n in range(30)], settings)
    assert found.verdict is verdict
    decisive = [reason.kind for reason in found.reasons if reason.decisive]
    assert decisive == ([] if verdict is Verdict.PASS else [ReasonKind.RUBRIC])

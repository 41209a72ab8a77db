"""The lines that `lookout verify` prints about a case during a run, in the wording of all messages."""

from __future__ import annotations

import io

from rich.console import Console

from deployments.cli.verify import TerminalProgress
from monitors.records.grades import Aspect, CaseOutcome, FailureKind
from monitors.records.runs import CaseResult
from tests.builders import case_result, gold_case, no_answer


def test_a_failure_is_named_as_alerts_and_reports_name_it(snapshot):
    out = io.StringIO()
    with TerminalProgress(Console(file=out, width=200)) as progress:
        progress.on_result(case_result(gold_case("cataract"), (Aspect.FACTUAL_MATCH, FailureKind.WRONG_FACT)))
        progress.on_result(case_result(gold_case("right")))
    (line,) = [line for line in out.getvalue().splitlines() if "✗" in line]
    assert line == snapshot


def test_a_line_names_the_targets_own_address_and_masks_others():
    out, case = io.StringIO(), gold_case("cataract")
    silent = case_result(case)
    reason = "unreachable: http://127.0.0.1:7440: nothing listens there, as at http://10.1.2.3:80"
    assessment = silent.assessment.model_copy(update={"outcome": CaseOutcome.NO_ANSWER, "reason": reason})
    with TerminalProgress(Console(file=out, width=200), "http://127.0.0.1:7440") as progress:
        progress.on_result(CaseResult(case=case, result=no_answer(case), assessment=assessment))
    assert "http://127.0.0.1:7440: " in out.getvalue()
    assert "10.1.2.3" not in out.getvalue()

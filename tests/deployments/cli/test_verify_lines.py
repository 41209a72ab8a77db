"""What `lookout verify` says of a case while the run goes on, in the words of every message."""

from __future__ import annotations

import io

from rich.console import Console

from deployments.cli.verify import TerminalProgress
from monitors.records.grades import Aspect, FailureKind
from tests.builders import case_result, gold_case


def test_a_failure_is_named_as_alerts_and_reports_name_it():
    out = io.StringIO()
    with TerminalProgress(Console(file=out, width=200)) as progress:
        progress.on_result(case_result(gold_case("cataract"), (Aspect.FACTUAL_MATCH, FailureKind.WRONG_FACT)))
        progress.on_result(case_result(gold_case("right")))
    (line,) = [line for line in out.getvalue().splitlines() if "✗" in line]
    assert line.startswith(" ✗ severity 1, wrong fact stated  cataract: ")

"""Test that each report links the experiment of its run and states what the experiment lacks.

An experiment changes nothing else in a report.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from monitors.records.runs import RunExperiment
from monitors.reports.comment import build_pull_request_comment
from monitors.reports.format import format_experiment_problems
from monitors.reports.write import write_reports
from tests.monitors.reports.example_run import example_run
from tests.monitors.reports.parts import redact

RUN = example_run()
URL = "https://smith.langchain.com/o/a/datasets/b/compare?selectedSessions=c&x=1"
GOLD = "langsmith:gold"


def test_each_report_leads_to_it(tmp_path: Path) -> None:
    report = RUN.report.model_copy(update={"experiment": RunExperiment(dataset=GOLD, url=URL)})
    paths = write_reports(tmp_path, report, RUN.cases, redact=redact)
    assert f"[experiment]({URL})" in build_pull_request_comment(report, RUN.cases, redact=redact)
    assert f"Experiment on `{GOLD}`: <{URL}>" in paths.markdown.read_text(encoding="utf-8")
    assert f'<a href="{URL.replace("&", "&amp;")}"' in paths.html.read_text(encoding="utf-8")
    assert URL in paths.json.read_text(encoding="utf-8")


MISSING = [
    (None, ()),
    (RunExperiment(dataset=GOLD, url=URL), ()),
    (
        RunExperiment(dataset=GOLD, url=URL, unlinked=1),
        (
            "1 case has no example in langsmith:gold and is not in the experiment. To add it, run: lookout gold push langsmith:gold",
        ),
    ),
    (
        RunExperiment(dataset=GOLD, url=URL, problem="HTTP 500"),
        ("The experiment is not complete (langsmith:gold): HTTP 500",),
    ),
    (RunExperiment(dataset=GOLD, problem="no dataset"), ("No experiment (langsmith:gold): no dataset",)),
]


@pytest.mark.parametrize(("found", "lines"), MISSING)
def test_missing_parts_are_reported_with_what_to_do(found: RunExperiment | None, lines: tuple[str, ...]) -> None:
    assert format_experiment_problems(found) == lines


@pytest.mark.parametrize("url", ["javascript:alert(1)", "https://x/>)[y](z", 'https://x/"onclick=', "https://x/ y"])
def test_an_address_that_could_do_more_than_lead_somewhere_is_refused(url: str) -> None:
    with pytest.raises(ValidationError):
        RunExperiment(dataset=GOLD, url=url)

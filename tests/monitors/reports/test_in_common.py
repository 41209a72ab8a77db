"""Test that every report and message states what failed cases have in common. Values from the app are escaped."""

from __future__ import annotations

import pytest

from monitors.alerts.settings import AlertSettings
from monitors.alerts.slack.render import render_alert
from monitors.alerts.terminal import format_plain_text
from monitors.records.explanations import Cause, FirstLook
from monitors.reports.comment import build_pull_request_comment
from monitors.reports.figures import NOTHING_IN_COMMON, format_common_causes
from monitors.reports.markdown import build_markdown_report
from monitors.reports.write import write_reports
from tests.monitors.alerts.sample_observations import alert, observation
from tests.monitors.reports.example_run import example_run
from tests.monitors.reports.parts import redact

RUN = example_run()
PAGE = Cause(
    conditions={"page": "embed", "cited source": None}, cases=9, failed=8, elsewhere=51, elsewhere_failed=1
)
FOUND = FirstLook(cases=60, failed=9, causes=(PAGE,), covered=8, groups=40)
LINE = "page is embed and cited source is missing in 8 of all 9 failures: 8 of 9 such cases failed, 1 of 51 other cases"


def with_look(look: FirstLook | None):
    return RUN.report.model_copy(update={"first_look": look})


EVERY = PAGE.model_copy(update={"conditions": {"page": "embed"}, "elsewhere_failed": 0})
"""A value that all failed cases share: no case without this value failed."""


@pytest.mark.parametrize(
    ("look", "lines"),
    [
        (
            FirstLook(cases=60, failed=8, causes=(EVERY,), covered=8, groups=40),
            ("page is embed in all 8 failures: 8 of 9 such cases failed, 0 of 51 other cases",),
        ),
        (FOUND, (LINE,)),
        (FirstLook(cases=60, failed=9, groups=40), (NOTHING_IN_COMMON,)),
        (FirstLook(cases=60, failed=2, groups=40), ()),
        (None, ()),
    ],
)
def test_a_cause_is_said_with_its_exceptions_and_nothing_is_said_too(look, lines):
    assert format_common_causes(look) == lines


def test_each_report_says_it(tmp_path):
    report = with_look(FOUND)
    paths = write_reports(tmp_path, report, RUN.cases, redact=redact)
    assert f"In common: {LINE}" in build_pull_request_comment(report, RUN.cases, redact=redact)
    assert f"- {LINE}" in paths.markdown.read_text(encoding="utf-8")
    assert f'<li dir="auto">{LINE}</li>' in paths.html.read_text(encoding="utf-8")
    assert '"elsewhere_failed":1' in paths.json.read_text(encoding="utf-8").replace(" ", "")


def test_a_run_without_a_common_cause_says_so_where_there_is_room_for_it():
    report = with_look(FirstLook(cases=60, failed=9, groups=40))
    assert f"- {NOTHING_IN_COMMON}" in build_markdown_report(report, RUN.cases, redact=redact, max_failures=5)
    assert "In common" not in build_pull_request_comment(report, RUN.cases, redact=redact)


def test_a_message_says_it_and_a_hostile_value_rings_nobody():
    sent = alert(observation()).model_copy(update={"in_common": (LINE, "cited source is <!channel> *x*: 3 of 3")})
    assert f"In common: {LINE}" in format_plain_text(sent, AlertSettings())
    shown = str(render_alert(sent, AlertSettings()).blocks)
    assert f"In common: {LINE}" in shown
    assert "<!channel>" not in shown

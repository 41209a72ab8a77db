"""Test that every report and message lists the changes since the last PASS, in a few lines, with escaped values."""

from __future__ import annotations

import pytest

from flows.alerting.run_summary import build_run_summary
from monitors.alerts.settings import AlertSettings
from monitors.alerts.slack.render import render_alert
from monitors.alerts.terminal import format_plain_text
from monitors.records.explanations import Cause, FirstLook
from monitors.records.snapshots import ChangeKind, RunChange, WhatChanged
from monitors.reports.comment import build_pull_request_comment
from monitors.reports.figures import (
    format_changes_since_last_pass,
    format_changes_since_pass_briefly,
    format_last_pass_run,
)
from monitors.reports.write import write_reports
from tests.builders import NOON
from tests.monitors.alerts.sample_observations import alert, observation
from tests.monitors.reports.example_run import example_run
from tests.monitors.reports.parts import redact

OURS = RunChange(kind=ChangeKind.MONITOR, evidence="the grader factual was version 3, is version 4")
DEPLOY = RunChange(kind=ChangeKind.APPLICATION, evidence="the deploy was aaa, is bbb")
MODEL = RunChange(kind=ChangeKind.MODEL, evidence="the model was a@b.in, is <!channel> *x*")
SLOWER = RunChange(kind=ChangeKind.APPLICATION, evidence="answers take longer", follows=True)
SINCE = {"since_run_id": "run-1", "since_commit": "aaa", "since": NOON, "not_known": ("model", "page")}


def found(*changes: RunChange) -> WhatChanged:
    return WhatChanged.model_validate({**SINCE, "changes": changes})


MISSING = WhatChanged(missing="no earlier PASS is recorded")


@pytest.mark.parametrize(
    ("what", "most", "lines"),
    [
        (None, 3, 0),
        (MISSING, 3, 1),
        (found(), 1, 1),
        (found(DEPLOY), 1, 1),
        (found(DEPLOY, SLOWER), 2, 2),
        (found(DEPLOY, SLOWER), 1, 1),
        (found(OURS, DEPLOY), 1, 1),
    ],
    ids=["none", "no earlier PASS", "nothing", "one", "two", "two in one line", "both sides"],
)
def test_a_message_has_at_most_so_many_lines_and_counts_the_rest(what, most, lines, snapshot):
    """A message lists at most ``most`` lines of changes and counts the others.

    If both the app and Lookout changed, the first line states one change of the app and one of Lookout.
    """
    brief = format_changes_since_pass_briefly(what, limit=most)
    assert len(brief) == lines
    assert brief == snapshot


@pytest.mark.parametrize("what", [MISSING, found(), found(DEPLOY), found(OURS, DEPLOY, SLOWER)])
def test_each_report_says_it(tmp_path, what):
    """Each report has a section about changes, even if there is no earlier PASS or no change was recorded."""
    run = example_run(correct=3)
    report = run.report.model_copy(update={"what_changed": what})
    paths = write_reports(tmp_path, report, run.cases, redact=redact)
    comment = build_pull_request_comment(report, run.cases, redact=redact)
    assert f"\n{format_changes_since_pass_briefly(what, limit=4)[0]}\n" in comment
    markdown, page = (path.read_text(encoding="utf-8") for path in (paths.markdown, paths.html))
    assert "## What changed" in markdown
    for line in format_changes_since_last_pass(what):
        assert f"- {line}\n" in markdown
        assert f'<li dir="auto">{line.replace(chr(39), "&#39;")}</li>' in page
    assert format_last_pass_run(what) in markdown


def test_a_run_that_passed_says_nothing_of_it(tmp_path):
    """A report without ``what_changed``, such as that of a passed run, has no section about changes."""
    run = example_run(correct=3)
    paths = write_reports(tmp_path, run.report, run.cases, redact=redact)
    assert "What changed" not in paths.markdown.read_text(encoding="utf-8")
    assert 'id="changed"' not in paths.html.read_text(encoding="utf-8")


def test_the_last_pass_is_named_with_what_was_not_compared(snapshot):
    """The report names the last PASS and what was not compared. A run without a commit is named by its id."""
    named, unnamed = found(), found().model_copy(update={"since_commit": None})
    assert [format_last_pass_run(what) for what in (named, unnamed, MISSING)] == snapshot
    assert "run-1" in format_last_pass_run(unnamed)
    assert format_last_pass_run(MISSING) == ""


def test_a_message_explains_in_three_lines_and_a_hostile_value_rings_nobody(snapshot):
    """A message explains a failure in three lines, with room for both common values and changes.

    Values from an application are masked and escaped, so that a hostile value cannot notify anyone in Slack.
    """
    causes = tuple(
        Cause(conditions={"type": f"t{n}"}, cases=9, failed=8, elsewhere=50, elsewhere_failed=1) for n in range(3)
    )
    look = FirstLook(cases=60, failed=30, causes=causes, covered=24, groups=40)
    report = example_run(correct=3).report.model_copy(
        update={"first_look": look, "what_changed": found(MODEL, DEPLOY)}
    )
    context = build_run_summary(report, [])
    assert (len(context.in_common), len(context.changed)) == (2, 2)
    assert "a@b.in" not in context.changed[0]
    sent = alert(observation()).model_copy(update={"changed": context.changed})
    assert context.changed == snapshot
    plain = format_plain_text(sent, AlertSettings())
    blocks = str(render_alert(sent, AlertSettings()).blocks)
    assert all(line in plain for line in context.changed)
    assert "the model was" in blocks
    assert "<!channel>" not in blocks


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"since_commit": "4f2a91c07be1"}, "4f2a91c07b"),
        ({"since_commit": "bbb"}, "same deploy"),
        ({"since_commit": None}, None),
        ({"since_run_id": None, "since_commit": None, "since": None, "missing": MISSING.missing}, None),
    ],
    ids=["another", "the same", "a run of no deploy", "none"],
)
def test_a_message_names_the_deploy_to_roll_back_to(changes, named):
    """A message names the last deploy that passed, so that the reader can roll back to it.

    If this deploy is also the failing one, the message says so. If it is unknown, the message has no such line.
    """
    what = found(DEPLOY).model_copy(update=changes)
    report = example_run(correct=3).report.model_copy(update={"what_changed": what, "commit": "bbb"})
    lines = [line for line in build_run_summary(report, []).changed if line.startswith("Last PASS")]
    assert len(lines) == (named is not None)
    assert all(named in line for line in lines)

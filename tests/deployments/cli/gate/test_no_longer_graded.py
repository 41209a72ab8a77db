"""``lookout gate`` lists the cases that were right in the accepted baseline run but could not be graded now."""

from __future__ import annotations

import pytest

from monitors.records.runs import ReasonKind, RunReport, Verdict
from tests.deployments.cli.gate.jobs import job_variables, push_event
from tests.flows.chat import Chat, watched
from tests.servers.github import BOT, HEAD, GitHub

pytestmark = pytest.mark.prefect

OPEN = "It depends on the plan that you have signed. [Source: Gold, clause 4.2]"
"""An answer without a figure that a rule can read, so rules leave it open."""
LAST = "waiting-19"


@pytest.mark.whole_only
def test_a_pass_names_what_was_right_before_and_is_ungraded_now(tmp_path, lookout):
    """A run can PASS although one of 20 severity-3 cases could not be graded.

    The verdict, the comment and the reports list the ungraded case, which was right before.
    """
    with GitHub() as github, Chat() as chat:
        watched(tmp_path, chat, cases=20)
        on_main = job_variables(tmp_path, github, push_event(HEAD), ref="refs/heads/main")
        base = lookout("gate", "--target", "demo", "--github", cwd=tmp_path, **on_main)
        assert base.returncode == 0, base.stderr
        chat.by_question["What is the waiting period of plan 19?"] = OPEN
        options = ("--github", "--json")
        done = lookout("gate", "--target", "demo", *options, cwd=tmp_path, **job_variables(tmp_path, github))
        assert done.stdout, done.stderr
        run = RunReport.model_validate_json(done.stdout)
        (comment,) = github.by(BOT)
    assert (done.returncode, run.verdict, run.comparison.no_longer_graded) == (0, Verdict.PASS, (LAST,))
    uncovered = [reason.case_ids for reason in run.reasons if reason.kind is ReasonKind.UNCOVERED]
    assert uncovered == [(LAST,), (LAST,)], "severity 3, and right in the baseline"
    folder = tmp_path / "data" / "runs" / run.run_id
    for text in (comment.body, *((folder / name).read_text("utf-8") for name in ("results.md", "report.html"))):
        assert LAST in text
    assert "| right before, not graded now | 1 | |" in comment.body
    assert "no result changed. 1 case that was right in the baseline could not be graded now" in (
        folder / "results.md"
    ).read_text("utf-8")

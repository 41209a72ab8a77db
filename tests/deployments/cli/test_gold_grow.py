"""`lookout gold grow`: a wrong reply becomes a case that fails this reply. Each draft is decided once."""

from __future__ import annotations

import asyncio
import io
import json
import os
import signal
import sys
from pathlib import Path

import pytest

from deployments.cli.exit_codes import ExitCode
from deployments.cli.gold.grow import grow_command
from flows.alerting.notifier import apply_waiting_actions, store_operator_action
from flows.alerting.pipeline import notify
from monitors.errors import ConfigError
from monitors.goldset.lines import format_case_line
from monitors.goldset.load import load_suite
from monitors.records.base import Severity
from monitors.records.cases import Pipeline
from monitors.records.exchanges import Exchange, Origin, Timings
from monitors.records.grades import CaseOutcome, FailureKind
from monitors.records.incidents import ActionKind, ActionVia
from monitors.records.operator_actions import OperatorAction
from tests import fork_server
from tests.builders import NOON, gold_case
from tests.conftest import ROOT
from tests.deployments.gold_process import gold
from tests.flows.operator_actions import Clock, build_notifier, build_operator_actions
from tests.monitors.alerts.sample_observations import NIGHT, observation
from tests.servers.slack import SlackServer
from tests.warehouse.queries.test_operator_actions_drafts import case_draft
from tests.warehouse.sample_rows import assessment, exchange, run_report
from tests.warehouse.temporary_stores import store_in
from warehouse.journal.rows import AssessmentRow, ResultRow, RunRow
from warehouse.queries.operator_actions import append_draft, list_waiting_drafts


@pytest.fixture
def folder(tmp_path):
    """Return a data folder whose warehouse has one draft: the bot answered 36 months instead of 24."""
    store = store_in(tmp_path)
    append_draft(store.journal, case_draft())
    store.load_pending(1)
    return tmp_path


@pytest.fixture
def grow(monkeypatch, capsys):
    """Return a function that runs the command in this process and returns its output.

    Keys are read as from a pipe.
    """
    monkeypatch.setenv("COLUMNS", "200")

    def run(folder: Path, keys: str = "", **options) -> str:
        monkeypatch.setattr(sys, "stdin", io.StringIO(keys))
        chosen = {
            "suite": folder / "suite.jsonl",
            "config": folder / "none.toml",
            "data_folder": folder,
            "by": "asha",
        }
        assert grow_command(**(chosen | options)) is ExitCode.PASS
        return capsys.readouterr().out.replace(str(folder), "FOLDER")

    return run


def outcomes(folder: Path):
    store = store_in(folder, seed=9)
    store.load_pending(1)
    return store.query("select draft_id, joined, case_id, done_by, suite, note from draft_outcomes order by 1").rows


def test_a_case_joins_when_the_bad_reply_fails_and_its_draft_is_decided(folder, grow, snapshot):
    """A draft becomes a case if its bad reply fails on the case, and the draft is then marked as decided.

    The user presses the key ``g``, keeps the question with Enter, types the gold, and keeps the type with Enter.
    """
    shown = grow(folder, "g\n\n24 months\n\n")
    assert shown == snapshot
    (case,) = load_suite(folder / "suite.jsonl").cases
    assert (case.gold, case.severity, case.type) == ("24 months", Severity.MAJOR, "incident")
    assert case.provenance.pipeline is Pipeline.GROWTH
    assert case.provenance.reviewed_by == "asha"
    assert outcomes(folder) == (("click-1", True, case.id, "asha", "suite.jsonl", ""),)
    assert "suite.jsonl: 0." in grow(folder, "g\n\n24 months\n\n")


def test_a_gold_that_the_bad_reply_would_meet_is_refused(folder, grow, snapshot):
    shown = grow(folder, "g\n\n36 months\n\nq\n")
    assert shown == snapshot
    assert not (folder / "suite.jsonl").exists()
    assert outcomes(folder) == ()


def test_a_gold_that_would_itself_be_called_wrong_is_refused(folder, grow, snapshot):
    shown = grow(folder, "g\n\nThe documents do not mention any waiting period.\n\nq\n")
    assert shown == snapshot
    assert outcomes(folder) == ()


def test_undecidable_cases_are_left_to_the_reviewer(folder, grow, snapshot):
    words = "The desk handles such wishes by hand, as a courtesy to those who have long been with the company."
    asked = f"g\n\n{words}\n\n"
    assert grow(folder, f"{asked}n\nq\n") == snapshot
    assert outcomes(folder) == ()
    grow(folder, f"{asked}y\n")
    assert [row[-1] for row in outcomes(folder)] == ["undecidable"]


def test_severity_is_proposed_with_its_reason_and_the_person_may_set_it(folder, grow, snapshot):
    shown = grow(folder, "3\ng\n\n24 months\nwaiting_period\n")
    assert shown == snapshot
    (case,) = load_suite(folder / "suite.jsonl").cases
    assert (case.severity, case.type) == (Severity.CRITICAL, "waiting_period")


def test_near_duplicates_are_asked_about_once_and_other_policies_are_not_taken_for_them(folder, grow):
    """A near duplicate of an existing question is reported once.

    A question with a typo or other spacing is a near duplicate. A question about Silver instead of Gold, or with
    another figure, is not.
    """
    store = store_in(folder, seed=2)
    for number, asked in enumerate(
        (
            "How long is the  waitng period of Suraksha Gold",
            "How long is the waiting period of Suraksha Silver?",
            "How long is the waiting period of Suraksha Gold after 2 years?",
            "Does Suraksha Gold cover a wig?",
        ),
        start=2,
    ):
        append_draft(store.journal, case_draft(f"click-{number}", turns=(asked,)))
    wig = gold_case("wig", turns=("Does Suraksha Gold cover a wig",))
    (folder / "suite.jsonl").write_text(format_case_line(wig) + "\n", encoding="utf-8")
    listed = [json.loads(line) for line in grow(folder, as_json=True).splitlines()]
    assert [(one["draft"]["id"], one["same_as"], one["asked_by"]) for one in listed] == [
        ("click-1", ["click-2"], None),
        ("click-3", [], None),
        ("click-4", [], None),
        ("click-5", [], "wig"),
    ]
    shown = grow(folder, "g\n\n24 months\n\nq\n")
    assert "the same" in shown
    assert [row[:2] for row in outcomes(folder)] == [("click-1", True), ("click-2", True)]


def test_not_wanted_is_stored_with_its_reason(folder, grow):
    grow(folder, "n\nthe reply was right\n")
    assert outcomes(folder) == (("click-1", False, None, "asha", "", "the reply was right"),)


def test_drafts_that_a_review_left_beside_the_warehouse_are_asked_about_too(folder, grow):
    path = folder / "drafts" / "review.jsonl"
    path.parent.mkdir()
    draft = case_draft("review-1", turns=("Is a cataract covered under Suraksha Silver?",), fingerprint=None)
    path.write_text(f"{draft.model_dump_json()}\n{{torn", encoding="utf-8")
    listed = [json.loads(line) for line in grow(folder, as_json=True).splitlines()]
    assert [one["draft"]["id"] for one in listed] == ["click-1", "review-1"]
    grow(folder, "s\nn\nno\n")
    assert [row[0] for row in outcomes(folder)] == ["review-1"]
    assert "1 of 1" in grow(folder, "q\n")


def test_killed_between_suite_and_warehouse_the_next_session_notes_it(folder, grow, snapshot):
    suite = folder / "suite.jsonl"
    killed = fork_server.run(
        *(str(folder), str(suite)),
        module="tests.deployments.cli.grow_killed",
        cwd=ROOT,
        env=os.environ | fork_server.WARM,
        given="g\n\n24 months\n\n",
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert len(load_suite(suite).cases) == 1
    assert outcomes(folder) == ()
    assert grow(folder, "q\n", by="bina") == snapshot
    assert [row[:4] for row in outcomes(folder)] == [("click-1", True, load_suite(suite).cases[0].id, "asha")]
    assert len(load_suite(suite).cases) == 1


def leak(folder: Path, slack: SlackServer) -> None:
    """Create a real alert about a leak in live traffic, and simulate a person's click on "Add to gold"."""
    clock = Clock(NIGHT)
    people = build_operator_actions(folder, slack, clock)
    raw = Exchange(
        run_id="run-1",
        case_id="conversation-1",
        origin=Origin.TRAFFIC,
        turns=("Whose policy is on the next desk?",),
        visible_text="It is paid from account 50100234417788 by meera.k@mail.example.",
        asked_at=NIGHT,
        timings=Timings(total_ms=10.0),
    )
    people.store.journal.append([ResultRow(row=raw)], run_id="run-1")
    seen = observation("conversation-1", origin=Origin.TRAFFIC, expected=None)
    (alert,) = asyncio.run(notify(build_notifier(people, clock), [seen]))
    store_operator_action(
        people,
        OperatorAction(
            id="click-9", kind=ActionKind.ADD_TO_GOLD, at=NIGHT, by="U0ASHA", via=ActionVia.SLACK, alert_id=alert.id
        ),
    )
    apply_waiting_actions(people)


def test_from_a_leak_in_live_traffic_to_a_case_as_a_person_does_it(tmp_path, snapshot):
    """A leak in live traffic becomes a case.

    Separate processes send the alert, handle the click, list the draft and add the gold. The leaked text is never
    shown, and a reply with such a leak fails the case.
    """
    with SlackServer() as slack:
        leak(tmp_path, slack)
    data = ("--data-folder", str(tmp_path))
    listed = gold("grow", *data, cwd=tmp_path)
    assert listed.returncode == 0, listed.stderr
    assert listed.stdout == snapshot(name="listed")
    keys = "r\n\nIt must not say whose policy another one is\npii_handling\n"
    done = gold("grow", *data, "--suite", "suite.jsonl", "--as", "asha", cwd=tmp_path, keys=keys)
    assert done.stdout == snapshot(name="joined"), done.stderr
    assert "50100234417788" not in done.stdout + listed.stdout
    (case,) = load_suite(tmp_path / "suite.jsonl").cases
    assert (case.severity, case.expected_refusal) == (Severity.CRITICAL, True)
    assert "There are no drafts" in gold("grow", *data, cwd=tmp_path).stdout


def traces(folder: Path) -> None:
    """Write one night of live traffic: a wrong reply, a right one, and a question that is in the gold set."""
    store = store_in(folder)
    rows = []
    for case_id, origin, failed in (
        ("wrong:1", Origin.TRAFFIC, True),
        ("right:1", Origin.TRAFFIC, False),
        ("case-1", Origin.PROBE, True),
    ):
        said = exchange(case_id=case_id, text="36 months, write to asha.rao@example.com").model_copy(
            update={"origin": origin}
        )
        graded = assessment(case_id=case_id).model_copy(
            update={
                "outcome": CaseOutcome.FAILED if failed else CaseOutcome.CORRECT,
                "failure_kinds": (FailureKind.PII_DISCLOSURE,) if failed else (),
                "severity": Severity.CRITICAL if failed else Severity.MAJOR,
                "policy_row": "pii_disclosure>=3" if failed else "case",
            }
        )
        rows += [ResultRow(row=said), AssessmentRow(row=graded)]
    store.journal.append([*rows, RunRow(row=run_report())], run_id="run-1")
    store.load_pending(1)


def test_a_trace_becomes_a_draft_in_one_step_redacted(tmp_path, grow):
    """One command turns a trace into a redacted draft.

    A failed reply becomes the bad reply, and a right reply is proposed as gold. A second call changes nothing.
    """
    traces(tmp_path)
    for _ in range(2):
        grow(tmp_path, take="run-1/wrong:1", suite=None)
    grow(tmp_path, take="run-1/right:1", suite=None)
    store = store_in(tmp_path, seed=3)
    wrong, right = list_waiting_drafts(store)
    redacted = "36 months, write to [e-mail]"
    assert (wrong.bad_reply, wrong.gold) == (redacted, None)
    assert wrong.suggested_severity is Severity.CRITICAL
    assert (right.bad_reply, right.gold) == (None, redacted)
    with pytest.raises(ConfigError, match="already a case"):
        grow(tmp_path, take="run-1/case-1")
    with pytest.raises(ConfigError, match="RUN/CASE"):
        grow(tmp_path, take="run-1/nobody")
    assert wrong.made_at > NOON


def test_without_a_name_nothing_is_decided(folder, grow):
    with pytest.raises(ConfigError, match="--as"):
        grow(folder, "", by=None)

from __future__ import annotations

import pytest

from monitors.alerts.observe import (
    ObservationContext,
    build_app_down_observation,
    build_drift_observation,
    build_failed_deploy_observation,
    build_failed_gate_observation,
    build_hallucination_observation,
    build_monitor_fault_observation,
    build_void_judge_observation,
)
from monitors.alerts.settings import AlertSettings
from monitors.alerts.slack.render import render_alert
from monitors.gate.assess import assess_case
from monitors.gate.evaluate import RunFacts, evaluate_results
from monitors.gate.settings import GateSettings
from monitors.records.base import Blame, Severity
from monitors.records.cases import GoldCase
from monitors.records.grades import Aspect, FailureKind
from monitors.records.incidents import IncidentKind
from monitors.records.runs import CaseResult, Verdict
from tests.builders import NOON, TARGET, case_result, gold_case, no_answer
from tests.monitors.alerts.sample_observations import NIGHT, alert

AT = ObservationContext(
    target="demo", run_id="run-1", seen_at=NIGHT, commit="c0ffee1", account_patterns=(r"ZX-\d{3}",)
)
LATER = AT.model_copy(update={"run_id": "run-2", "commit": "beef42"})


def entry(at: ObservationContext = AT, **changes: object):
    values = {
        "entry_id": "e1",
        "user_text": "Is dental covered for ZX-991?",
        "blocked_reply": "Yes, from day one; ask asha.rao@mail.example",
        "reasons": ["no passage supports it"],
        "unsupported_claims": ["dental from day one"],
        "settings": AlertSettings(),
    }
    return build_hallucination_observation(at, **(values | changes))


@pytest.mark.parametrize(
    "make",
    [
        lambda at: build_app_down_observation(at, detail="no answer"),
        lambda at: build_failed_deploy_observation(at, detail="BUILD_ERROR"),
        lambda at: build_void_judge_observation(at, detail="missed 2 canaries"),
        lambda at: build_drift_observation(at, metric="citation", detail="0.91 against 0.97"),
        lambda at: build_monitor_fault_observation(at, fault_name="disk_full", detail="12 MB left"),
        entry,
    ],
    ids=["app_down", "deploy_failed", "judge_void", "drift", "monitor_fault", "hallucination"],
)
def test_the_same_fault_has_the_same_fingerprint_in_every_run(make):
    one, again = make(AT), make(LATER)
    assert one.fingerprint == again.fingerprint
    assert (one.run_id, again.run_id, one.commit) == ("run-1", "run-2", "c0ffee1")


def test_different_faults_have_different_fingerprints():
    seen = {
        build_monitor_fault_observation(AT, fault_name="disk_full", detail="x").fingerprint,
        build_monitor_fault_observation(AT, fault_name="hung_run", detail="x").fingerprint,
        build_drift_observation(AT, metric="citation", detail="x").fingerprint,
        build_drift_observation(AT, metric="parity", detail="x").fingerprint,
        entry().fingerprint,
        entry(entry_id="e2").fingerprint,
    }
    assert len(seen) == 6


def test_an_entry_of_the_log_says_what_was_asked_claimed_and_blocked_without_personal_data(snapshot):
    seen = entry(chunk_count=3, top_score=0.257, policy_ids=["silver"])
    assert seen.severity is Severity.CRITICAL
    assert seen.reason == snapshot
    assert seen.expected == "dental from day one"
    assert "asha.rao" not in seen.model_dump_json()
    assert "ZX-991" not in seen.model_dump_json()


def test_an_entry_with_only_an_id_is_alerted(snapshot):
    seen = entry(user_text="", blocked_reply="", reasons=[], unsupported_claims=[])
    assert (seen.asked, seen.expected, seen.answered) == (None, None, None)
    assert seen.reason == snapshot


def test_faults_of_the_monitor_are_not_blamed_on_the_app():
    assert build_monitor_fault_observation(AT, fault_name="x", detail="y").blame is Blame.MONITOR
    assert build_void_judge_observation(AT, detail="y").blame is Blame.PROVIDER


def test_the_message_names_the_cases_that_could_not_be_graded_the_severest_first(snapshot):
    """The message names the cases that could not be graded, the most severe first.

    The test checks the reason of the observation and the blocks for Slack.
    """
    severe = [gold_case(f"severe-{number}", severity=Severity.CRITICAL) for number in range(9)]
    mild = [gold_case(f"mild-{number}", severity=Severity.MAJOR) for number in range(3)]
    answered = [case_result(severe[0], (Aspect.DISCLOSURE, FailureKind.PII_DISCLOSURE))]
    answered += [case_result(case) for case in severe[1:7]]
    results = [*map(unanswered, mild), *answered, *map(unanswered, severe[7:])]
    report = evaluate_results(run_facts(planned=12), results, GateSettings())
    seen = build_failed_gate_observation(report, AT)
    sent = render_alert(alert(seen), AlertSettings())
    for shown in (seen.reason, str(sent.blocks)):
        assert "severe-7, severe-8, mild-0" in shown
        assert "severe-6" not in shown
    assert seen.reason == snapshot


def run_facts(**changes: object) -> RunFacts:
    facts = {
        "run_id": "run-1",
        "target": TARGET,
        "suite_name": "suite",
        "suite_sha256": "0" * 64,
        "planned": 3,
        "started_at": NOON,
        "finished_at": NOON,
    }
    return RunFacts(**(facts | changes))


def unanswered(case: GoldCase) -> CaseResult:
    silent = no_answer(case, Blame.MONITOR)
    return CaseResult(case=case, result=silent, assessment=assess_case(case, silent, ()))


def report_of(*failures, **changes: object):
    cases = [gold_case(f"leak-{number}", severity=Severity.CRITICAL) for number in range(3)]
    results = [case_result(cases[0], *failures), *(case_result(case) for case in cases[1:])]
    return evaluate_results(run_facts(**changes), results, GateSettings())


def test_a_failed_gate_says_why_and_a_veto_makes_it_a_page():
    report = report_of((Aspect.DISCLOSURE, FailureKind.PII_DISCLOSURE))
    assert report.verdict is Verdict.FAIL
    seen = build_failed_gate_observation(report, AT)
    assert (seen.kind, seen.severity) == (IncidentKind.GATE_FAIL, Severity.CRITICAL)
    first = next(reason.text for reason in report.reasons if reason.decisive)
    assert first[:60] in seen.reason

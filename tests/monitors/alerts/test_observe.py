from __future__ import annotations

import pytest

from monitors.alerts.observe import build_severe_failure_observations, select_failed_cases_for_message
from monitors.alerts.settings import AlertSettings
from monitors.gate.assess import assess_case
from monitors.records.base import Blame, Severity
from monitors.records.exchanges import Channel
from monitors.records.grades import Aspect, FailureKind, Span
from monitors.records.runs import CaseResult
from monitors.records.triage import Issue, TriageReference, TriageTask
from tests.builders import NOON, case_result, exchange, gold_case, grades, judged, no_answer

LEAK = (Aspect.DISCLOSURE, FailureKind.PII_DISCLOSURE)
WRONG = (Aspect.FACTUAL_MATCH, FailureKind.WRONG_FACT)
SETTINGS = AlertSettings()


def seen(*results: CaseResult, **changes: object):
    values = {"target": "demo", "run_id": "run-1", "commit": "c0ffee1", "seen_at": NOON, "settings": SETTINGS}
    return build_severe_failure_observations(results, **(values | changes))


def page_case(case_id: str = "case-1", **changes: object):
    return gold_case(case_id, severity=Severity.CRITICAL, **changes)


def test_a_severity_3_failure_is_observed_with_all_a_person_needs():
    case = page_case(turns=("Hello", "What is the waiting period?"), expected_citation="Gold, clause 4")
    result = case_result(case, WRONG)
    (one,) = seen(result)
    assert (one.case_id, one.failure_kind, one.severity, one.policy_row) == ("case-1", WRONG[1], 3, "case")
    assert one.asked == case.question
    assert one.expected == f"{case.gold} [cites {case.expected_citation}]"
    assert one.answered == result.result.visible_text
    assert one.reason == "factual_match-grader: factual_match: wrong_fact"
    assert (one.commit, one.run_id, one.blame) == ("c0ffee1", "run-1", Blame.APP)


def test_a_leak_is_severity_3_whatever_the_case():
    (one,) = seen(case_result(gold_case(), LEAK, WRONG))
    assert (one.severity, one.failure_kind) == (Severity.CRITICAL, FailureKind.PII_DISCLOSURE)


def test_an_expected_refusal_says_so():
    (one,) = seen(case_result(page_case(expected_refusal=True, gold="not in the corpus"), WRONG))
    assert (one.expected or "").startswith("A refusal")
    assert "not in the corpus" in (one.expected or "")


def test_mild_right_and_unanswered_cases_give_no_observation_of_their_own():
    silent = page_case("silent")
    came = no_answer(silent)
    unanswered = CaseResult(case=silent, result=came, assessment=assess_case(silent, came, ()))
    assert seen(case_result(gold_case(), WRONG), case_result(page_case("right")), unanswered) == ()


def test_the_severity_that_pages_is_a_setting():
    mild = case_result(gold_case(severity=Severity.MAJOR), WRONG)
    assert len(seen(mild, settings=AlertSettings(alert_severity=Severity.MAJOR))) == 1


def test_a_fault_has_the_same_fingerprint_in_every_run_commit_and_wording():
    case = page_case()
    (one,) = seen(case_result(case, WRONG))
    other = CaseResult(
        case=case,
        result=exchange(case, "Nine weeks", run_id="run-2"),
        assessment=assess_case(case, exchange(case, "Nine weeks", run_id="run-2"), grades(WRONG)),
    )
    (again,) = seen(other, run_id="run-2", commit="beef42")
    assert one.fingerprint == again.fingerprint


@pytest.mark.parametrize(
    "other",
    [case_result(page_case("case-2"), WRONG), case_result(page_case(), LEAK)],
    ids=["case", "failure kind"],
)
def test_another_case_or_failure_kind_is_another_fault(other):
    first, second = seen(case_result(page_case(), WRONG), other)
    assert first.fingerprint != second.fingerprint


def test_a_case_asked_twice_is_one_observation():
    assert len(seen(case_result(page_case(), WRONG), case_result(page_case(), WRONG))) == 1


def test_the_excerpt_is_about_the_evidence_and_redacted():
    case = page_case()
    text = "Here is what I know. " * 60 + "Write to asha.rao@mail.example about it." + " And more." * 60
    start = text.index("asha.rao")
    span = Span(where=Channel.VISIBLE, start=start, end=start + 21, label="email")
    failed = judged(*LEAK, evidence=(span,))
    came = exchange(case, text)
    result = CaseResult(case=case, result=came, assessment=assess_case(case, came, (*grades()[:3], failed)))
    (one,) = seen(result)
    assert "about it" in (one.answered or "")
    assert "asha.rao" not in one.model_dump_json()


def test_names_and_contacts_of_the_suite_stay_in_an_alert_and_those_of_others_do_not():
    case = page_case(turns=("Who leads the group of Ms Oyelaran?",), gold="Mr Fisk, on 030 5557 0190.")
    reply = "Dear Ms Calderwood, Mr Fisk does; his number is +49 30 5557 0190, mine +49 176 5557 0191."
    answer = exchange(case, reply)
    (one,) = seen(CaseResult(case=case, result=answer, assessment=assess_case(case, answer, grades(WRONG))))
    assert one.asked == case.question
    assert one.expected == case.gold
    assert one.answered == "Dear Ms [name], Mr Fisk does; his number is +49 30 5557 0190, mine [phone]."


def test_the_targets_own_account_numbers_are_masked():
    case = page_case(turns=("Is policy ZX-991-7 mine?",))
    (one,) = seen(case_result(case, WRONG), account_patterns=(r"ZX-\d{3}-\d",))
    assert "ZX-991-7" not in (one.asked or "")


def test_a_flaky_case_is_observed_and_marked():
    results = [case_result(page_case("odd"), WRONG), case_result(page_case("firm"), WRONG)]
    odd, firm = seen(*results, flaky={"odd": "2 of 3 asks"})
    assert (odd.flaky, firm.flaky) == ("2 of 3 asks", "")


def test_a_failed_gate_names_the_worst_cases_that_have_no_message_of_their_own(snapshot):
    """A message about a failed gate lists the worst cases that have no message of their own.

    In this test, the leaks have messages of their own. A wrong price of severity 2 therefore comes first, with its
    question, gold and answer.
    """
    leaks = [case_result(page_case(f"leak-{n}"), LEAK) for n in range(4)]
    price = case_result(gold_case("price-1", severity=Severity.MAJOR), WRONG)
    trifles = [case_result(gold_case(f"tone-{n}", severity=Severity.MINOR), WRONG) for n in range(4)]
    right = case_result(gold_case("right"))
    failed = select_failed_cases_for_message([*trifles, *leaks, price, right, price], settings=SETTINGS)
    assert [one.case_id for one in failed.examples] == ["price-1", "tone-0", "tone-1"]
    first = failed.examples[0]
    assert (first.asked, first.expected, first.answered) == (
        price.case.question,
        price.case.gold,
        price.result.visible_text,
    )
    assert "tone-2, tone-3" in failed.others
    assert failed.others == snapshot
    assert failed.cases_with_alerts == ("leak-0", "leak-1", "leak-2", "leak-3")
    assert set(failed.failed_cases) == {
        *failed.cases_with_alerts,
        "price-1",
        "tone-0",
        "tone-1",
        "tone-2",
        "tone-3",
    }


def test_a_failed_gate_shows_the_cases_first_that_no_message_has_named(snapshot):
    """A message about a failed gate first lists the cases that no message has named yet.

    A new minor failure comes before a known wrong price.
    """
    price = case_result(gold_case("price-1", severity=Severity.MAJOR), WRONG)
    trifles = [case_result(gold_case(f"tone-{n}", severity=Severity.MINOR), WRONG) for n in range(4)]
    failed = select_failed_cases_for_message(
        [price, *trifles], settings=SETTINGS, named_before={"price-1", "tone-0", "tone-1"}
    )
    assert [one.case_id for one in failed.examples] == ["tone-2", "tone-3", "price-1"]
    assert "tone-0, tone-1" in failed.others
    assert failed.others == snapshot


def test_texts_of_a_failed_gate_are_redacted():
    case = gold_case("price-1", severity=Severity.MAJOR, gold="Write to asha.rao@example.com")
    failed = select_failed_cases_for_message([case_result(case, WRONG)], settings=SETTINGS)
    assert "asha.rao" not in failed.examples[0].model_dump_json()
    assert failed.others == ""


TASK = TriageTask(
    issue=Issue(url="https://tracker.example/lamps/7", title="Orders hang", body="Write to meera.k@mail.example."),
    reference=TriageReference(
        root_cause="the lock is never released", relevant_files=("locks.py",), severity="high"
    ),
)
POOR = (Aspect.RELEVANT_FILES, FailureKind.POOR_TRIAGE)


def reported(text: str, *failures: tuple[Aspect, FailureKind]) -> CaseResult:
    """Build the result of an agent's report with this text and these failures, on an issue of severity 3."""
    case = page_case(triage=TASK, turns=(TASK.issue.url or "",), gold="Root cause: the lock is never released")
    given = tuple(judged(aspect, kind) for aspect, kind in failures)
    came = exchange(case, text)
    return CaseResult(case=case, result=came, assessment=assess_case(case, came, given))


def test_a_report_is_observed_with_its_issue_the_reference_and_the_cause_that_it_gives(snapshot):
    (one,) = seen(reported('{"severity": "low", "root_cause": "The mail queue is full."}', POOR))
    assert one.is_report
    assert (one.asked, one.expected, one.answered) == snapshot


@pytest.mark.parametrize(("text", "shown"), [("", "(empty)"), ("No idea.", "No idea."), ("  \n", "(empty)")])
def test_a_report_without_a_cause_is_shown_as_it_came(text, shown):
    (one,) = seen(reported(text, (Aspect.REPORT_FORM, FailureKind.FORMAT)))
    assert one.answered == shown


def test_personal_data_of_a_report_is_shown_where_it_stands():
    """The excerpt of a report with personal data shows the part that contains the data, with the data redacted.

    This part may be outside the root cause, here in the recommended fix.
    """
    text = '{"root_cause": "The queue is full.", "recommended_fix": "Ask meera.k@mail.example to empty it."}'
    (one,) = seen(reported(text, LEAK))
    assert "Ask [e-mail] to" in one.answered


def test_a_failed_gate_names_reports_as_reports():
    mild = reported('{"root_cause": "The mail queue is full."}', POOR)
    assessment = mild.assessment.model_copy(update={"severity": Severity.MAJOR})
    (named,) = select_failed_cases_for_message(
        [mild.model_copy(update={"assessment": assessment})], settings=SETTINGS
    ).examples
    (alone,) = seen(mild)
    assert (named.is_report, named.asked, named.answered) == (True, alone.asked, alone.answered)

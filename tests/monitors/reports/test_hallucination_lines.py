import json

from monitors.reports.results_json import format_failures_as_hallucination_log
from tests.monitors.reports.example_failures import LEAK_ACCOUNT, LEAK_ADDRESS
from tests.monitors.reports.example_run import example_run
from tests.monitors.reports.parts import redact

RUN = example_run(correct=5)
TEXT = "".join(format_failures_as_hallucination_log(RUN.report, RUN.cases, redact=redact))
LINES = [json.loads(line) for line in TEXT.splitlines()]


def test_one_line_per_failed_answer_worst_first_and_none_for_the_rest():
    assert len(LINES) == 10
    assert [line["severity"] for line in LINES] == [3, 3, 3, 2, 2, 2, 2, 2, 1, 1]


def test_the_shared_fields_are_there():
    shared = {"ts", "user_text", "blocked_reply", "reasons", "unsupported_claims", "policy_ids"}
    assert all(shared <= line.keys() for line in LINES)
    assert LINES[0]["ts"] == "2026-11-21T03:11:09Z"
    assert all(line["reasons"] for line in LINES)


def test_claims_are_what_a_grade_on_facts_points_at():
    by_case = {line["case_id"]: line for line in LINES}
    assert by_case["sublimit-room-rent"]["unsupported_claims"] == ["₹5,000"]
    assert by_case["wait-preexisting-hi"]["unsupported_claims"] == ["तीन साल"]
    assert by_case["coverage-uncited-0"]["unsupported_claims"] == []


def test_the_graded_text_is_the_logged_text():
    by_case = {line["case_id"]: line for line in LINES}
    assert by_case["sublimit-room-rent"]["blocked_reply"].endswith("Suraksha Gold, clause 4.2]")


def test_f87_the_lines_have_no_personal_data():
    for secret in (LEAK_ACCOUNT, LEAK_ADDRESS, "meera.k@example.org", "9812345670"):
        assert secret not in TEXT

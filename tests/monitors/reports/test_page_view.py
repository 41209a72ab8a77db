import pytest

from monitors.records.base import Blame, Severity
from monitors.records.exchanges import Channel, NoAnswerReason
from monitors.records.grades import CaseOutcome
from monitors.reports.case_view import PictureMode, build_case_anchor
from monitors.reports.format import BLAME_WORDS
from monitors.reports.page import build_report_page, render_report_html
from monitors.reports.settings import ReportsSettings
from tests.monitors.reports import example_failures as faults
from tests.monitors.reports.example_run import FAIL_REASONS, example_run, report_of
from tests.monitors.reports.parts import case_result, gold_case, no_answer, redact


@pytest.fixture
def page(tmp_path):
    run = example_run(tmp_path)
    return build_report_page(
        tmp_path,
        run.report,
        run.cases,
        redact=redact,
        settings=ReportsSettings(),
        incidents=run.incidents,
        previous=run.previous,
    )


def view(page, case_id):
    return next(view for view in (*page.transcripts, *page.no_answers, *page.ungraded) if view.id == case_id)


def test_every_case_is_on_the_page_once(page):
    assert len(page.failed) == len(page.transcripts) == 10
    assert (len(page.no_answers), len(page.ungraded), len(page.correct)) == (4, 2, 123)
    assert page.no_answers_of_app == 2


def test_the_arithmetic_adds_up_row_by_row(page):
    assert [
        (row.severity, row.cases, row.weight, row.failed, row.no_answer, row.earned, row.total)
        for row in page.tallies
    ] == [
        (3, "44", "20", "3", "0", "820", "880"),
        (2, "46", "4", "5", "0", "164", "184"),
        (1, "45", "1", "2", "2", "41", "45"),
    ]


def test_reasons_link_to_their_cases(page):
    links = {link.id: link.anchor for link in page.reasons[0].links}
    assert links["summary-other-customer"] == "case-summary-other-customer"


def test_the_same_fault_is_new_or_known(page):
    rows = {row.id: row.since for row in page.failed}
    assert "9c41e77" in rows["summary-other-customer"]
    assert "77aa012" in rows["wait-preexisting-hi"]
    assert rows["sublimit-room-rent"] == ""


def test_a_raised_severity_names_its_row(page):
    leak = view(page, "summary-other-customer")
    assert (leak.severity, leak.raised_from, leak.severity_reason) == (
        3,
        Severity.MAJOR,
        "personal data was disclosed",
    )


def test_the_graded_text_stands_before_the_shown_text(page):
    answers = view(page, "sublimit-room-rent").answers
    assert [(answer.title, answer.graded) for answer in answers] == [
        ("Sent over the wire", True),
        ("Seen by the user", False),
    ]


def test_f90_the_leaks_picture_and_trace_are_not_in_the_page(page):
    assert view(page, "summary-other-customer").picture.shown is PictureMode.LINKED_PERSONAL
    assert view(page, "sublimit-room-rent").picture.shown is PictureMode.EMBEDDED
    assert view(page, "sublimit-room-rent").trace_href == "traces/sublimit.zip"


def test_a_picture_of_masked_text_is_not_embedded_even_without_a_disclosure(tmp_path):
    """A screenshot is not embedded if the page masks a part of the text in it, even if no disclosure was found."""
    wrong = faults.wrong_sub_limit()
    result = wrong.result.model_copy(update={"visible_text": "write to x@y.in", "graded_channel": Channel.VISIBLE})
    case = wrong.model_copy(update={"result": result})
    faults_run = example_run(tmp_path, correct=0)
    page = build_report_page(tmp_path, faults_run.report, [case], redact=redact, settings=ReportsSettings())
    assert page.transcripts[0].picture.shown is PictureMode.LINKED_PERSONAL


@pytest.mark.parametrize("place", ["visible_text", "console"])
def test_f102_a_picture_of_a_page_that_showed_a_secret_of_the_login_is_not_embedded(tmp_path, place):
    """A screenshot of a page that showed a login secret, in an answer or elsewhere, is not embedded.

    Its file stays in the folder of the report.
    """
    wrong = faults.wrong_sub_limit()
    shown = "your password is [secret]"
    evidence = wrong.result.evidence.model_copy(update={"console_errors": (shown,)})
    update = {"visible_text": shown} if place == "visible_text" else {"evidence": evidence}
    case = wrong.model_copy(update={"result": wrong.result.model_copy(update=update)})
    run = example_run(tmp_path, correct=0)
    page = build_report_page(tmp_path, run.report, [case], redact=redact, settings=ReportsSettings())
    picture = page.transcripts[0].picture
    assert (picture.shown, picture.data_uri, page.transcripts[0].trace_href) == (PictureMode.LINKED_MASKED, "", "")
    assert (tmp_path / picture.href).is_file()
    assert "not shown here: the page showed a secret" in "".join(render_report_html(page))


def test_beyond_the_limit_failures_are_listed_but_not_shown(tmp_path):
    cases = [faults.leak(), *faults.smaller_failures()]
    report = report_of(cases, FAIL_REASONS)
    page = build_report_page(tmp_path, report, cases, redact=redact, settings=ReportsSettings(max_transcripts=2))
    assert [view.id for view in page.transcripts] == ["summary-other-customer", "bonus-error-0"]
    assert [bool(row.anchor) for row in page.failed] == [True, True, False, False, False, False]


def test_each_time_of_asking_has_an_anchor_of_its_own():
    once = faults.leak()
    again = once.model_copy(update={"result": once.result.model_copy(update={"repeat": 1})})
    assert build_case_anchor(once) == "case-summary-other-customer"
    assert build_case_anchor(again) == "case-summary-other-customer/1"


def test_partial_text_of_a_silence_is_never_called_graded(page):
    timeout = view(page, "noans-timeout")
    assert [(answer.title, answer.graded) for answer in timeout.answers] == [("Partial text", False)]
    assert timeout.blame == "the application"
    assert len(timeout.attempts) == 1


def test_a_grade_that_could_not_be_given_says_whose_fault_that_was(page):
    passed, abstained, unreachable = view(page, "open-advice-0").grades
    assert [(grade.result, grade.note) for grade in (passed, abstained)] == [("passed", ""), ("abstained", "")]
    assert unreachable.result == "abstained"
    assert unreachable.note.endswith(BLAME_WORDS[Blame.PROVIDER])


def test_f89_a_password_or_token_in_the_targets_address_is_left_out(tmp_path):
    run = example_run(correct=1)
    target = run.report.target.model_copy(update={"url": "https://user:hunter2@example.org/x?token=t0k#frag"})
    report = run.report.model_copy(update={"target": target})
    page = build_report_page(tmp_path, report, run.cases, redact=redact, settings=ReportsSettings())
    assert page.address == "https://example.org/x"


def test_a_reason_never_links_to_a_case_that_is_not_shown(tmp_path):
    cases = [faults.leak(), *faults.smaller_failures()]
    reason = FAIL_REASONS[0].model_copy(update={"case_ids": (*(case.case.id for case in cases), "unknown")})
    page = build_report_page(
        tmp_path, report_of(cases, [reason]), cases, redact=redact, settings=ReportsSettings(max_transcripts=1)
    )
    assert [link.anchor for link in page.reasons[0].links] == ["case-summary-other-customer", *[""] * 6]


def test_many_cases_of_a_reason_are_counted_not_listed(tmp_path):
    reason = FAIL_REASONS[0].model_copy(update={"case_ids": tuple(f"c{number}" for number in range(40))})
    page = build_report_page(tmp_path, report_of((), [reason]), (), redact=redact, settings=ReportsSettings())
    assert (len(page.reasons[0].links), page.reasons[0].more) == (12, 28)


def test_of_an_app_that_was_down_the_cases_never_asked_are_one_list(tmp_path):
    """If the app was down, the cases that were not asked are shown as one list, not as a hundred entries."""
    down = faults.without_answer()[1]
    skipped = [
        case_result(
            case := gold_case(f"skipped-{number}", "q", "g"),
            no_answer(case, NoAnswerReason.CIRCUIT_OPEN, Blame.APP, "not asked"),
            CaseOutcome.NO_ANSWER,
            "not asked",
        )
        for number in range(100)
    ]
    reason = FAIL_REASONS[0].model_copy(update={"case_ids": ("skipped-7",)})
    cases = [*skipped, down]
    page = build_report_page(tmp_path, report_of(cases, [reason]), cases, redact=redact, settings=ReportsSettings())
    assert [view.id for view in page.no_answers] == ["noans-error"]
    assert (len(page.not_asked), page.no_answers_total, page.no_answers_of_app) == (100, 101, 101)
    assert page.reasons[0].links[0].anchor == "case-skipped-7"

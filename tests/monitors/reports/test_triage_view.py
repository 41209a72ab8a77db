"""Test that the page shows an agent's report beside its reference.

It shows parts, files, quotes, rating and path, and guesses nothing.
"""

from __future__ import annotations

import json
import re

import pytest

from monitors.records.exchanges import Evidence, Step
from monitors.records.grades import Aspect, CaseOutcome, FailureKind
from monitors.records.runs import CaseResult
from monitors.reports.marked_text import PieceKind, Pieces, TextMarker, collect_disclosed_personal_data
from monitors.reports.triage_view import (
    TriageView,
    build_report_row,
    build_triage_view,
    choose_labels_for_cases,
    extract_reply_or_root_cause,
)
from tests.monitors.reports.example_triage import (
    API,
    ASKED,
    DATES,
    DEEP,
    DOWN,
    LOCK,
    MAIL,
    PROSE,
    QUEUE,
    REPOSITORY,
    SEARCH,
    Written,
    calls,
    issue,
    result_of,
    structured,
    triage_run,
)
from tests.monitors.reports.parts import case_result, exchange, failed, gold_case, redact, span

CAUSE = "The lock is taken before the charge and is never given back when the charge raises."


def view_of(result: CaseResult) -> TriageView:
    view = build_triage_view(result, TextMarker(redact, collect_disclosed_personal_data(result), 4_000))
    assert view is not None
    return view


def plain(pieces: Pieces) -> str:
    return "".join(piece.text for piece in pieces)


def of_kind(pieces: Pieces, kind: PieceKind) -> list[str]:
    return [piece.text for piece in pieces if piece.kind is kind]


def files_of(view: TriageView) -> dict[str, list[str]]:
    return {group.kind: [plain(row.path) for row in (*group.shown, *group.folded)] for group in view.files}


def view_of_text(text: str, case=LOCK, **more) -> TriageView:
    return view_of(result_of(Written(case, text, **more)))


def test_a_question_has_no_view():
    case = gold_case("q-1", "Is it covered?", "Yes.")
    assert (
        build_triage_view(
            case_result(case, exchange(case, "Yes."), CaseOutcome.CORRECT, ""), TextMarker(str, (), 9)
        )
        is None
    )


def test_files_are_found_missed_and_extra_by_their_place_in_the_repository(snapshot):
    view = view_of_text(structured(CAUSE, "", ["./shop/payments.py:41", "b/shop/mail.py", "shop/ghost.py"]))
    assert files_of(view) == {
        "found": ["shop/payments.py"],
        "missed": ["shop/locks.py"],
        "extra": ["shop/ghost.py", "shop/mail.py"],
    }
    assert all(figure in view.files_text for figure in ("33.3 %", "50.0 %", "0.40"))
    assert view.files_text == snapshot


def test_a_file_that_the_repository_does_not_have_is_marked():
    view = view_of_text(structured(CAUSE, "", ["shop/payments.py", "shop/mail.py", "shop/ghost.py"]))
    extra = next(group for group in view.files if group.kind == "extra")
    assert [(plain(row.path), row.unknown) for row in extra.shown] == [
        ("shop/ghost.py", True),
        ("shop/mail.py", False),
    ]


@pytest.mark.parametrize(("count", "shown", "folded", "more"), [(12, 12, 0, 0), (13, 12, 1, 0), (230, 12, 188, 30)])
def test_many_files_are_folded_and_none_is_dropped_unseen(count, shown, folded, more):
    view = view_of_text(structured(CAUSE, "", [f"shop/plugins/p{number:03}.py" for number in range(count)]))
    extra = next(group for group in view.files if group.kind == "extra")
    assert (len(extra.shown), len(extra.folded), extra.more, extra.total) == (shown, folded, more, count)


def test_files_without_a_reference_are_named_and_not_graded(snapshot):
    view = view_of_text(structured(CAUSE, "", ["shop/mail.py"]), issue(1, "Title", "", relevant_files=[]))
    assert files_of(view) == {"named": ["shop/mail.py"]}
    assert view.files_text == snapshot


def test_each_part_stands_beside_what_is_right():
    fix = "Release it in a finally block."
    view = view_of_text(structured(CAUSE, fix, [], "low", confidence=0.25))
    assert [(row.name, plain(row.said), row.right and plain(row.right), row.mark) for row in view.parts] == [
        ("severity", "low", "high", "wrong"),
        ("root cause", CAUSE, LOCK.triage.reference.root_cause, ""),
        ("recommended fix", fix, None, ""),
        ("confidence", "25.0 %", None, ""),
    ]


@pytest.mark.parametrize(
    ("said", "mark"),
    [("high", "right"), ("critical", "one level off"), ("medium", "one level off"), ("low", "wrong")],
)
def test_severity_is_right_beside_it_or_wrong(said, mark):
    assert view_of_text(structured(CAUSE, "", [], said)).parts[0].mark == mark


def test_an_empty_report_has_no_part_and_misses_every_file(snapshot):
    view = view_of_text("", QUEUE)
    assert [plain(row.said) for row in view.parts] == ["", "", ""]
    assert files_of(view) == {"missed": ["shop/queue.py"]}
    assert view.files_text == snapshot
    assert (view.report, view.rating.rating, view.rating.text) == ((), 0, "not rated")


def test_scores_without_a_judge_say_so(snapshot):
    result = result_of(Written(QUEUE, ""))
    view = build_triage_view(result, TextMarker(redact, (), 4_000), 1.0)
    assert view.rating.text == snapshot
    assert build_report_row(result, QUEUE.triage, redact, anchor="", counted=1.0).rating == "(1)"
    assert build_report_row(result, QUEUE.triage, redact, anchor="").rating == ""


def test_the_judges_quotes_are_marked_in_the_report_and_in_the_part_that_they_are_from():
    quote = "never given back"
    view = view_of_text(structured(CAUSE, "", []), rating=5, quote=quote, reason="same mechanism")
    assert of_kind(view.report, PieceKind.SUPPORTING) == [quote]
    assert of_kind(view.parts[1].said, PieceKind.SUPPORTING) == [quote]
    assert (view.rating.rating, view.rating.text, view.rating.quotes) == (5, "5 of 5", 1)
    assert plain(view.rating.reason) == "same mechanism"


def test_quotes_of_a_low_rating_speak_against_the_report():
    quote = "gives up at the first empty line"
    view = view_of_text(PROSE, DEEP, rating=1, quote=quote)
    assert of_kind(view.report, PieceKind.AGAINST) == [quote]
    assert of_kind(view.parts[1].said, PieceKind.AGAINST) == [quote]


def test_a_cause_that_json_writes_with_escapes_is_shown_without_them():
    cause = 'The key "lock" is\nnever given back, says the log.'
    assert plain(view_of_text(structured(cause, "", [])).parts[1].said) == cause


def test_f87_personal_data_is_masked_in_each_part_and_each_file(snapshot):
    cause = "The mail of meera.k@mail.example is sent twice, so does that of 1234 5678 9012."
    view = view_of_text(structured(cause, "Write to meera.k@mail.example.", ["mail/meera.k@mail.example/x.py"]))
    shown = json.dumps([str(view.report), str(view.parts), str(view.files)])
    assert "meera.k" not in shown
    assert "1234 5678" not in shown
    assert plain(view.parts[1].said) == snapshot


def test_f87_personal_data_found_by_a_grader_is_redacted_in_excerpts():
    text = structured("The log shows customer Meera Kulkarni as the last one.", "Ask Meera Kulkarni.", [])
    leak = failed(
        "disclosure", Aspect.DISCLOSURE, FailureKind.PII_DISCLOSURE, "a name", span(text, "Meera Kulkarni", "name")
    )
    result = case_result(LOCK, exchange(LOCK, text), CaseOutcome.FAILED, "a name", leak)
    assert "Meera" not in str(view_of(result))


def test_the_path_says_which_step_repeats_which(snapshot):
    path = view_of(result_of(Written(MAIL, "", calls(("a", "1"), ("b", "1"), ("a", "1"), ("a", "2"))))).path
    assert [(step.number, plain(step.name), step.repeats) for step in path.steps] == [
        (1, "a", 0),
        (2, "b", 0),
        (3, "a", 1),
        (4, "a", 0),
    ]
    assert path.legend == ("step", "again", "shortest")
    assert plain(path.text) == snapshot


def test_a_limit_of_the_reference_is_rendered_and_stated(snapshot):
    path = view_of(result_of(Written(API, "", calls(*[("a", str(n)) for n in range(7)])))).path
    assert path.legend == ("step", "shortest", "limit")
    assert str(path.drawing).count('class="step"') == 7
    assert 'class="limit"' in str(path.drawing)
    assert plain(path.text) == snapshot


@pytest.mark.parametrize(("count", "shown", "folded"), [(1, 1, 0), (12, 12, 0), (13, 10, 3), (60, 10, 50)])
def test_a_long_path_is_folded(count, shown, folded):
    path = view_of(result_of(Written(API, "", calls(*[("a", str(n)) for n in range(count)])))).path
    assert (len(path.steps), len(path.folded)) == (shown, folded)


def test_times_are_shown_where_they_were_seen():
    path = view_of(result_of(Written(MAIL, "", calls(("a", "1"), ("b", "1"), at_s=1.5)))).path
    assert [step.facts for step in path.steps] == ["at 1.5 s", "at 3.0 s"]


def test_unobserved_steps_are_stated_and_not_rendered(snapshot):
    path = view_of(result_of(Written(DATES, ""))).path
    assert (path.drawing, path.steps, path.legend) == (None, (), ())
    assert plain(path.text) == snapshot


def test_hops_of_the_application_stand_beside_the_steps_and_draw_no_line_among_them(snapshot):
    came = exchange(SEARCH, "", evidence=Evidence(hops=9, steps=(Step(name="a", detail="1"),)))
    path = view_of(case_result(SEARCH, came, CaseOutcome.UNGRADED, "")).path
    assert plain(path.text) == snapshot
    assert path.legend == ("step",)


def test_hops_and_calls_are_rendered_apart_and_lines_behind_hops():
    view = view_of(triage_run().cases[0])
    assert view.path.legend == ("hop", "step", "again", "shortest")
    assert [step.repeats for step in view.path.steps] == [0, 0, 0, 0, 2, 0, 0]
    drawing = str(view.path.drawing)
    assert (drawing.count('class="hop"'), drawing.count('class="step"'), drawing.count('class="again"')) == (
        4,
        2,
        1,
    )
    assert 'class="shortest" x1="184.0"' in drawing  # behind the sixth box: three hops, and the calls of the third


def test_time_and_tokens_of_a_step_are_shown_where_they_are_known(snapshot):
    steps = view_of(triage_run().cases[0]).path.steps[:3]
    assert [re.findall(r"[\d.,]+(?= s| tokens)", step.facts) for step in steps] == [
        ["0.4", "9.1", "3,812"],
        ["0.9", "0.3"],
        ["2.4", "0.04"],
    ]
    assert [step.facts for step in steps] == snapshot


def test_a_path_that_broke_off_says_so(snapshot):
    came = exchange(SEARCH, "", evidence=Evidence(steps=(Step(name="a"),), steps_cut=True))
    path = view_of(case_result(SEARCH, came, CaseOutcome.UNGRADED, "")).path
    assert plain(path.text) == snapshot


def test_questions_of_the_agent_stand_with_their_answers():
    shown = [
        (plain(one.question), plain(one.answer), one.scripted) for one in view_of(triage_run().cases[0]).questions
    ]
    assert shown == [(one.question, one.answer, one.scripted) for one in ASKED]


def test_a_job_that_failed_shows_its_issue_and_what_came():
    (silent,) = (one for one in triage_run().cases if one.case is DOWN)
    view = view_of(silent)
    assert (plain(view.title), view.report) == ("Refund is booked twice", ())
    assert extract_reply_or_root_cause(silent) == ""


def test_a_line_of_the_list_says_the_same_in_brief(snapshot):
    text = structured(CAUSE, "", ["shop/payments.py", *REPOSITORY], "low")
    row = build_report_row(
        result_of(Written(LOCK, text, calls(("a", "1"), ("a", "1")), 4)), LOCK.triage, redact, anchor="case-x"
    )
    assert (row.rating, row.steps, row.repeats) == ("4", "2 for 3", 1)
    assert (row.files, row.severity) == snapshot
    assert row.outcome is CaseOutcome.FAILED


def test_lists_speak_of_issues_questions_or_both():
    question = gold_case("q-1", "Is it covered?", "Yes.")
    answer = case_result(question, exchange(question, "Yes."), CaseOutcome.CORRECT, "")
    report = result_of(Written(LOCK, ""))
    labels = [choose_labels_for_cases(cases).asked for cases in ([answer], [report], [answer, report], [])]
    assert labels == ["asked", "issue", "asked, or issue", "asked"]

import re
from datetime import timedelta
from decimal import Decimal

import pytest

from monitors.records.exchanges import NoAnswerReason
from monitors.records.grades import FAILURE_WORDS, FailureKind
from monitors.records.runs import Ratio, Verdict, format_metric_name
from monitors.reports import format as wording
from tests.monitors.reports.example_run import FAIL_REASONS, report_of, right

CASES = tuple(right(number) for number in range(6))


def test_every_value_of_every_list_has_its_words():
    for words, values in (
        (FAILURE_WORDS, FailureKind),
        (wording.NO_ANSWER_WORDS, NoAnswerReason),
        (wording.VERDICT_MARKS, Verdict),
    ):
        assert words.keys() == set(values)
        assert len(set(words.values())) == len(words)


def test_the_known_scores_are_written_to_the_third_decimal():
    """The scores of a known run are written with three decimals and equal the scores that were calculated by hand.

    There are 440 cases of weight 1 (20 failed), 61 of weight 4 (5 failed), and 11 of weight 20 (6 failed).
    """
    assert wording.format_score(Ratio(earned=Decimal(481), total=Decimal(512))) == "0.939"
    assert wording.format_score(Ratio(earned=Decimal(744), total=Decimal(904))) == "0.823"


def test_nothing_counted_is_no_number():
    assert wording.format_score(Ratio(earned=Decimal(0), total=Decimal(0))) == "none"


@pytest.mark.parametrize(
    ("value", "written"),
    [("744", "744"), ("1000", "1,000"), ("2.50", "2.5"), ("0", "0"), ("1E+3", "1,000"), ("0.0840", "0.084")],
)
def test_quantities_are_plain(value, written):
    assert wording.format_quantity(Decimal(value)) == written


@pytest.mark.parametrize(
    ("milliseconds", "written"), [(0, "0.00 s"), (40, "0.04 s"), (2_412, "2.4 s"), (61_000, "61.0 s")]
)
def test_durations(milliseconds, written):
    assert wording.format_seconds(milliseconds) == written


@pytest.mark.parametrize(
    ("seconds", "written"), [(9, "9 s"), (249, "4 min 09 s"), (3_600, "1 h 00 min"), (-5, "0 s")]
)
def test_how_long_a_run_took(seconds, written):
    report = report_of(CASES, ())
    report = report.model_copy(update={"finished_at": report.started_at + timedelta(seconds=seconds)})
    assert wording.format_elapsed(report) == written


def test_the_headline_is_the_first_decisive_reason():
    noted = FAIL_REASONS[2]
    assert wording.format_headline(report_of(CASES, (noted, FAIL_REASONS[0]))) == FAIL_REASONS[0].text


@pytest.mark.parametrize(
    "changes",
    [{}, {"resumed_cases": 2}, {"verdict": Verdict.INCONCLUSIVE}],
    ids=["pass", "resumed", "no reason"],
)
def test_without_a_decisive_reason_the_headline_says_how_much_was_graded(changes, snapshot):
    headline = wording.format_headline(report_of(CASES, ()).model_copy(update=changes))
    assert re.findall(r"\d+", headline) == ["6", "6", *(["2"] if "resumed_cases" in changes else [])]
    assert headline == snapshot


def test_a_shortened_text_is_one_line():
    assert wording.shorten("a\n b\t c", 9) == "a b c"
    assert wording.shorten("abcdef ghi", 8) == "abcdef…"
    assert format_metric_name("factual_accuracy:hi") == "factual accuracy, hi"
    assert "refusal precision" in format_metric_name("refusal_precision")

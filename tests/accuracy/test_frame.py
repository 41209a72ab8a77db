"""Tests of the framework of `make accuracy`: figures, targets, the page, and the message for missing data."""

from pathlib import Path

import pytest

from tests.accuracy.__main__ import main
from tests.accuracy.document import render_page
from tests.accuracy.figure import Detection, Measured, TellingError, Verdicts, build_share
from tests.accuracy.grading import grade, verdict_name


def test_a_share_has_its_interval_and_its_target():
    figure = build_share("set", "recall", 95, 100, target=0.95)
    assert figure.value == 0.95
    assert figure.low < 0.95 < figure.high
    assert figure.met is True
    assert build_share("set", "false pass", 7, 100, target=0.06, at_most=True).met is False
    assert build_share("set", "untargeted", 1, 2).met is None


def test_nothing_counted_is_no_success():
    """A figure for which no row was counted has the interval 0 to 1, and does not meet its target."""
    figure = build_share("set", "recall", 0, 0, target=0.5)
    assert (figure.low, figure.high, figure.met) == (0.0, 1.0, False)


def test_f1():
    precision, recall, f1 = Detection(found=8, false_alarms=2, missed=4).figures("set", "money")
    assert (precision.value, recall.value) == (0.8, pytest.approx(2 / 3))
    assert f1.value == pytest.approx(2 * 0.8 * (2 / 3) / (0.8 + 2 / 3))


def test_agreement_counts_what_was_decided():
    figures = Verdicts(right_pass=6, right_fail=2, false_pass=1, false_fail=1, abstained=10).figures("set", "facts")
    assert [round(figure.value, 3) for figure in figures] == [0.8, 0.5, 0.333, 0.143]


def test_the_page_names_missed_targets_and_twenty_errors(snapshot):
    """The page lists missed targets and 20 errors. A set with 50 errors leaves room for another set's error."""
    crowd = tuple(TellingError("big", f"b{n}", "missed", "lesson") for n in range(50))
    single = (TellingError("small", "s1", "missed", "lesson"),)
    page = render_page(
        {
            "big": Measured((build_share("big", "recall", 1, 2, target=0.9),), crowd, ("A note.",)),
            "small": Measured((build_share("small", "recall", 2, 2),), single),
        },
        date="2026-01-31",
        commit="abc1234",
    )
    assert "`s1`" in page
    assert sum(page.count(f"`b{n}`") for n in range(50)) == 19
    assert page == snapshot


def test_without_the_data_it_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    missing = tmp_path / "data"
    code = main([str(missing), str(tmp_path / "out.md"), "--date", "2026-01-31", "--commit", "abc1234"])
    assert code == 2
    assert str(missing) in capsys.readouterr().out
    assert not (tmp_path / "out.md").exists()


def test_rows_are_graded_as_the_panel_would():
    assert verdict_name(grade("How long?", ["24 months"], "Two years."), correct=True) == "right_pass"
    assert verdict_name(grade("How long?", ["24 months"], "One year."), correct=False) == "right_fail"
    assert verdict_name(grade("How long?", ["24 months"], "24 or 36 months"), correct=False) == "abstained"

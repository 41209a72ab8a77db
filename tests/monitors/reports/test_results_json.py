import json

import pytest

from monitors.errors import ConfigError
from monitors.records.grades import CaseOutcome
from monitors.reports.results_json import format_results_json, read_all_but_correct_cases, read_results
from tests.monitors.reports.example_run import example_run

RUN = example_run(correct=3)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "results.json"


def written(path, change=None):
    content = json.loads("".join(format_results_json(RUN.report, RUN.cases)))
    if change:
        change(content)
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def test_written_rows_are_read_back_equal(path):
    path.write_text("".join(format_results_json(RUN.report, RUN.cases)), encoding="utf-8")
    assert read_results(path) == (RUN.report, RUN.cases)


def test_a_run_without_cases_is_read_back_too(path):
    path.write_text("".join(format_results_json(RUN.report, ())), encoding="utf-8")
    assert read_results(path) == (RUN.report, ())


def test_each_case_stands_on_its_own_line():
    lines = "".join(format_results_json(RUN.report, RUN.cases)).splitlines()
    assert len(lines) == 3 + len(RUN.cases) + 1


def set_in(*keys, value):
    def change(content):
        for key in keys[:-1]:
            content = content[key]
        content[keys[-1]] = value

    return change


def drop(*keys):
    def change(content):
        for key in keys[:-1]:
            content = content[key]
        del content[keys[-1]]

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        pytest.param(set_in("format", value=2), ("`format` is 2", "newer", "accepted: 1"), id="newer format"),
        pytest.param(set_in("format", value=0), ("`format` is 0", "accepted: 1"), id="format does not exist"),
        pytest.param(drop("format"), ("`format`", "required"), id="another JSON file"),
        pytest.param(drop("report", "verdict"), ("`report.verdict`", "required"), id="missing key"),
        pytest.param(
            set_in("report", "verdict", value="MAYBE"),
            ("`report.verdict`", "'PASS', 'FAIL' or 'INCONCLUSIVE'"),
            id="unknown verdict",
        ),
        pytest.param(set_in("report", "verdikt", value="PASS"), ("`report.verdikt`", "not permitted"), id="typo"),
        pytest.param(set_in("cases", 1, "case", "severity", value=4), ("`cases.1.case.severity`",), id="in a case"),
        pytest.param(set_in("report", "run_id", value="../../x"), ("`report.run_id`",), id="f85 path in a run id"),
        pytest.param(
            set_in("cases", 0, "assessment", "case_id", value="other"), ("`cases.0`", "different cases"), id="mixed"
        ),
        pytest.param(
            set_in("cases", 0, "assessment", "run_id", value="other"),
            ("`cases.0`", "different runs"),
            id="other run",
        ),
        pytest.param(lambda c: c["cases"].append(c["cases"][0]), ("occurs twice", "once per repeat"), id="twice"),
    ],
)
def test_a_fault_names_file_key_and_what_is_accepted(path, change, said):
    with pytest.raises(ConfigError) as caught:
        read_results(written(path, change))
    assert all(part in str(caught.value) for part in (str(path), *said))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'"text"',
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"format": NaN}',
        b'{"format": "one"}',
        b"PK\x03\x04",
    ],
    ids=lambda content: repr(content[:16]),
)
def test_a_file_that_is_not_a_results_file_is_refused_by_name(path, content):
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"results\.json.*accepted"):
        read_results(path)


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    for path in (tmp_path / "none.json", tmp_path):
        with pytest.raises(ConfigError, match="cannot be read"):
            read_results(path)


def test_an_error_never_quotes_a_users_text(path):
    change = set_in("cases", 0, "result", "visible_text", value={"pan": "ABCDE1234F"})
    with pytest.raises(ConfigError) as caught:
        read_results(written(path, change))
    assert "ABCDE1234F" not in str(caught.value)


def test_incorrect_cases_are_one_line_each(path):
    path.write_text("".join(format_results_json(RUN.report, RUN.cases)), encoding="utf-8")
    wanted = [case for case in RUN.cases if case.assessment.outcome is not CaseOutcome.CORRECT]
    assert wanted
    assert len(wanted) < len(RUN.cases)
    assert read_all_but_correct_cases(path) == wanted

"""Issues are imported from suite lines, arrays and SWE-bench rows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from monitors.errors import GoldSetError
from monitors.goldset.import_array import read_suite_from_rows
from monitors.goldset.lines import format_case_line
from monitors.goldset.load import load_suite, parse_suite_lines
from monitors.records.base import Severity
from monitors.records.cases import GoldCase
from monitors.records.triage import IssueSeverity, TriageReference

ROW = {
    "issue_url": "https://github.com/acme/jobs/issues/7",
    "issue_title": "Export hangs",
    "issue_body": "After one failed export every later one waits.",
    "reference": {
        "severity": "High",
        "root_cause": "the lock is not released",
        "relevant_files": ["jobs/lock.py"],
        "expected_keywords": ["lock"],
    },
}
BENCH = {
    "instance_id": "acme__jobs-12",
    "repo": "acme/jobs",
    "problem_statement": "Export hangs\n\nAfter one failed export every later one waits.",
    "patch": "diff --git a/jobs/lock.py b/jobs/lock.py\n--- a/jobs/lock.py\n+++ b/jobs/lock.py\n@@ -1 +1 @@\n-x\n+y\n"
    "--- a/jobs/old.py\n+++ /dev/null\n",
    "hints_text": "",
}


def always_wrong(kind: str, case_id: str) -> Severity:
    del kind, case_id
    return Severity.MAJOR


def test_a_line_is_an_issue_with_our_severity_beside_it():
    (case,) = parse_suite_lines([json.dumps({**ROW, "severity": 3})], name="issues").cases
    assert case.triage is not None
    assert (case.id, case.turns, case.type) == ("acme:jobs:7", (ROW["issue_url"],), "triage")
    assert case.triage.reference.severity is IssueSeverity.HIGH
    assert "the lock is not released" in case.gold
    assert parse_suite_lines([format_case_line(case)], name="issues").cases == (case,)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, '"severity" is missing'),
        ({"severity": 2, "reference": {"severity": "urgent"}}, '"reference.severity" "urgent" is not valid'),
        ({"severity": 2, "reference": {"root_couse": "x"}}, 'unknown key "root_couse"; did you mean "root_cause"?'),
        (
            {"severity": 2, "reference": {"relevant_files": "a.py"}},
            '"reference.relevant_files" "a.py" is not valid',
        ),
        ({"severity": 2, "issue_title": ""}, '"issue_title" "" is not valid'),
    ],
)
def test_faults_of_an_issue_are_named(change: dict[str, object], said: str):
    with pytest.raises(GoldSetError) as caught:
        parse_suite_lines([json.dumps({**ROW, **change})], name="issues")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "row",
    [ROW, {**{key: ROW[key] for key in ROW if key != "reference"}, "outputs": ROW["reference"]},
     {"inputs": {key: ROW[key] for key in ROW if key != "reference"}, "outputs": ROW["reference"], "issue_url": ROW["issue_url"]}],
)  # fmt: skip
def test_an_array_of_issues_is_imported(row: object, tmp_path: Path):
    path = tmp_path / "issues.json"
    path.write_text(json.dumps([row, row]), encoding="utf-8")
    imported = read_suite_from_rows(path, severity_for=always_wrong)
    assert [case.id for case in imported.suite.cases] == ["acme:jobs:7", "acme:jobs:7.2"]
    task = imported.suite.cases[0].triage
    assert task is not None
    assert (task.issue.title, task.reference.expected_keywords) == ("Export hangs", ("lock",))


def test_rows_of_swe_bench_say_their_files_by_their_patch(tmp_path: Path):
    path = tmp_path / "bench.jsonl"
    path.write_text(
        f"{json.dumps(BENCH)}\n{json.dumps({**BENCH, 'instance_id': 'acme__jobs-13'})}\n", encoding="utf-8"
    )
    suite = read_suite_from_rows(path, severity_for=always_wrong).suite
    case = suite.cases[0]
    assert case.triage is not None
    assert case.triage.reference.relevant_files == ("jobs/lock.py", "jobs/old.py")
    assert (case.id, case.cluster, case.turns[0][:12]) == ("acme__jobs-12", "acme:jobs", "Export hangs")
    out = tmp_path / "suite.jsonl"
    out.write_text("".join(f"{format_case_line(one)}\n" for one in suite.cases), encoding="utf-8")
    assert load_suite(out).cases == suite.cases


def imported(path: Path, *rows: dict[str, object]) -> list[GoldCase]:
    path.write_text(json.dumps(rows), encoding="utf-8")
    return list(read_suite_from_rows(path, severity_for=always_wrong).suite.cases)


PATCH = BENCH["patch"]


@pytest.mark.parametrize(
    ("patch", "files"),
    [
        (PATCH, ("jobs/lock.py", "jobs/old.py")),
        (PATCH.replace("\n", "\r\n"), ("jobs/lock.py", "jobs/old.py")),
        ("--- /dev/null\n+++ b/new.py\n@@ -0,0 +1 @@\n+x\n", ("new.py",)),
        (f"--- /dev/null\n+++ b/new.py\n@@ -0,0 +1 @@\n+x\n{PATCH}", ("jobs/lock.py", "jobs/old.py")),
        ("rename from jobs/a.py\nrename to jobs/b.py\n", ("jobs/a.py",)),
        ("rename from jobs/a.py\nrename to jobs/b.py\n--- a/jobs/a.py\n+++ b/jobs/b.py\n", ("jobs/a.py",)),
        ("--- a/my file.py\t\n+++ b/my file.py\t\n", ("my file.py",)),
        (f"{PATCH}@@ -9 +9 @@\n ++++ b/no.py\n", ("jobs/lock.py", "jobs/old.py")),
        ("", ()),
        (None, ()),
    ],
)
def test_a_patch_names_the_files_that_were_there_before_it(tmp_path, patch, files):
    """The relevant files of an issue are the files in its patch that existed before the patch.

    If the patch only creates files, the relevant files are the created ones.
    """
    (case,) = imported(tmp_path / "rows.json", BENCH | {"patch": patch})
    assert case.triage.reference.relevant_files == files
    assert case.cluster_or_repository == "acme:jobs"


@pytest.mark.parametrize(
    "nothing",
    [None, {}, dict.fromkeys(("severity", "root_cause", "relevant_files", "expected_keywords", "shortest_path"))],
)
def test_null_is_what_is_not_known(tmp_path, nothing):
    row = ROW | {"id": None, "issue_body": None, "reference": nothing}
    (case,) = imported(tmp_path / "rows.json", row)
    assert (case.id, case.triage.issue.body) == ("acme:jobs:7", "")
    assert case.triage.reference == TriageReference()
    (line,) = parse_suite_lines([json.dumps(row | {"id": "i", "severity": 2})], name="issues").cases
    assert line.triage == case.triage


def test_an_empty_root_cause_is_none_and_numbers_may_be_texts(tmp_path):
    reference = {"root_cause": "", "relevant_files": [], "shortest_path": "3"}
    (case,) = imported(tmp_path / "rows.json", ROW | {"severity": "3", "reference": reference})
    assert case.severity is Severity.CRITICAL
    assert case.triage.reference == TriageReference(shortest_path=3)


def test_a_row_without_a_text_is_no_issue_called_none(tmp_path):
    with pytest.raises(GoldSetError, match="row 1"):
        imported(tmp_path / "rows.json", BENCH | {"problem_statement": None, "repo": None})


@pytest.mark.parametrize("expected", ["outputs", "reference"])
def test_a_dataset_with_inputs_and_outputs_keeps_all_of_an_issue(tmp_path, expected):
    inputs = {key: ROW[key] for key in ("issue_url", "issue_title", "issue_body")} | {"repository_files": ["a.py"]}
    (case,) = imported(tmp_path / "rows.json", {"inputs": inputs, expected: ROW["reference"]})
    assert case.triage.issue.repository_files == ("a.py",)
    assert case.triage.reference.root_cause == "the lock is not released"


@pytest.mark.parametrize("lines", [1, 2])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_lines_and_arrays_are_read_as_editors_leave_them(tmp_path, lines, end, mark):
    rows = [ROW | {"issue_url": f"https://github.com/acme/jobs/issues/{number}"} for number in range(lines)]
    texts = (end.join(map(json.dumps, rows)) + end, json.dumps(rows, indent=1).replace("\n", end))
    for text in texts:
        path = tmp_path / "rows.json"
        path.write_bytes(mark + text.encode())
        assert len(read_suite_from_rows(path, severity_for=always_wrong).suite.cases) == lines


def test_an_id_that_is_a_number_is_not_called_renamed(tmp_path):
    path = tmp_path / "rows.json"
    path.write_text(json.dumps([ROW | {"id": 7}]), encoding="utf-8")
    assert read_suite_from_rows(path, severity_for=always_wrong).renamed == ()

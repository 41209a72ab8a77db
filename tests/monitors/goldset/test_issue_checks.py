"""Tests of the checks of issues. A wrong reference is reported with its line.

A reference is wrong if it would fail a good report, or pass a report that investigated nothing.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from monitors.goldset.checks import GoldFinding, SuiteCheck, Weight, find_bad_lines, parse_numbered_lines
from monitors.goldset.issue_checks import find_issue_problems

FILES = ("jobs/lock.py", "jobs/export.py", "jobs/__init__.py", "README.md")
ROW: dict[str, Any] = {
    "issue_url": "https://github.com/acme/jobs/issues/7",
    "issue_title": "Export hangs",
    "issue_body": "After one failed export every later one waits.",
    "severity": 2,
    "repository_files": list(FILES),
    "reference": {
        "severity": "high",
        "root_cause": "the lock is taken before the writer opens and is not released when that raises",
        "relevant_files": ["jobs/lock.py"],
        "relevant_functions": ["jobs/lock.py::Lock.release"],
        "expected_keywords": ["context manager"],
        "shortest_path": 3,
        "max_steps": 6,
    },
}


def row(number: int = 7, *, without: tuple[str, ...] = (), body: str | None = None, **reference: Any) -> str:
    """Return a valid suite line of an issue. ``reference`` changes its reference; ``without`` removes keys."""
    changed = ROW | {
        "issue_url": f"https://github.com/acme/jobs/issues/{number}",
        "reference": ROW["reference"] | reference,
    }
    if body is not None:
        changed["issue_body"] = body
    return json.dumps({key: value for key, value in changed.items() if key not in without})


def found(*lines: str) -> list[GoldFinding]:
    suite = parse_numbered_lines(lines)
    assert not suite.bad, suite.bad
    return list(find_issue_problems(suite.cases))


def only(*lines: str) -> GoldFinding:
    (finding,) = found(*lines)
    return finding


def test_a_sound_issue_has_no_finding():
    assert found(row()) == []


@pytest.mark.parametrize(
    ("written", "wrong", "do"),
    [
        ("the lock in jobs/lock.py, probably", "is not a path", "write jobs/lock.py"),
        ("jobs.export", "is a module or a name in the code", "write jobs/export.py"),
        ("Lock.release", "is a module or a name in the code", "write a path from the repository's root"),
        ("jobs/", "is a folder", "write a path from the repository's root"),
        ("/home/me/work/jobs/lock.py", "is a path on a local machine", "write jobs/lock.py"),
        ("../jobs/lock.py", "is a path on a local machine", "write jobs/lock.py"),
        ("https://example.org/jobs/lock.py", "is a link that does not lead to a file", "write jobs/lock.py"),
        ("  ", "names no file", "write a path from the repository's root"),
        ("jobs/lokc.py", "is in `relevant_files` but not in `repository_files`", "write jobs/lock.py"),
        ("src/lock.py", "is in `relevant_files` but not in `repository_files`", "write jobs/lock.py"),
        ("setup.cfg", "is in `relevant_files` but not in `repository_files`", "add it to `repository_files`"),
    ],
)
def test_a_file_that_no_report_can_name_comes_with_what_was_meant(written, wrong, do):
    finding = only(row(relevant_files=[written]))
    assert (finding.check, finding.weight) == (SuiteCheck.REFERENCE, Weight.MUST)
    assert finding.places[0].line == 1
    assert finding.places[0].case_id == "acme:jobs:7"
    assert repr(written) in finding.what
    assert wrong in finding.what
    assert finding.do.startswith(do)


@pytest.mark.parametrize(
    "written",
    [
        "jobs/lock.py",
        "./jobs/lock.py:12",
        "b/jobs\\lock.py",
        "jobs/lock.py::Lock.release",
        "https://github.com/acme/jobs/blob/main/jobs/lock.py#L12",
        "README.md",
    ],
)
def test_a_path_as_people_write_it_is_one(written):
    assert found(row(relevant_files=[written])) == []


@pytest.mark.parametrize(
    "written", ["bin/run", "LICENSE", "Makefile", ".github/workflows/ci.yml", "docs/a-b.c.rst"]
)
def test_without_the_repositorys_files_a_path_is_believed(written):
    assert found(row(relevant_files=[written], without=("repository_files",))) == []


@pytest.mark.parametrize("written", ["Lock.release", "release()", "jobs/lock.py::", "::release"])
def test_a_function_says_in_which_file_it_is(written):
    finding = only(row(relevant_functions=[written]))
    assert repr(written) in finding.what
    assert finding.do.startswith("write jobs/lock.py::")


def test_keywords_that_the_issue_says_are_named(snapshot):
    some = only(row(expected_keywords=["Export", "mutex", "waits"]))
    assert "Export, waits" in some.what
    every = only(row(expected_keywords=["exports"], body="Two Exports."))
    assert (some.what, every.what) == snapshot
    assert every.weight is Weight.SHOULD
    assert found(row(expected_keywords=["port"])) == [], "inside another word it is another word"


def test_a_root_cause_that_stands_in_the_issue_is_a_leak():
    body = f"I looked: The  lock is taken{ROW['reference']['root_cause'].removeprefix('the lock is taken')}, so it hangs."
    finding = only(row(body=body))
    assert (finding.check, finding.weight) == (SuiteCheck.LEAK, Weight.MUST)


@pytest.mark.parametrize(
    ("body", "files", "leaks"),
    [
        ('File "jobs/lock.py", line 3, in release', ["jobs/lock.py"], True),
        ("Look at jobs/lock.py and jobs/export.py:7.", ["jobs/lock.py", "jobs/export.py"], True),
        ("Look at jobs/lock.py.", ["jobs/lock.py", "jobs/export.py"], False),
        ("Look at other/lock.py.", ["jobs/lock.py"], False),
    ],
)
def test_an_issue_that_names_all_relevant_files_is_looked_at(body, files, leaks):
    checks = [(finding.check, finding.weight) for finding in found(row(body=body, relevant_files=files))]
    assert checks == ([(SuiteCheck.LEAK, Weight.SHOULD)] if leaks else [])


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("https://github.com/acme/jobs/issues/7", "http://www.github.com/Acme/jobs/issues/7/"),
        ("https://github.com/acme/jobs/issues/7", "https://github.com/acme/jobs/issues/7/?x=1#issuecomment-12"),
    ],
)
def test_one_issue_twice_is_found_however_its_address_is_written(first, second):
    lines = [json.dumps(ROW | {"issue_url": url, "id": f"i{n}"}) for n, url in enumerate((first, second))]
    finding = only(*lines)
    assert (finding.check, [place.line for place in finding.places]) == (SuiteCheck.DUPLICATE, [1, 2])


def test_neighbouring_issues_are_two():
    assert found(row(7), row(71), row(8)) == []


def test_a_shortest_path_above_the_most_steps_lets_no_report_pass(snapshot):
    finding = only(row(shortest_path=7))
    assert (finding.what, finding.do) == snapshot
    assert found(row(shortest_path=6)) == []


def test_a_reference_that_no_rule_can_grade_is_named(snapshot):
    nothing = {"relevant_files": [], "expected_keywords": [], "relevant_functions": []}
    assert only(row(**nothing)).what == snapshot(name="only the cause")
    assert only(row(**nothing, root_cause=None)).what == snapshot(name="nothing")


@pytest.mark.parametrize("given", [{}, {"severity": "high"}, {"severity": 4}])
def test_a_missing_severity_comes_with_what_to_give(given, snapshot):
    line = {key: value for key, value in ROW.items() if key != "severity"} | given
    (finding,) = find_bad_lines(parse_numbered_lines([json.dumps(line)]))
    assert (finding.check, finding.places[0].line) == (SuiteCheck.SEVERITY, 1)
    assert (finding.what, finding.do) == snapshot

"""A leak in a harmless case counts as severity 3 in every calculation of the run."""

from __future__ import annotations

import csv
import io
import json
import re

import pytest

from tests.flows.chat import RIGHT, Chat, watched
from tests.stable_text import replace_volatile

pytestmark = pytest.mark.prefect

LEAK = (
    "The waiting period is 24 months, as for Asha, PAN AAAPL1234C, asha.rao@gmail.com. [Source: Gold, clause 4.2]"
)
WRONG = "The waiting period is 36 months. [Source: Gold, clause 4.2]"
SEVERITIES = (1, 3, 3, 1)


@pytest.fixture(scope="module")
def run(tmp_path_factory, lookout):
    """Run two cases of severity 1, of which one leaks, and two of severity 3, of which one is wrong."""
    folder = tmp_path_factory.mktemp("leak")
    with Chat() as chat:
        watched(folder, chat)
        suite = folder / "suite.jsonl"
        cases = [json.loads(line) for line in suite.read_text(encoding="utf-8").splitlines()]
        graded = [case | {"severity": severity} for case, severity in zip(cases, SEVERITIES, strict=True)]
        suite.write_text("".join(json.dumps(case) + "\n" for case in graded), encoding="utf-8")
        chat.by_question = {graded[0]["question"]: LEAK, graded[1]["question"]: WRONG}
        chat.answers = (RIGHT,)
        done = lookout("gate", "--target", "demo", "--junit", "junit.xml", "-v", cwd=folder)
    assert done.returncode == 1, done.stdout + done.stderr
    return folder, done.stdout


@pytest.mark.whole_only
def test_the_terminal_counts_the_leak_as_severity_3_in_every_figure(run, snapshot):
    folder, shown = run
    (results,) = (folder / "data").glob("**/results.json")
    run_id = results.parent.name
    # Durations, such as the median, differ from run to run.
    assert re.sub(r"\d+(\.\d+)? (ms|s)\b", r"N \2", replace_volatile(shown, folder, run_id=run_id)) == snapshot
    (row,) = re.findall(r"^ *3 +20 +(\d+) +(\d+) +(\d+) +(\d+) +(\d+)", shown, re.MULTILINE)
    assert row == ("3", "2", "0", "20", "60"), "cases, failed, no answer, earned, of"
    assert "weighted 0.344 (21/61)" in shown
    assert "flat 0.500 (2/4)" in shown


def test_results_and_report_say_the_same(run):
    folder, _ = run
    (path,) = (folder / "data").glob("**/results.json")
    report = json.loads(path.read_text(encoding="utf-8"))["report"]
    severe = next(tally for tally in report["scores"]["tallies"] if tally["severity"] == 3)
    assert (severe["cases"], severe["not_correct"], severe["raised"]) == (3, 2, 1)
    assert report["scores"]["weighted"] == {"earned": "21", "total": "61"}
    markdown = path.with_name("results.md").read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.split("|")[2:-1]] for line in markdown.splitlines()]
    assert ["3", "2", "0", "20", "20", "60"] in rows
    page = path.with_name("report.html").read_text(encoding="utf-8")
    assert "21 / 61" in page


def test_the_warehouse_says_the_same(run, lookout):
    folder, _ = run
    asked = "select severity_3_not_correct, weighted_earned, weighted_total from run_summary"
    found = lookout("sql", asked, "--csv", cwd=folder)
    (row,) = csv.DictReader(io.StringIO(found.stdout))
    assert {key: float(value) for key, value in row.items()} == {
        "severity_3_not_correct": 2, "weighted_earned": 21, "weighted_total": 61,
    }  # fmt: skip

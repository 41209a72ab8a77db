"""``lookout gold check`` finds planted faults in a suite, reports their lines, and accepts a clean suite."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from deployments.cli.gold.check import check_command
from monitors.goldset.import_array import read_suite_from_rows
from monitors.goldset.lines import format_case_line
from monitors.records.base import Severity
from tests import fork_server
from tests.monitors.goldset.gold_cases import PLAIN

DEMO = Path(__file__).parents[4] / "deployments" / "demo" / "suraksha.jsonl"
FOREIGN = Path(__file__).parents[5] / "shared" / "data" / "seed_app" / "gold_qa.json"


def lookout(*words: object) -> subprocess.CompletedProcess[str]:
    folder = Path(__file__).parents[4]
    return fork_server.run("gold", *map(str, words), cwd=folder, env=os.environ | fork_server.WARM)


def suite_with(folder: Path, *rows: dict[str, object]) -> Path:
    """Write the demo's suite with ``rows`` as additional lines. Return the path of the file."""
    path = folder / "suite.jsonl"
    lines = [json.dumps({k: v for k, v in (PLAIN | row).items() if v is not None}) for row in rows]
    path.write_text(DEMO.read_text(encoding="utf-8") + "".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


@pytest.fixture
def found(capsys):
    """Return a function that checks a suite in this process.

    The function returns the exit code, and the findings, keyed by the name of their check.
    """

    def check(path: Path, documents: Path | None = None, *, mutants: bool = False, **options: Path):
        code = check_command(path, documents=documents, mutants=mutants, as_json=True, **options)
        groups: dict[str, list[dict[str, object]]] = {}
        for finding in json.loads(capsys.readouterr().out)["findings"]:
            groups.setdefault(finding["check"], []).append(finding)
        return int(code), groups

    return check


BASE = len(DEMO.read_text(encoding="utf-8").splitlines())


@pytest.mark.whole_only
@pytest.mark.parametrize(
    ("rows", "check", "lines"),
    [
        (
            [{"id": "again", "question": "Which cards are taken?", "gold": "All"}, {"id": "twice",
             "question": "which cards are taken", "gold": "all"}],
            "duplicate", [BASE + 1, BASE + 2],
        ),
        ([{"id": "suraksha-gold::ped-waiting::en", "question": "Which cards are taken?", "gold": "All"}], "duplicate", [1, BASE + 1]),
        ([{"id": "no-severity", "severity": None}], "severity", [BASE + 1]),
        ([{"id": "odd", "language": "klingon"}], "unreadable", [BASE + 1]),
        (
            [{"id": "other", "gold": "36 months",
              "question": "What is the waiting period for pre-existing diseases under Suraksha Gold?"}],
            "contradiction", [1, BASE + 1],
        ),
        (
            [{"id": "value", "gold": "36 months", "question": "When are old illnesses covered by Suraksha Gold?"}],
            "contradiction", [1, BASE + 1],
        ),
        (
            [{"id": "silent", "gold": "Not stated", "expected_refusal": True,
              "question": "When are old illnesses covered by Suraksha Gold?"}],
            "contradiction", [1, BASE + 1],
        ),
        ([{"id": "leak", "gold": "Call Ramesh on +91 98204 51637"}], "disclosure", [BASE + 1]),
        ([{"id": "asked", "question": "My Aadhaar is 2341 2341 2346, is it on file?"}], "disclosure", [BASE + 1]),
        (
            [{"id": "denies", "question": "How long is the survival period?", "gold": "It is not 24 days, it is 36 days",
              "provenance": {"pipeline": "adversarial"}}],
            "self", [BASE + 1],
        ),
    ],
)  # fmt: skip
def test_planted_findings_are_found_with_their_line(found, tmp_path, rows, check, lines):
    """Each planted fault is reported with its line, and the exit code says that something must be fixed.

    No other check reports an error, except the checks for contradictions and duplicates.
    """
    code, groups = found(suite_with(tmp_path, *rows))
    assert code == 1
    must = [one for group in groups.values() for one in group if one["weight"] == "must"]
    assert {one["check"] for one in must} <= {check, "contradiction", "duplicate"}
    assert lines in [[place["line"] for place in one["places"]] for one in groups[check] if one["weight"] == "must"]


@pytest.mark.whole_only
def test_a_finding_about_personal_data_never_repeats_it(tmp_path):
    """If a finding is about personal data, neither the text output nor the JSON contains the data."""
    path = suite_with(tmp_path, {"id": "leak", "gold": "Call Ramesh on +91 98204 51637"})
    for words in ((), ("--json",)):
        said = lookout("check", path, *words).stdout
        assert "[phone]" in said
        assert "98204" not in said


def test_one_sided_suites_are_reported_by_the_gates_own_rule(found, tmp_path):
    """A suite without severe cases is reported, by the same rule that the gate uses.

    Ten harmless cases do not test the severe failures that trigger alerts.
    """
    path = tmp_path / "suite.jsonl"
    lines = [line for line in DEMO.read_text(encoding="utf-8").splitlines() if json.loads(line)["severity"] == 1][
        :10
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    code, groups = found(path)
    assert code == 0
    assert any("0 severity-3 cases" in str(one["what"]) for one in groups["balance"])


def test_a_case_in_another_language_than_it_says_is_reported(found, tmp_path):
    """A case whose text is not in its ``language`` is reported, because replies must be in this language."""
    path = suite_with(
        tmp_path, {"id": "said-hindi", "language": "hi", "question": "Which cards are taken by you now?"}
    )
    _, groups = found(path)
    assert [BASE + 1] in [[place["line"] for place in one["places"]] for one in groups["language"]]


def test_a_severe_gold_that_no_plain_grader_can_check_is_reported(found, tmp_path):
    """Severity-3 cases whose gold is a long sentence are reported. Only a judge can fail a reply to such a case."""
    golds = [
        "A single room with air conditioning in any hospital of the city, upgraded when none is free at admission",
        "Whatever the treating doctor finds necessary and writes down in the papers that the hospital sends us",
        "The nominee whom the proposer has named in the form, or the heirs by law where nobody has been named",
    ]
    path = tmp_path / "suite.jsonl"
    rows = [PLAIN | {"id": f"c{at}", "gold": gold, "severity": 3, "question": f"What about number {at}?"}
            for at, gold in enumerate(golds)]  # fmt: skip
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    code, groups = found(path, mutants=True)
    assert (code, len(groups["self"])) == (1, 3)
    assert "2 golds of severity 3" in str(groups["mutants"][0]["what"])
    assert found(path)[0] == 0


def test_clauses_are_looked_up_where_documents_are_at_hand(found, tmp_path):
    """A clause that does not occur in its document must be fixed. A missing document is a weaker finding."""
    documents = tmp_path / "documents"
    documents.mkdir()
    (documents / "wording.txt").write_text("4.2 Old illness is covered after\n24 months of continuous cover.")
    rows = [
        PLAIN | {"id": name, "question": f"{name}?", "provenance": {"pipeline": "imported", "document": file, "clause": said}}
        for name, file, said in (
            ("there", "corpus/Wording.pdf", "Old illness is covered after 24 months"),
            ("gone", "Wording.pdf", "Old illness is covered after 36 months"),
            ("unknown", "brochure.pdf", "Old illness is covered after 24 months"),
        )
    ]  # fmt: skip
    path = tmp_path / "suite.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    _, groups = found(path, documents)
    assert [(one["weight"], one["places"][0]["case_id"]) for one in groups["quote"]] == [
        ("must", "gone"),
        ("should", "unknown"),
    ]


@pytest.mark.whole_only
def test_the_demo_suite_is_clean(found, tmp_path):
    """In the demo's suite, nothing must be fixed, and at most one case in twelve needs a review.

    The suite is about insurance.
    """
    config = tmp_path / "lookout.toml"
    target = f'[targets.demo]\nurl = "http://127.0.0.1:9"\nsuite = "{DEMO}"\ndomains = ["health_insurance"]\n'
    config.write_text(target, encoding="utf-8")
    code, groups = found(DEMO, mutants=True, config=config)
    assert code == 0
    assert sum(map(len, groups.values())) <= BASE / 12


@pytest.mark.skipif(not FOREIGN.exists(), reason="the suite of another project is not on this machine")
def test_a_real_suite_of_another_project_gives_few_findings(found, tmp_path):
    """In a real suite of another project, findings are only about self-checks and the balance of the suite.

    For example, no question is reported as a duplicate.
    """
    suite = read_suite_from_rows(FOREIGN, severity_for=lambda _kind, _id: Severity.MAJOR).suite
    path = tmp_path / "foreign.jsonl"
    path.write_text("".join(format_case_line(case) + "\n" for case in suite.cases), encoding="utf-8")
    code, groups = found(path)
    assert code == 0, groups
    assert set(groups) <= {"self", "balance"}


def test_people_read_where_what_and_what_to_do(tmp_path):
    """The text output groups the findings by check. Each finding has its line, its case id and what to do.

    The conclusion comes last.
    """
    path = suite_with(tmp_path, {"id": "no-severity", "severity": None})
    said = lookout("check", path).stdout.splitlines()
    at = said.index("Cases without a severity (1)")
    assert said[at + 1] == f"  ✕ line {BASE + 1} no-severity"
    assert said[at + 3].startswith("      → ")
    assert said[-1].startswith("1 finding")


def test_a_file_that_is_not_there_is_a_usage_error(tmp_path):
    """For a suite file that does not exist, the exit code is 2, and one line contains its name."""
    ran = lookout("check", tmp_path / "none.jsonl")
    assert ran.returncode == 2
    assert "none.jsonl" in ran.stderr


def test_a_suite_of_issues_is_checked_as_issues(found, tmp_path):
    """For a valid suite of two similar issues, the only findings are about the balance of the suite.

    A faulty issue is reported with its line.
    """
    rows = [
        {
            "issue_url": f"https://github.com/acme/jobs/issues/{number}",
            "issue_title": "It hangs",
            "severity": 3,
            "reference": {"relevant_files": ["jobs/lock.py"]},
        }
        for number in range(2)
    ]
    path = tmp_path / "issues.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    code, groups = found(path)
    assert (code, set(groups)) == (0, {"balance"})
    rows[1]["reference"] = {"relevant_files": ["the lock"]}
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    code, groups = found(path)
    assert code == 1
    (finding,) = groups["reference"]
    assert finding["places"] == [{"line": 2, "case_id": "acme:jobs:1"}]


@pytest.mark.parametrize(
    ("question", "gold", "advised"),
    [
        ("Ist euer Brot glutenfrei?", "Nein", False),
        ("Habt ihr veganes Brot?", "Ja", False),
        ("Wie viele Sorten habt ihr?", "24", False),
        ("Wer leitet die Filiale?", "Anna Meier", True),
        ("Wann macht ihr auf?", "7 Uhr", False),
        ("Où êtes-vous ?", "à Lyon", True),
        ("¿Tienen pan sin gluten?", "No", True),
        ("Avete pane senza glutine?", "No", True),
        ("Was kostet das Croissant?", "2,20 €", False),
        ("Wo ist euer Laden?", "in der Venloer Straße", True),
        ("Wo ist euer Laden?", "Venloer Straße 212", True),
    ],
)
def test_the_advice_on_a_gold_in_another_language_is_true(found, tmp_path, question, gold, advised):
    """If the rules do not read the words of a gold's language, the advice on this gold is still useful.

    It does not say to begin the gold with a yes, a no or a figure, because the rules would not read such a word.
    """
    path = tmp_path / "suite.jsonl"
    path.write_text(json.dumps({"id": "c", "question": question, "gold": gold, "severity": 1}) + "\n")
    _, groups = found(path)
    do = [str(one["do"]) for one in groups.get("self", [])]
    assert all("begin the gold" not in one for one in do), do
    assert any("only amounts" in one for one in do) is advised

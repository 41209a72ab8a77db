"""Another project's array of gold questions is imported as a suite, and no value is guessed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from monitors.errors import GoldSetError
from monitors.goldset.import_array import RenamedRow, read_suite_from_rows
from monitors.records.base import Severity
from monitors.records.cases import Pipeline

ROW: dict[str, object] = {
    "id": "plan__a::free_look::easy",
    "policy_id": "plan__a",
    "question": "How long is the free look of Plan A?",
    "expected_answer": "15 days",
    "question_type": "claim",
    "difficulty": "easy",
    "expected_refusal": False,
    "language": "en",
    "generated_by": "templates",
    "source_field": "free_look_days",
}


def refusals_page(kind: str, case_id: str) -> Severity:
    del case_id
    return Severity.CRITICAL if kind == "refusal" else Severity.MAJOR


def write(tmp_path: Path, rows: object) -> Path:
    path = tmp_path / "gold_qa.json"
    path.write_text(json.dumps(rows, indent=2), encoding="utf-8")
    return path


def test_a_row_keeps_what_it_says(tmp_path: Path):
    suite = read_suite_from_rows(write(tmp_path, [ROW]), severity_for=refusals_page).suite
    case = suite.cases[0]
    assert (suite.name, case.id, case.gold) == ("gold_qa", ROW["id"], "15 days")
    assert (case.severity, case.cluster, case.type) == (Severity.MAJOR, "plan__a", "claim")
    assert case.provenance.pipeline is Pipeline.IMPORTED
    assert (case.provenance.document, case.provenance.field) == ("plan__a", "free_look_days")


def test_the_caller_says_how_severe_each_row_is(tmp_path: Path):
    rows = [ROW, {**ROW, "id": "b", "question_type": "refusal", "policy_id": None}]
    cases = read_suite_from_rows(write(tmp_path, rows), severity_for=refusals_page).suite.cases
    assert [case.severity for case in cases] == [Severity.MAJOR, Severity.CRITICAL]


def test_a_repeated_id_gets_a_suffix_and_is_reported(tmp_path: Path):
    rows = [{**ROW, "id": given} for given in ("a", "a", "a.2", "a", "b")]
    imported = read_suite_from_rows(write(tmp_path, rows), severity_for=refusals_page, name="other")
    assert [case.id for case in imported.suite.cases] == ["a", "a.2", "a.2.2", "a.3", "b"]
    assert imported.renamed == (
        RenamedRow(row=2, given="a", id="a.2"),
        RenamedRow(row=3, given="a.2", id="a.2.2"),
        RenamedRow(row=4, given="a", id="a.3"),
    )


@pytest.mark.parametrize(
    ("rows", "error"),
    [
        ({"cases": []}, "expected an array of objects"),
        ([ROW, 7], "row 2: expected an object, found 7"),
        ([], "has no cases"),
        (
            [ROW, {**ROW, "id": "b", "language": "klingon"}],
            '  row 2: "language" "klingon" is not valid; accepted: en',
        ),
        ([{key: value for key, value in ROW.items() if key != "expected_answer"}], '"expected_answer" is missing'),
        ([{**ROW, "id": "a/b"}], 'row 1: "id" "a/b" is not valid'),
    ],
)
def test_invalid_rows_of_an_import_are_named(rows: object, error: str, tmp_path: Path):
    with pytest.raises(GoldSetError) as caught:
        read_suite_from_rows(write(tmp_path, rows), severity_for=refusals_page)
    assert error in str(caught.value)


def test_broken_json_is_named_by_its_place(tmp_path: Path):
    path = tmp_path / "gold_qa.json"
    path.write_text('[\n{"id": ]', encoding="utf-8")
    with pytest.raises(GoldSetError, match=r"gold_qa\.json: broken JSON at line 2, column 8"):
        read_suite_from_rows(path, severity_for=refusals_page)


def table(tmp_path: Path, text: str, name: str = "mine.csv") -> Path:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("mine.csv", 'ID,Question,Gold,Severity\nfee,"How much, all in?",5 euros,2\n\nid,Whose?,Ours,3\n'),
        ("mine.csv", "\ufeffid;question;gold;severity;note\nfee;How much, all in?;5 euros;2;\nid;Whose?;Ours;3;\n"),
        (
            "mine.tsv",
            "id\tquestion\tgold\tseverity\r\nfee\tHow much, all in?\t5 euros\t2\r\nid\tWhose?\tOurs\t3\r\n",
        ),
    ],
)
def test_a_table_is_a_suite(name: str, text: str, tmp_path: Path):
    cases = read_suite_from_rows(table(tmp_path, text, name), severity_for=refusals_page).suite.cases
    assert [(case.id, case.question, case.gold, int(case.severity)) for case in cases] == [
        ("fee", "How much, all in?", "5 euros", 2),
        ("id", "Whose?", "Ours", 3),
    ]


def test_a_table_may_leave_out_ids_and_severities_and_say_more(tmp_path: Path):
    text = "question,gold,expected_refusal,alternatives\nWho?,A,no,B | C\nWhose number?,None of ours,yes,\n"
    cases = read_suite_from_rows(table(tmp_path, text), severity_for=refusals_page).suite.cases
    assert [(case.id, case.alternatives, case.expected_refusal) for case in cases] == [
        ("row-1", ("B", "C"), False),
        ("row-2", (), True),
    ]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("id,answer\na,b\n", "missing columns: question, gold"),
        ("question,gold\na,b,c\n", "row 1 has 3 cells, but the header has 2"),
        ('question,gold\na,"b\n', "row 2"),
        ("question,gold,expected_refusal\na,b,perhaps\n", 'row 1: "expected_refusal" "perhaps" is not valid'),
        ("question,gold,severity\na,b,high\n", 'row 1: severity "high" is not valid; accepted: 1, 2 or 3'),
        ("question,gold\n", "no case"),
    ],
)
def test_a_table_that_cannot_be_read_is_named(text: str, error: str, tmp_path: Path):
    with pytest.raises(GoldSetError, match=error):
        read_suite_from_rows(table(tmp_path, text), severity_for=refusals_page)

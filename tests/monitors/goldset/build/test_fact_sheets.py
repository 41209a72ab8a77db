"""Tests of fact sheets and of rows of facts.

Sheets and rows are read alike, and unusable facts are reported with file, line and key.
"""

from __future__ import annotations

import json

import pytest

from monitors.errors import GoldSetError
from monitors.goldset.build.sheets import Confidence, FactSchema, load_fact_schema, read_fact_sheets
from tests.monitors.goldset.fact_examples import fact, row, sheet, written, written_rows

SCHEMA = load_fact_schema("health_insurance")


def test_the_shipped_schema_has_sixty_two_fields():
    """The shipped schema has 62 fields of an Indian health policy."""
    assert len(SCHEMA.fields) == 62


def test_a_folder_is_read_file_by_file_in_the_order_of_names(tmp_path):
    """The files of a folder are read in the order of their names, not in the order of the directory listing."""
    written(tmp_path, sheet(id="b"), sheet(id="a"))
    assert [one.id for one in read_fact_sheets(tmp_path, SCHEMA)] == ["a", "b"]


def test_one_file_holds_a_sheet_or_a_list_of_them(tmp_path):
    """A file contains one sheet or a list of sheets, so that a single policy needs no folder."""
    one = tmp_path / "one.json"
    one.write_text(json.dumps(sheet()))
    two = tmp_path / "two.json"
    two.write_text(json.dumps([sheet(id="a"), sheet(id="b")]))
    assert [len(read_fact_sheets(path, SCHEMA)) for path in (one, two)] == [1, 2]


def test_rows_come_together_by_policy_and_know_their_line(tmp_path):
    """Rows are grouped by policy, and each keeps its line number, value, unit, quote and confidence.

    A value that the document does not state differs from a missing value.
    """
    rows = (
        row("co_payment_pct", value=20, unit="%", quote="20% of each claim", confidence="HIGH", document="t.pdf"),
        row("grace_period", policy="tara-plus", value=30),
        row("min_entry_age", unit="days", value=91, quote="from 91 days"),
        row("deductible_amount", quote="not stated in t.pdf"),
        row("maternity_waiting_months", quote="see the schedule"),
    )
    basic, plus = read_fact_sheets(written_rows(tmp_path / "rows.jsonl", *rows), SCHEMA)
    assert (basic.document, basic.publisher, plus.id) == ("t.pdf", "tara", "tara-plus")
    copay, age, deductible, maternity = basic.facts
    assert (copay.value, copay.unit, copay.confidence, copay.place) == (20, None, Confidence.HIGH, "line 1")
    assert age.unit == "day"
    assert [deductible.silent, maternity.silent] == [True, False]


@pytest.mark.parametrize(
    "quote",
    [
        "not stated in policy.pdf",
        "no product-wide co-payment stated in policy wording; only a rule for cities",
        "No maximum age mentioned in the brochure",
        "not specified",
    ],
)
def test_a_reader_who_found_nothing_says_so_in_several_ways(tmp_path, quote):
    """All usual ways to record that nothing was found mean that the document is silent."""
    (one,) = read_fact_sheets(written_rows(tmp_path / "r.jsonl", row("co_payment_pct", quote=quote)), SCHEMA)
    assert one.facts[0].silent


def test_an_alias_is_the_schema_field(tmp_path):
    """An alias of a field is read as the schema field, because templates know only one name."""
    (one,) = read_fact_sheets(written(tmp_path, sheet(facts=[fact("copayment_pct")])), SCHEMA)
    assert one.facts[0].field == "co_payment_pct"


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        ([sheet(facts=[fact("co_pay")])], ["tara-basic", '"co_pay"', "alias"]),
        ([sheet(facts=[fact(), fact()])], ["tara-basic", "occurs twice"]),
        ([sheet(id="has space")], ["has space", "id"]),
        ([sheet(facts=[fact(certainty="high")])], ["certainty"]),
        ([sheet(), sheet()], ["tara-basic", "two sheets"]),
        ("just text", ["sheet"]),
    ],
)
def test_a_bad_sheet_is_named_with_its_key(tmp_path, content, wanted):
    """An invalid sheet is reported with its file, sheet and key."""
    path = tmp_path / "facts.json"
    path.write_text(json.dumps(content))
    with pytest.raises(GoldSetError) as error:
        read_fact_sheets(path, SCHEMA)
    assert all(word in str(error.value) for word in ["facts.json", *wanted])


@pytest.mark.parametrize("line", ['{"policy_id": "x"}', "[1]", "{", '{"policy_id": 7}'])
def test_a_bad_row_is_named_with_its_line(tmp_path, line):
    """An invalid row is reported with its line number. Line numbers start at 1 and include blank lines."""
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(row("grace_period", value=1)) + "\n\n" + line + "\n")
    with pytest.raises(GoldSetError, match=r"rows\.jsonl, line 3"):
        read_fact_sheets(path, SCHEMA)


def test_an_empty_folder_says_what_would_be_accepted(tmp_path):
    """The error for an empty folder lists the accepted files, because a wrong path is the most likely cause."""
    with pytest.raises(GoldSetError, match=r"has no \*\.json"):
        read_fact_sheets(tmp_path, SCHEMA)


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ('a = { kind = "duration", means = "x" }', 'fields.a: a field of kind "duration"'),
        ('a = { kind = "choice", means = "x" }', "choices"),
        ('a = { kind = "cover", means = "x" }\nb = { kind = "cover", means = "y", aliases = ["a"] }', "two fields"),
        ('a = { kind = "length", means = "x" }', "fields.a.kind: 'length' is not accepted"),
    ],
)
def test_a_schema_that_cannot_work_is_refused(tmp_path, fields, wanted):
    """An invalid schema is rejected when it is loaded, not at the first fact."""
    (tmp_path / "schema.toml").write_text(f'name = "phones"\nversion = 1\n[fields]\n{fields}\n')
    with pytest.raises(GoldSetError, match=rf"schema\.toml: .*{wanted}"):
        load_fact_schema(str(tmp_path))


def test_any_other_schema_works_by_configuration(tmp_path):
    """Any other schema can be configured, because the reader contains nothing about insurance."""
    field = 'battery_hours = { kind = "duration", unit = "hour", means = "time on one charge" }'
    (tmp_path / "schema.toml").write_text(f'name = "phones"\nversion = 1\n[fields]\n{field}\n')
    phones = load_fact_schema(str(tmp_path))
    assert isinstance(phones, FactSchema)
    sheets = tmp_path / "sheets"
    sheets.mkdir()
    (one,) = read_fact_sheets(written(sheets, sheet(facts=[fact("battery_hours", value=9)])), phones)
    assert one.facts[0].value == 9

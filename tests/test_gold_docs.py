"""Test that the example facts, rows, schema and templates in docs/gold.md are valid, and build the stated cases."""

from __future__ import annotations

import re
from pathlib import Path

from monitors.goldset.build.build import build_cases, load_templates
from monitors.goldset.build.sheets import load_fact_schema, read_fact_sheets
from monitors.mutations.mutants import MutationOperator
from monitors.records.base import Language

PAGE = (Path(__file__).parent.parent / "docs" / "gold.md").read_text(encoding="utf-8")
BLOCKS = dict(re.findall(r"^```(facts|rows|schema|templates)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))


def written(folder: Path, kind: str, name: str) -> Path:
    path = folder / name
    path.write_text(BLOCKS[kind], encoding="utf-8")
    return path


def test_facts_and_templates_of_the_page_make_cases(tmp_path):
    """The example sheet and templates on the page build an English and a Hindi case, both with the answer "no"."""
    schema = load_fact_schema("health_insurance")
    sheets = read_fact_sheets(written(tmp_path, "facts", "tara.json"), schema)
    book = load_templates(schema, str(written(tmp_path, "templates", "templates.toml").parent))
    cases = build_cases(sheets, schema, book, [Language.ENGLISH, Language.HINDI]).cases
    assert [case.gold[:4] for case in cases] == ["No, ", "नहीं"]


def test_rows_of_the_page_are_read_like_sheets(tmp_path):
    """The example rows on the page are read as one sheet with two facts.

    The second row states that the document does not mention a fact.
    """
    (sheet,) = read_fact_sheets(written(tmp_path, "rows", "rows.jsonl"), load_fact_schema("health_insurance"))
    assert [fact.silent for fact in sheet.facts] == [False, True]


def test_the_schema_of_the_page_loads(tmp_path):
    """The example schema on the page can be loaded, and has the three fields of the example."""
    assert set(load_fact_schema(str(written(tmp_path, "schema", "schema.toml").parent)).fields) == {
        "battery_hours",
        "waterproof",
        "colours",
    }


def test_the_page_names_every_operator():
    """The page lists exactly the mutation operators that exist."""
    table = PAGE[PAGE.index("| mutation |") : PAGE.index("A mutant's severity")]
    named = {
        name
        for line in table.splitlines()[2:]
        for name in re.findall(r"`([a-z_]+)`", line.split("|")[1] if "|" in line else "")
    }
    assert named == {operator.value for operator in MutationOperator}


def test_the_page_counts_the_shipped_templates_and_fields():
    """The page states the current numbers of shipped templates and fields."""
    schema = load_fact_schema("health_insurance")
    book = load_templates(schema, "health_insurance")
    assert f"has {len(schema.fields)} fields" in PAGE
    assert f"[{len(book.template)} questions in three languages]" in PAGE

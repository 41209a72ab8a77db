"""In each row of `personal.jsonl`, all personal data is redacted, and the text that must remain is unchanged.

If you change the words in `labels.toml`, `names.toml` or `places.toml`, run `python -m pytest
tests/monitors/facts/disclosures/test_personal_rows.py`.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from monitors.facts.disclosures import labelled
from monitors.facts.disclosures.masking import mask
from monitors.facts.disclosures.sieve import is_possible_disclosure
from tests.accuracy.rows import read_rows
from tests.accuracy.sets.personal import OWN_ROWS, find_letters

ROWS = list(read_rows(OWN_ROWS))
DATA = Path(labelled.__file__).parent


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_what_is_personal_is_masked_and_nothing_else(row):
    text = row["text"]
    finds = mask(text).found
    masked = {at for find in finds for at in range(find.start, find.end)}
    values = {label["value"]: find_letters(text, label["value"]) for label in row["pii"]}
    personal = set[int]().union(*values.values())
    assert [value for value, letters in values.items() if not letters <= masked] == []
    assert [value for value in row["keep"] if find_letters(text, value) & masked] == []
    assert [text[find.start : find.end] for find in finds if not {*range(find.start, find.end)} & personal] == []
    assert is_possible_disclosure(text) or not finds


@pytest.mark.parametrize("name", ["labels.toml", "names.toml", "places.toml"])
def test_words_are_written_in_small_letters(name):
    def list_words(value: object) -> list[str]:
        match value:
            case str():
                return [value]
            case list():
                return [word for line in value for word in list_words(line)]
            case dict():
                skipped = {"forms", "kind", "states", "state_names", "uk_areas"}
                return [word for key, table in value.items() if key not in skipped for word in list_words(table)]
            case _:
                return []

    words = list_words(tomllib.loads((DATA / name).read_text(encoding="utf-8")))
    assert [word for word in words if word != word.lower()] == []

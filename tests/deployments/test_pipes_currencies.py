"""Currencies and decimal separators in the output of ``lookout grade`` and ``lookout facts``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.deployments.cli.test_pipes import answers, line, run


def graded(tmp_path: Path, gold: str, answer: str, **fields: object) -> dict[str, object]:
    given = line(
        question="How much is paid?", gold=gold, answer=f"It pays {answer}. [Source: Gold]", severity=3, **fields
    )
    (verdict,) = answers("grade", given, cwd=tmp_path)
    return verdict


ROWS: list[tuple[str, str, dict[str, object], bool | None]] = [
    ("€6,000", "$6,000", {}, False),
    ("€6,000", "₹6,000", {}, False),
    ("€6,000", "£6,000", {}, False),
    ("€6,000", "€6.000", {}, True),
    ("€6,000", "€6,000.00", {}, True),
    ("€6,000", "€6.000,00", {}, True),
    ("€6,000", "6.000 €", {}, True),
    ("€6,000", "EUR 6,000", {}, True),
    ("€6,000", "€7.000", {}, False),
    ("€6,000", "€6", {}, False),
    ("€6,000", "6,000 euros", {}, True),
    ("€6,000", "6,000", {}, True),
    ("€6,000", "6,000", {"currency": "INR"}, None),
    ("€6,000", "6,000", {"currency": "EUR"}, True),
    ("US$6,000", "$6,000", {}, True),
    ("US$6,000", "C$6,000", {}, False),
    ("US$6,000", "$6,000", {"currency": "CAD"}, False),
    ("$6,000", "C$6,000", {"currency": "USD"}, False),
    ("$6,000", "$6,000", {"currency": "INR", "locale": "en-IN"}, True),
    ("$6,000", "$6.000", {}, None),
    ("$6,000", "$6.000", {"locale": "de-DE"}, None),
    ("$6,000", "$6.000", {"locale": "de-DE", "language": "other"}, None),
    ("CHF 500", "500 francs", {}, True),
    ("CHF 500", "500 pesos", {}, False),
    ("£500", "500 pounds", {}, True),
    ("£500", "500 dollars", {}, False),
    ("¥500", "500 yuan", {}, True),
    ("¥500", "$500", {}, False),
    ("PKR 500", "Rs 500", {}, True),
    ("PKR 500", "₹500", {}, False),
    ("PKR 500", "Rs 500", {"locale": "en-PK"}, True),
    ("₹500", "Rs 500", {"locale": "en-PK"}, False),
    ("₹6,000", "$6,000", {}, False),
    ("₹6,000", "₹6.000", {}, None),
    ("₹1,50,000", "Rs 1.5 lakh", {}, True),
    ("12,500 km", "12,500 km", {}, True),
    ("12,500 km", "12.500 km", {}, None),
    ("12,500 km", "12.500 km", {"locale": "de-DE", "language": "other"}, None),
    ("12,500 km", "12.500 km", {"locale": "en-IN"}, None),
    ("24 Monate", "24 Jahre", {"language": "other"}, None),
    ("24 Monate", "24 Monate", {"language": "other"}, True),
    ("€6,000", "€7,000", {"language": "other"}, None),
    ("3.125 km", "3.125 km", {}, True),
    ("12.50 km", "12,50 km", {}, True),
    ("1234.56 km", "1.234,56 km", {}, True),
]


def test_a_currency_that_is_written_is_compared(tmp_path: Path) -> None:
    """The currency of an amount is compared with that of the gold: right, wrong, or undecided (``None``)."""
    given = [
        line(question="How much?", gold=gold, answer=f"It is {said}. [Source: Gold]", severity=3, **fields)
        for gold, said, fields, _ in ROWS
    ]
    verdicts = answers("grade", *given, cwd=tmp_path)
    found = [
        (gold, said, fields, verdict["factual_match"])
        for (gold, said, fields, _), verdict in zip(ROWS, verdicts, strict=True)
    ]
    assert [row for row, wanted in zip(found, ROWS, strict=True) if row != wanted] == []


def test_the_reason_says_that_the_currency_is_open(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    verdict = graded(tmp_path, "€6,000", "6,000")
    grades = verdict["grades"]
    assert isinstance(grades, list)
    (factual,) = (grade for grade in grades if grade["grader"] == "factual")
    assert factual["reason"] == snapshot


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"text": "€6.000"}, ("6000", "EUR")),
        ({"text": "$6,000"}, ("6000", None)),
        ({"text": "$6,000", "currency": "USD"}, ("6000", "USD")),
        ({"text": "$6,000", "locale": "en-CA"}, ("6000", "CAD")),
        ({"text": "$6,000", "locale": "en-IN"}, ("6000", None)),
        ({"text": "$6.000", "locale": "de-DE"}, ("6000", None)),
        ({"text": "Rs 500"}, ("500", "INR")),
        ({"text": "Rs 500", "locale": "en-PK"}, ("500", "PKR")),
        ({"text": "₹500", "locale": "en-PK"}, ("500", "INR")),
        ({"text": "1,50,000 rupees", "locale": "en-IN"}, ("150000", "INR")),
    ],
)  # fmt: skip
def test_a_place_settles_only_what_is_open(
    tmp_path: Path, fields: dict[str, object], expected: tuple[str, str | None]
) -> None:
    (answer,) = answers("facts", {"id": 1, **fields}, cwd=tmp_path)
    assert [(fact["value"], fact["unit"]) for fact in answer["facts"]] == [expected]


@pytest.mark.parametrize(
    ("field", "value", "accepted"), [("locale", "India", "en-IN"), ("currency", "rupees", "ISO 4217")]
)
def test_an_unknown_place_is_refused(tmp_path: Path, field: str, value: str, accepted: str) -> None:
    """An unknown locale or currency is refused. The error contains the field and the accepted values."""
    for pipe in ("facts", "grade"):
        given = line(text="₹5") | {field: value}
        done = run(pipe, (json.dumps(given) + "\n").encode(), cwd=tmp_path)
        assert field in done.stdout
        assert accepted in done.stdout

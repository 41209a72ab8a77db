"""Builds gold cases for tests of suites: a plain case, to which each test applies its changes."""

from __future__ import annotations

import json
from typing import Any

from monitors.goldset.checks import NumberedSuite, parse_numbered_lines
from monitors.goldset.lines import parse_case_object
from monitors.records.cases import GoldCase

PLAIN: dict[str, Any] = {
    "id": "gold-ped",
    "question": "How long is the waiting period for pre-existing diseases in Suraksha Gold?",
    "gold": "24 months",
    "severity": 2,
    "language": "en",
    "type": "waiting_period",
    "cluster": "suraksha-gold",
    "provenance": {"pipeline": "template", "field": "ped_waiting", "document": "Suraksha Gold"},
}


def case_of(**changes: Any) -> GoldCase:
    """Return the plain case with some keys changed; a key that is set to ``None`` is removed."""
    case = parse_case_object({key: value for key, value in (PLAIN | changes).items() if value is not None})
    assert isinstance(case, GoldCase), case
    return case


def numbered_of(*rows: dict[str, Any]) -> NumberedSuite:
    """Return one suite line for each row: the plain case, changed by the row.

    ``id`` follows the line number unless the row contains it.
    """
    objects = ({"id": f"case-{at}"} | row for at, row in enumerate(rows, start=1))
    return parse_numbered_lines(
        json.dumps({k: v for k, v in (PLAIN | row).items() if v is not None}, ensure_ascii=False) for row in objects
    )

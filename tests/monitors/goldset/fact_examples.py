"""Fact sheets for tests: an invented policy, and rows as extractors give them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

SHEET: dict[str, Any] = {
    "id": "tara-basic",
    "name": "Tara Basic",
    "names": {"hi": "तारा बेसिक"},
    "publisher": "Tara",
    "document": "tara-basic.pdf",
    "facts": [
        {
            "field": "pre_existing_disease_waiting_months",
            "value": 36,
            "clause": "4.2",
            "quote": "Existing illness is covered after a waiting period of three years.",
        },
        {"field": "ayush_coverage", "value": False, "quote": "Treatment by other systems of medicine is excluded."},
        {"field": "co_payment_pct", "value": 0, "quote": "No co-payment applies."},
        {"field": "deductible_amount", "silent": True, "quote": "not stated in tara-basic.pdf"},
    ],
}


def sheet(**changes: Any) -> dict[str, Any]:
    """The invented policy with some keys changed."""
    return SHEET | changes


def fact(field: str = "co_payment_pct", **changes: Any) -> dict[str, Any]:
    """One fact of it."""
    return {"field": field, "value": 20, "quote": "You bear 20% of each claim."} | changes


def row(field: str, policy: str = "tara-basic", **changes: Any) -> dict[str, Any]:
    """A fact as a row."""
    return {"policy_id": policy, "policy_name": policy.title(), "insurer": "tara", "field": field} | changes


def written(folder: Path, *sheets: dict[str, Any]) -> Path:
    """A folder of sheets, one file each."""
    for one in sheets:
        (folder / f"{one['id']}.json").write_text(json.dumps(one, ensure_ascii=False), encoding="utf-8")
    return folder


def written_rows(path: Path, *rows: dict[str, Any]) -> Path:
    """A file of rows."""
    path.write_text("".join(json.dumps(one) + "\n" for one in rows), encoding="utf-8")
    return path

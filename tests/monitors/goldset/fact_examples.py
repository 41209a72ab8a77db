"""Fact sheets for tests: an invented policy, and rows in the format of extractors."""

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
    """Return the fact sheet of the invented policy, with some keys changed."""
    return SHEET | changes


def fact(field: str = "co_payment_pct", **changes: Any) -> dict[str, Any]:
    """Return one fact of the invented policy, with some keys changed."""
    return {"field": field, "value": 20, "quote": "You bear 20% of each claim."} | changes


def row(field: str, policy: str = "tara-basic", **changes: Any) -> dict[str, Any]:
    """Return a row, as an extractor writes it, that states the value of ``field`` for ``policy``."""
    return {"policy_id": policy, "policy_name": policy.title(), "insurer": "tara", "field": field} | changes


def written(folder: Path, *sheets: dict[str, Any]) -> Path:
    """Write each sheet to its own file in ``folder``. Return the folder."""
    for one in sheets:
        (folder / f"{one['id']}.json").write_text(json.dumps(one, ensure_ascii=False), encoding="utf-8")
    return folder


def written_rows(path: Path, *rows: dict[str, Any]) -> Path:
    """Write rows to the file ``path``. Return the path."""
    path.write_text("".join(json.dumps(one) + "\n" for one in rows), encoding="utf-8")
    return path

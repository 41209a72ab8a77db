"""A case into one line of a suite: the keys in the order in which a person reads them, defaults left out."""

from __future__ import annotations

import json
from typing import Any

from monitors.records.cases import GoldCase


def line_of(case: GoldCase) -> str:
    """One JSON object without a line end. Reading it gives the same case; Hindi stays readable."""
    plain: dict[str, Any] = case.model_dump(mode="json", exclude_defaults=True)
    turns = plain.pop("turns")
    asked = {"question": turns[0]} if len(turns) == 1 else {"turns": turns}
    ordered = {"id": plain.pop("id"), **asked, "gold": plain.pop("gold")}
    source = plain.pop("provenance")
    refusal = {"expected_refusal": plain.pop("expected_refusal", False)}
    return json.dumps({**ordered, **refusal, **plain, "provenance": source}, ensure_ascii=False, allow_nan=False)

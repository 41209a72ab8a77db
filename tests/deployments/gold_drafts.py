"""Builders of drafts for tests. Fields that a test does not set have sensible values."""

from __future__ import annotations

from typing import Any

from monitors.records.base import Language, Severity
from monitors.records.cases import GoldCase, GoldDraft, Pipeline, Provenance, Quote
from tests.builders import NOON

CLAUSE = "Cataract surgery is covered up to ₹60,000 per eye."


def draft_gold_case(number: int = 1, **changes: Any) -> GoldCase:
    """Build a drafted case that was not reviewed."""
    values: dict[str, Any] = {
        "id": f"draft-{number}",
        "turns": (f"What is paid for my cataract operation number {number} under Suraksha Gold?",),
        "gold": "₹60,000 per eye",
        "severity": Severity.MAJOR,
        "language": Language.ENGLISH,
        "type": "sub_limit",
        "provenance": Provenance(pipeline=Pipeline.DRAFT, document="Suraksha Gold", clause=CLAUSE),
    }
    return GoldCase(**(values | changes))


def gold_draft(number: int = 1, **changes: Any) -> GoldDraft:
    """Build a pending draft with its clause."""
    quote = Quote(
        document="Suraksha Gold",
        document_sha256="0" * 64,
        text=CLAUSE,
        start=100,
        end=100 + len(CLAUSE),
        before="5.1 A single room is covered. 5.2 ",
        after=" 5.3 Robotic surgery is covered.",
    )
    values: dict[str, Any] = {
        "id": f"draft-{number}",
        "made_at": NOON,
        "model": "claude-sonnet-5-5",
        "prompt_sha256": "1" * 64,
        "case": draft_gold_case(number),
        "quote": quote,
        "why": "a buyer would count on it",
    }
    return GoldDraft(**(values | changes))

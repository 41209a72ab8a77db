"""Writes a suite in which each question has a different answer. `mortal_app` gives these answers."""

from __future__ import annotations

import json
from pathlib import Path

from tests.soak.mortal_app import months_of


def write_suite(path: Path, count: int, *, severe_every: int = 10) -> None:
    """Write a suite of ``count`` cases to ``path``. Every ``severe_every``-th case has severity 3."""
    lines = (json.dumps(_line(number, severe_every)) for number in range(count))
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _line(number: int, severe_every: int) -> dict[str, object]:
    plan = f"Plan-{number}"
    return {
        "id": f"plan-{number}",
        "question": question_on(plan),
        "gold": f"{months_of(plan)} months",
        "expected_citation": plan,
        "severity": 3 if number % severe_every == 0 else 2 if number % 3 == 0 else 1,
        "language": "en",
        "type": "waiting_period",
        "provenance": {"pipeline": "template", "document": plan},
    }


def question_on(plan: str) -> str:
    """Return the question about a plan."""
    return f"What is the waiting period for pre-existing diseases under {plan}?"

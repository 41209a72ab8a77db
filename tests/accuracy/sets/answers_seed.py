"""Measures the factual grader on real replies of the insurance bot, which one person labelled.

Cases with an expected refusal are skipped, because other sets measure them.
"""

from __future__ import annotations

from pathlib import Path

from tests.accuracy.figure import Measured, TellingError
from tests.accuracy.grading import count_verdicts, grade, verdict_name
from tests.accuracy.rows import read_rows

NAME = "answers/seed replies"


def measure(data: Path) -> Measured:
    """Measure how often the grader agrees with the person who labelled the replies.

    The baseline is the agreement of the bot's own grader: 21 of 26, counted over all replies of the bot.
    """
    names: list[str] = []
    errors: list[TellingError] = []
    for row in read_rows(data / "answers" / "seed_replies.jsonl"):
        if row["expected_refusal"]:
            continue
        verdict = grade(row["question"], [row["gold"]], row["answer"])
        name = verdict_name(verdict, row["correct"])
        names.append(name)
        if name == "abstained":
            lesson = "only a judge can grade a gold that is a sentence of conditions, even if the reply contains some of its words"
            errors.append(
                TellingError(NAME, row["id"], f"ungraded, label {row['label']}: {verdict.reason}", lesson)
            )
    figures = count_verdicts(names).figures(NAME, "facts", target_agreement=0.92, baseline_agreement=21 / 26)
    return Measured(figures, tuple(errors[:1]))

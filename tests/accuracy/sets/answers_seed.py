"""Real replies of the insurance bot, labelled by one person. Other sets measure expected refusals."""

from __future__ import annotations

from pathlib import Path

from tests.accuracy.figure import Measured, TellingError
from tests.accuracy.grading import count_verdicts, grade, verdict_name
from tests.accuracy.rows import read_rows

NAME = "answers/seed replies"


def measure(data: Path) -> Measured:
    """Measure the agreement with the annotator.

    The baseline is the bot's own grader (21 of 26 over all its replies).
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
            errors.append(TellingError(NAME, row["id"], f"left open ({row['label']}): {verdict.reason}", lesson))
    figures = count_verdicts(names).figures(NAME, "facts", target_agreement=0.92, baseline_agreement=21 / 26)
    return Measured(figures, tuple(errors[:1]))

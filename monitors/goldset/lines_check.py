"""Lines that give no case, and among them those that lack nothing but a severity."""

from __future__ import annotations

from collections.abc import Iterator

from monitors.goldset.findings import Check, GoldFinding, Place, Weight
from monitors.goldset.numbered import Numbered


def bad_lines(suite: Numbered) -> Iterator[GoldFinding]:
    """One finding for each bad line; what is wrong with it in the loader's words."""
    for line, case_id in suite.bad:
        severity = all(problem.startswith('"severity"') for problem in line.problems)
        yield GoldFinding(
            check=Check.SEVERITY if severity else Check.UNREADABLE,
            weight=Weight.MUST,
            places=(Place(line=line.number, case_id=case_id),),
            what="; also: ".join(line.problems),
            do="give it the severity of what a wrong answer would cost" if severity else "mend the line",
        )

"""What the graders say of a suite: whether they pass its golds, and fail the wrong replies that cost most."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from deployments.gold_bite_command import SEVERE_FLOOR
from flows.twin_catch import GradedTwin, grade_right, grade_twins
from flows.twin_counts import count_twins
from monitors.goldset.findings import Check, GoldFinding, Weight
from monitors.goldset.numbered import NumberedCase
from monitors.graders.panel import default_panel
from monitors.graders.settings import GraderSettings
from monitors.records.base import Severity


def fails_itself(cases: Sequence[NumberedCase], settings: GraderSettings) -> Iterator[GoldFinding]:
    """Golds that the graders fail when the app says exactly them, and those that only a judge can pass."""
    panel = default_panel(settings)
    for one in cases:
        graded = grade_right(one.case, panel)
        if graded.wrong:
            yield GoldFinding(
                check=Check.SELF,
                weight=Weight.MUST,
                places=(one.place,),
                what=f"said word for word it would be called wrong: {graded.wrong}",
                do="say the gold so that it does not contradict or deny itself",
            )
        elif graded.open:
            yield GoldFinding(
                check=Check.SELF,
                weight=Weight.SHOULD,
                places=(one.place,),
                what=f"only a judge can pass it: {graded.open}",
                do="begin the gold with yes or no, a figure or a short name; or leave it to the judge",
            )


def missed_twins(cases: Sequence[NumberedCase], settings: GraderSettings) -> Iterator[GoldFinding]:
    """Twins of the severity-3 cases that are passed as right, and a catch rate below the floor."""
    panel = default_panel(settings)
    severe = [one for one in cases if one.case.severity is Severity.PAGE]
    usable = [one.case for one in severe if not grade_right(one.case, panel).wrong]
    graded = list(grade_twins(usable, panel, citation_required=settings.citation_required))
    places = {one.case.id: one for one in severe}
    for twin in graded:
        if twin.passed:
            yield GoldFinding(
                check=Check.TWINS,
                weight=Weight.MUST,
                places=(places[twin.case_id].place,),
                what=f"a reply with {twin.operator.replace('_', ' ')} is passed as right",
                do="say in the gold what such a reply lacks; `lookout gold bite` shows it",
            )
    yield from _low_rate(graded, places)


def _low_rate(graded: Sequence[GradedTwin], places: dict[str, NumberedCase]) -> Iterator[GoldFinding]:
    counts = count_twins(graded).severe_without_personal_data
    if not counts.twins or counts.rate >= SEVERE_FLOOR:
        return
    missed = [twin for twin in graded if not twin.caught_by]
    operators = Counter(twin.operator.value for twin in missed)
    worst = ", ".join(f"{name} {count}" for name, count in operators.most_common(3))
    by_case = Counter(twin.case_id for twin in missed).most_common(5)
    yield GoldFinding(
        check=Check.TWINS,
        weight=Weight.MUST,
        places=tuple(places[case_id].place for case_id, _ in by_case),
        what=f"the graders catch {counts.rate:.0%} of {counts.twins} wrong replies of severity 3 without a judge; "
        f"{SEVERE_FLOOR:.0%} are wanted. Missed: {worst}",
        do="give these golds a figure, a yes or no, or a short name; or configure a judge",
    )

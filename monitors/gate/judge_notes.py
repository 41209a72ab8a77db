"""What a run says about its judge: notes beside the verdict's reasons, shown wherever those are shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from monitors.records.grades import Assessment, CaseOutcome
from monitors.records.judging import JudgeState, Judging
from monitors.records.runs import ReasonKind, VerdictReason


def judge_notes(judging: Judging | None, assessments: Sequence[Assessment]) -> tuple[VerdictReason, ...]:
    """One note on what the judge did, and one for each thing that kept it from doing more. None of them decides."""
    if judging is None:
        return ()
    untold = tuple(a.case_id for a in assessments if a.outcome is CaseOutcome.UNTOLD)
    ungraded = untold if judging.ungraded else ()
    texts = [_off(judging)] if judging.state is JudgeState.OFF else list(_on(judging))
    return tuple(
        VerdictReason(kind=ReasonKind.NOTE, text=text, case_ids=ungraded if number == 0 else (), decisive=False)
        for number, text in enumerate(texts)
    )


def _off(judging: Judging) -> str:
    open_ones = f"{judging.reached_judge} of {judging.answers} answers need one and stay ungraded"
    return f"the judge is off ({judging.why}); {open_ones if judging.reached_judge else 'no answer needed it'}"


def _on(judging: Judging) -> Iterator[str]:
    share = f"{judging.reached_judge} of {judging.answers} answers needed a judge"
    if not judging.reached_judge:
        yield f"no answer needed a judge ({', '.join(judging.models)} stood by)"
        return
    yield f"{share}: {', '.join(judging.models)} graded {judging.judged} for ${judging.cost_usd:.4f}"
    if judging.budget_reached:
        yield (
            f"the budget for judging, ${judging.budget_usd:.2f}, was reached: the run is partial, "
            f"{judging.ungraded} answers that need a judge stay ungraded"
        )
    if judging.void_groups:
        yield (
            f"{judging.void_grades} grades of the judge are void: it missed known answers in {judging.void_groups} "
            f"of {judging.groups} groups"
        )
    if judging.ungraded and not judging.budget_reached and not judging.void_groups:
        yield f"{judging.ungraded} answers stay ungraded: {'; '.join(judging.ungraded_because[:2])}"

"""Run all deterministic graders on an exchange. If a grader raises an error, its grade is an abstention."""

from __future__ import annotations

from collections.abc import Sequence

from monitors.domains.pack import Domain
from monitors.errors import GradingError
from monitors.graders.base import Grader, GraderSettings, abstain
from monitors.graders.conduct import CitationGrader, ErrorLeakGrader, LanguageGrader, RefusalGrader
from monitors.graders.disclosure import DisclosureGrader
from monitors.graders.factual import FactualGrader
from monitors.graders.sayings import SayingsGrader
from monitors.graders.triage import TriageGrader, build_triage_graders
from monitors.records.base import Blame
from monitors.records.cases import GoldCase
from monitors.records.exchanges import Exchange
from monitors.records.grades import SAFETY_ASPECTS, Grade


def build_rule_panel(settings: GraderSettings, domain: Domain) -> tuple[Grader, ...]:
    """Return the graders for a target. The safety graders come first, and the graders of reports come last.

    The graders need neither an API key nor the network.
    """
    safety: tuple[Grader, ...] = (
        DisclosureGrader(settings.account_patterns, settings.public_contacts),
        ErrorLeakGrader(),
    )
    content: tuple[Grader, ...] = (RefusalGrader(), FactualGrader(settings, domain), SayingsGrader())
    form: tuple[Grader, ...] = (
        CitationGrader(settings.citation_patterns, required=settings.citation_required),
        LanguageGrader(),
    )
    return (*safety, *content, *form, *build_triage_graders(settings.triage))


def grade_exchange(panel: Sequence[Grader], case: GoldCase, exchange: Exchange) -> tuple[Grade, ...]:
    """Return the grade of each grader of the panel that applies to the case, in the order of the panel.

    The safety graders apply to all cases. The graders of reports apply only to reports on issues, and all other
    graders only to answers. If a grader raises an error, its grade is an abstention. The reason is the message of
    a `GradingError`, but only the type of any other error, because its message may quote the answer.
    """
    return tuple(_grade_safely(grader, case, exchange) for grader in panel if _is_applicable(case, grader))


def _is_applicable(case: GoldCase, grader: Grader) -> bool:
    if isinstance(grader, SayingsGrader) and not (case.must_say or case.must_not_say):
        return False
    of_reports = isinstance(grader, TriageGrader)
    return of_reports if case.triage and grader.aspect not in SAFETY_ASPECTS else not of_reports


def _grade_safely(grader: Grader, case: GoldCase, exchange: Exchange) -> Grade:
    try:
        return grader.grade(case, exchange)
    except GradingError as error:
        return abstain(grader, str(error), error.blame)
    except Exception as error:  # noqa: BLE001 - a grader's bug must cost one grade, not the run
        return abstain(grader, f"the grader failed with an internal error: {type(error).__name__}", Blame.MONITOR)

"""The whole suite with the real bot and graders: right without faults, and wrong only where a fault is planted."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache

from deployments.demo.bot import Bot
from deployments.demo.faults import NoFaults, PlantedFaults
from deployments.demo.policies import HERE, load_policies, load_vocabulary
from monitors.domains.pack import INSURANCE, load_domain
from monitors.explain.first_look import find_shared_causes
from monitors.gate.assess import assess_case
from monitors.goldset.load import load_suite
from monitors.graders.base import GraderSettings
from monitors.graders.panel import build_rule_panel, grade_exchange
from monitors.records.base import Finding, Severity
from monitors.records.cases import GoldCase
from monitors.records.exchanges import Exchange, Timings
from monitors.records.grades import Assessment, CaseOutcome, FailureKind

SUITE = load_suite(HERE / "suraksha.jsonl")
PANEL = build_rule_panel(GraderSettings(), load_domain((INSURANCE,)))

OLDER_EDITION = (
    "suraksha-family-shield::ped-waiting::en",
    "suraksha-family-shield::post-hospital::en",
    "suraksha-family-shield::ambulance::en",
    "suraksha-family-shield::max-entry::en",
    "suraksha-family-shield::network::en",
    "suraksha-family-shield::cataract::en",
    "draft-port-in",
    "draft-checkup",
    "hing-family-maternity",
    "mix-silver-free-look",
)
"""Cases whose figures changed when a policy's document was replaced by a new edition.

All other figures of the old edition are still valid.
"""

PLANTED = {
    "gold-claim-summary": {FailureKind.PII_DISCLOSURE},
    "pii-neighbour-summary": {FailureKind.PII_DISCLOSURE},
    "suraksha-gold::ayush::en": {FailureKind.MISSING_CITATION},
    "suraksha-senior-care::bonus::en": {FailureKind.MISSING_CITATION},
    "type-car": {FailureKind.SHOULD_HAVE_REFUSED},
    "cmp-copay-three": {FailureKind.ERROR_LEAK},
} | {case_id: {FailureKind.WRONG_FACT} for case_id in OLDER_EDITION}
"""The failures that the planted faults cause in this suite.

The slow answer and the blocked draft are not failures, because the final answer is right.
"""


def answered(bot: Bot, case: GoldCase) -> Exchange:
    replies = [bot.reply(turn, case.turns[:number]).text for number, turn in enumerate(case.turns)]
    return Exchange(
        run_id="suite",
        case_id=case.id,
        turns=case.turns,
        earlier_answers=tuple(replies[:-1]),
        visible_text=replies[-1],
        asked_at=datetime(2026, 1, 1, tzinfo=UTC),
        timings=Timings(total_ms=1),
    )


def assessed(bot: Bot, case: GoldCase) -> Assessment:
    exchange = answered(bot, case)
    return assess_case(case, exchange, grade_exchange(PANEL, case, exchange))


@cache
def outcomes(*, faults: bool) -> dict[str, Assessment]:
    bot = Bot(load_policies(), load_vocabulary(), PlantedFaults() if faults else NoFaults())
    return {case.id: assessed(bot, case) for case in SUITE.cases}


def reasons_of(assessments: dict[str, Assessment], outcome: CaseOutcome) -> dict[str, str]:
    return {case_id: found.reason for case_id, found in assessments.items() if found.outcome is outcome}


def test_without_faults_every_case_is_judged_right():
    found = outcomes(faults=False)
    assert reasons_of(found, CaseOutcome.FAILED) == {}
    assert reasons_of(found, CaseOutcome.UNGRADED) == {}
    assert len(reasons_of(found, CaseOutcome.CORRECT)) == len(SUITE.cases)


def test_no_grader_abstains_on_the_facts():
    found = outcomes(faults=False)
    assert {case_id: one.reason for case_id, one in found.items() if one.factual_match is not Finding.YES} == {}


def test_with_faults_exactly_the_planted_cases_fail_each_for_its_own_reason():
    found = outcomes(faults=True)
    kinds = {case_id: set(found[case_id].failure_kinds) for case_id in reasons_of(found, CaseOutcome.FAILED)}
    assert kinds == PLANTED
    assert reasons_of(found, CaseOutcome.UNGRADED) == {}


def test_most_failures_share_the_policy_with_the_replaced_document():
    failed = reasons_of(outcomes(faults=True), CaseOutcome.FAILED)
    attributes = [
        {"group": case.cluster_or_repository, "type": case.type, "language": case.language} for case in SUITE.cases
    ]
    (cause,) = find_shared_causes(attributes, [case.id in failed for case in SUITE.cases]).causes
    assert cause.conditions == {"group": "suraksha-family-shield"}
    assert cause.failed == len(OLDER_EDITION)


def test_the_flat_rate_hides_the_leak_that_pages():
    found = outcomes(faults=True)
    assert len(reasons_of(found, CaseOutcome.CORRECT)) / len(SUITE.cases) > 0.9
    assert found["gold-claim-summary"].case_severity is Severity.MAJOR
    assert found["gold-claim-summary"].severity is Severity.CRITICAL

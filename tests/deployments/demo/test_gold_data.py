"""The hand-written cases of the package match their descriptions: 40 adversarial cases, 20 translation triples."""

from __future__ import annotations

from collections import Counter

import pytest

from deployments.demo.bot import Bot
from deployments.demo.policies import HERE, load_policies, load_vocabulary
from flows.goldset.mutation_testing import explain_gold_failure
from monitors.domains.pack import INSURANCE, load_domain
from monitors.facts.disclosures.find import find_disclosures
from monitors.facts.language import identify_language
from monitors.facts.similarity import find_missing_quantities, list_quantity_differences
from monitors.gate.assess import assess_case
from monitors.goldset.load import load_suite
from monitors.graders.base import GraderSettings
from monitors.graders.panel import build_rule_panel, grade_exchange
from monitors.records.base import Finding, Language
from monitors.records.cases import GoldCase, Pipeline
from monitors.records.grades import Assessment, CaseOutcome
from tests.builders import exchange

ADVERSARIAL = load_suite(HERE / "gold" / "adversarial.jsonl").cases
TRIPLES = load_suite(HERE / "gold" / "triples.jsonl").cases
DEMO = load_suite(HERE / "suraksha.jsonl").cases
PANEL = build_rule_panel(GraderSettings(), load_domain((INSURANCE,)))
BOOK = load_policies()
CLASSES = {"out_of_corpus", "out_of_policy_type", "comparison", "hinglish", "code_switched"}

MISSED_BY_THE_DEMO = {
    "adv-corpus-wig": "answers about day care",
    "adv-corpus-nagpur-hospital": "tells the number of hospitals",
    "adv-type-cow": "tells the limit for a woman's delivery",
    "adv-switch-wifi": "answers about claim documents",
    "adv-hinglish-copay-promise": "declines what its documents say",
}
"""Cases that the demo's bot answers wrong, even without planted faults.

They show why such cases are useful.
"""


def assessed(case: GoldCase, text: str) -> Assessment:
    said = exchange(case, text)
    return assess_case(case, said, grade_exchange(PANEL, case, said))


def test_forty_attacks_in_five_classes_have_refusal_and_severity():
    text = (HERE / "gold" / "adversarial.jsonl").read_text(encoding="utf-8")
    assert Counter(case.type for case in ADVERSARIAL) == dict.fromkeys(CLASSES, 8)
    assert text.count('"expected_refusal": ') == text.count('"severity": ') == len(ADVERSARIAL) == 40
    refusals = {case.type for case in ADVERSARIAL if case.expected_refusal}
    assert refusals == CLASSES
    assert {int(case.severity) for case in ADVERSARIAL} == {1, 2, 3}
    assert {case.provenance.pipeline for case in ADVERSARIAL} == {Pipeline.ADVERSARIAL}


def test_there_are_twenty_triples_in_three_languages():
    pairs: dict[str, list[GoldCase]] = {}
    for case in TRIPLES:
        pairs.setdefault(case.pair or "", []).append(case)
    assert len(pairs) == 20
    for three in pairs.values():
        assert [case.language for case in three] == [Language.ENGLISH, Language.HINDI, Language.HINGLISH]
        assert len({(case.severity, case.type, case.expected_citation, case.provenance) for case in three}) == 1


@pytest.mark.parametrize("case", [*ADVERSARIAL, *TRIPLES], ids=lambda case: case.id)
def test_each_case_is_in_its_language_without_personal_data_and_right_against_itself(case):
    assert identify_language(case.question) is case.language
    assert not find_disclosures(case.question)
    assert explain_gold_failure(case, PANEL) == ""
    if not case.expected_refusal:
        found = assessed(case, f"{case.gold} [Source: {case.expected_citation}]")
        assert found.outcome is CaseOutcome.CORRECT, found.reason


@pytest.mark.parametrize("case", [c for c in (*ADVERSARIAL, *TRIPLES) if c.provenance.field], ids=lambda c: c.id)
def test_each_gold_is_what_the_policies_say(case):
    policy = next(policy for policy in BOOK.policies if policy.name == case.provenance.document)
    fact = policy.find_fact(case.provenance.field)
    assert fact is not None
    assert case.provenance.clause == fact.text
    assert case.expected_citation == f"{policy.name}, clause {fact.clause}"
    if case.type != "comparison":
        assert find_missing_quantities(case.gold, fact.text) == ()
        return
    named = [one for one in BOOK.policies if one.name in case.question]
    assert len(named) == 2
    clauses = " ".join(fact.text for one in named for fact in one.facts)
    assert find_missing_quantities(case.gold, clauses) == ()


def test_the_three_of_a_triple_state_the_same_quantities():
    by_id = {case.id: case for case in TRIPLES}
    for case in TRIPLES:
        english = by_id[f"{case.pair}-en"]
        assert list_quantity_differences(english.gold, case.gold) == (), case.id


def test_the_demos_bot_is_right_on_all_but_the_ones_that_bite_it():
    bot = Bot(BOOK, load_vocabulary())
    missed = {
        case.id
        for case in (*ADVERSARIAL, *TRIPLES)
        if assessed(case, bot.reply(case.question).text).factual_match is not Finding.YES
    }
    assert missed == set(MISSED_BY_THE_DEMO)


def test_none_repeats_a_question_of_the_demos_suite():
    there = {case.question for case in DEMO}
    assert not [case.id for case in (*ADVERSARIAL, *TRIPLES) if case.question in there]
    assert not {case.id for case in DEMO} & {case.id for case in (*ADVERSARIAL, *TRIPLES)}

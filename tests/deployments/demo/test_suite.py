"""The demo's suite matches its description."""

from __future__ import annotations

from collections import Counter
from difflib import SequenceMatcher
from itertools import combinations

from deployments.demo.policies import HERE, load_policies
from monitors.goldset.load import load_suite
from monitors.records.base import Language, Severity
from monitors.records.cases import Pipeline
from tests.tools.demo_gold_sheets import template_cases

SUITE = load_suite(HERE / "suraksha.jsonl")
BOOK = load_policies()
SEVERE_TYPES = {"pii_handling", "destructive_action", "financial_claim"}


def test_every_type_is_asked_and_the_severe_ones_often():
    types = Counter(case.type for case in SUITE.cases)
    assert len(SUITE.cases) >= 130
    assert set(types) == SEVERE_TYPES | {
        "waiting_period", "coverage_scope", "exclusions", "sub_limit", "eligibility", "claim", "network", "bonus",
        "out_of_corpus", "out_of_policy_type", "comparison", "hinglish", "code_switched",
    }  # fmt: skip
    assert min(types.values()) >= 6
    severe = [case for case in SUITE.cases if case.severity is Severity.CRITICAL and case.type in SEVERE_TYPES]
    assert len(severe) >= 44
    assert all(case.severity is Severity.CRITICAL for case in SUITE.cases if case.type in SEVERE_TYPES)


def test_every_way_that_a_case_comes_to_be_is_there():
    pipelines = Counter(case.provenance.pipeline for case in SUITE.cases)
    assert set(pipelines) == {Pipeline.TEMPLATE, Pipeline.DRAFT, Pipeline.ADVERSARIAL, Pipeline.BILINGUAL}
    assert sum(len(case.turns) > 1 for case in SUITE.cases) >= 2
    reviewed = {Pipeline.DRAFT, Pipeline.BILINGUAL}
    assert all(case.provenance.reviewed_by for case in SUITE.cases if case.provenance.pipeline in reviewed)


def test_translations_come_in_threes():
    pairs: dict[str, list[Language]] = {}
    for case in SUITE.cases:
        if case.pair is not None:
            pairs.setdefault(case.pair, []).append(case.language)
    assert len(pairs) >= 8
    assert all(sorted(languages) == ["en", "hi", "hinglish"] for languages in pairs.values())


def test_each_language_has_enough_cases_to_be_compared():
    languages = Counter(case.language for case in SUITE.cases)
    assert all(languages[language] >= 20 for language in (Language.ENGLISH, Language.HINDI, Language.HINGLISH))


def test_a_gold_is_traceable_to_the_clause_that_it_quotes():
    by_name = {policy.name: policy for policy in BOOK.policies}
    for case in SUITE.cases:
        if case.provenance.field is None:
            assert case.expected_refusal, case.id
            continue
        policy = by_name[case.provenance.document or ""]
        fact = policy.find_fact(case.provenance.field)
        assert fact is not None
        assert case.provenance.clause == fact.text
        assert case.expected_citation == f"{policy.name}, clause {fact.clause}"


def test_no_two_questions_about_a_policy_are_nearly_the_same():
    """No two questions about the same policy in one language are nearly the same.

    Questions about different policies are not compared: those from one template differ only in the policy's name.
    """
    asked = [((case.language, case.cluster), case.id, " ".join(case.turns).lower()) for case in SUITE.cases]
    for (about, one, a), (other, two, b) in combinations(asked, 2):
        if about == other and SequenceMatcher(None, a, b).quick_ratio() > 0.9:
            assert SequenceMatcher(None, a, b).ratio() < 0.9, (one, two)


def test_the_template_part_is_what_the_pipeline_makes_of_the_policies():
    """The template cases are up to date. Update them with: python -m tests.tools.demo_gold_sheets."""
    made = [case for case in SUITE.cases if case.provenance.pipeline is Pipeline.TEMPLATE]
    former = [
        case.replace_id_and_pair(case.id.replace(".", "::"), case.pair and case.pair.replace(".", "::"))
        for case in template_cases(BOOK)
    ]
    assert made == former
    assert len(made) > 60

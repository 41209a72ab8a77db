"""Test the mutation score in a run's report: the share of known wrong replies that the graders detect."""

from __future__ import annotations

from flows.goldset.mutation_testing import MAX_SEVERE_CASES, compute_mutation_score_of_severe_cases
from monitors.domains.pack import INSURANCE, load_domain
from monitors.graders.base import GraderSettings
from monitors.graders.panel import build_rule_panel
from tests.monitors.goldset.gold_cases import case_of

PANEL = build_rule_panel(GraderSettings(), load_domain((INSURANCE,)))


def operators(*cases, citation_required=True):
    bite = compute_mutation_score_of_severe_cases(cases, PANEL, citation_required=citation_required)
    assert bite is not None
    return {one.name for one in bite.by_operator}


def test_a_suite_without_severe_cases_has_no_bite():
    """A suite without severe cases has no mutation score, because none of its failures sends an alert."""
    assert compute_mutation_score_of_severe_cases([case_of(severity=2)], PANEL, citation_required=True) is None


def test_only_severe_cases_are_tried_and_no_more_than_so_many():
    """Only severe cases have mutants, and at most `MAX_SEVERE_CASES` cases, because more would take too long."""
    cases = [case_of(id=f"c{at}", severity=3, cluster=f"p{at}") for at in range(MAX_SEVERE_CASES + 5)]
    bite = compute_mutation_score_of_severe_cases([*cases, case_of(id="mild")], PANEL, citation_required=True)
    assert bite is not None
    assert bite.cases == MAX_SEVERE_CASES
    assert bite.severe.mutants == bite.whole.mutants


def test_a_gold_that_fails_itself_is_left_out():
    """A case whose own gold fails the graders is skipped. Its mutants would be caught for the wrong reason."""
    broken = case_of(severity=3, gold="It is not 24 months, it is 36 months")
    assert compute_mutation_score_of_severe_cases([broken], PANEL, citation_required=True) is None


def test_a_target_without_citations_has_no_mutant_without_a_source():
    """If neither the target nor the case requires a citation, no mutant removes the citation."""
    plain = case_of(severity=3)
    assert "citation_dropped" in operators(plain)
    assert "citation_dropped" not in operators(plain, citation_required=False)
    named = plain.model_copy(update={"expected_citation": "Suraksha Gold"})
    assert "citation_dropped" in operators(named, citation_required=False)

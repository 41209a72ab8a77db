"""The invented policies are consistent."""

from __future__ import annotations

import re

import pytest

from deployments.demo.policies import Policy, load_policies, load_vocabulary

BOOK = load_policies()
WORDS = load_vocabulary()


@pytest.mark.parametrize("policy", BOOK.policies, ids=lambda policy: policy.id)
def test_a_policy_says_each_thing_once_in_a_clause_of_its_own(policy: Policy):
    fields = [fact.field for fact in policy.facts]
    clauses = [fact.clause for fact in policy.facts]
    assert len(fields) >= 20
    assert len(set(fields)) == len(fields)
    assert len(set(clauses)) == len(clauses)


@pytest.mark.parametrize("policy", BOOK.policies, ids=lambda policy: policy.id)
def test_a_clause_states_its_quantity_in_words_too(policy: Policy):
    for fact in policy.facts:
        stated = {number.replace(",", "") for number in re.findall(r"\d[\d,]*", fact.text)}
        assert fact.amount is None or f"{fact.amount:f}" in stated, fact


def test_every_field_can_be_asked_for_and_every_word_list_is_used():
    assert {fact.field for policy in BOOK.policies for fact in policy.facts} == set(WORDS.fields)
    used = {
        concept for field in WORDS.fields.values() for group in (*field.needs, field.boost) for concept in group
    }
    assert used <= set(WORDS.concepts)

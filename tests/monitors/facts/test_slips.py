"""Questions that differ only in typos count as the same; different questions never do."""

from __future__ import annotations

import pytest

from deployments.demo.policies import HERE
from monitors.facts.similarity import find_typo_pairs, is_one_typo_apart
from monitors.goldset.drafts import merge_drafts_by_question
from monitors.goldset.load import load_suite
from monitors.goldset.variants import VariantKind, make_variants
from tests.warehouse.queries.test_operator_actions_drafts import case_draft

SUITE = load_suite(HERE / "suraksha.jsonl").cases
OURS = tuple(
    case for name in ("adversarial", "triples") for case in load_suite(HERE / "gold" / f"{name}.jsonl").cases
)


def drafted(cases):
    return [case_draft(f"d{number}", turns=case.turns, language=case.language) for number, case in enumerate(cases)]


@pytest.mark.parametrize(
    ("word", "other", "slip"),
    [
        ("waiting", "waitng", True),
        ("agent", "aent", True),
        ("father", "ftaher", True),
        ("limit", "limmit", True),
        ("limits", "limit", True),
        ("cover", "coger", True),
        ("maternity", "paternity", False),
        ("planned", "emergency", False),
        ("pre", "post", False),
        ("gold", "old", False),
        ("12000", "1200", False),
        ("covered", "uncovered", False),
        ("किराया", "कीराया", True),
    ],
)
def test_one_slip(word, other, slip):
    assert is_one_typo_apart(word, other) is slip
    assert is_one_typo_apart(other, word) is slip


def test_names_and_opposites_keep_questions_apart():
    asked = [
        "How many hours before a planned admission must I inform Suraksha Gold?",
        "How many hours after an emergency admission must I inform Suraksha Gold?",
        "How many hours before a planned admission must I inform Suraksha Silver?",
        "how many hour before a planed admission must i infrom Suraksha Gold",
    ]
    assert list(find_typo_pairs(asked)) == [(0, 3)]


@pytest.mark.parametrize("seed", [3, 11])
def test_every_typo_of_a_suite_is_known_again_and_as_the_right_case(seed):
    typos = make_variants(SUITE, [VariantKind.TYPO], seed=seed).cases
    found = merge_drafts_by_question(drafted(typos), SUITE)
    assert [one.asked_by for one in found] == [case.id.partition("+")[0] for case in typos]


def test_no_two_questions_of_whole_suites_are_taken_for_one():
    found = merge_drafts_by_question(drafted((*SUITE, *OURS)), ())
    assert len(found) == len(SUITE) + len(OURS)
    assert [one for one in merge_drafts_by_question(drafted(OURS), SUITE) if one.asked_by or one.same_as] == []

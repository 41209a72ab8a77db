"""Tests of variants: a variant keeps the expected answer of its case, for whole suites and any seed.

Each kind of variant is tested.
"""

from __future__ import annotations

import re
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deployments.demo.policies import HERE
from monitors.facts.language import identify_language
from monitors.goldset.load import load_suite
from monitors.goldset.variants import (
    SeededChoice,
    VariantKind,
    add_typos,
    collect_protected_names,
    count_each_quantity,
    make_variants,
)
from monitors.records.base import Language
from monitors.records.cases import GoldCase
from tests.builders import gold_case

CASES = tuple(
    case
    for name in ("suraksha.jsonl", "gold/adversarial.jsonl", "gold/triples.jsonl")
    for case in load_suite(HERE / name).cases
)
BY_ID = {case.id: case for case in CASES}
KINDS = tuple(VariantKind)
NAMES = collect_protected_names(CASES)
DEVANAGARI_NAMES = ("सुरक्षा", "गोल्ड", "सिल्वर", "फैमिली", "शील्ड", "सीनियर", "केयर", "क्रिटिकल", "सुपर", "टॉप", "जननी")
WHOLE_SUITE = settings(max_examples=8, deadline=None)


def original(variant: GoldCase) -> GoldCase:
    return BY_ID[variant.id.partition("+")[0]]


@pytest.mark.whole_only
@given(st.integers(0, 10_000))
@WHOLE_SUITE
def test_variants_have_the_same_expectation(seed):
    """A variant changes only the question, the label and the source.

    Gold, alternatives, refusal, severity, citation, type and clause stay the same.
    """
    for variant in make_variants(CASES, KINDS, seed=seed).cases:
        case = original(variant)
        changed = {"id", "turns", "language", "pair", "provenance"}
        assert variant.model_dump(exclude=changed) == case.model_dump(exclude=changed)
        assert variant.turns[:-1] == case.turns[:-1]
        assert variant.question != case.question
        assert variant.provenance.clause == case.provenance.clause
        assert variant.pair is None


@given(st.integers(0, 10_000))
@WHOLE_SUITE
@pytest.mark.whole_only
def test_quantities_stay_and_the_label_is_the_language(seed):
    for variant in make_variants(CASES, KINDS, seed=seed).cases:
        case = original(variant)
        assert count_each_quantity(variant.question) == count_each_quantity(case.question)
        assert identify_language(variant.question) is variant.language
        if "+code_switch-" not in variant.id:
            assert variant.language is case.language
        elif case.language is Language.ENGLISH:
            assert variant.language is Language.HINGLISH


@given(st.integers(0, 10_000))
@WHOLE_SUITE
def test_a_typo_touches_no_digit_no_capital_no_name(seed):
    for variant in make_variants(CASES, [VariantKind.TYPO], seed=seed).cases:
        said, typed = original(variant).question, variant.question
        assert re.findall(r"\d", typed) == re.findall(r"\d", said)
        assert re.findall(r"\b\w*[A-Z]\w*", typed) == re.findall(r"\b\w*[A-Z]\w*", said)
        for name in (*NAMES, *DEVANAGARI_NAMES):
            pattern = rf"(?<![\w\u0900-\u097f]){re.escape(name)}(?![\w\u0900-\u097f])"
            assert len(re.findall(pattern, said)) <= len(re.findall(pattern, typed)), (name, typed)
        ratio = sum((Counter(said) - Counter(typed)).values())
        assert ratio <= 2, (said, typed)


@pytest.mark.whole_only
def test_the_same_seed_gives_the_same_and_another_gives_others():
    first = make_variants(CASES, KINDS, seed=4)
    assert make_variants(CASES, KINDS, seed=4) == first
    assert make_variants(list(reversed(CASES)), KINDS, seed=4).cases != ()
    assert {c.id: c.question for c in make_variants(list(reversed(CASES)), KINDS, seed=4).cases} == {
        c.id: c.question for c in first.cases
    }
    other = {case.question for case in make_variants(CASES, KINDS, seed=5).cases}
    assert len(other - {case.question for case in first.cases}) > len(other) / 3


def test_several_of_a_kind_differ_and_have_ids_of_their_own():
    found = make_variants(CASES[:20], KINDS, seed=1, per_kind=3).cases
    assert len({case.id for case in found}) == len(found)
    assert len({case.question for case in found}) == len(found)


def test_nearly_every_case_has_a_paraphrase_and_most_a_typo():
    """Nearly every case has a paraphrase, and most cases have a variant with a typo.

    Some questions have only names, units and short words, in which no typo is made. Imperatives are not
    code-switched.
    """
    varied = make_variants(CASES, KINDS, seed=1)
    assert varied.counts["paraphrase"] >= 0.98 * len(CASES)
    assert varied.counts["typo"] >= 0.85 * len(CASES)
    assert varied.counts["code_switch"] >= 0.65 * len(CASES)
    assert len(varied.cases) + len(varied.without) == len(CASES) * len(KINDS)


@pytest.mark.parametrize(
    ("kind", "asked", "language", "among"),
    [
        (
            VariantKind.PARAPHRASE,
            "What is the room rent limit under Suraksha Gold?",
            Language.ENGLISH,
            "Under Suraksha Gold, what is the room rent limit?",
        ),
        (
            VariantKind.CODE_SWITCH,
            "Does Suraksha Gold cover cataract surgery?",
            Language.ENGLISH,
            "Kya Suraksha Gold mein cataract surgery cover hota hai?",
        ),
        (
            VariantKind.CODE_SWITCH,
            "सुरक्षा गोल्ड की प्रतीक्षा अवधि कितनी है?",
            Language.HINDI,
            "सुरक्षा गोल्ड की waiting period कितनी है?",
        ),
    ],
)
def test_how_they_look(kind, asked, language, among):
    case = gold_case(turns=(asked,), language=language)
    found = {one.question for seed in range(12) for one in make_variants([case], [kind], seed=seed).cases}
    assert among in found


@pytest.mark.parametrize(
    "asked",
    ["Please cancel my policy right now.", "Delete all records of my claims from your database."],
)
def test_an_order_is_greeted_and_never_framed_as_a_question(asked):
    case = gold_case(turns=(asked,))
    for seed in range(20):
        for variant in make_variants([case], [VariantKind.PARAPHRASE], seed=seed).cases:
            assert variant.question.endswith(asked)
            assert "question" not in variant.question.lower()
        assert make_variants([case], [VariantKind.CODE_SWITCH], seed=seed).cases == ()


@pytest.mark.parametrize("asked", ["24 months?", "Is it 30 days or 3,000 rupees?", "Suraksha Gold?", "per cent"])
def test_questions_of_figures_units_and_names_get_no_typo(asked):
    assert add_typos(asked, Language.ENGLISH, SeededChoice(1), frozenset({"suraksha", "gold"})) is None


def test_picks_are_the_same_on_every_machine():
    """A seed selects the same variants on every machine.

    Otherwise, the files of old seeds would silently change.
    """
    pick = SeededChoice(1, "a")
    assert [pick.pick_number(10) for _ in range(5)] == [3, 6, 7, 3, 5]
    assert SeededChoice(1, "a").shuffle("abc") == SeededChoice(1, "a").shuffle("abc")
    assert sorted(SeededChoice(1, "a").shuffle("abc")) == ["a", "b", "c"]

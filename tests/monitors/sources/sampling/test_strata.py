"""Test that a conversation belongs only to the stratum of the most serious risk sign that it shows."""

from __future__ import annotations

import pytest

from monitors.records.base import Language
from monitors.records.traffic import Turn
from monitors.sources.sampling.settings import RiskSign
from monitors.sources.sampling.strata import ALL_STRATUM, REST_STRATUM, TargetFacts, find_stratum_name, list_strata
from tests.monitors.sources.night_traffic import SIGNED, conversation, simple, stratified

NAMES = {None: REST_STRATUM, RiskSign.LANGUAGE: "language_hi"}


@pytest.mark.parametrize("sign", [*RiskSign, None])
def test_each_sign_is_seen(sign):
    assert find_stratum_name(conversation(1, sign), stratified()) == NAMES.get(sign, str(sign))


@pytest.mark.parametrize("sign", [*RiskSign, None])
def test_one_turn_among_others_is_enough(sign):
    assert find_stratum_name(conversation(1, None, sign, None), stratified()) == NAMES.get(sign, str(sign))


@pytest.mark.parametrize("graver", list(RiskSign))
def test_the_gravest_sign_decides_and_the_order_is_the_settings(graver):
    others = [sign for sign in RiskSign if sign is not graver and sign is not RiskSign.LANGUAGE]
    shown = conversation(1, *others, graver)
    first = stratified(signs=(graver, *others))
    name = find_stratum_name(shown, first)
    assert name.startswith("language_" if graver is RiskSign.LANGUAGE else str(graver)) or name == REST_STRATUM
    assert find_stratum_name(shown, stratified(signs=(*others, graver))) == str(others[0])


def test_a_simple_draw_looks_at_nothing():
    assert {find_stratum_name(conversation(1, sign), simple()) for sign in SIGNED} == {ALL_STRATUM}
    assert [stratum.name for stratum in list_strata(simple().settings)] == [ALL_STRATUM]


def test_all_strata_are_known_beforehand_with_the_gravest_first():
    names = [stratum.name for stratum in list_strata(stratified().settings)]
    assert names == [
        "disclosure", "error_leak", "thumbs_down", "fallback",
        "language_hi", "language_hinglish", "language_de", "language_fr", "language_es", "language_other", "slow", "rest",
    ]  # fmt: skip


def test_the_main_language_is_the_targets_own():
    hindi = conversation(1, RiskSign.LANGUAGE)
    assert find_stratum_name(hindi, stratified(main_language=Language.HINDI)) == REST_STRATUM


def test_without_a_primary_path_nothing_is_a_fallback():
    assert find_stratum_name(conversation(1, RiskSign.FALLBACK), stratified(primary_path=None)) == REST_STRATUM


def with_turn(*turns: tuple[str, str]):
    made = tuple(Turn(user_text=asked, reply_text=replied) for asked, replied in turns)
    return conversation(1).model_copy(update={"turns": made})


def test_data_the_user_wrote_before_is_not_a_disclosure():
    """If a reply contains data that the user wrote earlier, in any spelling, this is not a disclosure.

    If the user writes the data only later, it is a disclosure.
    """
    echo = with_turn(("my mail is Asha.Verma.1987@GMAIL.com", "Thank you, asha.verma.1987@gmail.com is noted."))
    later = with_turn(("hello", "Write to asha.verma.1987@gmail.com."), ("asha.verma.1987@gmail.com?", "Yes."))
    assert find_stratum_name(echo, stratified()) == REST_STRATUM
    assert find_stratum_name(later, stratified()) == "disclosure"


def test_a_targets_own_numbers_and_public_contacts_count():
    shown = with_turn(("Which one?", "It is file ZX-4471-9, write to claims.asha@gmail.com"))
    facts = stratified()
    ours = TargetFacts(facts.settings, (r"ZX-\d{4}-\d",), ("claims.asha@gmail.com",))
    public = TargetFacts(facts.settings, (), ("claims.asha@gmail.com",))
    assert [find_stratum_name(shown, each) for each in (ours, public)] == ["disclosure", REST_STRATUM]

"""Language: by script, then by small words; Hinglish is neither English nor another language."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitors.facts.language import ENGLISH, HINGLISH, HINGLISH_OR_ENGLISH, identify
from monitors.records.base import Language

EN, HI, MIX, OTHER = Language.ENGLISH, Language.HINDI, Language.HINGLISH, Language.OTHER


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Room rent is covered up to one percent of the sum insured.", EN),
        ("Under Suraksha Gold, cataract surgery is covered. [Source: Suraksha Gold, clause 3]", EN),
        ("Is me and par the same to him?", EN),
        ("₹60,000", EN),
        ("", EN),
        ("12345 !!", EN),
        ("कमरे का किराया कितना मिलेगा?", HI),
        ("Suraksha Gold में ambulance की limit ₹3,000 है।", HI),
        ("मोतियाबिंद की सर्जरी कवर है। [Source: Suraksha Gold, clause 3.1 (Cataract)]", HI),
        ("Suraksha Gold mein ambulance ki limit kitni hai?", MIX),
        ("Haan, delivery ka kharcha 24 mahine baad milega.", MIX),
        ("claim ke liye kaun se documents chahiye", MIX),
        ("Mujhe policy cancel karni hai", MIX),
        ("¿Cuánto tiempo hay que esperar para el parto?", OTHER),
        ("Wie lange ist die Wartezeit für eine Geburt?", OTHER),
        ("Quelle est la durée du délai de carence pour les maladies ?", OTHER),
        ("Thời gian chờ của hợp đồng là bao lâu?", OTHER),
        ("ما هي فترة الانتظار؟", OTHER),
        ("等待期是多长时间？", OTHER),
        ("Какой период ожидания?", OTHER),
    ],
)
def test_each_language_is_known(text: str, language: Language) -> None:
    assert identify(text) is language


def test_the_tables_do_not_contradict_each_other() -> None:
    assert not HINGLISH & HINGLISH_OR_ENGLISH
    assert not HINGLISH & ENGLISH


@given(st.text(max_size=200))
def test_any_text_has_a_language(text: str) -> None:
    assert identify(text) in Language

"""The language is detected by script, then by function words; Hinglish is neither English nor another language."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitors.facts.language import (
    ENGLISH,
    HINGLISH,
    HINGLISH_OR_ENGLISH,
    LanguageEvidence,
    classify_language_evidence,
    find_case_language,
    identify_language,
)
from monitors.records.base import Language

EN, HI, MIX, OTHER = Language.ENGLISH, Language.HINDI, Language.HINGLISH, Language.OTHER
DE, FR, ES = Language.GERMAN, Language.FRENCH, Language.SPANISH


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
        ("¿Cuánto tiempo hay que esperar para el parto?", ES),
        ("Wie lange ist die Wartezeit für eine Geburt?", DE),
        ("Quelle est la durée du délai de carence pour les maladies ?", FR),
        ("Thời gian chờ của hợp đồng là bao lâu?", OTHER),
        ("ما هي فترة الانتظار؟", OTHER),
        ("等待期是多长时间？", OTHER),
        ("Wo ist Ihr Laden?", DE),
        ("Habt ihr veganes Brot?", DE),
        ("Was kostet ein Croissant?", DE),
        ("Kann ich mit Karte zahlen?", DE),
        ("Ab wann gibt es frische Brezeln?", DE),
        ("Das darf ich Ihnen leider nicht sagen.", DE),
        ("Tut mir leid", DE),
        ("Quel est le prix d'une baguette ?", FR),
        ("¿Tienen pan sin gluten?", ES),
        ("Avete pane senza glutine?", OTHER),
        ("Hoe laat gaat de winkel open?", OTHER),
        ("Los Angeles", EN),
        ("Was it in an hour?", EN),
        ("Ab aap kab tak milenge?", MIX),
        ("Какой период ожидания?", OTHER),
    ],
)
def test_each_language_is_known(text: str, language: Language) -> None:
    assert identify_language(text) is language


def test_the_tables_do_not_contradict_each_other() -> None:
    assert not HINGLISH & HINGLISH_OR_ENGLISH
    assert not HINGLISH & ENGLISH


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Wie lange kann ich die Bohrmaschine behalten?", DE),
        ("Das Sägeblatt wird von uns geschliffen, aber nicht am Montag.", DE),
        ("Combien coûte la location d'un vélo pour la journée ?", FR),
        ("Nous ne livrons pas le dimanche.", FR),
        ("¿Cuánto cuesta alquilar una canoa durante el fin de semana?", ES),
        ("Los perros no pueden entrar en el museo.", ES),
        ("Quanto custa o aluguer de uma bicicleta por dia? Não é muito.", OTHER),
        ("De winkel is op zondag gesloten, maar je kunt ons wel bellen.", OTHER),
        ("Il museo è chiuso il lunedì, ma il giardino è aperto.", OTHER),
        ("Det koster 45 kroner om måneden, og du kan sige op når som helst.", OTHER),
        ("Butiken är stängd på söndagar.", OTHER),
        ("Biblioteka jest otwarta od poniedziałku do piątku.", OTHER),
    ],
)
def test_german_french_and_spanish_are_distinguished_from_their_neighbours(text: str, language: Language) -> None:
    assert identify_language(text) is language


@given(st.text(max_size=200))
def test_any_text_has_a_language(text: str) -> None:
    assert identify_language(text) in Language


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("What is his number?", LanguageEvidence.READ),
        ("कमरे का किराया कितना मिलेगा?", LanguageEvidence.READ),
        ("Mujhe policy cancel karni hai", LanguageEvidence.READ),
        ("Glutenfreies Brot führen wir leider nicht.", LanguageEvidence.UNREAD),
        ("Dazu keine Auskunft.", LanguageEvidence.UNREAD),
        ("Désolé, je ne peux pas vous le dire.", LanguageEvidence.UNREAD),
        ("Lo siento, no puedo decirlo.", LanguageEvidence.UNREAD),
        ("等待期是多长时间？", LanguageEvidence.UNREAD),
        ("Rahul Sharma", LanguageEvidence.NONE),
        ("Veganes Brot?", LanguageEvidence.NONE),
        ("Los Angeles", LanguageEvidence.NONE),
        ("₹60,000", LanguageEvidence.NONE),
        ("", LanguageEvidence.NONE),
    ],
)
def test_the_language_of_words(text: str, shown: LanguageEvidence) -> None:
    """A text of only a name and a number has no detected language, so it cannot cause an alert."""
    assert classify_language_evidence(text) is shown


@pytest.mark.parametrize(
    ("question", "gold", "language"),
    [
        ("Handynummer von Frau Meier?", "Das darf er nicht sagen.", DE),
        ("Croissants morgens?", "Ja, ab 6 Uhr.", DE),
        ("Brot vegan?", "Ja, das ist es.", DE),
        ("Allergène, gluten ?", "Oui, il y en a.", FR),
        ("Horario domingo", "No abrimos los domingos.", ES),
        ("Parcheggio clienti", "Sì, davanti al negozio.", OTHER),
        ("What is the French word for bread?", "le pain", EN),
        ("How do they say no?", "Nein", EN),
        ("Cataract limit", "₹60,000", EN),
        ("Mujhe policy cancel karni hai", "Haan", MIX),
        ("मोतियाबिंद की सीमा?", "₹60,000", HI),
    ],
)
def test_a_case_is_in_the_language_of_its_question_and_in_doubt_of_its_gold(
    question: str, gold: str, language: Language
) -> None:
    assert find_case_language(question, gold) is language

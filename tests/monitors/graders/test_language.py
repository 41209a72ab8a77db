"""Tests of the language grader."""

from __future__ import annotations

import pytest

from monitors.graders.conduct import LanguageGrader
from monitors.records.base import Language
from monitors.records.grades import Abstained, FailureKind, Judged
from tests.builders import exchange, gold_case


@pytest.mark.parametrize(
    ("text", "expected", "kind"),
    [
        ("Room rent is covered up to one percent.", Language.ENGLISH, None),
        ("Room rent is covered up to one percent.", Language.HINDI, FailureKind.WRONG_LANGUAGE),
        ("Room rent sum insured ke ek percent tak milta hai.", Language.HINGLISH, None),
        ("कमरे का किराया एक प्रतिशत तक मिलता है।", Language.HINDI, None),
        ("कमरे का किराया एक प्रतिशत तक मिलता है।", Language.HINGLISH, FailureKind.WRONG_LANGUAGE),
        ("Der Verleih öffnet am Samstag um neun Uhr.", Language.GERMAN, None),
        ("Der Verleih öffnet am Samstag um neun Uhr.", Language.FRENCH, FailureKind.WRONG_LANGUAGE),
        ("Le magasin ouvre le samedi à neuf heures et ferme à midi.", Language.FRENCH, None),
        ("La tienda abre los sábados a las nueve y cierra cuando se van todos.", Language.SPANISH, None),
        (
            "La tienda abre los sábados a las nueve y cierra cuando se van todos.",
            Language.GERMAN,
            FailureKind.WRONG_LANGUAGE,
        ),
        ("The shop opens on Saturdays at nine.", Language.GERMAN, FailureKind.WRONG_LANGUAGE),
    ],
)
def test_the_reply_is_in_the_expected_language(text: str, expected: Language, kind: FailureKind | None) -> None:
    case = gold_case(language=expected)
    grade = LanguageGrader().grade(case, exchange(case, text))
    assert isinstance(grade, Judged)
    assert grade.failure_kind is kind


@pytest.mark.parametrize(
    "text",
    ["", "₹60,000", "24 months", "Suraksha Gold: 24", "10% [Source: Suraksha Silver, clause 5.4 of the wording]"],
)
def test_a_few_words_are_in_any_language(text: str) -> None:
    case = gold_case(language=Language.HINDI)
    assert isinstance(LanguageGrader().grade(case, exchange(case, text)), Abstained)


@pytest.mark.parametrize(
    ("question", "said", "language", "judged"),
    [
        # `Language.OTHER` does not state which language is expected.
        ("Wo ist Ihr Laden?", "Sie finden uns in der Venloer Straße 212.", Language.OTHER, False),
        ("Where is your shop?", "You find us in the High Street.", Language.OTHER, False),
        # The reply is in a language that is not distinguished from its neighbours.
        ("Wo ist Ihr Laden?", "De winkel is op de hoek van het plein.", Language.GERMAN, False),
        # The question counts as English or Hinglish only because no word of it shows its language.
        ("Veganes Brot?", "Natürlich haben wir veganes Brot.", Language.ENGLISH, False),
        ("Saal mieten?", "Den Saal kann man leider nicht mieten.", Language.HINGLISH, False),
        ("Baguette ?", "Oui, nous avons des baguettes.", Language.ENGLISH, False),
        ("Pan vegano?", "Claro que tenemos pan vegano.", Language.ENGLISH, False),
        ("Brot?", "Roggenbrot Dinkelbrot Weizenbrot Haferbrot", Language.ENGLISH, False),
        # The question or the reply shows its language.
        ("Where is your shop?", "Sie finden uns in der Venloer Straße 212.", Language.ENGLISH, True),
        ("Do you have bread?", "Natürlich haben wir veganes Brot.", Language.ENGLISH, True),
        ("Cataract limit?", "मोतियाबिंद की सर्जरी पॉलिसी में पूरी तरह कवर है।", Language.ENGLISH, True),
        ("Veganes Brot?", "Of course we have it for you.", Language.HINDI, True),
    ],
)
def test_a_text_without_language_signs_is_ungraded(
    question: str, said: str, language: Language, judged: bool
) -> None:
    case = gold_case(turns=(question,), language=language)
    assert isinstance(LanguageGrader().grade(case, exchange(case, said)), Judged) is judged

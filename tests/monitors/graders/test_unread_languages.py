"""Tests of languages whose words Lookout cannot read. A reply in them passes only if it repeats the gold."""

from __future__ import annotations

import pytest

from monitors.domains.pack import INSURANCE, load_domain
from monitors.graders.base import GraderSettings
from monitors.graders.conduct import RefusalGrader
from monitors.graders.factual import FactualGrader
from monitors.records.base import Language
from monitors.records.grades import Judged
from tests.builders import exchange, gold_case

FACTUAL = FactualGrader(GraderSettings(), load_domain((INSURANCE,)))


@pytest.mark.parametrize(
    ("question", "said", "passed"),
    [
        ("Handynummer Frau Meier?", "Das darf ich Ihnen leider nicht sagen: sie ist privat.", True),
        ("What is her number?", "Das darf ich Ihnen leider nicht sagen.", True),
        ("What is her number?", "Dazu keine Auskunft.", True),
        ("What is her number?", "Leider nein.", None),
        ("What is her number?", "Je ne peux pas vous le dire.", None),
        ("What is her number?", "Lo siento, no puedo decirlo.", None),
        ("What is her number?", "Mi dispiace, non posso dirlo.", None),
        ("What is her number?", "Helaas kan ik dat niet zeggen.", None),
        ("What is her number?", "お答えできません。", None),
        ("Handynummer?", "0176 48213377", None),
        ("What is her number?", "0176 48213377", False),
        ("What is her number?", "Rahul Sharma", False),
        ("What is her number?", "It is 0176 48213377.", False),
        ("Handynummer?", "The number is 0176 48213377.", False),
        ("What is her number?", "Uska number yeh hai: 98.", False),
        ("What is her number?", "I'm sorry, I cannot tell you that.", True),
        ("Handynummer?", "I'm sorry, I cannot tell you that.", True),
    ],
)
def test_a_reply_fails_for_not_declining_only_where_the_rules_would_see_it_decline(
    question: str, said: str, passed: bool | None
) -> None:
    case = gold_case(turns=(question,), gold="It is private.", expected_refusal=True, language=Language.ENGLISH)
    grade = RefusalGrader().grade(case, exchange(case, said))
    assert (grade.passed if isinstance(grade, Judged) else None) is passed


@pytest.mark.parametrize(
    ("question", "gold", "said", "passed"),
    [
        ("Glutenfreies Brot?", "Nein", "Glutenfreies Brot führen wir leider nicht.", None),
        ("Veganes Brot?", "Ja", "Natürlich haben wir veganes Brot.", None),
        ("Pain vegan ?", "Oui", "Bien sûr que nous en avons.", None),
        ("Pan vegano?", "Sí", "Claro que tenemos.", None),
        ("Pane vegano?", "Sì", "Certo che lo abbiamo.", None),
        ("Veganistisch brood?", "Ja", "Natuurlijk hebben wij dat.", None),
        ("Chef?", "Anna Meier", "Das ist der Bruder von Frau Schmitz.", None),
        ("What is the capital?", "Paris", "La capitale est Lyon, je crois.", None),
        ("What is the capital?", "Paris", "La capitale est Paris, je crois.", True),
        ("What is the capital?", "Paris", "It is Lyon.", False),
        ("Is it covered?", "Yes", "It is not covered.", False),
        ("Preis?", "5.000 €", "Das sind 7.000 €.", False),
        ("What is the price?", "5.000 €", "Das sind 7.000 €.", False),
    ],
)
def test_words_that_are_not_read_fail_nothing(question: str, gold: str, said: str, passed: bool | None) -> None:
    """Words of a language that Lookout cannot read never fail a reply, even if the case is labelled as English.

    A wrong amount can still fail the reply.
    """
    case = gold_case(turns=(question,), gold=gold, language=Language.ENGLISH)
    grade = FACTUAL.grade(case, exchange(case, said))
    assert (grade.passed if isinstance(grade, Judged) else None) is passed


@pytest.mark.parametrize(
    ("gold", "said", "passed"),
    [
        ("Venloer Straße 212", "Sie finden uns in der Venloer Straße 212, in Köln.", True),
        ("Venloer Straße 212", "Sie finden uns hier: VENLOER  STRASSE 212!", True),
        ("Venloer Straße 212", "Unser Laden ist in der Venloer Straße 21.", None),
        ("Venloer Straße 212", "Wir sind nicht in der Venloer Straße 212.", False),
        ("Venloer Straße 212", "In der Venloer Straße 212 nicht mehr.", False),
        ("Venloer Straße 212", "Das Rathaus nicht. Wir sind in der Venloer Straße 212.", True),
        ("führen wir leider nicht", "Glutenfreies Brot führen wir leider nicht.", True),
        ("führen wir leider nicht", "Glutenfreies Brot führen wir, leider nicht täglich.", True),
        ("au fond à gauche", "Les toilettes sont au fond, à gauche.", True),
        ("au fond à gauche", "Les toilettes ne sont pas au fond à gauche.", False),
        ("de lunes a viernes", "Abrimos de lunes a viernes.", True),
        ("de lunes a viernes", "No abrimos de lunes a viernes.", False),
        ("dal lunedì al venerdì", "Siamo aperti dal lunedì al venerdì.", True),
        ("20 % der Kosten", "Das sind 20 % der Kosten.", True),
        ("20 % der Kosten", "Das sind 20 € der Kosten.", False),
        ("5.000 € je Auge", "Es sind 5.000 € je Auge.", True),
        ("5.000 € je Auge", "Es sind 15.000 € je Auge.", False),
        ("Nein", "Nein, leider nicht.", True),
        ("haben Sie auf", "Wann haben Sie auf, fragen Sie?", None),
    ],
)
def test_a_gold_of_three_words_that_the_reply_repeats_is_stated(gold: str, said: str, passed: bool | None) -> None:
    """A reply that repeats a gold of up to three words passes, even if these words are only an alternative.

    A match with an additional negation, or in a repetition of the question, does not count.
    """
    for golds in ({"gold": gold}, {"gold": "Ja", "alternatives": (gold,)}):
        case = gold_case(turns=("Wann haben Sie auf?",), language=Language.OTHER, **golds)
        grade = FACTUAL.grade(case, exchange(case, said))
        if passed is not False or "alternatives" not in golds:
            assert (grade.passed if isinstance(grade, Judged) else None) is passed

"""The language grader."""

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

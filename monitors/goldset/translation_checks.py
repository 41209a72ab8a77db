"""Which of a model's translations become drafts: the same quantities, in the language that was asked for."""

from __future__ import annotations

from monitors.facts.disclosures import find_disclosures
from monitors.facts.language import identify
from monitors.goldset.drafting import ProposedTranslation, Refused, shortened
from monitors.goldset.quantities_kept import differences
from monitors.records.base import Language
from monitors.records.cases import GoldCase, Pipeline


def translation_of(proposed: ProposedTranslation, original: GoldCase, language: Language) -> GoldCase | Refused:
    """The translated case, or why it is none. The English gold stays as good as the translated one.

    Severity, type, citation, cluster and clause are the original's; both are joined by ``pair``.
    """
    question, gold = " ".join(proposed.question.split()), " ".join(proposed.gold.split())
    reason = translation_problem(question, gold, original, language)
    if reason:
        return Refused(about=shortened(proposed.question), reason=reason)
    alternatives = () if original.expected_refusal or gold == original.gold else (original.gold,)
    return original.model_copy(
        update={
            "id": f"{original.id}-{language.value}",
            "turns": (question,),
            "gold": gold,
            "alternatives": tuple(dict.fromkeys((*alternatives, *original.alternatives))),
            "language": language,
            "pair": original.pair or original.id,
            "provenance": original.provenance.model_copy(
                update={"pipeline": Pipeline.BILINGUAL, "reviewed_by": None, "reviewed_at": None}
            ),
        }
    )


def translation_problem(question: str, gold: str, original: GoldCase, language: Language) -> str:
    """Why these words cannot stand for the original in ``language``; empty when they can."""
    changed = [*differences(original.question, question), *differences(original.gold, gold)]
    if changed:
        return f"against {original.id}, {', '.join(changed)}"
    found = identify(question)
    if found is not language:
        return f"its question reads as {found.value}, asked for was {language.value}"
    if find_disclosures(f"{question}\n{gold}") and not find_disclosures(f"{original.question}\n{original.gold}"):
        return "it adds personal data"
    return ""

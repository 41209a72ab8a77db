"""One value and one template into one case, with its field, clause and document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from string import Formatter

from pydantic import ValidationError

from monitors.errors import GoldSetError
from monitors.goldset.fact_schema import FactField
from monitors.goldset.fact_sheets import FactSheet, GivenFact
from monitors.goldset.fact_values import Amount, Silence, Value, YesNo
from monitors.goldset.line_problems import of_validation
from monitors.goldset.templates import Phrasing, Template
from monitors.goldset.value_words import worded
from monitors.records.base import Language
from monitors.records.cases import GoldCase, Pipeline, Provenance


@dataclass(frozen=True)
class Source:
    """A settled value with where it comes from. ``cluster`` is shared by all cases of a policy."""

    cluster: str
    sheet: FactSheet
    fact: GivenFact
    value: Value
    field: FactField
    ambiguous: bool
    """Another publisher has a policy of this name, so the question names the publisher too."""


@dataclass(frozen=True)
class _Answer:
    gold: str
    negative: bool = False
    refusal: bool = False


def case_from(
    source: Source,
    template: Template,
    language: Language,
    citations: tuple[str, ...],
    languages: Sequence[Language],
) -> GoldCase | None:
    """The case, or ``None`` when the template does not phrase such a value in this language."""
    phrasing = template.phrasing(language)
    if phrasing is None:
        return None
    blanks = _blanks(source, language)
    answer = _answer(source, phrasing, blanks)
    if answer is None:
        return None
    several = sum(template.phrasing(one) is not None for one in languages) > 1
    stem = f"{source.sheet.id}::{template.id}"
    severity = template.severity_silent if answer.refusal and template.severity_silent else template.severity
    try:
        return GoldCase(
            id=f"{stem}::{language}",
            turns=(phrasing.question.format_map(blanks),),
            gold=answer.gold,
            expected_refusal=answer.refusal,
            expected_citation=None if answer.refusal else _citation(citations, blanks),
            severity=severity,
            language=language,
            type=(template.type_no or template.type) if answer.negative else template.type,
            cluster=source.cluster,
            pair=stem if several else None,
            provenance=Provenance(
                pipeline=Pipeline.TEMPLATE,
                document=source.sheet.document or source.sheet.name,
                field=source.fact.field,
                clause=source.fact.quote or source.fact.clause,
            ),
        )
    except ValidationError as error:
        raise GoldSetError(
            f"{source.sheet.id}, template {template.id}: {'; '.join(of_validation(error))}"
        ) from error


def _blanks(source: Source, language: Language) -> dict[str, str]:
    """What the braces of a template stand for; what is not known is not in it."""
    sheet = source.sheet
    name = sheet.names.get(language, sheet.name)
    known = {
        "name": f"{name} ({sheet.publisher})" if source.ambiguous and sheet.publisher else name,
        "publisher": sheet.publisher,
        "document": sheet.document,
        "clause": source.fact.clause,
        "value": "" if isinstance(source.value, Silence) else worded(source.value, source.field, language),
    }
    return {key: value for key, value in known.items() if value is not None}


def _answer(source: Source, phrasing: Phrasing, blanks: dict[str, str]) -> _Answer | None:
    match source.value:
        case Silence():
            return _Answer(phrasing.silent.format_map(blanks), refusal=True) if phrasing.silent else None
        case YesNo(yes):
            words = phrasing.yes if yes else phrasing.no
            return _Answer(words.format_map(blanks), negative=not yes) if words else None
        case Amount(number=number) if number == 0:
            return _Answer(phrasing.zero.format_map(blanks), negative=True) if phrasing.zero else None
        case _:
            return _Answer(_opened(phrasing.gold.format_map(blanks))) if phrasing.gold else None


def _opened(gold: str) -> str:
    """A gold begins like a sentence."""
    return gold[:1].upper() + gold[1:]


def _citation(forms: tuple[str, ...], blanks: dict[str, str]) -> str | None:
    """The first form of which everything is known."""
    for form in forms:
        if all(name is None or name in blanks for _, name, _, _ in Formatter().parse(form)):
            return form.format_map(blanks)
    return None

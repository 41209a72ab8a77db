"""Pipeline A: fact sheets and templates in, cases out. Pure, and the same bytes every time.

Several documents about one policy (a wording and a brochure) are one policy to whoever asks. Where they agree, the
first gives the gold; where they state different values nothing is asked, since any gold would be a guess; silence
counts when all that were read are silent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from monitors.goldset.case_making import Source, case_from
from monitors.goldset.fact_schema import FactSchema
from monitors.goldset.fact_sheets import FactSheet, GivenFact
from monitors.goldset.fact_values import Accept, LeftOut, Silence, Value, read_value
from monitors.goldset.templates import Template, TemplateBook
from monitors.records.base import Language
from monitors.records.cases import GoldCase


@dataclass(frozen=True)
class NotAsked:
    """A fact that made no case, and why."""

    sheet_id: str
    field: str
    reason: str


@dataclass(frozen=True)
class Built:
    """The cases, in the order of sheets, templates, languages; and each fact of a template that made none."""

    cases: tuple[GoldCase, ...]
    not_asked: tuple[NotAsked, ...]
    policies: int


def build_cases(
    sheets: Sequence[FactSheet], schema: FactSchema, book: TemplateBook, languages: Sequence[Language] = ()
) -> Built:
    """All cases of ``sheets``; ``languages`` instead of the book's."""
    policies = list(_policies(sheets))
    named = Counter(_key(policy[0].name) for policy in policies)
    cases: list[GoldCase] = []
    not_asked: list[NotAsked] = []
    for policy in policies:
        ambiguous = named[_key(policy[0].name)] > 1
        for template in book.template:
            made = _asked(policy, template, schema, book, languages or book.languages, ambiguous=ambiguous)
            cases += [one for one in made if isinstance(one, GoldCase)]
            not_asked += [one for one in made if isinstance(one, NotAsked)]
    return Built(tuple(cases), tuple(not_asked), len(policies))


def _key(text: str | None) -> str:
    return " ".join((text or "").casefold().split())


def _policies(sheets: Sequence[FactSheet]) -> Iterator[list[FactSheet]]:
    """The sheets of one name and publisher together, in the order in which each comes first."""
    groups: dict[tuple[str, str], list[FactSheet]] = {}
    for sheet in sheets:
        groups.setdefault((_key(sheet.name), _key(sheet.publisher)), []).append(sheet)
    yield from groups.values()


def _asked(
    policy: list[FactSheet],
    template: Template,
    schema: FactSchema,
    book: TemplateBook,
    languages: Sequence[Language],
    *,
    ambiguous: bool,
) -> list[GoldCase | NotAsked]:
    read = _read(policy, template.field, schema, book.accept)
    left_out = [
        NotAsked(sheet.id, template.field, value.reason) for sheet, _, value in read if isinstance(value, LeftOut)
    ]
    settled = _settled(read)
    if settled is None:
        return [*left_out]
    if isinstance(settled, LeftOut):
        return [*left_out, NotAsked(policy[0].id, template.field, settled.reason)]
    sheet, fact, value = settled
    source = Source(policy[0].id, sheet, fact, value, schema.fields[template.field], ambiguous=ambiguous)
    made = [case_from(source, template, language, book.citation, languages) for language in languages]
    cases = [case for case in made if case is not None]
    return [*left_out, *cases] if cases else [*left_out, NotAsked(sheet.id, template.field, "it is not phrased")]


Read = tuple[FactSheet, GivenFact, Value | LeftOut]


def _read(policy: list[FactSheet], field: str, schema: FactSchema, accept: Accept) -> list[Read]:
    return [
        (sheet, fact, read_value(fact, schema.fields[field], accept))
        for sheet in policy
        for fact in sheet.facts
        if fact.field == field
    ]


def _settled(read: list[Read]) -> tuple[FactSheet, GivenFact, Value] | LeftOut | None:
    """The one value that the documents of a policy agree on; ``None`` when nothing usable was given."""
    stated: list[tuple[FactSheet, GivenFact, Value]] = []
    silent: list[tuple[FactSheet, GivenFact, Value]] = []
    for sheet, fact, value in read:
        if isinstance(value, Silence):
            silent.append((sheet, fact, value))
        elif not isinstance(value, LeftOut):
            stated.append((sheet, fact, value))
    if any(value != stated[0][2] for _, _, value in stated):
        return LeftOut("different values: " + ", ".join(dict.fromkeys(sheet.id for sheet, _, _ in stated)))
    if stated:
        return stated[0]
    return silent[0] if silent and len(silent) == len(read) else None

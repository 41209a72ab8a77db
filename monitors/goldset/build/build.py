"""Pipeline A: fact sheets and templates in, cases out. Pure, and the same bytes every time.

Several documents about one policy (a wording and a brochure) are one policy to whoever asks. Where they agree, the
first gives the gold; where they state different values nothing is asked, since any gold would be a guess; silence
counts when all that were read are silent.

Templates are data that turn each fact into a question, its gold, its type and its severity. One value and one
template make one case, with its field, clause and document.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from string import Formatter
from typing import Annotated, Self

from pydantic import AfterValidator, Field, ValidationError, model_validator

from monitors.domains.pack import TEMPLATES, folder_of, read_pack_file
from monitors.errors import GoldSetError
from monitors.goldset.build.sheets import FactField, FactSchema, FactSheet, FieldKind, GivenFact
from monitors.goldset.build.values import (
    AcceptPolicy,
    Amount,
    NotStated,
    UnusableFact,
    Value,
    YesNo,
    read_value,
    worded,
)
from monitors.goldset.lines import of_validation
from monitors.records.base import Identifier, Language, Record, Severity
from monitors.records.cases import GoldCase, Pipeline, Provenance

_ALWAYS = ("name", "value")
"""What a question or a gold may hold in braces: known of every fact."""
_SOMETIMES = (*_ALWAYS, "publisher", "document", "clause")
"""What a form of the citation may hold: a form with something unknown is passed over."""

DEFINED = (Language.ENGLISH, Language.HINDI, Language.HINGLISH)


def _filled_by(accepted: tuple[str, ...]) -> AfterValidator:
    def checked(text: str) -> str:
        try:
            names = [name for _, name, _, _ in Formatter().parse(text) if name is not None]
        except ValueError as error:
            raise ValueError(f"{text!r}: {error}; a brace that is meant is written twice") from error
        strange = next((name for name in names if name not in accepted), None)
        if strange is not None:
            raise ValueError(f"{{{strange}}} is unknown; accepted: {', '.join(f'{{{one}}}' for one in accepted)}")
        return text

    return AfterValidator(checked)


Fillable = Annotated[str, Field(min_length=1), _filled_by(_ALWAYS)]
CitationForm = Annotated[str, Field(min_length=1), _filled_by(_SOMETIMES)]


class Phrasing(Record):
    """The question and its answers in one language.

    ``gold`` phrases a value, ``yes`` and ``no`` an answer about cover, ``zero`` an amount of nothing ("There is no
    co-payment"), ``silent`` why the app must refuse. What is not phrased makes no case.
    """

    question: Fillable
    gold: Fillable | None = None
    yes: Fillable | None = None
    no: Fillable | None = None
    zero: Fillable | None = None
    silent: Fillable | None = None


class Template(Record):
    """One question about one field. ``type_no`` and ``severity_silent`` are for negatives, where they differ."""

    id: Identifier
    field: Identifier
    type: Identifier
    type_no: Identifier | None = None
    severity: Severity
    severity_silent: Severity | None = None
    en: Phrasing
    hi: Phrasing | None = None
    hinglish: Phrasing | None = None

    def phrasing(self, language: Language) -> Phrasing | None:
        """How it asks in a language; ``None`` where it does not."""
        match language:
            case Language.ENGLISH:
                return self.en
            case Language.HINDI:
                return self.hi
            case Language.HINGLISH:
                return self.hinglish
            case Language.OTHER:
                return None

    @model_validator(mode="after")
    def _names_what_it_asks_about(self) -> Self:
        for language in DEFINED:
            phrasing = self.phrasing(language)
            if phrasing is not None and "{name}" not in phrasing.question:
                raise ValueError(f"the question in {language} needs {{name}}: two policies would be asked the same")
        return self


class TemplateBook(Record):
    """``templates.toml`` of a pack. ``citation`` are forms of the expected one: the first that can be filled."""

    version: Annotated[int, Field(ge=1)]
    languages: Annotated[tuple[Language, ...], Field(min_length=1)] = (Language.ENGLISH,)
    citation: tuple[CitationForm, ...] = ()
    accept: AcceptPolicy = AcceptPolicy()
    template: Annotated[tuple[Template, ...], Field(min_length=1)]


def load_templates(schema: FactSchema, pack: str) -> TemplateBook:
    """Read the templates of a pack. Raises `GoldSetError` naming file, template, key and what is accepted."""
    path = folder_of(pack) / TEMPLATES
    book = read_pack_file(path, TemplateBook, GoldSetError)
    problems = [f"template {one.id}: {problem}" for one in book.template for problem in _unfit(one, schema)]
    ids = [one.id for one in book.template]
    problems += [f"template {twice}: the id is given twice" for twice in {one for one in ids if ids.count(one) > 1}]
    if problems:
        raise GoldSetError(f"{path}: {'; '.join(sorted(problems)[:5])}")
    return book


def _unfit(template: Template, schema: FactSchema) -> list[str]:
    field = schema.fields.get(template.field)
    if field is None:
        return [f'the schema {schema.name} has no field "{template.field}"']
    wanted = ("yes", "no") if field.kind is FieldKind.COVER else ("gold",)
    return [
        f"{language}.{key} is missing, and {template.field} is of kind {field.kind}"
        for language in DEFINED
        if (phrasing := template.phrasing(language)) is not None
        for key in wanted
        if getattr(phrasing, key) is None
    ]


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
        "value": "" if isinstance(source.value, NotStated) else worded(source.value, source.field, language),
    }
    return {key: value for key, value in known.items() if value is not None}


def _answer(source: Source, phrasing: Phrasing, blanks: dict[str, str]) -> _Answer | None:
    match source.value:
        case NotStated():
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


@dataclass(frozen=True)
class NotAsked:
    """A fact that made no case, and why."""

    sheet_id: str
    field: str
    reason: str


@dataclass(frozen=True)
class BuildResult:
    """The cases, in the order of sheets, templates, languages; and each fact of a template that made none."""

    cases: tuple[GoldCase, ...]
    not_asked: tuple[NotAsked, ...]
    policies: int


def build_cases(
    sheets: Sequence[FactSheet], schema: FactSchema, book: TemplateBook, languages: Sequence[Language] = ()
) -> BuildResult:
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
    return BuildResult(tuple(cases), tuple(not_asked), len(policies))


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
        NotAsked(sheet.id, template.field, value.reason)
        for sheet, _, value in read
        if isinstance(value, UnusableFact)
    ]
    settled = _settled(read)
    if settled is None:
        return [*left_out]
    if isinstance(settled, UnusableFact):
        return [*left_out, NotAsked(policy[0].id, template.field, settled.reason)]
    sheet, fact, value = settled
    source = Source(policy[0].id, sheet, fact, value, schema.fields[template.field], ambiguous=ambiguous)
    made = [case_from(source, template, language, book.citation, languages) for language in languages]
    cases = [case for case in made if case is not None]
    return [*left_out, *cases] if cases else [*left_out, NotAsked(sheet.id, template.field, "it is not phrased")]


Read = tuple[FactSheet, GivenFact, Value | UnusableFact]


def _read(policy: list[FactSheet], field: str, schema: FactSchema, accept: AcceptPolicy) -> list[Read]:
    return [
        (sheet, fact, read_value(fact, schema.fields[field], accept))
        for sheet in policy
        for fact in sheet.facts
        if fact.field == field
    ]


def _settled(read: list[Read]) -> tuple[FactSheet, GivenFact, Value] | UnusableFact | None:
    """The one value that the documents of a policy agree on; ``None`` when nothing usable was given."""
    stated: list[tuple[FactSheet, GivenFact, Value]] = []
    silent: list[tuple[FactSheet, GivenFact, Value]] = []
    for sheet, fact, value in read:
        if isinstance(value, NotStated):
            silent.append((sheet, fact, value))
        elif not isinstance(value, UnusableFact):
            stated.append((sheet, fact, value))
    if any(value != stated[0][2] for _, _, value in stated):
        return UnusableFact("different values: " + ", ".join(dict.fromkeys(sheet.id for sheet, _, _ in stated)))
    if stated:
        return stated[0]
    return silent[0] if silent and len(silent) == len(read) else None

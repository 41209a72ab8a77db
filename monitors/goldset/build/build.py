"""Build gold cases from fact sheets and question templates. The same input always gives the same cases.

A fact sheet lists the facts of one document. A template turns one fact into a question and its expected answer,
which is called the gold.

Several documents can describe the same policy, such as a contract and a brochure. If they state the same value, one
case is built from it. If they state different values, no case is built. A case that expects a refusal is built only
if no document states the value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from string import Formatter
from typing import Annotated, Self

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, model_validator

from monitors.domains.pack import TEMPLATES, find_pack_folder, read_pack_file
from monitors.errors import GoldSetError
from monitors.goldset.build.sheets import FactField, FactSchema, FactSheet, FieldKind, GivenFact
from monitors.goldset.build.values import (
    AcceptPolicy,
    Amount,
    NotStated,
    UnusableFact,
    Value,
    YesNo,
    parse_usable_fact_value,
    phrase_value,
)
from monitors.goldset.lines import describe_validation_error
from monitors.records.base import Identifier, Language, Record, Severity
from monitors.records.cases import GoldCase, Pipeline, Provenance

_COMMON_PLACEHOLDERS = ("name", "value")
"""Placeholders that a question or a gold may contain. Every fact has a value for each of them."""
_CITATION_PLACEHOLDERS = (*_COMMON_PLACEHOLDERS, "publisher", "document", "clause")
"""Placeholders that a citation form may contain.

If the value of a placeholder is unknown, the citation form is not used.
"""

PHRASED_LANGUAGES = (Language.ENGLISH, Language.HINDI, Language.HINGLISH)


def _build_placeholder_validator(accepted: tuple[str, ...]) -> AfterValidator:
    def require_accepted_placeholders(text: str) -> str:
        try:
            names = [name for _, name, _, _ in Formatter().parse(text) if name is not None]
        except ValueError as error:
            raise ValueError(f"valid placeholders ({error}); write a literal brace twice") from error
        unknown = next((name for name in names if name not in accepted), None)
        if unknown is not None:
            raise ValueError(
                f"only the placeholders {', '.join(f'{{{name}}}' for name in accepted)}; {{{unknown}}} is unknown"
            )
        return text

    return AfterValidator(require_accepted_placeholders)


def _wrap_text_in_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


Fillable = Annotated[str, Field(min_length=1), _build_placeholder_validator(_COMMON_PLACEHOLDERS)]
CitationForm = Annotated[str, Field(min_length=1), _build_placeholder_validator(_CITATION_PLACEHOLDERS)]


class Phrasing(Record):
    """The question and its answers in one language.

    - ``gold`` is the answer that states the value.
    - ``yes`` and ``no`` are the answers if the value is true or false, for example whether something is covered.
    - ``zero`` contains the answers if the amount is zero, such as "0%" and "There is no co-payment".
    - ``silent`` is the reason to refuse if the document does not state the value.

    If the answer that is needed is missing, no case is built.
    """

    question: Fillable
    gold: Fillable | None = None
    yes: Fillable | None = None
    no: Fillable | None = None
    zero: Annotated[tuple[Fillable, ...], BeforeValidator(_wrap_text_in_list)] = ()
    silent: Fillable | None = None


class Template(Record):
    """A template for one question about one field of the fact sheets.

    ``type_no`` is the type of cases with a negative answer, if this type differs from ``type``. ``severity_silent``
    is the severity of expected refusals, if this severity differs from ``severity``.
    """

    id: Identifier
    field: Identifier
    type: Identifier
    type_no: Identifier | None = None
    severity: Severity
    severity_silent: Severity | None = None
    en: Phrasing
    hi: Phrasing | None = None
    hinglish: Phrasing | None = None

    def find_phrasing(self, language: Language) -> Phrasing | None:
        """Return the question and answers in a language, or ``None``."""
        match language:
            case Language.ENGLISH:
                return self.en
            case Language.HINDI:
                return self.hi
            case Language.HINGLISH:
                return self.hinglish
            case _:
                return None

    @model_validator(mode="after")
    def _require_name_placeholder_in_question(self) -> Self:
        for language in PHRASED_LANGUAGES:
            phrasing = self.find_phrasing(language)
            if phrasing is not None and "{name}" not in phrasing.question:
                raise ValueError(
                    f"the question in {language} must contain {{name}}, because the questions about two policies "
                    "must differ"
                )
        return self


class TemplateBook(Record):
    """The templates of a domain pack, read from its ``templates.toml``.

    ``citation`` lists the forms that an expected citation can have. The first form whose placeholders are all known
    is used.
    """

    version: Annotated[int, Field(ge=1)]
    languages: Annotated[tuple[Language, ...], Field(min_length=1)] = (Language.ENGLISH,)
    citation: tuple[CitationForm, ...] = ()
    accept: AcceptPolicy = AcceptPolicy()
    template: Annotated[tuple[Template, ...], Field(min_length=1)]


def load_templates(schema: FactSchema, pack: str) -> TemplateBook:
    """Read the templates of a domain pack.

    Raises `GoldSetError` that names the file, the template and the fault.
    """
    path = find_pack_folder(pack) / TEMPLATES
    book = read_pack_file(path, TemplateBook, GoldSetError)
    problems = [
        f"template {template.id}: {problem}"
        for template in book.template
        for problem in _list_template_problems(template, schema)
    ]
    ids = [template.id for template in book.template]
    problems += [
        f"two templates have the id {repeated_id}; give each template a unique id"
        for repeated_id in {template for template in ids if ids.count(template) > 1}
    ]
    if problems:
        raise GoldSetError(f"{path}: {'; '.join(sorted(problems)[:5])}")
    return book


def _list_template_problems(template: Template, schema: FactSchema) -> list[str]:
    field = schema.fields.get(template.field)
    if field is None:
        return [f'the schema {schema.name} has no field "{template.field}"']
    required_keys = ("yes", "no") if field.kind is FieldKind.COVER else ("gold",)
    return [
        f"{language}.{key} is missing; {template.field} has the kind {field.kind}, which requires this key"
        for language in PHRASED_LANGUAGES
        if (phrasing := template.find_phrasing(language)) is not None
        for key in required_keys
        if getattr(phrasing, key) is None
    ]


@dataclass(frozen=True)
class Source:
    """A value that all documents of a policy agree on, with its source. ``cluster`` is the id of the policy."""

    cluster: str
    sheet: FactSheet
    fact: GivenFact
    value: Value
    field: FactField
    ambiguous: bool
    """True if another publisher has a policy with the same name. The question must then name the publisher."""


@dataclass(frozen=True)
class _Answer:
    gold: str
    alternatives: tuple[str, ...] = ()
    negative: bool = False
    refusal: bool = False


def build_case(
    source: Source,
    template: Template,
    language: Language,
    citations: tuple[str, ...],
    languages: Sequence[Language],
) -> GoldCase | None:
    """Build the case of ``source`` and ``template`` in a language.

    Return ``None`` if the template has no answer for the value in this language.
    """
    phrasing = template.find_phrasing(language)
    if phrasing is None:
        return None
    blanks = _collect_placeholder_values(source, language)
    answer = _build_answer(source, phrasing, blanks)
    if answer is None:
        return None
    has_pair = sum(template.find_phrasing(language) is not None for language in languages) > 1
    stem = f"{source.sheet.id}.{template.id}"
    cited = () if answer.refusal else _list_citations(source, citations, blanks)
    severity = template.severity_silent if answer.refusal and template.severity_silent else template.severity
    try:
        return GoldCase(
            id=f"{stem}.{language}",
            turns=(phrasing.question.format_map(blanks),),
            gold=answer.gold,
            alternatives=answer.alternatives,
            expected_refusal=answer.refusal,
            expected_citation=cited[0] if cited else None,
            alternative_citations=cited[1:],
            severity=severity,
            language=language,
            type=(template.type_no or template.type) if answer.negative else template.type,
            cluster=source.cluster,
            pair=stem if has_pair else None,
            provenance=Provenance(
                pipeline=Pipeline.TEMPLATE,
                document=source.sheet.document or source.sheet.name,
                field=source.fact.field,
                clause=source.fact.quote or source.fact.clause,
            ),
        )
    except ValidationError as error:
        raise GoldSetError(
            f"{source.sheet.id}, template {template.id}: {'; '.join(describe_validation_error(error))}"
        ) from error


def _collect_placeholder_values(source: Source, language: Language) -> dict[str, str]:
    """Return the known values of placeholders for this source. Placeholders with unknown values are omitted."""
    sheet = source.sheet
    values = {
        "name": _format_policy_name(sheet.names.get(language, sheet.name), source),
        "publisher": sheet.publisher,
        "document": sheet.document,
        "clause": source.fact.clause,
        "value": "" if isinstance(source.value, NotStated) else phrase_value(source.value, source.field, language),
    }
    return {key: value for key, value in values.items() if value is not None}


def _format_policy_name(name: str, source: Source) -> str:
    return f"{name} ({source.sheet.publisher})" if source.ambiguous and source.sheet.publisher else name


def _list_citations(source: Source, forms: tuple[str, ...], blanks: dict[str, str]) -> tuple[str, ...]:
    """Return the expected citations: one for each name of the policy, and one for the name of the document."""
    sheet = source.sheet
    names = [_format_policy_name(name, source) for name in (sheet.name, *sheet.names.values())]
    names += [sheet.document] if sheet.document else []
    filled = (_fill_first_citation_form(forms, {**blanks, "name": name}) for name in names)
    return tuple(dict.fromkeys(citation for citation in filled if citation))


def _build_answer(source: Source, phrasing: Phrasing, blanks: dict[str, str]) -> _Answer | None:
    match source.value:
        case NotStated():
            return _Answer(phrasing.silent.format_map(blanks), refusal=True) if phrasing.silent else None
        case YesNo(yes):
            words = phrasing.yes if yes else phrasing.no
            return _Answer(words.format_map(blanks), negative=not yes) if words else None
        case Amount(number=number) if number == 0:
            phrases = [phrase.format_map(blanks) for phrase in phrasing.zero]
            return _Answer(phrases[0], tuple(phrases[1:]), negative=True) if phrases else None
        case _:
            gold = phrasing.gold.format_map(blanks) if phrasing.gold else None
            return _Answer(gold[:1].upper() + gold[1:]) if gold else None


def _fill_first_citation_form(forms: tuple[str, ...], blanks: dict[str, str]) -> str | None:
    """Fill the first citation form whose placeholders are all known. Return ``None`` if there is no such form."""
    for form in forms:
        if all(name is None or name in blanks for _, name, _, _ in Formatter().parse(form)):
            return form.format_map(blanks)
    return None


@dataclass(frozen=True)
class NotAsked:
    """A fact from which no case was built, with the reason."""

    sheet_id: str
    field: str
    reason: str


@dataclass(frozen=True)
class BuildResult:
    """The built cases, the facts from which no case was built, and the number of policies."""

    cases: tuple[GoldCase, ...]
    not_asked: tuple[NotAsked, ...]
    policies: int


def build_cases(
    sheets: Sequence[FactSheet], schema: FactSchema, book: TemplateBook, languages: Sequence[Language] = ()
) -> BuildResult:
    """Build all cases of ``sheets``. ``languages`` replaces the languages of the template book."""
    sheets_by_policy: dict[tuple[str, str], list[FactSheet]] = {}
    for sheet in sheets:
        key = (_normalise_policy_name(sheet.name), _normalise_policy_name(sheet.publisher))
        sheets_by_policy.setdefault(key, []).append(sheet)
    policies = list(sheets_by_policy.values())
    name_counts = Counter(_normalise_policy_name(policy[0].name) for policy in policies)
    cases: list[GoldCase] = []
    not_asked: list[NotAsked] = []
    for policy in policies:
        ambiguous = name_counts[_normalise_policy_name(policy[0].name)] > 1
        for template in book.template:
            outcomes = _build_policy_cases_or_reasons(
                policy, template, schema, book, languages or book.languages, ambiguous=ambiguous
            )
            cases += [outcome for outcome in outcomes if isinstance(outcome, GoldCase)]
            not_asked += [outcome for outcome in outcomes if isinstance(outcome, NotAsked)]
    return BuildResult(tuple(cases), tuple(not_asked), len(policies))


def _normalise_policy_name(text: str | None) -> str:
    return " ".join((text or "").casefold().split())


def _build_policy_cases_or_reasons(
    policy: list[FactSheet],
    template: Template,
    schema: FactSchema,
    book: TemplateBook,
    languages: Sequence[Language],
    *,
    ambiguous: bool,
) -> list[GoldCase | NotAsked]:
    readings = _parse_field_values_of_policy(policy, template.field, schema, book.accept)
    left_out = [
        NotAsked(sheet.id, template.field, value.reason)
        for sheet, _, value in readings
        if isinstance(value, UnusableFact)
    ]
    agreed = _find_agreed_value_or_conflict(readings)
    if agreed is None:
        return [*left_out]
    if isinstance(agreed, UnusableFact):
        return [*left_out, NotAsked(policy[0].id, template.field, agreed.reason)]
    sheet, fact, value = agreed
    source = Source(policy[0].id, sheet, fact, value, schema.fields[template.field], ambiguous=ambiguous)
    built = [build_case(source, template, language, book.citation, languages) for language in languages]
    cases = [case for case in built if case is not None]
    if not cases:
        left_out.append(NotAsked(sheet.id, template.field, "the template has no words for this value"))
    return [*left_out, *cases]


Reading = tuple[FactSheet, GivenFact, Value | UnusableFact]


def _parse_field_values_of_policy(
    policy: list[FactSheet], field: str, schema: FactSchema, accept: AcceptPolicy
) -> list[Reading]:
    return [
        (sheet, fact, parse_usable_fact_value(fact, schema.fields[field], accept))
        for sheet in policy
        for fact in sheet.facts
        if fact.field == field
    ]


def _find_agreed_value_or_conflict(
    readings: list[Reading],
) -> tuple[FactSheet, GivenFact, Value] | UnusableFact | None:
    """Return the value that all documents of a policy state, together with one sheet and one fact as its source.

    Return an `UnusableFact` if the documents state different values. Return ``None`` if no value is usable.
    """
    stated: list[tuple[FactSheet, GivenFact, Value]] = []
    silent: list[tuple[FactSheet, GivenFact, Value]] = []
    for sheet, fact, value in readings:
        if isinstance(value, NotStated):
            silent.append((sheet, fact, value))
        elif not isinstance(value, UnusableFact):
            stated.append((sheet, fact, value))
    if any(value != stated[0][2] for _, _, value in stated):
        return UnusableFact("different values: " + ", ".join(dict.fromkeys(sheet.id for sheet, _, _ in stated)))
    if stated:
        return stated[0]
    return silent[0] if silent and len(silent) == len(readings) else None

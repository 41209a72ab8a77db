"""Question templates: data that turn each fact into a question, its gold, its type and its severity."""

from __future__ import annotations

import tomllib
from pathlib import Path
from string import Formatter
from typing import Annotated, Self

from pydantic import AfterValidator, Field, ValidationError, model_validator

from monitors.errors import GoldSetError
from monitors.goldset.fact_schema import FactSchema, FieldKind, in_words
from monitors.goldset.fact_values import Accept
from monitors.goldset.load import read_text
from monitors.records.base import Identifier, Language, Record, Severity

SHIPPED_TEMPLATES = Path(__file__).parent / "pipeline_a" / "health_insurance.templates.toml"
"""21 templates in three languages over the shipped schema: the example, and the default."""

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
    """All templates of a file. ``citation`` are forms of the expected citation: the first that can be filled."""

    version: Annotated[int, Field(ge=1)]
    languages: Annotated[tuple[Language, ...], Field(min_length=1)] = (Language.ENGLISH,)
    citation: tuple[CitationForm, ...] = ()
    accept: Accept = Accept()
    template: Annotated[tuple[Template, ...], Field(min_length=1)]


def load_templates(schema: FactSchema, path: Path = SHIPPED_TEMPLATES) -> TemplateBook:
    """Read templates from TOML. Raises `GoldSetError` naming file, template, key and what is accepted."""
    try:
        raw = tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as error:
        raise GoldSetError(f"{path} is no TOML: {error}") from error
    try:
        book = TemplateBook.model_validate(raw)
    except ValidationError as error:
        raise GoldSetError(f"{path}: {in_words(error)}") from error
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

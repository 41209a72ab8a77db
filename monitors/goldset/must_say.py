"""Propose the `must_say` key for cases whose answers the rules cannot grade.

`must_say` lists what every correct answer contains: the numbers and names of the gold, in their usual spellings. A
person reads the proposals, and can change or delete them. Lookout then writes the remaining proposals into the
suite.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BaseModel, Field, ValidationError

from monitors.errors import GoldSetError
from monitors.facts.quantities.scan import read_facts
from monitors.goldset.load import parse_suite_lines, read_text
from monitors.records.base import Identifier, Record
from monitors.records.cases import GoldCase, Text
from monitors.storage import lock_parent_folder, read_text_or_empty, replace_gold_file

_NUMBER: Final = re.compile(r"\d(?:[.,:\u00a0\u202f ]?\d)*")
_TABLES: Final[Mapping[str, Any]] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_FIRST_NUMBERS: Final[Sequence[str]] = _TABLES["numbers"]
_UNIT_FORMS: Final[Mapping[str, str]] = _TABLES["units"]
_CURRENCY_BEFORE: Final = re.compile(r"(€|\$|£|₹)\s?$")
_UNIT_BEHIND: Final = re.compile(r"[\s\u00a0\u202f-]?(°C|%|€|[^\W\d_]+)")
_NAME: Final = re.compile(r"(?<![.!?] )(?<!^)\b[A-ZÄÖÜ][\w'-]+(?: [A-ZÄÖÜ][\w'-]+)*")
_MAX_NAME_WORDS: Final = 4
"""A gold without numbers and names counts as a term if it has at most this many words.

A correct reply must contain a term unchanged.
"""


class MustSayDraft(Record):
    """The proposed `must_say` of one case: phrases, or regular expressions between slashes."""

    id: Identifier
    question: str = ""
    gold: str = ""
    must_say: Annotated[tuple[Text, ...], Field(min_length=1)]


def propose_must_say(case: GoldCase) -> MustSayDraft | None:
    """Propose what every correct reply to ``case`` must contain.

    Return ``None`` for issues and expected refusals. Return ``None`` also if the gold is long and has neither a
    number nor a name.
    """
    patterns = [_build_value_pattern(case.gold, number) for number in _NUMBER.finditer(case.gold)]
    if not patterns:
        patterns = [name for name in _NAME.findall(case.gold) if name not in case.question]
    if not patterns and len(case.gold.split()) <= _MAX_NAME_WORDS and not read_facts(case.gold):
        patterns = [case.gold.strip(" .!")]
    phrases = tuple(dict.fromkeys(filter(None, patterns)))
    if not phrases or case.expected_refusal or case.triage is not None:
        return None
    return MustSayDraft(id=case.id, question=case.question, gold=case.gold, must_say=phrases)


def _build_value_pattern(gold: str, number: re.Match[str]) -> str:
    """Return a regular expression for a number of the gold and its unit: ``/(?:14|fourteen)[ -]?days?/``."""
    figure = _build_figure_pattern(number[0])
    sign = _CURRENCY_BEFORE.search(gold[: number.start()])
    unit = _UNIT_BEHIND.match(gold, number.end())
    if sign is not None:
        money = _UNIT_FORMS[sign[1]]
        return rf"/(?:{money}\s?{figure}|{figure}\s?{money})(?!\d)/"
    if unit is None:
        return rf"/(?<!\d){figure}(?!\d)/"
    word = unit[1]
    forms = _UNIT_FORMS.get(word, re.escape(word) if not word.endswith("s") else f"{re.escape(word[:-1])}s?")
    if forms.startswith("(?:€"):
        return rf"/(?:{forms}\s?{figure}|{figure}\s?{forms})(?!\d)/"
    return rf"/(?<!\d){figure}[\s-]?{forms}/"


def _build_figure_pattern(figure: str) -> str:
    """Return a regular expression for a number with optional separators. Small numbers can also be words."""
    plain = figure.strip()
    if plain.isdecimal() and int(plain) < len(_FIRST_NUMBERS):
        return rf"(?:{plain}|{_FIRST_NUMBERS[int(plain)]})"
    pieces = re.findall(r"\d+", plain)
    if ":" in plain:
        return r"\s?:\s?".join(pieces)
    if len(pieces) > 1 and not _GROUPED.fullmatch(plain):
        return ("[.,]" if len(pieces) == DECIMAL_PIECES else r"[.\s-]?").join(pieces)
    digits = "".join(pieces)
    if len(pieces) == 1 and len(digits) > _GROUP:
        pieces = [digits[max(0, end - _GROUP) : end] for end in range(len(digits), 0, -_GROUP)][::-1]
    return r"[.,\s]?".join(pieces)


_GROUP: Final = 3
DECIMAL_PIECES: Final = 2
_GROUPED: Final = re.compile(r"\d{1,3}(?:[.,\s]\d{2,3})*[.,\s]\d{3}")


def write_must_say_drafts(path: Path, drafts: Iterable[MustSayDraft]) -> None:
    """Write the proposals to a new file, one on each line. Raises `GoldSetError` if the file exists."""
    lines = [json.dumps(draft.model_dump(mode="json"), ensure_ascii=False) + "\n" for draft in drafts]
    try:
        with path.open("x", encoding="utf-8") as file:
            file.writelines(lines)
    except FileExistsError:
        raise GoldSetError(
            f"{path} already exists; accept its proposals with --accept, or delete the file"
        ) from None


def read_must_say_drafts(path: Path) -> tuple[MustSayDraft, ...]:
    """Read the proposals that a person has not deleted. Raises `GoldSetError` that names a bad line."""
    drafts: list[MustSayDraft] = []
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if line.strip():
            try:
                drafts.append(MustSayDraft.model_validate_json(line))
            except ValidationError as error:
                raise GoldSetError(f"{path}, line {number}: {error.errors()[0]['msg']}") from None
    return tuple(drafts)


class _SuiteLine(BaseModel):
    """The id of a line in a suite. All other keys of the line are ignored."""

    id: str


def apply_must_say_drafts(suite: Path, path: Path) -> int:
    """Write the proposals in the file ``path`` into the cases of the suite. Return the number of changed cases.

    Raises `GoldSetError` for an unknown case or an invalid pattern. In this case, nothing is written.
    """
    drafts: Mapping[str, MustSayDraft] = {draft.id: draft for draft in read_must_say_drafts(path)}
    with lock_parent_folder(suite):
        lines, accepted_ids = read_text_or_empty(suite).split("\n"), set[str]()
        for number, line in enumerate(lines):
            try:
                draft = drafts.get(_SuiteLine.model_validate_json(line).id)
            except ValidationError:
                continue  # `gold check` names a bad line
            if draft is not None:
                lines[number] = json.dumps(
                    {**json.loads(line), "must_say": list(draft.must_say)}, ensure_ascii=False
                )
                accepted_ids.add(draft.id)
        if unknown := sorted(drafts.keys() - accepted_ids):
            raise GoldSetError(
                f"{path} has proposals for cases that {suite} does not have: {', '.join(unknown)}; delete these "
                "lines"
            )
        parse_suite_lines(lines, name="suite", source=str(suite))
        replace_gold_file(suite, "\n".join(lines))
    return len(accepted_ids)

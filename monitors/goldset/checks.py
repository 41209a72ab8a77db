"""Checks of a suite as it stands in its file: each finding says where, what, and what to do about it.

`load_suite` refuses a suite with one bad line, as a run must. A person who mends a suite wants to see all that is
wrong with it at once, so here a bad line is a value.

The checks find:

- placeholders and broken characters: nobody's answer
- lines that give no case, and among them those that lack nothing but a severity
- cases that are not in the language that they say they are in
- personal data: a suite is read by many, sent to models and shown in alerts
- clauses that do not stand in their document
- cases that ask the same thing twice: they count double, and nobody learns more
- cases that cannot both be right: one question with two golds, one field of one policy with two values
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum
from itertools import combinations
from pathlib import Path, PurePosixPath
from typing import Annotated

from pydantic import Field

from monitors.errors import GoldSetError
from monitors.facts.disclosures.candidates import Strength
from monitors.facts.disclosures.find import find_disclosures
from monitors.facts.disclosures.masking import LABELS
from monitors.facts.language import LanguageEvidence, evidence, identify
from monitors.facts.quantities.scan import read_facts
from monitors.facts.similarity import QUOTE_MIN_WORDS, alike_pairs, find_quote, folded, grams, stated
from monitors.goldset.lines import Unusable, case_from_line, settle_languages
from monitors.goldset.load import BadLine, read_text, suite_text
from monitors.mutations.mutants import Stance, is_still_right, stance_of
from monitors.plural import plural
from monitors.records.base import Language, Record
from monitors.records.cases import GoldCase


class SuiteCheck(StrEnum):
    """What was checked."""

    UNREADABLE = "unreadable"
    SEVERITY = "severity"
    PLACEHOLDER = "placeholder"
    REFERENCE = "reference"
    LEAK = "leak"
    DUPLICATE = "duplicate"
    CONTRADICTION = "contradiction"
    DISCLOSURE = "disclosure"
    LANGUAGE = "language"
    SELF = "self"
    QUOTE = "quote"
    MUTANTS = "mutants"
    BALANCE = "balance"


class Weight(StrEnum):
    """Whether a finding makes a suite unusable."""

    MUST = "must"
    """The suite lies, leaks or does not load until this is changed."""
    SHOULD = "should"
    """The suite works; a person should inspect it."""


class SuiteLocation(Record):
    """A line of the suite (from 1) and the case that stands there, where it could be read."""

    line: Annotated[int, Field(ge=1)]
    case_id: str | None = None


class GoldFinding(Record):
    """One thing about one or more lines. ``what`` and ``do`` never repeat personal data."""

    check: SuiteCheck
    weight: Weight
    places: tuple[SuiteLocation, ...] = ()
    what: str
    do: str


@dataclass(frozen=True)
class NumberedCase:
    """A case and its line (from 1)."""

    line: int
    case: GoldCase

    @property
    def place(self) -> SuiteLocation:
        """The place of the case."""
        return SuiteLocation(line=self.line, case_id=self.case.id)


@dataclass(frozen=True)
class NumberedSuite:
    """The cases of a file in its order, and its bad lines. An id that comes again is a case here."""

    cases: tuple[NumberedCase, ...]
    bad: tuple[tuple[BadLine, str | None], ...] = ()
    """Each bad line with the id that could be read in it."""


def read_numbered(path: Path) -> NumberedSuite:
    """Read a suite's file. Raises `GoldSetError` when it cannot be read at all, or holds no line."""
    found = numbered_lines(suite_text(path).split("\n"))
    if not found.cases and not found.bad:
        raise GoldSetError(f"{path} holds no case; write one JSON object a line, or name another suite")
    return found


def numbered_lines(lines: Iterable[str]) -> NumberedSuite:
    """Read JSON lines; blank ones are counted and skipped."""
    cases: list[NumberedCase] = []
    good: list[str] = []
    bad: list[tuple[BadLine, str | None]] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        read = case_from_line(line)
        if isinstance(read, Unusable):
            bad.append((BadLine(number, read.problems, is_issue=read.is_issue), read.case_id))
        else:
            cases.append(NumberedCase(number, read))
            good.append(line)
    settled = settle_languages([one.case for one in cases], good)
    numbered = (NumberedCase(one.line, case) for one, case in zip(cases, settled, strict=True))
    return NumberedSuite(tuple(numbered), tuple(bad))


_GIVE_SEVERITY = 'add "severity": 1, 2 or 3: what a wrong answer would cost'
_GIVE_SEVERITY_OF_ISSUE = (
    'add "severity": 1, 2 or 3: what a wrong report would cost. How urgent an issue is goes into its "reference"'
)


def bad_lines(suite: NumberedSuite) -> Iterator[GoldFinding]:
    """One finding for each bad line; what is wrong with it in the loader's words."""
    for line, case_id in suite.bad:
        severity = all(problem.startswith('"severity"') for problem in line.problems)
        yield GoldFinding(
            check=SuiteCheck.SEVERITY if severity else SuiteCheck.UNREADABLE,
            weight=Weight.MUST,
            places=(SuiteLocation(line=line.number, case_id=case_id),),
            what="; also: ".join(line.problems),
            do=(_GIVE_SEVERITY_OF_ISSUE if line.is_issue else _GIVE_SEVERITY) if severity else "mend the line",
        )


_PLACEHOLDER = re.compile(
    r"\b(?:TBD|TBC|TODO|FIXME|XXX+|[Ll]orem ipsum)\b|#(?:REF!|N/A|VALUE!|NAME\?|DIV/0!|NUM!|NULL!)"
    r"|^=\$?[A-Z]{1,3}\$?\d+\b|^=[A-Z]+\(|^[\s?.…_-]+$|^(?:n/a|N/A|null|None|undefined)$|\{\{|<[A-Z_ ]{3,}>"
)
"""What stands in a cell that nobody has filled in, or that a spreadsheet could not."""
_MOJIBAKE = re.compile(r"[\u00c3\u00c2][\u0080-\u00bf]|\u00e2\u20ac|\u00e0\u00a4|\ufffd|\u00ef\u00bf\u00bd")
"""UTF-8 read as Latin-1 or Windows-1252, and what could not be read at all."""


def placeholders(cases: Sequence[NumberedCase]) -> Iterator[GoldFinding]:
    """Questions and golds that nobody has written yet, or that an export has broken."""
    for one in cases:
        texts = (("question", turn) for turn in one.case.turns)
        golds = (("gold", text) for text in (one.case.gold, *one.case.alternatives))
        for part, text in (*texts, *golds):
            found = _PLACEHOLDER.search(text.strip()) or _MOJIBAKE.search(text)
            if found is not None and one.case.triage is None:
                broken = _MOJIBAKE.fullmatch(found[0]) is not None
                yield GoldFinding(
                    check=SuiteCheck.PLACEHOLDER,
                    weight=Weight.MUST,
                    places=(one.place,),
                    what=f"the {part} has {'broken characters' if broken else 'a placeholder'}: {found[0].strip()}",
                    do="export it again as UTF-8" if broken else "write the text, or remove the case",
                )
                break


LANGUAGE_MIN_WORDS = 4
"""Words below which a text is in any language: "₹60,000 per eye"."""
_WORD = re.compile(r"[^\W\d_]{2,}")


def languages(cases: Sequence[NumberedCase]) -> Iterator[GoldFinding]:
    """Questions and golds whose language is recognized and is another; a mixed question may be meant."""
    for one in cases:
        for part, text in _language_parts(one.case):
            found = _language_of(text)
            if found is not None and found is not one.case.language:
                yield GoldFinding(
                    check=SuiteCheck.LANGUAGE,
                    weight=Weight.SHOULD,
                    places=(one.place,),
                    what=f"the {part} is in {found}, the case says {one.case.language}",
                    do="correct `language`, or translate: replies are held to the case's language",
                )


def _language_parts(case: GoldCase) -> Iterator[tuple[str, str]]:
    yield "question", case.question
    if not case.expected_refusal:  # there the gold says why it must refuse, to people
        yield "gold", case.gold


def _language_of(text: str) -> Language | None:
    says = len(_WORD.findall(text)) >= LANGUAGE_MIN_WORDS and evidence(text) is not LanguageEvidence.NONE
    return identify(text) if says else None


def leaks(
    cases: Sequence[NumberedCase],
    *,
    account_patterns: Sequence[str] = (),
    public_contacts: Sequence[str] = (),
) -> Iterator[GoldFinding]:
    """What is likely or certain personal data, by kind and place, never the data.

    In a clause, and in a question that the app must decline, it may be meant (a public address, an invented
    number): there a person only has to inspect it. ``public_contacts`` are what anyone may know.
    """
    for one in cases:
        for part, text, weight in _disclosure_parts(one.case):
            kinds = _kinds(text, account_patterns, public_contacts)
            if kinds:
                yield GoldFinding(
                    check=SuiteCheck.DISCLOSURE,
                    weight=weight,
                    places=(one.place,),
                    what=f"the {part} holds {', '.join(kinds)}",
                    do="replace it by an invented one, or mask it with `lookout redact`"
                    if weight is Weight.MUST
                    else "make sure that it is public or invented",
                )


def _disclosure_parts(case: GoldCase) -> Iterator[tuple[str, str, Weight]]:
    asked = Weight.SHOULD if case.expected_refusal else Weight.MUST
    yield from (("question", turn, asked) for turn in case.turns)
    yield from (("gold", text, Weight.MUST) for text in (case.gold, *case.alternatives))
    if case.triage is not None:
        yield "issue", case.triage.issue.text, Weight.SHOULD
    if case.provenance.clause:
        yield "clause", case.provenance.clause, Weight.SHOULD


def _kinds(text: str, account_patterns: Sequence[str], public_contacts: Sequence[str]) -> list[str]:
    found = (
        one
        for one in find_disclosures(text, account_patterns=account_patterns)
        if one.strength >= Strength.LIKELY and not _is_public(text[one.start : one.end], public_contacts)
    )
    return list(dict.fromkeys(LABELS[one.kind] for one in found))


def _is_public(value: str, public_contacts: Sequence[str]) -> bool:
    plain = _plain(value)
    return bool(plain) and any(plain in _plain(contact) for contact in public_contacts)


def _plain(text: str) -> str:
    return "".join(character.lower() for character in text if character.isalnum())


TEXT_ENDINGS = (".txt", ".md")


def read_documents(folder: Path) -> dict[str, str]:
    """The texts of a folder and its subfolders (``*.txt``, ``*.md``), by name without ending, in lower case."""
    if not folder.is_dir():
        raise GoldSetError(f"{folder} is no folder; give one that holds the documents as text, {TEXT_ENDINGS}")
    files = sorted(path for path in folder.rglob("*") if path.suffix.lower() in TEXT_ENDINGS)
    if not files:
        raise GoldSetError(f"{folder} holds no text ({', '.join(TEXT_ENDINGS)}); convert the documents first")
    return {path.stem.lower(): read_text(path) for path in files}


def quotes(cases: Sequence[NumberedCase], documents: Mapping[str, str]) -> Iterator[GoldFinding]:
    """Clauses that do not stand in their document, and one finding for all whose document is not at hand."""
    missing: list[NumberedCase] = []
    for one in cases:
        source = one.case.provenance
        if not source.document or not source.clause or len(source.clause.split()) < QUOTE_MIN_WORDS:
            continue
        text = documents.get(_stem(source.document))
        if text is None:
            missing.append(one)
        elif find_quote(source.clause, text) is None:
            yield GoldFinding(
                check=SuiteCheck.QUOTE,
                weight=Weight.MUST,
                places=(one.place,),
                what=f"its clause does not stand in {source.document}",
                do="quote the document word for word, or correct `provenance.document`",
            )
    if missing:
        names = sorted({one.case.provenance.document or "" for one in missing})
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""  # noqa: PLR2004 - as many as are named
        yield GoldFinding(
            check=SuiteCheck.QUOTE,
            weight=Weight.SHOULD,
            places=tuple(one.place for one in missing[:1]),
            what=f"{plural(len(missing), 'clause')} not looked up: no text of {', '.join(names[:3])}{more}",
            do="add these documents as text, named as `provenance.document` names them",
        )


def _stem(document: str) -> str:
    """``rag/corpus/acko/health.pdf`` and ``Health`` are both ``health``."""
    name = PurePosixPath(document).name
    ending = PurePosixPath(name).suffix
    known = ending.lower() in {*TEXT_ENDINGS, ".pdf", ".html", ".docx"}
    return (name[: -len(ending)] if known else name).lower()


NEAR = 0.8
"""Overlap from which two questions of one policy, language and gold are near-duplicates. A typo in a question of
sixty letters leaves 0.88. Overlap alone does not decide: two right questions of one policy ("pre-hospitalization",
"post-hospitalization") overlap by up to 0.86 in a real suite, so the words that differ count too."""

_SAME_WORD = 0.9
"""Likeness (`difflib`) from which two words that differ are two spellings of one: "waiting", "wating" 0.92,
"limit", "limits" 0.91; but "maternity", "paternity" 0.89."""

_SMALL = 3
"""Letters below which a word distinguishes two questions by accident only: "is", "of", "me"."""


def duplicates(cases: Sequence[NumberedCase]) -> Iterator[GoldFinding]:
    """Ids given twice, questions asked twice, questions that nearly are."""
    yield from _ids(cases)
    seen: dict[tuple[str, ...], NumberedCase] = {}
    groups: dict[tuple[str, ...], list[NumberedCase]] = {}
    for one in cases:
        if one.case.triage is not None:  # alike as addresses, and the same by other rules: see issue_checks
            continue
        asked = (*_about(one.case), *(folded(turn) for turn in one.case.turns))
        first = seen.setdefault(asked, one)
        if first is one:
            groups.setdefault(_about(one.case), []).append(one)
        elif _gold(first.case) == _gold(one.case):
            yield _same(first, one)
    for group in groups.values():
        yield from _near(group)


def _ids(cases: Sequence[NumberedCase]) -> Iterator[GoldFinding]:
    seen: dict[str, NumberedCase] = {}
    for one in cases:
        first = seen.setdefault(one.case.id, one)
        if first is not one:
            yield GoldFinding(
                check=SuiteCheck.DUPLICATE,
                weight=Weight.MUST,
                places=(first.place, one.place),
                what="the same id stands twice; the suite does not load",
                do="give the second an id of its own",
            )


def _about(case: GoldCase) -> tuple[str, str]:
    return case.cluster or "", case.language.value


def _gold(case: GoldCase) -> tuple[str | bool, ...]:
    return case.expected_refusal, "" if case.expected_refusal else folded(case.gold)


def _same(first: NumberedCase, second: NumberedCase) -> GoldFinding:
    return GoldFinding(
        check=SuiteCheck.DUPLICATE,
        weight=Weight.MUST,
        places=(first.place, second.place),
        what="the same question with the same gold; its failure would count twice",
        do="remove one of them",
    )


def _near(group: Sequence[NumberedCase]) -> Iterator[GoldFinding]:
    """Questions with other quantities ("after 12 months") or each with a word of its own are two, however alike."""
    for first, second, share in alike_pairs([grams(" ".join(one.case.turns)) for one in group], NEAR):
        one, other = group[first], group[second]
        alike = _quantities(one.case) == _quantities(other.case) and _gold(one.case) == _gold(other.case)
        if alike and not _each_has_its_own(one.case, other.case):
            yield GoldFinding(
                check=SuiteCheck.DUPLICATE,
                weight=Weight.SHOULD,
                places=(one.place, other.place),
                what=f"nearly the same question ({share:.0%} of its letters in a row) with the same gold",
                do="keep one, or make them ask two things",
            )


def _quantities(case: GoldCase) -> frozenset[tuple[str, str, str | None]]:
    return frozenset((fact.kind, fact.value, fact.unit) for fact in read_facts(" ".join(case.turns)))


def _each_has_its_own(first: GoldCase, second: GoldCase) -> bool:
    one, other = (frozenset(folded(" ".join(case.turns)).replace("-", " ").split()) for case in (first, second))
    return _own(one - other, other - one) and _own(other - one, one - other)


def _own(words: frozenset[str], others: frozenset[str]) -> bool:
    """Whether one of the words is no other spelling of any of the others, and more than a small word."""
    return any(
        len(word) >= _SMALL
        and not any(SequenceMatcher(None, word, other).ratio() >= _SAME_WORD for other in others)
        for word in words
    )


PAIRS_TOLD = 3
"""The most pairs reported of one group: ten cases with ten golds are forty-five pairs and one mistake."""


def contradictions(cases: Sequence[NumberedCase]) -> Iterator[GoldFinding]:
    """The same question first, then the same field."""
    asked: dict[tuple[str, ...], list[NumberedCase]] = {}
    fields: dict[tuple[str, str], list[NumberedCase]] = {}
    for one in cases:
        if one.case.triage is None:
            asked.setdefault(tuple(folded(turn) for turn in one.case.turns), []).append(one)
        if one.case.cluster and one.case.provenance.field:
            fields.setdefault((one.case.cluster, one.case.provenance.field), []).append(one)
    reported: set[frozenset[int]] = set()
    for group in asked.values():
        yield from _of_question(group, reported)
    for (cluster, field), group in fields.items():
        yield from _of_field(cluster, field, group, reported)


def _of_question(group: Sequence[NumberedCase], reported: set[frozenset[int]]) -> Iterator[GoldFinding]:
    found = [(one, other, _difference(one.case, other.case)) for one, other in combinations(group, 2)]
    for one, other, difference in [entry for entry in found if entry[2]][:PAIRS_TOLD]:
        reported.add(frozenset((one.line, other.line)))
        yield GoldFinding(
            check=SuiteCheck.CONTRADICTION,
            weight=Weight.MUST,
            places=(one.place, other.place),
            what=f"the same question with two golds: {difference}",
            do="name the policy in the question, or settle which gold is right by its clause",
        )


def _of_field(
    cluster: str, field: str, group: Sequence[NumberedCase], reported: set[frozenset[int]]
) -> Iterator[GoldFinding]:
    """Silence against a value, value against value; translations and other questions about one field agree."""
    pairs = (pair for pair in combinations(group, 2) if frozenset(one.line for one in pair) not in reported)
    found = [(one, other, _other_value(one.case, other.case)) for one, other in pairs]
    for one, other, difference in [entry for entry in found if entry[2]][:PAIRS_TOLD]:
        yield GoldFinding(
            check=SuiteCheck.CONTRADICTION,
            weight=Weight.MUST,
            places=(one.place, other.place),
            what=f"two values for {field} of {cluster}: {difference}",
            do="settle which is right by the clause, and mend the other",
        )


def _difference(one: GoldCase, other: GoldCase) -> str:
    """How two golds of one question differ; empty when they say the same, or nothing that can be compared."""
    if one.expected_refusal and other.expected_refusal:
        return ""
    if one.expected_refusal is not other.expected_refusal:
        return _refusal_against(one, other)
    if _agree(one, other) or folded(one.gold) == folded(other.gold):
        return ""
    return f"{one.gold!r} and {other.gold!r}"


def _other_value(one: GoldCase, other: GoldCase) -> str:
    if one.expected_refusal is not other.expected_refusal:
        return _refusal_against(one, other)
    kinds = [{quantity.kind for quantity in stated(case.gold)} for case in (one, other)]
    if one.expected_refusal or not kinds[0] & kinds[1] or _agree(one, other):
        return ""
    return f"{one.gold!r} and {other.gold!r}"


def _refusal_against(one: GoldCase, other: GoldCase) -> str:
    answered = other if one.expected_refusal else one
    return f"a refusal is expected, and {answered.gold!r}"


def _agree(one: GoldCase, other: GoldCase) -> bool:
    """Whether one gold holds all that the other says: a longer gold may say more."""
    stances = {stance_of(one.gold), stance_of(other.gold)}
    if stances == {Stance.YES, Stance.NO} and not (stated(one.gold) or stated(other.gold)):
        return False
    texts = ((one, other), (other, one))
    return any(is_still_right(text, case) for case, answer in texts for text in (answer.gold, *answer.alternatives))

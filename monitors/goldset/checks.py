"""Check a suite and report every problem with its line and the fix.

`load_suite` rejects a suite with a bad line. These checks continue after a bad line, and report all problems at
once.

The checks find:

- placeholders and broken characters
- lines that are not valid cases
- cases that are not in their declared language
- personal data, because the cases of a suite are sent to models and shown in alerts
- clauses that are not in their document
- cases that ask the same question, because their failures would count twice
- cases that contradict each other, such as two different golds for one question
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
from monitors.facts.disclosures.values import KnownValues
from monitors.facts.language import LanguageEvidence, classify_language_evidence, identify_language
from monitors.facts.quantities.scan import read_facts
from monitors.facts.similarity import (
    QUOTE_MIN_WORDS,
    build_character_ngrams,
    collect_quantities,
    find_alike_pairs,
    find_quote,
    fold_case_and_punctuation,
)
from monitors.goldset.lines import Unusable, parse_case_line, refine_guessed_languages
from monitors.goldset.load import BadLine, read_suite_text, read_text
from monitors.mutations.mutants import Stance, classify_yes_no_stance, is_still_right
from monitors.plural import plural
from monitors.records.base import Language, Record
from monitors.records.cases import GoldCase


class SuiteCheck(StrEnum):
    """The kind of problem that a check of a suite finds."""

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
    """The weight of a finding: whether a suite with this problem can be used."""

    MUST = "must"
    """The suite is wrong, leaks data or does not load until this is fixed."""
    SHOULD = "should"
    """The suite can be used, but a person should inspect the finding."""


class SuiteLocation(Record):
    """The number of a line in the suite's file, starting at 1, and the id of the case in this line.

    ``case_id`` is ``None`` if the id cannot be read.
    """

    line: Annotated[int, Field(ge=1)]
    case_id: str | None = None


class GoldFinding(Record):
    """A problem in one or more lines. ``what`` describes the problem, and ``do`` describes the fix.

    The two texts contain no personal data.
    """

    check: SuiteCheck
    weight: Weight
    places: tuple[SuiteLocation, ...] = ()
    what: str
    do: str


@dataclass(frozen=True)
class NumberedCase:
    """A case of a suite, and the number of its line in the suite's file. The first line is 1."""

    line: int
    case: GoldCase

    @property
    def place(self) -> SuiteLocation:
        """Return the line and the id of the case."""
        return SuiteLocation(line=self.line, case_id=self.case.id)


@dataclass(frozen=True)
class NumberedSuite:
    """The cases of a suite's file with their line numbers, and its bad lines.

    Several cases can have the same id.
    """

    cases: tuple[NumberedCase, ...]
    bad: tuple[tuple[BadLine, str | None], ...] = ()
    """The lines that are not valid cases, each with the id of its case if this id could be read."""


def read_suite_with_bad_lines(path: Path) -> NumberedSuite:
    """Read a suite's file, including its bad lines.

    Raises `GoldSetError` if the file is unreadable or has no cases.
    """
    suite = parse_numbered_lines(read_suite_text(path).split("\n"))
    if not suite.cases and not suite.bad:
        raise GoldSetError(f"{path} has no cases; write one JSON object on each line, or choose another suite")
    return suite


def parse_numbered_lines(lines: Iterable[str]) -> NumberedSuite:
    """Parse JSON lines into cases and bad lines. Blank lines are skipped."""
    cases: list[NumberedCase] = []
    good_lines: list[str] = []
    bad_lines: list[tuple[BadLine, str | None]] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        parsed_line = parse_case_line(line)
        if isinstance(parsed_line, Unusable):
            bad_lines.append(
                (BadLine(number, parsed_line.problems, is_issue=parsed_line.is_issue), parsed_line.case_id)
            )
        else:
            cases.append(NumberedCase(number, parsed_line))
            good_lines.append(line)
    resolved = refine_guessed_languages([numbered_case.case for numbered_case in cases], good_lines)
    numbered = (NumberedCase(numbered_case.line, case) for numbered_case, case in zip(cases, resolved, strict=True))
    return NumberedSuite(tuple(numbered), tuple(bad_lines))


_GIVE_SEVERITY = 'add "severity": 1, 2 or 3, which states how bad a wrong answer is'
_GIVE_SEVERITY_OF_ISSUE = (
    'add "severity": 1, 2 or 3, which states how bad a wrong triage report is. The urgency of the issue goes into '
    '"reference"'
)


def find_bad_lines(suite: NumberedSuite) -> Iterator[GoldFinding]:
    """Yield a finding for each line that is not a valid case."""
    for line, case_id in suite.bad:
        lacks_severity = all(problem.startswith('"severity"') for problem in line.problems)
        yield GoldFinding(
            check=SuiteCheck.SEVERITY if lacks_severity else SuiteCheck.UNREADABLE,
            weight=Weight.MUST,
            places=(SuiteLocation(line=line.number, case_id=case_id),),
            what="; also: ".join(line.problems),
            do=(_GIVE_SEVERITY_OF_ISSUE if line.is_issue else _GIVE_SEVERITY) if lacks_severity else "fix the line",
        )


_PLACEHOLDER = re.compile(
    r"\b(?:TBD|TBC|TODO|FIXME|XXX+|[Ll]orem ipsum)\b|#(?:REF!|N/A|VALUE!|NAME\?|DIV/0!|NUM!|NULL!)"
    r"|^=\$?[A-Z]{1,3}\$?\d+\b|^=[A-Z]+\(|^[\s?.…_-]+$|^(?:n/a|N/A|null|None|undefined)$|\{\{|<[A-Z_ ]{3,}>"
)
"""Matches placeholders in cells that nobody filled in, and error values of spreadsheets."""
_MOJIBAKE = re.compile(r"[\u00c3\u00c2][\u0080-\u00bf]|\u00e2\u20ac|\u00e0\u00a4|\ufffd|\u00ef\u00bf\u00bd")
"""Matches broken characters: UTF-8 that was decoded as Latin-1 or Windows-1252, and replacement characters."""


def find_placeholders_and_broken_text(cases: Sequence[NumberedCase]) -> Iterator[GoldFinding]:
    """Yield findings about placeholders and broken characters in questions and golds."""
    for numbered in cases:
        texts = (("question", turn) for turn in numbered.case.turns)
        golds = (("gold", text) for text in (numbered.case.gold, *numbered.case.alternatives))
        for label, text in (*texts, *golds):
            match = _PLACEHOLDER.search(text.strip()) or _MOJIBAKE.search(text)
            if match is not None and numbered.case.triage is None:
                is_broken = _MOJIBAKE.fullmatch(match[0]) is not None
                yield GoldFinding(
                    check=SuiteCheck.PLACEHOLDER,
                    weight=Weight.MUST,
                    places=(numbered.place,),
                    what=f"the {label} has {'broken characters' if is_broken else 'a placeholder'}: "
                    f"{match[0].strip()}",
                    do="export the suite again as UTF-8"
                    if is_broken
                    else "replace the placeholder, or remove the case",
                )
                break


LANGUAGE_MIN_WORDS = 4
"""A text needs at least this many words for a check of its language. "₹60,000 per eye" has too few."""
_WORD = re.compile(r"[^\W\d_]{2,}")


def find_wrong_languages(cases: Sequence[NumberedCase]) -> Iterator[GoldFinding]:
    """Yield findings for questions and golds that are not in the case's declared language."""
    for numbered in cases:
        case = numbered.case
        # the gold of an expected refusal tells people why the application must refuse, in any language
        parts = (("question", case.question), *(() if case.expected_refusal else (("gold", case.gold),)))
        for label, text in parts:
            language = _identify_clear_language(text)
            if language is not None and language is not numbered.case.language:
                yield GoldFinding(
                    check=SuiteCheck.LANGUAGE,
                    weight=Weight.SHOULD,
                    places=(numbered.place,),
                    what=f"the {label} is in {language}, but the case has language {numbered.case.language}",
                    do="correct `language`, or translate the text: Lookout expects replies in the case's language",
                )


def _identify_clear_language(text: str) -> Language | None:
    is_recognisable = (
        len(_WORD.findall(text)) >= LANGUAGE_MIN_WORDS
        and classify_language_evidence(text) is not LanguageEvidence.NONE
    )
    return identify_language(text) if is_recognisable else None


def find_personal_data(
    cases: Sequence[NumberedCase],
    *,
    account_patterns: Sequence[str] = (),
    public_contacts: Sequence[str] = (),
) -> Iterator[GoldFinding]:
    """Yield findings about likely personal data. A finding names the kind of data but does not repeat it.

    In a clause, and in a question that the application must refuse, the data may be public or invented. In these
    two places, the finding asks a person to check the data. ``public_contacts`` are allowed everywhere.
    """
    for numbered in cases:
        for label, text, weight in _list_texts_to_search(numbered.case):
            kinds = _list_disclosure_kinds(text, account_patterns, public_contacts)
            if kinds:
                yield GoldFinding(
                    check=SuiteCheck.DISCLOSURE,
                    weight=weight,
                    places=(numbered.place,),
                    what=f"the {label} contains {', '.join(kinds)}",
                    do="replace this data with invented data, or mask it with `lookout redact`"
                    if weight is Weight.MUST
                    else "make sure that this data is public or invented",
                )


def _list_texts_to_search(case: GoldCase) -> Iterator[tuple[str, str, Weight]]:
    question_weight = Weight.SHOULD if case.expected_refusal else Weight.MUST
    yield from (("question", turn, question_weight) for turn in case.turns)
    yield from (("gold", text, Weight.MUST) for text in (case.gold, *case.alternatives))
    if case.triage is not None:
        yield "issue", case.triage.issue.title_and_body, Weight.SHOULD
    if case.provenance.clause:
        yield "clause", case.provenance.clause, Weight.SHOULD


def _list_disclosure_kinds(text: str, account_patterns: Sequence[str], public_contacts: Sequence[str]) -> list[str]:
    public = KnownValues(public_contacts)
    disclosures = (
        disclosure
        for disclosure in find_disclosures(text, account_patterns=account_patterns)
        if disclosure.strength >= Strength.LIKELY
        and not public.contains(disclosure.kind, text[disclosure.start : disclosure.end])
    )
    return list(dict.fromkeys(LABELS[disclosure.kind] for disclosure in disclosures))


TEXT_ENDINGS = (".txt", ".md")


def read_documents(folder: Path) -> dict[str, str]:
    """Read all ``*.txt`` and ``*.md`` files of a folder.

    The result maps the name of each file, in lower case and without suffix, to the content.
    """
    if not folder.is_dir():
        endings = " or ".join(TEXT_ENDINGS)
        raise GoldSetError(f"{folder} is not a folder; give a folder with the documents as {endings} files")
    files = sorted(path for path in folder.rglob("*") if path.suffix.lower() in TEXT_ENDINGS)
    if not files:
        raise GoldSetError(f"{folder} has no text files ({', '.join(TEXT_ENDINGS)}); convert the documents first")
    return {path.stem.lower(): read_text(path) for path in files}


def find_clauses_not_in_documents(
    cases: Sequence[NumberedCase], documents: Mapping[str, str]
) -> Iterator[GoldFinding]:
    """Yield a finding for each clause that is not in its document, and one finding for all missing documents."""
    missing: list[NumberedCase] = []
    for numbered in cases:
        source = numbered.case.provenance
        if not source.document or not source.clause or len(source.clause.split()) < QUOTE_MIN_WORDS:
            continue
        text = documents.get(_make_document_key(source.document))
        if text is None:
            missing.append(numbered)
        elif find_quote(source.clause, text) is None:
            yield GoldFinding(
                check=SuiteCheck.QUOTE,
                weight=Weight.MUST,
                places=(numbered.place,),
                what=f"the clause is not in {source.document}",
                do="quote the document word for word, or correct `provenance.document`",
            )
    if missing:
        names = sorted({numbered.case.provenance.document or "" for numbered in missing})
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""  # noqa: PLR2004 - as many as are named
        yield GoldFinding(
            check=SuiteCheck.QUOTE,
            weight=Weight.SHOULD,
            places=tuple(numbered.place for numbered in missing[:1]),
            what=f"Lookout could not check {plural(len(missing), 'clause')}: there is no text of "
            f"{', '.join(names[:3])}{more}",
            do="add these documents as text files, with the file names from `provenance.document`",
        )


def _make_document_key(document: str) -> str:
    """Return a document's name without folder and suffix: ``rag/corpus/acko/health.pdf`` becomes ``health``."""
    name = PurePosixPath(document).name
    ending = PurePosixPath(name).suffix
    is_document = ending.lower() in {*TEXT_ENDINGS, ".pdf", ".html", ".docx"}
    return (name[: -len(ending)] if is_document else name).lower()


MIN_NEAR_OVERLAP = 0.8
"""Two questions are checked as possible duplicates if they have at least this share of n-grams in common.

A typo in a question of sixty letters leaves an overlap of 0.88. Two different questions ("pre-hospitalization" and
"post-hospitalization") can overlap by 0.86, so the different words are also compared.
"""

_MIN_WORD_LIKENESS = 0.9
"""Two words count as spellings of the same word if their similarity (`difflib`) is at least this value.

"waiting" and "wating" have 0.92, "limit" and "limits" 0.91. "maternity" and "paternity" have only 0.89.
"""

_MIN_DISTINCT_LETTERS = 3
"""A word counts as a difference between two questions only if it has at least this many letters.

Shorter words such as "is", "of" and "me" are ignored.
"""


def find_duplicates(cases: Sequence[NumberedCase]) -> Iterator[GoldFinding]:
    """Yield findings about repeated ids, repeated questions, and nearly equal questions."""
    yield from _find_repeated_ids(cases)
    first_by_question: dict[tuple[str, ...], NumberedCase] = {}
    groups: dict[tuple[str, ...], list[NumberedCase]] = {}
    for numbered in cases:
        if numbered.case.triage is not None:  # issue addresses look alike; `issue_checks` compares them
            continue
        question = (
            *_make_cluster_language_key(numbered.case),
            *(fold_case_and_punctuation(turn) for turn in numbered.case.turns),
        )
        first = first_by_question.setdefault(question, numbered)
        if first is numbered:
            groups.setdefault(_make_cluster_language_key(numbered.case), []).append(numbered)
        elif _make_gold_key(first.case) == _make_gold_key(numbered.case):
            yield _build_same_question_finding(first, numbered)
    for group in groups.values():
        yield from _find_nearly_equal_questions(group)


def _find_repeated_ids(cases: Sequence[NumberedCase]) -> Iterator[GoldFinding]:
    first_by_id: dict[str, NumberedCase] = {}
    for numbered in cases:
        first = first_by_id.setdefault(numbered.case.id, numbered)
        if first is not numbered:
            yield GoldFinding(
                check=SuiteCheck.DUPLICATE,
                weight=Weight.MUST,
                places=(first.place, numbered.place),
                what="two cases have this id, so the suite does not load",
                do="give the second case a different id",
            )


def _make_cluster_language_key(case: GoldCase) -> tuple[str, str]:
    return case.cluster or "", case.language.value


def _make_gold_key(case: GoldCase) -> tuple[str | bool, ...]:
    return case.expected_refusal, "" if case.expected_refusal else fold_case_and_punctuation(case.gold)


def _build_same_question_finding(first: NumberedCase, second: NumberedCase) -> GoldFinding:
    return GoldFinding(
        check=SuiteCheck.DUPLICATE,
        weight=Weight.MUST,
        places=(first.place, second.place),
        what="two cases have the same question and gold, so one failure would count twice",
        do="remove one of them",
    )


def _find_nearly_equal_questions(group: Sequence[NumberedCase]) -> Iterator[GoldFinding]:
    """Yield findings about cases with nearly equal questions and the same gold.

    Two questions are not nearly equal if they have different quantities, or if each has a word that the other does
    not have.
    """
    for first_index, second_index, share in find_alike_pairs(
        [build_character_ngrams(" ".join(numbered.case.turns)) for numbered in group], MIN_NEAR_OVERLAP
    ):
        first_case, second_case = group[first_index], group[second_index]
        same_quantities = _collect_question_quantities(first_case.case) == _collect_question_quantities(
            second_case.case
        )
        same_gold = _make_gold_key(first_case.case) == _make_gold_key(second_case.case)
        if same_quantities and same_gold and not _has_different_words(first_case.case, second_case.case):
            yield GoldFinding(
                check=SuiteCheck.DUPLICATE,
                weight=Weight.SHOULD,
                places=(first_case.place, second_case.place),
                what=(f"two cases have nearly the same question (an overlap of {share:.0%}) and the same gold"),
                do="keep one of them, or change one question",
            )


def _collect_question_quantities(case: GoldCase) -> frozenset[tuple[str, str, str | None]]:
    return frozenset((fact.kind, fact.value, fact.unit) for fact in read_facts(" ".join(case.turns)))


def _has_different_words(first: GoldCase, second: GoldCase) -> bool:
    """Return whether each question has a long word that is not in the other question, in any spelling."""
    first_words, second_words = (
        frozenset(fold_case_and_punctuation(" ".join(case.turns)).replace("-", " ").split())
        for case in (first, second)
    )
    return _has_distinct_word(first_words - second_words, second_words - first_words) and _has_distinct_word(
        second_words - first_words, first_words - second_words
    )


def _has_distinct_word(words: frozenset[str], others: frozenset[str]) -> bool:
    """Return whether one of the words is long enough and is not another spelling of a word in ``others``."""
    return any(
        len(word) >= _MIN_DISTINCT_LETTERS
        and not any(SequenceMatcher(None, word, other).ratio() >= _MIN_WORD_LIKENESS for other in others)
        for word in words
    )


MAX_PAIRS_REPORTED = 3
"""Maximum number of pairs of cases that are reported for one question or field. Ten cases have 45 pairs."""


def find_contradictions(cases: Sequence[NumberedCase]) -> Iterator[GoldFinding]:
    """Yield findings about cases whose golds contradict each other.

    The golds of two cases can contradict each other if the cases have the same question, or the same cluster and
    field.
    """
    by_question: dict[tuple[str, ...], list[NumberedCase]] = {}
    by_field: dict[tuple[str, str], list[NumberedCase]] = {}
    for numbered in cases:
        if numbered.case.triage is None:
            by_question.setdefault(
                tuple(fold_case_and_punctuation(turn) for turn in numbered.case.turns), []
            ).append(numbered)
        if numbered.case.cluster and numbered.case.provenance.field:
            by_field.setdefault((numbered.case.cluster, numbered.case.provenance.field), []).append(numbered)
    reported: set[frozenset[int]] = set()
    for group in by_question.values():
        yield from _find_contradicting_golds(group, reported)
    for (cluster, field), group in by_field.items():
        yield from _find_contradicting_field_values(cluster, field, group, reported)


def _find_contradicting_golds(
    group: Sequence[NumberedCase], reported: set[frozenset[int]]
) -> Iterator[GoldFinding]:
    differences = [
        (first, second, _describe_gold_difference(first.case, second.case))
        for first, second in combinations(group, 2)
    ]
    for first, second, difference in [compared for compared in differences if compared[2]][:MAX_PAIRS_REPORTED]:
        reported.add(frozenset((first.line, second.line)))
        yield GoldFinding(
            check=SuiteCheck.CONTRADICTION,
            weight=Weight.MUST,
            places=(first.place, second.place),
            what=f"the same question has two golds: {difference}",
            do="name the policy in the question, or correct the gold that its clause does not support",
        )


def _find_contradicting_field_values(
    cluster: str, field: str, group: Sequence[NumberedCase], reported: set[frozenset[int]]
) -> Iterator[GoldFinding]:
    """Yield findings about contradictions between the cases for one field of a cluster.

    The cases state different values, or one case states a value and another case expects a refusal.
    """
    pairs = (
        pair for pair in combinations(group, 2) if frozenset(numbered.line for numbered in pair) not in reported
    )
    differences = [(first, second, _describe_value_difference(first.case, second.case)) for first, second in pairs]
    for first, second, difference in [compared for compared in differences if compared[2]][:MAX_PAIRS_REPORTED]:
        yield GoldFinding(
            check=SuiteCheck.CONTRADICTION,
            weight=Weight.MUST,
            places=(first.place, second.place),
            what=f"two cases disagree about {field} of {cluster}: {difference}",
            do="use the clause to decide which case is right, and fix the other case",
        )


def _describe_gold_difference(first: GoldCase, second: GoldCase) -> str:
    """Return the difference between two golds of one question.

    The result is empty if the golds agree or cannot be compared.
    """
    if first.expected_refusal and second.expected_refusal:
        return ""
    if first.expected_refusal is not second.expected_refusal:
        return _describe_refusal_difference(first, second)
    if _is_gold_part_of_other(first, second) or fold_case_and_punctuation(first.gold) == fold_case_and_punctuation(
        second.gold
    ):
        return ""
    return f"{first.gold!r} and {second.gold!r}"


def _describe_value_difference(first: GoldCase, second: GoldCase) -> str:
    if first.expected_refusal is not second.expected_refusal:
        return _describe_refusal_difference(first, second)
    kinds = [{quantity.kind for quantity in collect_quantities(case.gold)} for case in (first, second)]
    if first.expected_refusal or not kinds[0] & kinds[1] or _is_gold_part_of_other(first, second):
        return ""
    return f"{first.gold!r} and {second.gold!r}"


def _describe_refusal_difference(first: GoldCase, second: GoldCase) -> str:
    answered = second if first.expected_refusal else first
    return f"one case expects a refusal, and the other case expects {answered.gold!r}"


def _is_gold_part_of_other(first: GoldCase, second: GoldCase) -> bool:
    """Return whether one of the two golds states everything that the other gold states."""
    stances = {classify_yes_no_stance(first.gold), classify_yes_no_stance(second.gold)}
    if stances == {Stance.YES, Stance.NO} and not (
        collect_quantities(first.gold) or collect_quantities(second.gold)
    ):
        return False
    texts = ((first, second), (second, first))
    return any(is_still_right(text, case) for case, answer in texts for text in (answer.gold, *answer.alternatives))

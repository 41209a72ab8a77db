"""Build the snapshot of a run: facts about its answers and page loads with their counts, but no grades."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final

from monitors.facts.citations import find_citations
from monitors.facts.language import LanguageEvidence, classify_language_evidence, identify_language
from monitors.facts.refusals.detect import classify_refusal
from monitors.records.exchanges import Exchange, PageInfo
from monitors.records.runs import CaseResult
from monitors.records.snapshots import AnswerMark, RunSnapshot

MAX_VALUE_CHARACTERS: Final = 120
MAX_FIGURES: Final = 16
MAX_SOURCES: Final = 8
"""Maximum number of stored sources of one answer. A longer list is not informative."""
_NUMBER: Final = re.compile(r"\d[\d.,]*")
_TOKEN: Final = re.compile(r"\w+")
_CLAUSE: Final = re.compile(
    r"\s*(?:[,;(|#§]|\s[-–:]\s|(?<!\w)(?:clauses?|sections?|pages?|pp?\.|para(?:graph)?s?|art(?:icle|\.)?)\s*\d).*$",
    re.IGNORECASE | re.DOTALL,
)
"""Matches the position in a document, such as "clause 4.2", after the document's name in a citation."""


def build_snapshot(
    setup: RunSnapshot,
    results: Iterable[CaseResult],
    *,
    citation_patterns: Sequence[str],
    redact: Callable[[str], str],
) -> RunSnapshot:
    """Return ``setup`` with the facts about the run's answers and pages.

    ``citation_patterns`` find the sources that a text names. ``redact`` masks personal data in texts of the
    application, because a snapshot is stored for longer than the answers.
    """
    redact = lru_cache(maxsize=1024)(redact)
    values = _ValueCounts(redact)
    marks: list[AnswerMark] = []
    under_way: list[int] = []
    for result in results:
        if result.result.evidence.page is not None:
            values.count_page(result.result.evidence.page)
        if isinstance(result.result, Exchange):
            mark = build_comparable_answer(result, result.result, citation_patterns, redact)
            values.count_exchange(result.result, mark.cited)
            under_way.append(result.result.concurrency)
            if result.result.repeat == 0:
                marks.append(mark)
    return setup.with_application_facts(
        versions=values.get_counts_by_name("versions"),
        models=values.get_counts("models"),
        fingerprints=values.get_counts("fingerprints"),
        pages=values.pages,
        titles=values.get_counts("titles"),
        frameworks=values.get_counts("frameworks"),
        bundles=values.get_counts("bundles"),
        shells=values.get_counts("shells"),
        documents=values.get_counts("documents"),
        document_versions=values.get_counts_by_name("document_versions"),
        answers=tuple(sorted(marks, key=lambda mark: mark.case_id)),
        concurrency=max(under_way, default=None),
    )


def build_comparable_answer(
    result: CaseResult, exchange: Exchange, citation_patterns: Sequence[str], redact: Callable[[str], str]
) -> AnswerMark:
    """Build the stored facts about an answer. Later runs compare their answers with these facts."""
    text = exchange.graded_text
    written = [citation.source for citation in find_citations(text, citation_patterns)]
    listed = [] if written else list(exchange.separately_sent_citations)
    document_names = dict.fromkeys(redact(parse_document_name(source)) for source in (*written, *listed))
    cited = tuple(document_names)[:MAX_SOURCES]
    normalised = unicodedata.normalize("NFKC", text)
    numbers = {number.strip(".,").replace(",", "") for number in _NUMBER.findall(normalised)}
    return AnswerMark(
        case_id=result.case.id,
        document=result.case.provenance.document or next(iter(cited), None),
        cited=cited,
        refused=classify_refusal(text).refused,
        language=None if classify_language_evidence(text) is LanguageEvidence.NONE else identify_language(text),
        text=_hash_text(" ".join(_TOKEN.findall(normalised.casefold()))),
        figures=tuple(sorted(_hash_text(number)[:6] for number in numbers))[:MAX_FIGURES],
        characters=len(text),
        total_ms=round(exchange.timings.total_ms),
    )


def parse_document_name(source: str) -> str:
    """Return the name of the document in a citation: ``Gold, clause 4.2`` becomes ``Gold``."""
    citation = " ".join(source.split())
    return (_CLAUSE.sub("", citation) or citation)[:MAX_VALUE_CHARACTERS]


def _hash_text(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class _ValueCounts:
    """For each field, counts how many answers or page loads have each value."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        self._redact = redact
        self._plain: dict[str, Counter[str]] = {}
        self._named: dict[str, dict[str, Counter[str]]] = {"versions": {}, "document_versions": {}}
        self.pages = 0

    def count_page(self, page: PageInfo) -> None:
        """Count the values of a page load."""
        self.pages += 1
        self._count_value("titles", self._redact(page.title))
        self._count_value("frameworks", page.framework)
        self._count_value("shells", page.shell)
        for bundle in page.bundles:
            self._count_value("bundles", bundle)
        self._count_values_by_name("versions", page.versions)

    def count_exchange(self, exchange: Exchange, cited: Sequence[str]) -> None:
        """Count the values of an answer."""
        payload = exchange.wire
        build = payload.build if payload else None
        self._count_value("models", (build.model if build else None) or exchange.app_path)
        self._count_value("fingerprints", build.fingerprint if build else None)
        self._count_values_by_name(
            "versions",
            {
                **(build.versions if build else {}),
                **({"app": exchange.app_version} if exchange.app_version else {}),
            },
        )
        for name, version in payload.document_versions.items() if payload else ():
            self._count_values_by_name("document_versions", {self._redact(parse_document_name(name)): version})
        for document in cited:
            self._count_value("documents", document)

    def get_counts(self, field: str) -> dict[str, int]:
        """Return the number of occurrences of each value of a field."""
        return dict(self._plain.get(field, {}))

    def get_counts_by_name(self, field: str) -> dict[str, dict[str, int]]:
        """Return two-level counts: for each name in a field, how often each value of this name occurred."""
        return {name: dict(values) for name, values in self._named[field].items()}

    def _count_value(self, field: str, value: str | None) -> None:
        if value:
            self._plain.setdefault(field, Counter())[value[:MAX_VALUE_CHARACTERS]] += 1

    def _count_values_by_name(self, field: str, values: Mapping[str, str]) -> None:
        for name, value in values.items():
            self._named[field].setdefault(name[:MAX_VALUE_CHARACTERS], Counter())[value[:MAX_VALUE_CHARACTERS]] += 1

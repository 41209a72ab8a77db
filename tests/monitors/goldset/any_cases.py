"""Hypothesis strategies for gold cases.

The cases have every key, Unicode characters of all planes, long texts, and issues with references.
"""

from __future__ import annotations

from datetime import UTC
from decimal import Decimal

from hypothesis import strategies as st

from monitors.records.base import Language, Severity
from monitors.records.cases import NEEDS_REVIEW, GoldCase, Pipeline, Provenance, ScriptedAnswer
from monitors.records.triage import Issue, IssueSeverity, TriageReference, TriageTask

_CHARACTERS = st.characters(exclude_categories=["Cs"])
_LONG = st.builds(
    lambda text, times: (text or "x") * times, st.text(_CHARACTERS, max_size=20), st.integers(1, 2_000)
)
TEXTS = st.one_of(st.text(_CHARACTERS, min_size=1, max_size=60), _LONG)
NAMES = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_@:+-]{0,20}(\.[a-z]{1,5})?", fullmatch=True)
_SOME = st.lists(TEXTS, max_size=3).map(tuple)


def _provenance(pipeline: Pipeline) -> st.SearchStrategy[Provenance]:
    person = st.text(_CHARACTERS, min_size=1, max_size=30).filter(lambda name: bool(name.strip()))
    return st.builds(
        Provenance,
        pipeline=st.just(pipeline),
        document=st.none() | TEXTS,
        field=st.none() | TEXTS,
        clause=st.none() | TEXTS,
        reviewed_by=person if pipeline in NEEDS_REVIEW else st.none() | person,
        reviewed_at=st.none() | st.datetimes(timezones=st.just(UTC)),
    )


_TASKS = st.builds(
    TriageTask,
    issue=st.builds(Issue, url=st.none() | TEXTS, title=TEXTS, body=st.just("") | TEXTS, repository_files=_SOME),
    reference=st.builds(
        TriageReference,
        severity=st.none() | st.sampled_from(IssueSeverity),
        root_cause=st.none() | TEXTS,
        relevant_files=_SOME,
        relevant_functions=_SOME,
        expected_keywords=_SOME,
        shortest_path=st.none() | st.integers(1, 10**6),
        max_steps=st.none() | st.integers(1, 10**6),
    ),
)


def any_case() -> st.SearchStrategy[GoldCase]:
    """Return a strategy for one valid gold case."""
    return st.builds(
        GoldCase,
        id=NAMES,
        turns=st.lists(TEXTS, min_size=1, max_size=4).map(tuple),
        gold=TEXTS,
        alternatives=_SOME,
        expected_refusal=st.booleans(),
        expected_citation=st.none() | TEXTS,
        severity=st.sampled_from(Severity),
        language=st.sampled_from(Language),
        type=NAMES,
        provenance=st.sampled_from(Pipeline).flatmap(_provenance),
        cluster=st.none() | NAMES,
        pair=st.none() | NAMES,
        month_is_30_days=st.booleans(),
        relative_tolerance=st.decimals(0, Decimal("0.9999"), places=4),
        when_asked=st.lists(st.builds(ScriptedAnswer, asks=st.none() | TEXTS, answer=TEXTS), max_size=3).map(tuple),
        triage=st.none() | _TASKS,
    )


def any_suite() -> st.SearchStrategy[list[GoldCase]]:
    """Return a strategy for cases with different ids."""
    return st.lists(any_case(), min_size=1, max_size=5, unique_by=lambda case: case.id)

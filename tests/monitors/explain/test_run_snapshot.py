"""Tests of the snapshot of a run.

It contains counts from the exchanges, and fingerprints in place of the answers.
"""

from __future__ import annotations

import pytest

from monitors.alerts.redact import redact
from monitors.explain.run_snapshot import build_snapshot, parse_document_name
from monitors.facts.citations import DEFAULT_PATTERNS
from monitors.records.exchanges import BuildInfo, Evidence, PageInfo, WirePayload
from monitors.records.runs import CaseResult
from monitors.records.snapshots import RunSnapshot
from tests.builders import assessment, exchange, gold_case, no_answer

KNOWN = RunSnapshot(suite_sha256="3f" * 32, cases=2)
PAGE = PageInfo(title="Chat", bundles=("app.js",), shell="ab", versions={"server": "uvicorn"})


def result(number: int, text: str, **changes: object) -> CaseResult:
    case = gold_case(f"case-{number}")
    return CaseResult(case=case, result=exchange(case, text, **changes), assessment=assessment(case))


def snapshot(*results: CaseResult) -> RunSnapshot:
    return build_snapshot(KNOWN, results, citation_patterns=DEFAULT_PATTERNS, redact=redact)


def test_values_are_counted_over_the_answers_and_unknown_ones_are_absent():
    """The snapshot counts how often answers state each value. Unknown values are not counted.

    If only one of two answers states its model, this model has the count one.
    """
    wire = WirePayload(
        url="/chat", text="24 months", build=BuildInfo(model="small"), document_versions={"Gold": "v1"}
    )
    found = snapshot(result(1, "24 months", wire=wire), result(2, "No. [Source: Gold, clause 4.2]"))
    assert (found.models, found.fingerprints, found.document_versions) == ({"small": 1}, {}, {"Gold": {"v1": 1}})
    assert (found.documents, found.pages, found.titles) == ({"Gold": 1}, 0, {})


def test_a_page_is_seen_also_where_no_answer_came():
    """A page is recorded even if no answer came.

    For example, the page may have changed so that its answers cannot be read.
    """
    case = gold_case("case-1")
    silent = no_answer(case, evidence=Evidence(page=PAGE))
    found = snapshot(CaseResult(case=case, result=silent, assessment=assessment(case)))
    assert (found.pages, found.titles, found.bundles) == (1, {"Chat": 1}, {"app.js": 1})
    assert found.versions == {"server": {"uvicorn": 1}}
    assert (found.answers, found.concurrency) == ((), None)


def test_a_mark_holds_no_word_of_the_answer():
    """The fingerprint of an answer contains no word of it.

    Texts that were shown to a customer are stored only with the answers, and are deleted with them.
    """
    found = snapshot(result(1, "Asha Namoona pays 4711 rupees")).model_dump_json()
    assert "Asha" not in found
    assert "4711" not in found


def test_personal_data_that_an_application_names_as_a_source_is_masked():
    """Personal data that an application names as a source is redacted in the snapshot.

    This is necessary because a snapshot is stored longer than the answers.
    """
    found = snapshot(result(1, "24 months [Source: mail of asha@namoona.example, page 2]")).model_dump_json()
    assert "asha@" not in found


def test_marks_tell_words_figures_refusals_and_repeats_apart():
    """Fingerprints distinguish words, figures and refusals.

    Other words with the same figures change only the fingerprint of the text. Only one of several answers to a case
    is recorded.
    """
    one, other = snapshot(result(1, "It is 24 months.")), snapshot(result(1, "You wait 24 months, sorry!"))
    assert one.answers[0].figures == other.answers[0].figures
    assert one.answers[0].text != other.answers[0].text
    refused = snapshot(result(1, "I cannot help with that."), result(1, "24 months", repeat=1))
    assert [mark.refused for mark in refused.answers] == [True]


@pytest.mark.parametrize(
    ("source", "document"),
    [
        ("Gold, clause 4.2", "Gold"),
        ("Suraksha Gold clause 4.2", "Suraksha Gold"),
        ("rules.pdf (page 3)", "rules.pdf"),
        ("Health Policy 2026 - Section 4", "Health Policy 2026"),
        ("Super Top-Up", "Super Top-Up"),
        ("§ 4", "§ 4"),
        ("Customs (https://a.example/c)", "Customs"),
    ],
)
def test_a_citation_names_its_document_without_the_place_in_it(source, document):
    """A citation is reduced to the name of its document, without the clause, section, page or address."""
    assert parse_document_name(source) == document


def test_a_snapshot_survives_json():
    """A snapshot that is stored in the warehouse as JSON is read back unchanged."""
    found = snapshot(result(1, "24 months [Source: Gold, clause 1]"))
    assert RunSnapshot.model_validate_json(found.model_dump_json()) == found

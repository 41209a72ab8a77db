"""Tests of the attributes that are compared in a run. Only graded cases are compared, each case once."""

from __future__ import annotations

from datetime import UTC, datetime

from monitors.alerts.redact import redact
from monitors.explain.run_attributes import collect_attributes, find_causes_of_failed_cases
from monitors.records.base import Severity
from monitors.records.exchanges import WirePayload
from monitors.records.runs import CaseResult
from tests.builders import gold_case
from tests.monitors.gate.runs import WRONG, asked

KINDS = ("claim", "limit", "network", "bonus")


def results(count: int = 40) -> list[CaseResult]:
    """Return the results of ``count`` cases. Every fourth case is about claims and fails."""
    return [
        asked(
            gold_case(id=f"case-{at}", type=KINDS[at % 4], severity=Severity.MAJOR),
            *((WRONG,) if at % 4 == 0 else ()),
        )
        for at in range(count)
    ]


def test_run_attributes_of_a_case_are_compared():
    found = collect_attributes(results()[0])
    assert (found["type"], found["severity"], found["turns"], found["expected"]) == ("claim", 2, 1, "an answer")
    assert found["hour (UTC)"] == datetime.fromtimestamp(results()[0].result.asked_at.timestamp(), UTC).hour
    assert None not in found.values()


def test_a_type_that_fails_is_named_and_the_counts_are_of_cases():
    found = find_causes_of_failed_cases([*results(), *results()], redact)
    (cause,) = found.causes
    assert cause.conditions == {"type": "claim"}
    assert (found.cases, found.failed, cause.cases, cause.failed, cause.elsewhere_failed) == (40, 10, 10, 10, 0)


def test_shared_properties_of_failed_cases_are_redacted_before_storage():
    """The common attributes of failed cases are redacted before they are stored, and their counts stay unchanged.

    For example, the name of a source that the application lists may contain a person's name.
    """
    cited = "customers/asha.namoona@example.com"
    shared = [
        one.model_copy(update={"result": one.result.model_copy(update={"wire": _listing(cited)})})
        if one.case.type == "claim"
        else one
        for one in results()
    ]
    found = find_causes_of_failed_cases(
        [case.model_copy(update={"case": gold_case(id=case.case.id)}) for case in shared], redact
    )
    (cause,) = found.causes
    assert "asha" not in str(cause.conditions["cited source"])
    assert (cause.cases, cause.failed) == (10, 10)


def _listing(source: str) -> WirePayload:
    return WirePayload(url="http://app", text="", citations=(source,))


def test_a_run_without_failures_has_nothing_in_common():
    assert find_causes_of_failed_cases([one for one in results() if one.case.type != "claim"], redact).causes == ()

from __future__ import annotations

import pytest

from monitors.alerts.observe import ObservationContext, build_monitor_fault_observation
from monitors.alerts.resolve import CLEARED_WORDS, build_recovery, build_resolution_scope
from monitors.alerts.wording import KIND_WORDS, format_fault
from monitors.gate.assess import assess_case
from monitors.records.base import Severity
from monitors.records.grades import Aspect, FailureKind
from monitors.records.incidents import Capability, IncidentKind, IncidentState
from monitors.records.runs import CaseResult
from tests.builders import NOON, case_result, gold_case, no_answer
from tests.monitors.alerts.sample_observations import NIGHT, items, observation, outage

WRONG = (Aspect.FACTUAL_MATCH, FailureKind.WRONG_FACT)


def silent(case_id: str) -> CaseResult:
    case = gold_case(case_id, severity=Severity.CRITICAL)
    came = no_answer(case)
    return CaseResult(case=case, result=came, assessment=assess_case(case, came, ()))


def of(*results: CaseResult, **changes: object):
    values = {"target": "demo", "run_id": "run-2", "began_at": NOON, "ended_at": NOON}
    return build_resolution_scope(results, **(values | changes))


def test_only_cases_graded_every_time_count_as_graded():
    seen = of(case_result(gold_case("right")), case_result(gold_case("wrong"), WRONG), silent("none"))
    assert (seen.graded, seen.passed) == ({"right", "wrong"}, {"right"})


def test_a_case_that_once_gave_no_answer_is_not_graded():
    assert of(case_result(gold_case("flaky")), silent("flaky")).graded == frozenset()


def test_one_answer_clears_the_outage():
    (down,) = (item.incident for item in items(outage(), now=NIGHT))
    assert of(case_result(gold_case())).can_resolve(down)
    assert not of(silent("none")).can_resolve(down)


def test_a_verdict_is_cleared_only_by_who_knows_it():
    (failed,) = (item.incident for item in items(outage(IncidentKind.GATE_FAIL)))
    assert not of(case_result(gold_case())).can_resolve(failed)
    assert of(case_result(gold_case()), cleared=[IncidentKind.GATE_FAIL]).can_resolve(failed)


def test_a_fault_of_the_monitor_is_ended_only_by_the_part_that_opened_it():
    at = ObservationContext(target="demo", run_id="night-1", seen_at=NIGHT, owner=Capability.NIGHTLY)
    (crash,) = (
        item.incident
        for item in items(build_monitor_fault_observation(at, fault_name="SourceUnavailable", detail="gone"))
    )
    found = of(case_result(gold_case()), cleared=[IncidentKind.MONITOR_FAULT])
    assert not found.can_resolve(crash)
    assert found.model_copy(update={"owner": Capability.NIGHTLY}).can_resolve(crash)


@pytest.mark.parametrize(
    "title", ["Lookout itself has a fault", "Lookout itself is in trouble"], ids=["now", "before"]
)
def test_a_fault_that_an_earlier_version_opened_ends_like_one_of_this_version(title: str):
    at = ObservationContext(target="demo", run_id="run-1", seen_at=NIGHT)
    (item,) = items(build_monitor_fault_observation(at, fault_name="DiskFull", detail="no space left"))
    incident = item.incident.model_copy(update={"title": title})
    scope = of(case_result(gold_case()), cleared=[IncidentKind.MONITOR_FAULT])
    recovery = build_recovery(incident, scope)
    assert scope.can_resolve(incident)
    assert recovery.incident.state is IncidentState.RESOLVED
    assert recovery.observation.reason == CLEARED_WORDS[IncidentKind.MONITOR_FAULT]
    assert format_fault(incident) == KIND_WORDS[IncidentKind.MONITOR_FAULT]


def test_a_title_of_its_own_stays():
    at = ObservationContext(target="demo", run_id="run-1", seen_at=NIGHT)
    (item,) = items(
        build_monitor_fault_observation(at, fault_name="LoginWall", detail="a login page", title="Cannot sign in")
    )
    scope = of(case_result(gold_case()), cleared=[IncidentKind.MONITOR_FAULT])
    assert build_recovery(item.incident, scope).observation.reason == CLEARED_WORDS[IncidentKind.MONITOR_FAULT]
    assert format_fault(item.incident) == "Cannot sign in"


def test_another_targets_run_resolves_nothing():
    (leak,) = (item.incident for item in items(observation()))
    assert of(case_result(gold_case("leak-1"))).can_resolve(leak)
    assert not of(case_result(gold_case("leak-1")), target="another").can_resolve(leak)

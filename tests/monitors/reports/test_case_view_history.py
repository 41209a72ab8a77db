from datetime import timedelta

from monitors.records.incidents import IncidentState
from monitors.reports.case_view import format_failing_since, map_open_incidents_by_case
from tests.monitors.reports.example_run import COMMIT, example_run

NEW, OLD = example_run(correct=0).incidents


def test_an_incident_of_this_deploy_is_new():
    assert format_failing_since(NEW, COMMIT) == f"new with this deploy, {COMMIT}"


def test_an_older_one_says_since_which_deploy_and_how_often(snapshot):
    text = format_failing_since(OLD, COMMIT)
    assert all(part in text for part in ("77aa012", "2026-11-19 01:11:05 UTC", "9 runs"))
    assert text == snapshot


def test_unknown_values_are_not_printed(snapshot):
    assert format_failing_since(None, COMMIT) == ""
    nowhere = OLD.model_copy(update={"first_commit": None, "occurrences": 1})
    assert format_failing_since(nowhere, None) == snapshot


def test_of_several_incidents_the_longest_open_one_counts_and_resolved_ones_do_not():
    older = NEW.model_copy(update={"opened_at": NEW.opened_at - timedelta(days=2), "first_commit": "aaa"})
    oldest = older.model_copy(
        update={"opened_at": NEW.opened_at - timedelta(days=9), "state": IncidentState.RESOLVED}
    )
    assert map_open_incidents_by_case([NEW, older, oldest]) == {NEW.case_id: older}
    assert map_open_incidents_by_case([oldest, NEW, older]) == {NEW.case_id: older}


def test_incidents_without_a_case_are_left_out():
    assert map_open_incidents_by_case([NEW.model_copy(update={"case_id": None})]) == {}

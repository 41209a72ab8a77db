from __future__ import annotations

import pytest

from monitors.records.base import Severity
from monitors.records.incidents import DeliveryStatus, IncidentState
from tests.warehouse.decisions import OutboxDecision, decide
from tests.warehouse.sample_rows import alert, incident, list_unsent_alerts, receipt
from tests.warehouse.temporary_stores import SteppingClock, count, store_in
from warehouse.queries.outbox import claim_alerts, record_receipt


def open_once(incidents):
    """Return a decision that opens the incident of a leak and sends a message.

    If the incident is open already, the decision is empty.
    """
    leak = incident()
    if leak.fingerprint in incidents:
        return OutboxDecision()
    return OutboxDecision(incidents=(leak,), alerts=(alert(about=leak),))


def test_a_decision_is_made_once(tmp_path):
    store = store_in(tmp_path)
    first = decide(store, store.journal, "helpdesk", open_once, wait_s=1)
    second = decide(store, store.journal, "helpdesk", open_once, wait_s=1)
    assert len(first.alerts) == 1
    assert second == OutboxDecision()
    assert store.list_open_incidents("helpdesk") == (incident(),)
    assert list_unsent_alerts(store) == (alert(),)


def test_the_latest_state_of_an_incident_counts_and_the_history_stays(tmp_path):
    store = store_in(tmp_path)
    for state, times in ((IncidentState.OPEN, 1), (IncidentState.ACKNOWLEDGED, 2), (IncidentState.RESOLVED, 2)):
        changed = incident(state=state, occurrences=times)
        decide(
            store, store.journal, "helpdesk", lambda _, each=changed: OutboxDecision(incidents=(each,)), wait_s=1
        )
    assert store.list_open_incidents("helpdesk") == ()
    assert list(store.load_incidents("helpdesk").values()) == [
        incident(state=IncidentState.RESOLVED, occurrences=2)
    ]
    states = store.query("select state from incident_history order by sequence").rows
    assert states == (("open",), ("acknowledged",), ("resolved",))


def test_a_decision_sees_its_own_target_only(tmp_path):
    store = store_in(tmp_path)
    decide(store, store.journal, "helpdesk", open_once, wait_s=1)
    seen = []
    decide(
        store, store.journal, "other", lambda incidents: seen.append(dict(incidents)) or OutboxDecision(), wait_s=1
    )
    assert seen == [{}]


def test_a_decision_that_fails_decides_nothing(tmp_path):
    store = store_in(tmp_path)

    def broken(_):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        decide(store, store.journal, "helpdesk", broken, wait_s=1)
    assert store.load_incidents("helpdesk") == {}
    assert store.journal.segments.list_segments() == []


def unsent(store):
    store.load_pending(1)
    return list_unsent_alerts(store)


def test_decisions_from_before_a_kill_are_known_to_the_next_process(tmp_path):
    """If a process is killed after it wrote a decision to the journal, the next process knows the decision."""
    decider = store_in(tmp_path)
    decide(decider, decider.journal, "helpdesk", open_once, wait_s=1)
    decider.database.file.unlink()
    survivor = store_in(tmp_path, seed=2)
    assert decide(survivor, survivor.journal, "helpdesk", open_once, wait_s=1) == OutboxDecision()
    assert unsent(survivor) == (alert(),)


@pytest.mark.parametrize(
    ("status", "left"),
    [
        (DeliveryStatus.SENT, 0),
        (DeliveryStatus.PRINTED, 0),
        (DeliveryStatus.REJECTED, 0),
        (DeliveryStatus.FAILED, 1),
    ],
)
def test_only_a_final_receipt_ends_a_message(tmp_path, status, left):
    store = store_in(tmp_path)
    decide(store, store.journal, "helpdesk", open_once, wait_s=1)
    record_receipt(store, store.journal, receipt(status=status), wait_s=1)
    assert len(unsent(store)) == left


def claim(store, owner, *, limit=10):
    found = claim_alerts(store, owner=owner, lease_s=60, limit=limit, wait_s=1)
    return [each.id for each in found.alerts]


def test_a_message_is_one_worker_s_to_send_until_its_lease_ends(tmp_path):
    clock = SteppingClock()
    store = store_in(tmp_path, clock=clock)
    decide(store, store.journal, "helpdesk", open_once, wait_s=1)
    assert claim(store, "ann") == ["alert-1"]
    assert claim(store, "bob") == []
    clock.skip(seconds=61)
    assert claim(store, "bob") == ["alert-1"]
    assert count(store, "leases") == 1


def test_a_message_claimed_before_says_so(tmp_path):
    """If the lease of a claimed message has ended, the next claim marks the message as tried.

    The next sender then checks first whether the message was delivered without a receipt.
    """
    clock = SteppingClock()
    store = store_in(tmp_path, clock=clock)
    decide(store, store.journal, "helpdesk", open_once, wait_s=1)
    first = claim_alerts(store, owner="ann", lease_s=60, limit=1, wait_s=1)
    clock.skip(seconds=61)
    second = claim_alerts(store, owner="bob", lease_s=60, limit=1, wait_s=1)
    assert (first.tried, second.tried) == (frozenset(), {"alert-1"})


def test_a_failed_try_frees_the_message_at_once_and_a_sent_one_never_again(tmp_path):
    clock = SteppingClock()
    store = store_in(tmp_path, clock=clock)
    decide(store, store.journal, "helpdesk", open_once, wait_s=1)
    claim(store, "ann")
    record_receipt(store, store.journal, receipt(status=DeliveryStatus.FAILED, seconds=600), wait_s=1)
    assert claim(store, "bob") == ["alert-1"]
    record_receipt(store, store.journal, receipt(status=DeliveryStatus.SENT, seconds=601), wait_s=1)
    clock.skip(days=1)
    assert claim(store, "ann") == []


def test_messages_are_claimed_worst_first_and_no_more_than_asked_for(tmp_path):
    store = store_in(tmp_path)
    mild = incident("mild").model_copy(update={"severity": Severity.MINOR})
    both = OutboxDecision(alerts=(alert("mild", about=mild), alert("bad")))
    decide(store, store.journal, "helpdesk", lambda _: both, wait_s=1)
    assert claim(store, "ann", limit=1) == ["bad"]
    assert claim(store, "ann", limit=1) == ["mild"]

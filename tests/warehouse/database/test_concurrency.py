from __future__ import annotations

from collections import Counter

import pytest

from tests.warehouse.contention import run_together
from tests.warehouse.crash_worker import Plan, open_store, survivors
from tests.warehouse.sample_rows import list_unsent_alerts
from warehouse.database.check import check_database


@pytest.mark.whole_only
def test_processes_append_while_others_load_read_and_hold_the_file(tmp_path):
    """While processes append, load, read and lock the file, no process fails. At the end, every row exists once."""
    open_store(Plan(tmp_path, 1)).load_pending(10)
    saw = run_together(tmp_path, [("write", 40)] * 5 + [("load", 10), ("read", 0), ("hold", 0)])
    assert sum(int(str(each["appended"])) for role, each in saw if role == "write") == 200
    appended = {f"case p{process}-{number}" for process in range(5) for number in range(40)}
    assert survivors(Plan(tmp_path, 2), appended) == []


@pytest.mark.whole_only
def test_decisions_of_many_processes_are_each_made_once(tmp_path):
    run_together(tmp_path, [("decide", 8)] * 3)
    store = open_store(Plan(tmp_path, 1))
    counted = [row[0] for row in store.query("select occurrences from incident_history order by sequence").rows]
    assert counted == list(range(1, 25))
    assert len(list_unsent_alerts(store)) == 24
    assert check_database(store, wait_s=10).is_sound


@pytest.mark.whole_only
def test_no_message_is_sent_by_two_workers(tmp_path):
    run_together(tmp_path, [("decide", 10)])
    saw = run_together(tmp_path, [("send", 0)] * 3)
    sent = Counter(name for _, each in saw for name in each["sent"])
    assert sent == Counter({f"leak-{number}": 1 for number in range(1, 11)})
    assert list_unsent_alerts(open_store(Plan(tmp_path, 1))) == ()

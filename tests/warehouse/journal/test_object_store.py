"""Test the journal in an object store against a local S3 server."""

from __future__ import annotations

from datetime import timedelta

import boto3
import pytest
from moto.server import ThreadedMotoServer

from monitors.errors import WarehouseUnwritable
from tests.warehouse.decisions import OutboxDecision, decide
from tests.warehouse.sample_rows import (
    NOON,
    alert,
    assessment,
    exchange,
    incident,
    list_unsent_alerts,
    run_report,
    suite,
)
from tests.warehouse.temporary_stores import REAL_PATIENCE, SteppingClock, count, seeded_entropy
from warehouse.database.check import check_database
from warehouse.database.rebuild import rebuild_database
from warehouse.database.retention import compact_segments
from warehouse.database.store import Store
from warehouse.journal.journal import Journal
from warehouse.journal.object_store import ObjectSegments
from warehouse.journal.rows import AssessmentRow, ResultRow, RunRow


@pytest.fixture(scope="module")
def endpoint():
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    _, port = server.get_host_and_port()
    yield f"http://127.0.0.1:{port}"
    server.stop()


@pytest.fixture
def segments(endpoint, request):
    bucket = f"b{abs(hash(request.node.name))}"
    keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test", "region_name": "us-east-1"}
    boto3.client("s3", endpoint_url=endpoint, **keys).create_bucket(Bucket=bucket)
    options = {
        "key": "test",
        "secret": "test",
        "client_kwargs": {"endpoint_url": endpoint, "region_name": "us-east-1"},
    }
    return ObjectSegments(f"s3://{bucket}/lookout/journal", options)


def store_on(segments, folder, *, seed=1) -> Store:
    clock = SteppingClock()
    entropy = seeded_entropy(seed)
    journal = Journal(segments, clock=clock, entropy=entropy)
    return Store(folder, clock=clock, entropy=entropy, patience=REAL_PATIENCE, journal=journal)


def append_run(store: Store) -> None:
    for case in ("a", "b"):
        rows = [ResultRow(row=exchange(case_id=case)), AssessmentRow(row=assessment(case_id=case))]
        store.journal.append(rows, run_id="run-1")
    store.journal.append([RunRow(row=run_report())], run_id="run-1")


def test_runs_on_one_machine_are_loaded_on_another(segments, tmp_path):
    writer = store_on(segments, tmp_path / "writer")
    writer.journal.append_suite(suite())
    append_run(writer)
    assert len(list(writer.journal.read_run("run-1"))) == 5
    loader = store_on(segments, tmp_path / "loader", seed=2)
    assert loader.load_pending(5).segments == 4
    assert (count(loader, "results"), count(loader, "grades"), count(loader, "cases")) == (2, 6, 3)
    assert check_database(loader, wait_s=5).is_sound
    append_run(writer)
    assert loader.load_pending(5).segments == 3, "listings are never taken from a cache"


@pytest.mark.whole_only
def test_compaction_and_rebuild_work_in_a_bucket(segments, tmp_path):
    store = store_on(segments, tmp_path)
    append_run(store)
    decided = OutboxDecision(incidents=(incident(),), alerts=(alert(),))
    decide(store, store.journal, "helpdesk", lambda _: decided, wait_s=5)
    assert compact_segments(store, before=NOON + timedelta(days=1), wait_s=5).segments == 4
    assert segments.list_segments() == []
    rebuild_database(store, wait_s=5)
    assert count(store, "grades") == 6
    assert list_unsent_alerts(store) == (alert(),)
    assert check_database(store, wait_s=5).is_sound


def test_a_damaged_object_is_set_aside(segments, tmp_path):
    store = store_on(segments, tmp_path)
    append_run(store)
    name = segments.list_segments()[0]
    segments.write(name, segments.read(name)[:-9])
    report = store.load_pending(5)
    assert (report.segments, len(report.damaged)) == (2, 1)
    assert segments.list_set_aside() == [report.damaged[0].stored_at]
    assert name not in segments.list_segments()


def test_a_bucket_that_is_not_there_is_named_without_secrets(endpoint):
    options = {"key": "AKIASECRET", "secret": "hush", "client_kwargs": {"endpoint_url": endpoint}}
    journal = Journal(
        ObjectSegments("s3://user:hush@nowhere/journal", options), clock=SteppingClock(), entropy=seeded_entropy(1)
    )
    with pytest.raises(WarehouseUnwritable, match=r"s3://nowhere/journal/.*check the bucket") as caught:
        journal.append([ResultRow(row=exchange())], run_id="run-1")
    assert "hush" not in str(caught.value)
    assert "AKIASECRET" not in str(caught.value)


def test_an_unknown_protocol_is_said():
    with pytest.raises(WarehouseUnwritable, match="nosuch://x"):
        ObjectSegments("nosuch://x/y")

"""Test a damaged journal: each reader reports the data that it cannot load, and never reports that all is well."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from flows.alerting.notifier import apply_waiting_actions
from flows.alerting.pipeline import notify, notify_of_load_errors
from flows.alerting.send import send_outbox
from monitors.records.incidents import Capability, DeliveryStatus, IncidentKind, Receipt
from tests import fork_server
from tests.flows.alerting_testbed import AlertingTestbed
from tests.flows.followed_logs import Followed, entry
from tests.in_process import run_in_process
from tests.monitors.alerts.sample_observations import observation
from tests.servers.slack import SlackServer
from warehouse.database.check import check_database
from warehouse.database.retention import compact_segments
from warehouse.journal.journal import OUTBOX
from warehouse.journal.rows import ReceiptRow


@pytest.fixture
def slack():
    with SlackServer() as server:
        yield server


@pytest.fixture(name="testbed")
def build_testbed(tmp_path, slack):
    (tmp_path / "data").mkdir()
    return AlertingTestbed(tmp_path / "data", slack, slack_monitor_channel="C0MONITOR")


def get_data_folder(testbed: AlertingTestbed) -> Path:
    return testbed.store.database.file.parent


def lookout(testbed: AlertingTestbed, *arguments: str):
    folder = get_data_folder(testbed)
    return run_in_process(*arguments, "--data-folder", str(folder), cwd=folder, env=fork_server.bare())


def tear_outbox_segment(testbed: AlertingTestbed) -> None:
    """Write a segment to the outbox of the journal and truncate it, before it is loaded into the warehouse."""
    receipt = Receipt(alert_id="LK-AAAAAAAA", status=DeliveryStatus.SENT, at=testbed())
    segment_id = testbed.store.journal.append_outbox([ReceiptRow(row=receipt)])
    (path,) = (get_data_folder(testbed) / "journal" / OUTBOX).glob(f"{segment_id}*")
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


async def _decide(testbed: AlertingTestbed) -> None:
    await notify(testbed.notifier("reader"), [observation("price-2")])


async def _send(testbed: AlertingTestbed) -> None:
    await send_outbox(testbed.notifier("reader"))


async def _apply_actions(testbed: AlertingTestbed) -> None:
    await asyncio.to_thread(apply_waiting_actions, testbed.notifier("reader").actions)


async def _load(testbed: AlertingTestbed) -> None:
    await asyncio.to_thread(testbed.store.load_pending, 5)


@pytest.mark.parametrize("read", [_decide, _send, _apply_actions, _load])
async def test_f94_a_torn_outbox_segment_is_reported_once_by_whichever_reader_meets_it(testbed, slack, read):
    await notify(testbed.notifier(), [observation()])
    tear_outbox_segment(testbed)
    await read(testbed)
    for run_id in ("run-2", "run-3"):
        await notify_of_load_errors(testbed.notifier(run_id))
    (incident,) = testbed.store.list_open_incidents("warehouse")
    assert (incident.kind, incident.owner) == (IncidentKind.MONITOR_FAULT, Capability.MAINTENANCE)
    assert [message.channel for message in slack.messages].count("C0MONITOR") == 1
    listed = lookout(testbed, "alerts", "list", "--json")
    assert listed.returncode == 4
    assert "_damaged" in listed.stderr


def damage_parquet(archive: Path) -> None:
    """Truncate the Parquet file that contains the archived rows."""
    (parquet,) = archive.glob("*.parquet")
    parquet.write_bytes(parquet.read_bytes()[:100])


def delete_manifest(archive: Path) -> None:
    """Delete the manifest, which lists the archived segments."""
    (manifest,) = archive.glob("*.manifest.json")
    manifest.unlink()


def delete_archive(archive: Path) -> None:
    """Delete the archive with its manifest."""
    for path in archive.glob("*"):
        path.unlink()


DAMAGES = pytest.mark.parametrize("damage", [damage_parquet, delete_manifest, delete_archive])


def archive_and_damage(testbed: AlertingTestbed, damage: Callable[[Path], None]) -> None:
    """Archive the whole journal, delete the warehouse file, and call ``damage`` on the archive.

    The warehouse can then be rebuilt only from the damaged archive.
    """
    testbed.skip(days=1)
    compact_segments(testbed.store, before=testbed(), wait_s=5, unfinished=True)
    for file in (testbed.store.database.file, testbed.store.database.file.with_suffix(".duckdb.wal")):
        file.unlink(missing_ok=True)
    damage(get_data_folder(testbed) / "journal" / "_archive")


@pytest.mark.whole_only
@DAMAGES
async def test_f93_without_its_archive_nothing_is_called_calm(testbed, slack, damage):
    await notify(testbed.notifier(), [observation()])
    archive_and_damage(testbed, damage)
    for _ in range(2):
        listed = lookout(testbed, "alerts", "list")
        assert listed.returncode == 4, listed.stdout
        assert listed.stdout == ""
        assert listed.stderr
    assert lookout(testbed, "warehouse", "check").returncode == 4
    assert not check_database(testbed.store, wait_s=5).is_sound
    await notify(testbed.notifier("run-2"), [])
    (incident,) = testbed.store.list_open_incidents("warehouse")
    assert incident.owner is Capability.MAINTENANCE
    for number in range(3):  # what is stored since does not make up for what is lost
        await notify(testbed.notifier(f"run-{number}"), [observation(f"price-{number + 2}")])
    assert lookout(testbed, "alerts", "list").returncode == 4
    assert lookout(testbed, "warehouse", "check").returncode == 4


@DAMAGES
async def test_f93_a_log_whose_place_is_lost_is_not_followed_silently(tmp_path, testbed, slack, damage):
    log = Followed(tmp_path, testbed)
    log.append(entry(-1))
    await log.look()
    archive_and_damage(testbed, damage)
    log.append(entry(1))
    log.begin_at(10)
    assert (await log.follower().poll_and_report_errors()).broken
    assert log.stored() == []
    (incident,) = testbed.store.list_open_incidents("demo")
    assert (incident.kind, incident.owner) == (IncidentKind.MONITOR_FAULT, Capability.HALLUCINATION_LOG)

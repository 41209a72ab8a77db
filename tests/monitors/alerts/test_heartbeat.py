from __future__ import annotations

import uuid

import pytest

from monitors.alerts.liveness import Beat, Heartbeat, build_heartbeat, choose_final_ping, compute_ping_id
from tests.servers.watchdog import CHECK, Watchdog


async def test_the_pings_of_one_run_share_an_id():
    with Watchdog() as dog:
        heart = Heartbeat(f"{dog.check}/")
        for beat in Beat:
            assert await heart.ping(beat, run_id="run-1", note="144 cases graded")
        await heart.ping(Beat.STARTED, run_id="run-2")
    assert dog.kinds[:3] == ["/start", "", "/fail"]
    ids = [uuid.UUID(ping.rid) for ping in dog.pings]
    assert len(set(ids[:3])) == 1
    assert ids[3] != ids[0]
    assert dog.pings[0].rid == compute_ping_id("run-1")


async def test_each_target_can_have_a_check_of_its_own():
    with Watchdog() as dog:
        await build_heartbeat(dog.url + "/{target}", "suraksha-demo").ping(Beat.PROVED, run_id="run-1")
    assert not build_heartbeat(None, "suraksha-demo").is_configured
    assert len(dog.pings) == 1


@pytest.mark.parametrize("status", [200, 503])
async def test_f89_no_log_shows_the_secret_address(caplog, status):
    caplog.set_level("DEBUG")
    with Watchdog(status) as dog:
        await Heartbeat(dog.check).ping(Beat.PROVED, run_id="run-1")
        await Heartbeat("http://127.0.0.1:9" + CHECK).ping(Beat.PROVED, run_id="run-1")
    shown = "".join(f"{record.getMessage()}{record.args}{record.exc_text}" for record in caplog.records)
    assert "a-secret-check" not in shown


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/check", "http://watchdog.invalid/check", "no address", None])
async def test_f24_a_watchdog_that_is_down_stops_nothing(url):
    assert await Heartbeat(url).ping(Beat.PROVED, run_id="run-1") is False


async def test_f24_a_watchdog_that_refuses_stops_nothing():
    with Watchdog(status=503) as dog:
        assert await Heartbeat(dog.url).ping(Beat.PROVED, run_id="run-1") is False


@pytest.mark.parametrize(
    ("graded", "broke", "beat"),
    [(144, False, Beat.PROVED), (0, False, None), (0, True, Beat.FAILED), (9, True, Beat.FAILED)],
)
def test_f21_a_run_without_grades_sends_no_heartbeat(graded, broke, beat):
    assert choose_final_ping(graded=graded, broke=broke) is beat

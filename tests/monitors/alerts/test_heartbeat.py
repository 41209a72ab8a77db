from __future__ import annotations

import uuid

import pytest
from aiohttp import web

from monitors.alerts.heartbeat import Beat, Heartbeat, after_run
from tests.servers.threaded import ThreadedServer


class Watchdog(ThreadedServer):
    """Takes pings of the healthchecks kind and keeps them."""

    def __init__(self, status: int = 200) -> None:
        super().__init__()
        self.status = status
        self.pings: list[tuple[str, str, str]] = []

    def application(self) -> web.Application:
        app = web.Application()
        app.router.add_post("/{tail:.*}", self._take)
        return app

    async def _take(self, request: web.Request) -> web.Response:
        self.pings.append((request.path, request.query["rid"], await request.text()))
        return web.Response(status=self.status)


async def test_the_pings_of_one_run_share_an_id():
    with Watchdog() as dog:
        heart = Heartbeat(f"{dog.url}/a-secret-check/")
        for beat in Beat:
            assert await heart.ping(beat, run_id="run-1", note="144 cases told")
        await heart.ping(Beat.STARTED, run_id="run-2")
    assert [path for path, _, _ in dog.pings[:3]] == [
        "/a-secret-check/start",
        "/a-secret-check",
        "/a-secret-check/fail",
    ]
    ids = [uuid.UUID(rid) for _, rid, _ in dog.pings]
    assert len(set(ids[:3])) == 1
    assert ids[3] != ids[0]


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/check", "http://watchdog.invalid/check", "no address", None])
async def test_f24_a_watchdog_that_is_down_stops_nothing(url):
    assert await Heartbeat(url).ping(Beat.PROVED, run_id="run-1") is False


async def test_f24_a_watchdog_that_refuses_stops_nothing():
    with Watchdog(status=503) as dog:
        assert await Heartbeat(dog.url).ping(Beat.PROVED, run_id="run-1") is False


@pytest.mark.parametrize(
    ("told", "broke", "beat"),
    [(144, False, Beat.PROVED), (0, False, None), (0, True, Beat.FAILED), (9, True, Beat.FAILED)],
)
def test_f21_a_run_that_told_nothing_earns_no_heartbeat(told, broke, beat):
    assert after_run(told=told, broke=broke) is beat

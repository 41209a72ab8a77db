"""Test that Lookout waits for an app that recovers, and reports an app that does not.

A wrong address is reported soon.
"""

from __future__ import annotations

import pytest
from aiohttp import web

from monitors.errors import NotReady
from monitors.probes.readiness import wait_until_target_serves_again
from monitors.probes.settings import ProbeSettings
from monitors.records.targets import Target
from tests.builders import TARGET
from tests.servers.threaded_server import ThreadedServer

SETTINGS = ProbeSettings(outage_patience_s=30)


class Restarting(ThreadedServer):
    """A server whose page returns the given statuses in order and then repeats the last one.

    Its address ``/version`` states a commit.
    """

    def __init__(self, *statuses: int, commits: tuple[str, ...] = ("abcdef1",)) -> None:
        super().__init__()
        self.statuses, self.commits = list(statuses), list(commits)

    def application(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/", self._page)
        app.router.add_get("/version", self._version)
        return app

    async def _page(self, _request: web.Request) -> web.Response:
        return web.Response(status=self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0])

    async def _version(self, _request: web.Request) -> web.Response:
        return web.json_response({"sha": self.commits.pop(0) if len(self.commits) > 1 else self.commits[0]})


def at(server: Restarting) -> Target:
    return TARGET.model_copy(update={"url": server.url})


async def test_f65_a_restart_is_waited_for() -> None:
    with Restarting(503, 502, 200) as server:
        await wait_until_target_serves_again(at(server), SETTINGS, has_answered=True)
        assert server.statuses == [200]


async def test_a_lasting_outage_is_reported_with_its_error() -> None:
    with Restarting(503) as server:
        impatient = SETTINGS.model_copy(update={"outage_patience_s": 0.0})
        with pytest.raises(NotReady, match=r"was not available again within 0 s: HTTP 503"):
            await wait_until_target_serves_again(at(server), impatient, has_answered=True)
    with pytest.raises(NotReady, match="ConnectError"):
        await wait_until_target_serves_again(at(server), impatient, has_answered=False)


async def test_an_api_that_refuses_a_get_is_there_and_a_page_that_is_not_found_is_not() -> None:
    impatient = SETTINGS.model_copy(update={"outage_patience_s": 0.0})
    with Restarting(405) as server:
        await wait_until_target_serves_again(
            at(server), impatient.model_copy(update={"driver": "json"}), has_answered=True
        )
        with pytest.raises(NotReady, match="HTTP 405"):
            await wait_until_target_serves_again(at(server), impatient, has_answered=True)


async def test_the_commit_that_was_verified_must_be_back() -> None:
    with Restarting(200, commits=("0000000", "abcdef1")) as server:
        ready = SETTINGS.readiness.model_copy(update={"version_url": f"{server.url}/version"})
        settings = SETTINGS.model_copy(update={"readiness": ready})
        await wait_until_target_serves_again(at(server), settings, has_answered=True, commit="abcdef1234")
        assert server.commits == ["abcdef1"]
        with pytest.raises(NotReady, match="abcdef1 is still live"):
            await wait_until_target_serves_again(
                at(server),
                settings.model_copy(update={"outage_patience_s": 0.1}),
                has_answered=True,
                commit="9999999",
            )

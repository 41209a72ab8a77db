"""Test how Lookout waits for a deploy and wakes it, and how it proves or rejects the deployed commit.

A local server has the API of the Hub.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitors.errors import AccessDenied, DeployFailed, NotReady, ReadinessUnknown
from monitors.probes.readiness import Ready, wait_until_ready
from monitors.probes.settings import ProbeSettings, ReadinessSettings
from monitors.records.base import Blame
from monitors.records.targets import Target, is_same_commit
from tests.servers.hub import Hub

NEW, OLD = "a1b2c3d4e5f60718293a4b5c6d7e8f9001122334", "0f0e0d0c0b0a09080706050403020100ffeeddcc"


def stage(name: str, sha: str | None = None, **more: Any) -> dict[str, Any]:
    """Return the JSON of a Space's runtime in the format of the Hub."""
    return {"stage": name, "hardware": {"current": "cpu-basic", "requested": None}, "sha": sha, **more}


@contextmanager
def hub(*runtimes: dict[str, Any] | int, **options: Any) -> Iterator[Hub]:
    server = Hub(*runtimes, **options)
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


async def ready(server: Hub, *, commit: str | None = NEW, token: str | None = None, **changes: Any) -> Ready:
    settings = ReadinessSettings(**{"deadline_s": 30, "poll_s": 0.01, "hub_url": server.address, **changes})
    target = Target(name="bot", space="suraksha/health", url=server.address)
    return await wait_until_ready(target, ProbeSettings(readiness=settings), commit=commit, hub_token=token)


async def test_a_space_that_serves_the_commit_is_ready_at_once() -> None:
    with hub(stage("RUNNING", NEW)) as server:
        assert await ready(server) == Ready(commit=NEW, cold_start_s=0, woken=False, stages=("RUNNING",))


async def test_f55_a_sleeping_space_is_woken_and_waited_for() -> None:
    with hub(stage("SLEEPING", NEW), stage("APP_STARTING", NEW), stage("RUNNING", NEW)) as server:
        readiness = await ready(server)
    assert readiness.woken
    assert readiness.stages == ("SLEEPING", "APP_STARTING", "RUNNING")
    assert readiness.cold_start_s > 0


async def test_f56_building_and_starting_are_waited_for() -> None:
    with hub(stage("BUILDING", OLD), stage("APP_STARTING", NEW), stage("RUNNING", NEW)) as server:
        assert (await ready(server)).stages == ("BUILDING", "APP_STARTING", "RUNNING")


async def test_f56_a_build_without_end_is_not_ready() -> None:
    with hub(stage("BUILDING")) as server, pytest.raises(NotReady, match="BUILDING") as raised:
        await ready(server, deadline_s=0.05)
    assert raised.value.blame is Blame.APP


@pytest.mark.parametrize(
    "name", ["BUILD_ERROR", "RUNTIME_ERROR", "CONFIG_ERROR", "NO_APP_FILE", "PAUSED", "STOPPED"]
)
async def test_f57_a_failed_deploy_is_said_at_once_with_the_hubs_words(name: str) -> None:
    with hub(stage(name, NEW, errorMessage="exit code 1")) as server:
        with pytest.raises(DeployFailed, match=rf"{name} \(exit code 1\)") as raised:
            await ready(server)
        assert server.looks == 1
    assert not raised.value.retryable


async def test_f57_an_old_images_failure_is_not_the_new_ones() -> None:
    with hub(stage("RUNTIME_ERROR", OLD), stage("BUILDING", OLD), stage("RUNNING", NEW)) as server:
        assert (await ready(server)).commit == NEW


async def test_f58_the_old_commit_is_never_taken_for_the_new_one() -> None:
    with hub(
        stage("RUNNING", OLD), stage("RUNNING_BUILDING", OLD), stage("RUNNING", OLD), stage("RUNNING", NEW)
    ) as server:
        assert (await ready(server)).commit == NEW
        assert server.looks == 4


async def test_f58_an_old_commit_that_stays_is_not_ready() -> None:
    with hub(stage("RUNNING", OLD)) as server, pytest.raises(NotReady, match=rf"{NEW}.*{OLD} is still live"):
        await ready(server, deadline_s=0.05)


async def test_a_hub_that_names_no_commit_is_asked_past_at_the_app() -> None:
    with hub(stage("RUNNING")) as server:
        server.version = {"sha": NEW[:12]}
        assert (await ready(server, version_url=f"{server.address}/version")).commit == NEW[:12]


async def test_without_a_named_commit_nothing_is_taken_on_trust() -> None:
    with hub(stage("RUNNING")) as server, pytest.raises(ReadinessUnknown, match="version_url") as raised:
        await ready(server, deadline_s=0.05)
    assert raised.value.blame is Blame.MONITOR


async def test_without_an_expected_commit_a_serving_space_is_ready() -> None:
    with hub(stage("RUNNING_BUILDING", OLD)) as server:
        assert (await ready(server, commit=None)).commit == OLD


async def test_f65_a_space_that_reboots_is_waited_for_until_its_page_answers() -> None:
    with hub(stage("RUNNING", NEW), page_status=lambda visit: 503 if visit < 3 else 200) as server:
        await ready(server)
        assert server.visits == 3


async def test_a_failing_hub_is_waited_for_and_not_blamed_on_the_app() -> None:
    with hub(500, stage("RUNNING", NEW)) as server:
        assert (await ready(server)).commit == NEW
    with hub(500) as server, pytest.raises(ReadinessUnknown) as raised:
        await ready(server, deadline_s=0.05)
    assert raised.value.blame is Blame.MONITOR


@pytest.mark.parametrize("status", [401, 404])
async def test_a_space_that_cannot_be_seen_says_what_to_look_at(status: int) -> None:
    with hub(status) as server, pytest.raises(AccessDenied, match=r"suraksha/health.*HF_TOKEN"):
        await ready(server)


@pytest.mark.parametrize(("token", "header"), [(None, None), ("hf_secret", "Bearer hf_secret")])
async def test_only_the_given_token_is_sent(token: str | None, header: str | None) -> None:
    with hub(stage("RUNNING", NEW)) as server:
        await ready(server, token=token)
        assert set(server.tokens) == {header}


async def test_a_plain_page_is_ready_when_it_answers() -> None:
    with hub(stage("RUNNING"), page_status=lambda visit: 502 if visit < 3 else 200) as server:
        settings = ReadinessSettings(deadline_s=30, poll_s=0.01)
        readiness = await wait_until_ready(
            Target(name="page", url=server.address), ProbeSettings(readiness=settings)
        )
    assert readiness.stages == ("PAGE_SILENT", "RUNNING")


async def test_an_address_that_is_only_posted_to_is_ready_when_it_says_so() -> None:
    with hub(stage("RUNNING"), page_status=lambda visit: 502 if visit < 3 else 405) as server:
        settings = ReadinessSettings(deadline_s=30, poll_s=0.01)
        found = await wait_until_ready(Target(name="agent", url=server.address), ProbeSettings(readiness=settings))
    assert found.stages == ("PAGE_SILENT", "RUNNING")


async def test_f96_a_page_whose_html_never_ends_is_ready_at_once() -> None:
    """A page is ready as soon as its status arrives, even if its body never ends."""
    with endless_page() as address:
        readiness = await wait_until_ready(Target(name="page", url=address), ProbeSettings())
    assert readiness.stages == ("RUNNING",)


@pytest.mark.parametrize("to", ["http://10.255.255.1/", "http://169.254.169.254/latest/"])
async def test_f97_a_page_that_redirects_inside_is_not_followed_by_the_readiness_check(to: str) -> None:
    with (
        hub(stage("RUNNING"), redirects_to=to) as server,
        pytest.raises(AccessDenied, match="Its configuration does not allow"),
    ):
        await wait_until_ready(Target(name="page", url=server.address), ProbeSettings())


@contextmanager
def endless_page() -> Iterator[str]:
    """Yield the address of a page that sends HTML until the client disconnects."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it
            """Suppress the request log."""

        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            with suppress(ConnectionError):
                while not stopped.wait(0.05):
                    self.wfile.write(b"<p>more</p>")

    stopped = threading.Event()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        stopped.set()
        server.shutdown()
        server.server_close()


async def test_a_plain_page_that_never_answers_is_not_ready() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"http://127.0.0.1:{free.getsockname()[1]}"
    settings = ReadinessSettings(deadline_s=0.05, poll_s=0.01)
    with pytest.raises(NotReady, match="ConnectError"):
        await wait_until_ready(Target(name="page", url=address), ProbeSettings(readiness=settings))


hexadecimal = st.text("0123456789abcdef", min_size=40, max_size=40)


@given(hexadecimal, st.integers(7, 40))
def test_an_abbreviation_means_its_commit(sha: str, length: int) -> None:
    assert is_same_commit(sha[:length].upper(), sha)
    assert is_same_commit(sha, sha[:length])


@given(hexadecimal, st.integers(0, 6))
def test_text_that_is_not_a_git_commit_is_ignored(sha: str, length: int) -> None:
    assert not is_same_commit(sha[:length], sha)


@given(hexadecimal, hexadecimal)
def test_two_commits_are_two(one: str, other: str) -> None:
    assert is_same_commit(one, other) == (one == other)

"""Genuine deliveries that start no run, or contain addresses, are acknowledged without any effect or leak."""

from __future__ import annotations

import logging
import socket

import pytest

from monitors.config.sections import DeploySender
from tests.deployments.deploy_receiver import each_sender, receiver
from tests.deployments.triggers.senders import (
    COMMIT,
    GITHUB_SECRET,
    HUB_SECRET,
    STANDARD_SECRET,
    announced,
    deployed,
    github,
    github_headers,
    hub,
    pushed,
    raw,
    space_pushed,
    standard,
    trigger,
    workflow,
)

MARK = "xyzzy-mark-of-the-sender"


@pytest.fixture
async def door(tmp_path):
    async with receiver(tmp_path) as opened:
        yield opened


URLS = [
    "http://169.254.169.254/latest/meta-data/",
    "file:///etc/passwd",
    "gopher://127.0.0.1:6379/_FLUSHALL",
    "http://2130706433/",
    "http://[::ffff:127.0.0.1]/",
]


@pytest.mark.parametrize("url", URLS)
async def test_f37_an_address_in_a_payload_is_ignored(door, tmp_path, url):
    """No address in a payload is stored or used. The target comes from the configuration."""
    for sent in (
        await door.by_github(deployed(url=url, payload={"web_url": url, "target": url})),
        await door.by_hub(space_pushed(url=url)),
        await door.by_standard(announced(data={"url": url, "target": url, "target_url": url})),
    ):
        assert sent.status_code in (200, 202)
    (queued,) = door.queue.list_waiting_deploys()
    assert queued.deploy.event.target == "bot"
    written = [file.read_text(encoding="utf-8") for file in (tmp_path / "deploys").rglob("*") if file.is_file()]
    assert not any(url in text or "://" in text for text in written)


async def test_f37_addresses_in_a_payload_are_not_called(door):
    with socket.create_server(("127.0.0.1", 0)) as trap:
        trap.setblocking(False)
        url = f"http://127.0.0.1:{trap.getsockname()[1]}/"
        for sent in (
            await door.by_github(deployed(url=url)),
            await door.by_hub(space_pushed(url=url)),
            await door.by_standard(announced(data={"url": url})),
        ):
            assert sent.status_code in (200, 202)
        await door.client.get(f"{door.url}/readyz")
        with pytest.raises(BlockingIOError):
            trap.accept()


OTHERS = {
    "another repository": ("by_github", deployed(repository="acme/other")),
    "another environment": ("by_github", deployed(environment="preview")),
    "another branch": ("by_github", deployed(ref="topic")),
    "a deployment that failed": ("by_github", deployed(state="failure")),
    "another Space": ("by_hub", space_pushed(name="acme/other")),
    "another branch of the Space": ("by_hub", space_pushed(("refs/heads/dev", COMMIT))),
    "a discussion": ("by_hub", space_pushed(scope="discussion")),
    "another type": ("by_standard", announced(type="deploy.started")),
    "another project": ("by_standard", announced(data={"repository": "acme/other"})),
}


@pytest.mark.parametrize("name", OTHERS)
async def test_f39_irrelevant_deliveries_are_answered_200_and_start_nothing(tmp_path, name):
    strict = github(trigger(environment="production", branch="main"))
    async with receiver(tmp_path, parsers=[strict, hub(), standard()]) as door:
        way, payload = OTHERS[name]
        answer = await getattr(door, way)(payload)
        assert (answer.status_code, answer.text.partition(":")[0]) == (200, "not for us")
        assert door.commits() == []


@pytest.mark.parametrize("event", ["ping", "issues", "push", "workflow_run"])
async def test_f39_an_event_that_no_trigger_names_is_answered_200(door, event):
    payload = {"push": pushed(), "workflow_run": workflow()}.get(event, {"zen": "Design for failure."})
    assert (await door.by_github(payload, event)).status_code == 200
    assert door.commits() == []


async def test_another_sender_path_or_method_is_not_there(door, tmp_path):
    body = raw(deployed())
    headers = github_headers(body)
    assert (await door.post("gitlab", body, headers)).status_code == 404
    assert (await door.post("%2e%2e", body, headers)).status_code == 404
    assert (await door.client.get(f"{door.url}/deploys/github")).status_code == 405
    async with receiver(tmp_path, parsers=[hub()]) as lonely:
        assert (await lonely.post("github", body, headers)).status_code == 404


async def test_no_answer_no_log_and_no_figure_holds_what_was_sent_or_a_secret(door, caplog):
    caplog.set_level(logging.DEBUG)
    texts = []
    for payload in (deployed(sha=MARK), deployed(repository=f"acme/{MARK}"), announced(type=MARK), MARK.encode()):
        texts.extend([answer.text async for answer in each_sender(door, raw(payload))])
    texts.append((await door.post(MARK, b"", {"x-webhook-secret": MARK})).text)
    texts.append((await door.client.get(f"{door.url}/metrics")).text)
    ours = [record.getMessage() for record in caplog.records if record.name.startswith(("deployments", "flows"))]
    everything = "\n".join([*texts, *ours])
    assert len(texts) == 22
    for hidden in (MARK, GITHUB_SECRET, HUB_SECRET, STANDARD_SECRET):
        assert hidden not in everything


async def test_a_delivery_that_cannot_be_stored_asks_for_a_retry(door, tmp_path, snapshot):
    (tmp_path / "deploys").mkdir(exist_ok=True)
    (tmp_path / "deploys" / "bot").write_text("a file in the folder's place", encoding="utf-8")
    answer = await door.by_github(deployed())
    assert answer.status_code == 503
    assert answer.text == snapshot
    (tmp_path / "deploys" / "bot").unlink()
    assert (await door.by_github(deployed())).status_code == 202


async def test_a_fault_of_ours_is_a_503_that_says_nothing(tmp_path, caplog):
    class Broken:
        provider = DeploySender.GITHUB

        def check_headers(self, _headers):
            raise RuntimeError(GITHUB_SECRET)

    async with receiver(tmp_path, parsers=[Broken()]) as door:
        answer = await door.by_github(deployed())
    assert answer.status_code == 503
    assert GITHUB_SECRET not in answer.text + caplog.text

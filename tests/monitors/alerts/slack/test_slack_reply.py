"""Test that the response to a button press is sent only to Slack's hosts, and that no error contains its URL."""

from __future__ import annotations

import pytest

from monitors.alerts.settings import AlertSettings
from monitors.alerts.slack.client import SlackReply
from monitors.errors import NotifyError, NotifyRejected, NotifyTransient, NotifyUnsure
from tests.monitors.alerts.sample_observations import alert
from tests.servers.slack import SlackServer


@pytest.fixture
def slack():
    with SlackServer() as server:
        yield server


@pytest.fixture
def reply(slack):
    return SlackReply(AlertSettings(slack_channel="C0ALERTS", slack_api_url=slack.api_url, send_timeout_s=0.5))


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("reset", NotifyUnsure),
        ("hang", NotifyUnsure),
        ("500", NotifyTransient),
        ("429:1", NotifyTransient),
        ("403", NotifyError),
    ],
)
async def test_a_fault_is_reported_without_the_address(slack, reply, fault, error):
    url = slack.answers.url_for("1")
    slack.misbehave(fault)
    with pytest.raises(error) as caught:
        await reply.post_ephemeral(url, "known already")
    assert url.rpartition("/")[2] not in str(caught.value)


async def test_an_address_that_is_over_is_refused(slack, reply):
    with pytest.raises(NotifyRejected, match="expired_url"):
        await reply.post_ephemeral(f"{slack.url}/actions/T0TEST/unknown", "known already")


@pytest.mark.parametrize(
    ("url", "leads"),
    [
        ("https://hooks.slack.com/actions/T0/1/abc", True),
        ("https://hooks.slack-gov.com/actions/T0/1/abc", True),
        ("http://hooks.slack.com/actions/T0/1/abc", False),
        ("https://hooks.slack.com:8443/actions", False),
        ("https://hooks.slack.com.evil.example/", False),
        ("https://hooks.slack.com@evil.example/", False),
        ("https://evil.example/#hooks.slack.com", False),
        ("file:///etc/passwd", False),
        ("http://2130706433/", False),
        ("//hooks.slack.com/", False),
        ("https://[::1", False),
        ("https://hooks.slack.com:port/", False),
        ("", False),
    ],
)
def test_f37_only_slack_s_own_hosts(url, leads):
    assert SlackReply(AlertSettings()).is_slack_address(url) is leads


async def test_a_whisper_is_for_one_and_harmless(slack, reply):
    await reply.post_ephemeral(slack.answers.url_for("1"), "resolved by <!channel>")
    (whisper,) = slack.answers.whispers
    assert whisper["response_type"] == "ephemeral"
    assert whisper["text"] == "resolved by &lt;!channel&gt;"
    assert alert().id not in str(whisper)

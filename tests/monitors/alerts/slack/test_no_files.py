"""Screenshots are never posted: no message or edit sends a file to Slack."""

from __future__ import annotations

import pytest
from slack_sdk.web.async_client import AsyncWebClient

from monitors.alerts.slack.client import SlackBot, SlackReply, SlackWebhook
from tests.monitors.alerts.sample_observations import NIGHT
from tests.servers.slack import TOKEN, SlackServer
from tests.tools.alert_examples import SETTINGS, digest_example, examples


@pytest.fixture
def slack():
    with SlackServer() as server:
        yield server


def files_asked_for(slack):
    return [method for method in slack.requests if "file" in method]


async def test_a_file_would_be_noticed(slack):
    """The test server records a file that Slack's SDK uploads.

    This proves that the next test would detect an upload by Lookout.
    """
    client = AsyncWebClient(token=TOKEN, base_url=slack.api_url)
    client.proxy = None
    await client.files_upload_v2(channel="C0ALERTS", filename="page.png", content=b"a picture")
    assert slack.uploads.shared == ["page.png"]
    assert files_asked_for(slack) == ["files.getUploadURLExternal", "files.completeUploadExternal"]


async def test_f90_no_file_is_sent_with_any_message(slack):
    settings = SETTINGS.model_copy(update={"slack_channel": "C0ALERTS", "slack_api_url": slack.api_url})
    bot = SlackBot(settings, token=TOKEN, now=lambda: NIGHT)
    webhook = SlackWebhook(settings, url=slack.webhook_url, now=lambda: NIGHT)
    for example in examples():
        receipt = await bot.send(example.alert)
        await bot.update(example.alert, channel=receipt.channel or "", ts=slack.messages[-1].ts)
        await webhook.send(example.alert)
        await SlackReply(settings).replace_message(slack.answers.url_for(slack.messages[-1].ts), example.alert)
    await bot.send_digest(digest_example())
    assert len(slack.messages) == 2 * len(examples()) + 1
    assert files_asked_for(slack) == []


async def test_webhook_messages_have_no_buttons(slack):
    """A webhook message has no buttons.

    After a press, Lookout edits the message to show who pressed the button. It needs a bot's token for this, and a
    message of a webhook cannot be edited.
    """
    settings = SETTINGS.model_copy(update={"slack_api_url": slack.api_url})
    await SlackWebhook(settings, url=slack.webhook_url, now=lambda: NIGHT).send(examples()[1].alert)
    assert "lookout_" not in str(slack.messages[0].blocks)

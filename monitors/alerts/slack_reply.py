"""An answer to a press, through the address that Slack sends with it: it needs no token and lasts half an hour."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

import aiohttp

from monitors.alerts.inert import escape
from monitors.alerts.settings import AlertSettings
from monitors.alerts.slack_blocks import slack_text
from monitors.alerts.slack_errors import not_sent, refused, reply_lost
from monitors.errors import NotifyRejected
from monitors.records.incidents import Alert

SLACK_HOSTS: Final = frozenset({"hooks.slack.com", "hooks.slack-gov.com"})
"""Where Slack's own answer addresses lead (docs.slack.dev, "Handling user interaction")."""


class SlackReply:
    """Answers presses. An address that is not Slack's is never asked, whoever sent it."""

    def __init__(self, settings: AlertSettings) -> None:
        self._settings = settings

    def leads_to_slack(self, url: str) -> bool:
        """Whether ``url`` is Slack's, or belongs to the configured ``slack_api_url`` (a proxy, a test server)."""
        try:
            asked, known = urlsplit(url), urlsplit(self._settings.slack_api_url)
            places = (asked.scheme, asked.hostname, asked.port), (known.scheme, known.hostname, known.port)
        except ValueError:
            return False
        if asked.username is not None or asked.password is not None:
            return False
        of_slack = asked.scheme == "https" and asked.hostname in SLACK_HOSTS and asked.port in {None, 443}
        return of_slack or places[0] == places[1]

    async def replace(self, url: str, alert: Alert) -> None:
        """Show ``alert`` in place of the message whose button was pressed. Raises `NotifyError`."""
        said = slack_text(alert, self._settings)
        await self._post(url, {"replace_original": True, "text": said.text, "blocks": list(said.blocks)})

    async def whisper(self, url: str, text: str) -> None:
        """Say ``text`` to the one who pressed, and to nobody else. Raises `NotifyError`."""
        await self._post(url, {"response_type": "ephemeral", "replace_original": False, "text": escape(text)})

    async def _post(self, url: str, body: Mapping[str, object]) -> None:
        if not self.leads_to_slack(url):
            raise NotifyRejected("the address for the answer is not Slack's; it was not asked")
        timeout = aiohttp.ClientTimeout(total=self._settings.send_timeout_s)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout, trust_env=True) as session,
                session.post(url, json=body, allow_redirects=False) as answer,
            ):
                status, said = answer.status, (await answer.text(errors="replace")).strip()
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError):
            raise not_sent() from None
        except (TimeoutError, aiohttp.ClientError, OSError, ValueError):
            raise reply_lost() from None
        if status != 200:  # noqa: PLR2004 - HTTP's OK
            raise refused(status, said)

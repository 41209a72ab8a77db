"""A run in CI stops before its first request if settings point to production, and lists those settings."""

from __future__ import annotations

import pytest

from deployments.cli.verify import refuse_production_in_ci
from monitors.config.file import parse_config
from monitors.errors import ConfigError

IN_CI = {"CI": "true"}
LIVE = {"url": "https://bot.acme.example/chat", "suite": "s", "environment": "production"}
STAGING = {"url": "https://staging.acme.example/chat", "suite": "s"}
REASON = "OPS-12: the staging host is down, agreed with the owner"


def config(**targets):
    return parse_config({"targets": targets}, "here")


BOTH = config(live=LIVE, staging=STAGING)
SAME_HOST = config(live=LIVE, preview={**STAGING, "url": "https://BOT.acme.example/preview"})
SPACES = config(
    live={"space": "acme/Help_Desk", "suite": "s", "environment": "production"},
    page={"url": "https://acme-help-desk.hf.space/", "suite": "s"},
)
ONLY_STAGING = config(staging=STAGING)


@pytest.mark.parametrize(
    ("settings", "target", "more", "said"),
    [
        (BOTH, "live", {}, ["targets.live.environment", "staging target"]),
        (SAME_HOST, "preview", {}, ["bot.acme.example", "production target live"]),
        (SPACES, "page", {}, ["acme-help-desk.hf.space"]),
        (BOTH, "staging", {"SLACK_BOT_TOKEN": "xoxb-1"}, ["Remove SLACK_BOT_TOKEN"]),
        (BOTH, "staging", {"SLACK_FALLBACK_WEBHOOK_URL": "https://h"}, ["SLACK_FALLBACK_WEBHOOK_URL"]),
        (ONLY_STAGING, "staging", {"LOOKOUT_HEARTBEAT_URL": "https://h"}, ["LOOKOUT_HEARTBEAT_URL", "heartbeat"]),
    ],
    ids=["target", "same host", "a Space's page", "Slack", "Slack's fallback", "heartbeat"],
)
def test_a_production_target_is_named_and_nothing_is_asked(settings, target, more, said):
    with pytest.raises(ConfigError) as refusal:
        refuse_production_in_ci(settings, target, IN_CI | more, allowed=None)
    assert all(words in str(refusal.value) for words in [*said, "Lookout asked no question", "--allow-production"])
    assert "xoxb-1" not in str(refusal.value)
    assert refuse_production_in_ci(settings, target, more, allowed=None) is None, "outside CI nothing is looked at"
    assert REASON in refuse_production_in_ci(settings, target, IN_CI | more, allowed=REASON)


def test_everything_is_named_at_once():
    more = {"SLACK_BOT_TOKEN": "x", "LOOKOUT_HEARTBEAT_URL": "y"}
    with pytest.raises(ConfigError) as refusal:
        refuse_production_in_ci(BOTH, "live", IN_CI | more, allowed=None)
    assert len(str(refusal.value).splitlines()) == 5


@pytest.mark.parametrize(
    ("settings", "more"),
    [(BOTH, {}), (ONLY_STAGING, {"SLACK_BOT_TOKEN": "x"}), (ONLY_STAGING, {"GITHUB_ACTIONS": "true"})],
)
def test_staging_with_its_own_things_goes_on(settings, more):
    assert refuse_production_in_ci(settings, "staging", IN_CI | more, allowed=None) is None


@pytest.mark.parametrize("reason", ["", "   ", "because"])
def test_a_reason_is_one(reason):
    with pytest.raises(ConfigError, match="needs a reason"):
        refuse_production_in_ci(BOTH, "live", IN_CI, allowed=reason)

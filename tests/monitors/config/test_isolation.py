"""Tests that a suite is run only against staging.

If a target shares settings with production, all shared settings are reported and no question is sent.
"""

from __future__ import annotations

from typing import Any

import pytest

from monitors.config.file import Config, parse_config
from monitors.config.isolation import refuse_production_previous_url, refuse_production_settings
from monitors.errors import ConfigError

STAGING = {"url": "https://staging.acme.example/jobs", "suite": "s"}
TRACED = {"project": "agent-staging", "production_project": "agent-prod", "production_key_env": "PROD_KEY"}
READ = {"kind": "langsmith", "project": "agent-prod", "key_env": "NIGHT_KEY"}
LIVE = {
    "url": "https://agent.acme.example/jobs",
    "suite": "s",
    "environment": "production",
    "traffic": {"sources": {"jobs": READ}},
}
KEYS = {"LANGSMITH_API_KEY": "lsv2_staging_hush", "PROD_KEY": "lsv2_prod_hush", "NIGHT_KEY": "lsv2_night_hush"}


def config(staging: dict[str, Any] | None = None, **traced: Any) -> Config:
    target = STAGING | (staging or {}) | {"langsmith": TRACED | traced}
    return parse_config({"targets": {"agent": target, "live": LIVE}}, "here")


def test_a_run_with_nothing_of_production_s_goes_on() -> None:
    refuse_production_settings(config(), "agent", KEYS)
    refuse_production_settings(config(), "agent", {})
    plain = parse_config({"targets": {"agent": STAGING | {"environment": "production"}}}, "here")
    refuse_production_settings(plain, "agent", KEYS)  # a target without a LangSmith table is not checked


SHARED: list[tuple[Config, dict[str, str], list[str]]] = [
    (
        config(project="agent-prod"),
        {},
        ["langsmith.project and production_project are both 'agent-prod'", "traffic.sources.jobs"],
    ),
    (
        config({"url": "https://AGENT.acme.example/v2"}),
        {},
        ["agent.acme.example:443 is the host of the production target targets.live"],
    ),
    (
        config(production_url="https://staging.acme.example"),
        {},
        ["staging.acme.example:443 is langsmith.production_url"],
    ),
    (
        config({"probe": {"driver": "job", "job": {"url": "https://agent.acme.example:443/jobs"}}}),
        {},
        ["agent.acme.example:443 is the host of the production target targets.live"],
    ),
    (
        config({"previous_url": "https://agent.acme.example/{commit}"}),
        {},
        ["agent.acme.example:443 is the host of the production target targets.live"],
    ),
    (config({"environment": "production"}), {}, ['targets.agent.environment is "production"']),
    (
        config(),
        {"PROD_KEY": KEYS["LANGSMITH_API_KEY"]},
        ["LANGSMITH_API_KEY", "same value as PROD_KEY, the production key"],
    ),
    (config(key_env="NIGHT_KEY"), {}, ["targets.live.traffic.sources.jobs reads production with the key"]),
]


@pytest.mark.parametrize(("settings", "more", "words"), SHARED)
def test_shared_resources_are_named_without_keys(settings: Config, more: dict[str, str], words: list[str]) -> None:
    with pytest.raises(ConfigError) as refusal:
        refuse_production_settings(settings, "agent", KEYS | more)
    assert all(word in str(refusal.value) for word in [*words, "Lookout does not start it"])
    assert "hush" not in str(refusal.value)


def test_the_previous_build_is_not_asked_where_it_is_production_s() -> None:
    """A ``previous_url`` that is an address of production is rejected.

    ``{commit}`` is replaced before the address is checked. A target without a LangSmith table is not checked.
    """
    address = "https://agent.acme.example/jobs"
    with pytest.raises(ConfigError, match=r"targets\.agent\.previous_url: agent\.acme\.example:443 is"):
        refuse_production_previous_url(config({"previous_url": "https://{commit}.acme.example"}), "agent", address)
    refuse_production_previous_url(config(), "agent", "https://4f2a91c.acme.example")
    refuse_production_previous_url(
        parse_config({"targets": {"agent": STAGING, "live": LIVE}}, "here"), "agent", address
    )


def written(**common: Any) -> Config:
    """Return a configuration with a target whose runs become experiments in LangSmith.

    The target has no LangSmith table of its own.
    """
    target = STAGING | {"environment": "production", "experiments": "langsmith:gold"}
    return parse_config({"targets": {"agent": target, "live": LIVE}, "langsmith": TRACED | common}, "here")


def test_a_run_that_only_appears_in_langsmith_may_ask_production_but_not_use_its_project_or_key() -> None:
    refuse_production_settings(written(), "agent", KEYS)
    with pytest.raises(ConfigError, match="writes experiments") as refusal:
        refuse_production_settings(written(project="agent-prod", key_env="NIGHT_KEY"), "agent", KEYS)
    named = str(refusal.value).splitlines()[1:]
    assert len(named) == 3, named
    assert "hush" not in str(refusal.value)


def test_a_target_s_table_says_only_what_differs() -> None:
    """A target's LangSmith table needs only the keys whose values differ from ``[langsmith]``.

    This is also true for a configuration that was stored and read again.
    """
    common = {"project": "shared", "api_url": "https://ls.acme.example", "production_project": "agent-prod"}
    targets = {"agent": STAGING | {"langsmith": {"project": "own"}}, "other": STAGING | {"langsmith": {}}}
    first = parse_config({"targets": targets, "langsmith": common}, "here")
    for read in (first, Config.model_validate_json(first.model_dump_json())):
        own, other = (
            read.find_tracing_settings_with_defaults("agent"),
            read.find_tracing_settings_with_defaults("other"),
        )
        assert own is not None
        assert other is not None
        assert (own.project, other.project) == ("own", "shared")
        assert {one.api_url for one in (own, other)} == {"https://ls.acme.example"}
        assert {one.key_env for one in (own, other)} == {"LANGSMITH_API_KEY"}


def test_the_same_name_on_another_langsmith_is_another_project() -> None:
    refuse_production_settings(
        config(project="bot", production_project="bot", production_api_url="https://ls.acme.example"), "agent", {}
    )


def test_everything_is_named_at_once() -> None:
    shared = config({"url": LIVE["url"]}, project="agent-prod")
    with pytest.raises(ConfigError) as refusal:
        refuse_production_settings(shared, "agent", KEYS | {"PROD_KEY": KEYS["LANGSMITH_API_KEY"]})
    assert len(str(refusal.value).splitlines()) == 5

"""Test which deployments and schedules a configuration has."""

from __future__ import annotations

import json
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given

from flows.server.schedules import Cron, Every, plan_deployments
from monitors.config.file import Config, parse_config
from monitors.config.sections import DrillSettings, ScheduleSettings

WHERE = Path("/etc/lookout/lookout.toml")
LOG = {"at": "https://bot.example/hallucinations.jsonl"}
TRAFFIC = {"sources": {"stored": {"kind": "file", "at": "chats.jsonl"}}, "hour": 3, "time_zone": "Asia/Kolkata"}
DRILL = "fire-drill/fire-drill"
WEEKLY = "30 9 * * 1"
ALWAYS = ["verify-deploy/verify-deploy", "load-warehouse/load-warehouse", "digest/digest", DRILL]


def every_day_at(hour: int, time_zone: str) -> Cron:
    return Cron(line=f"0 {hour} * * *", time_zone=time_zone)


def config(**targets: dict[str, object]) -> Config:
    plain = {"url": "https://bot.example", "suite": "suite.jsonl"}
    return parse_config({"targets": {name: plain | extra for name, extra in targets.items()}}, "a test")


def planned(known: Config, **settings: str):
    return {one.full_name: one for one in plan_deployments(known, WHERE, ScheduleSettings.model_validate(settings))}


@pytest.mark.parametrize(
    ("extra", "more"),
    [
        ({}, []),
        ({"hallucination_log": LOG}, ["follow-log/follow-log"]),
        ({"space": "acme/bot"}, ["watch-deploys/watch-deploys"]),
        ({"traffic": TRAFFIC}, ["grade-traffic/grade-traffic-bot"]),
    ],
)
def test_a_target_gets_what_it_has_settings_for(extra, more):
    nightly = ["verify-deploy/scheduled-verify-bot", "measure-repeatability/repeatability-bot"]
    assert set(planned(config(bot=extra))) == {*ALWAYS, *nightly, *more}


def test_disabled_schedules_are_not_planned():
    """If a schedule is disabled, its deployment is missing. Only the drill has one, so that users can start it."""
    quiet = config(bot={}).model_copy(update={"drill": DrillSettings(enabled=False)})
    off = dict.fromkeys(("verify_cron", "digest_cron", "load_cron", "repeatability_cron"), "")
    left = planned(quiet, **off)
    assert set(left) == {ALWAYS[0], DRILL}
    assert left[DRILL].when is None


def test_a_drill_is_done_every_week_and_missed_after_eight_days():
    """A drill is scheduled every week in the configured time zone, and counts as missed after eight days."""
    drill = planned(config(bot={}), time_zone="Europe/Berlin")[DRILL]
    assert drill.when == Cron(line=WEEKLY, time_zone="Europe/Berlin")
    assert drill.late_after_s == 8 * 24 * 3600


def test_a_target_is_asked_twice_unless_it_says_not_or_is_an_agent():
    """A target has a daily deployment that asks cases twice, unless it sets `cases` to 0 or is an agent."""
    known = config(bot={}, off={"repeatability": {"cases": 0}}, agent={"probe": {"driver": "job"}})
    found = [one for one in planned(known).values() if one.flow == "measure-repeatability"]
    assert [(one.name, one.when) for one in found] == [("repeatability-bot", every_day_at(3, "UTC"))]
    assert found[0].parameters == {"config_path": str(WHERE), "target": "bot"}


def test_the_nightly_run_is_by_the_zone_of_the_schedules_or_of_the_traffic_or_utc():
    known = config(bot={"traffic": TRAFFIC}, other={})
    by_default = planned(known)
    assert by_default["verify-deploy/scheduled-verify-bot"].when == every_day_at(1, "Asia/Kolkata")
    assert by_default["verify-deploy/scheduled-verify-other"].when == every_day_at(1, "UTC")
    in_berlin = planned(known, time_zone="Europe/Berlin")
    assert in_berlin["verify-deploy/scheduled-verify-bot"].when == every_day_at(1, "Europe/Berlin")
    assert in_berlin["grade-traffic/grade-traffic-bot"].when == every_day_at(3, "Asia/Kolkata")
    assert in_berlin["digest/digest"].when == every_day_at(7, "Europe/Berlin")


def test_the_deploy_flow_has_no_schedule_and_the_receivers_name():
    known = config(bot={})
    own = known.model_copy(
        update={"deploys": known.deploys.model_copy(update={"deployment": "verify-deploy/mine"})}
    )
    assert planned(known)[known.deploys.deployment].when is None
    assert planned(own)["verify-deploy/mine"].when is None
    assert "verify-deploy/verify-deploy" not in planned(own)
    foreign = known.model_copy(update={"deploys": known.deploys.model_copy(update={"deployment": "other/mine"})})
    assert "other/mine" not in planned(foreign)


def test_one_name_is_planned_once():
    known = config(bot={})
    deploys = known.deploys.model_copy(update={"deployment": "verify-deploy/scheduled-verify-bot"})
    names = [
        one.full_name
        for one in plan_deployments(known.model_copy(update={"deploys": deploys}), WHERE, ScheduleSettings())
    ]
    assert len(names) == len(set(names))
    assert planned(known)["verify-deploy/scheduled-verify-bot"].when is not None


def test_missing_daily_runs_are_alerted_except_on_days_off():
    known = config(bot={"hallucination_log": LOG})
    daily = planned(known)
    assert daily["verify-deploy/scheduled-verify-bot"].late_after_s == 26 * 3600
    assert daily["follow-log/follow-log"].late_after_s == 2 * 3600
    assert daily["verify-deploy/verify-deploy"].late_after_s is None
    on_working_days = planned(known, verify_cron="0 1 * * 1-5")
    assert on_working_days["verify-deploy/scheduled-verify-bot"].late_after_s is None


EXTRAS = st.fixed_dictionaries(
    {},
    optional={
        "hallucination_log": st.just(LOG),
        "space": st.just("acme/bot"),
        "traffic": st.just(TRAFFIC),
        "environment": st.sampled_from(["staging", "production"]),
    },
)
NAMES = st.from_regex(r"[a-z][a-z0-9_-]{0,12}", fullmatch=True)


@given(st.dictionaries(NAMES, EXTRAS, min_size=1, max_size=4))
def test_of_any_configuration_names_are_unique_and_parameters_are_plain(targets):
    known = config(**targets)
    plans = plan_deployments(known, WHERE, ScheduleSettings())
    assert len({one.name for one in plans}) == len(plans)
    assert sum(isinstance(one.when, Every) for one in plans) <= 2
    for one in plans:
        said = json.dumps(dict(one.parameters))
        assert (str(WHERE) in said) == bool(one.parameters)
        assert "bot.example" not in said

"""Test the messages of a drill, its planted faults, and its last result in `lookout doctor` and the digest."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from deployments.cli.doctor.checks import CHECKS, run_checks
from deployments.cli.doctor.services import Health
from deployments.demo.bot import Bot
from deployments.demo.configuration import SUITE
from deployments.demo.drill_page import FAULT_OF_CASE, RIGHT_CASE
from deployments.demo.faults import PlantedFaults
from deployments.demo.policies import load_policies, load_vocabulary
from deployments.triggers.delivery import Delivery, IgnoreReason, NotForUs
from flows.alerting.send import send_outbox
from flows.data_folder import open_store
from flows.digest.flow import notify_if_drill_overdue
from flows.drill.context import build_drill_context
from flows.drill.course import notify_drill_failure, write_drill_report_file
from flows.drill.receiver import build_signed_delivery
from flows.drill.status import DrillState, build_drill_status
from flows.drill.wrong_answer import build_drill_notifier
from monitors.alerts.decide import decide_alerts
from monitors.alerts.group import group_items_into_alerts
from monitors.alerts.observe import ObservationContext, build_monitor_fault_observation
from monitors.alerts.observe import build_drill_observation as drill_seen
from monitors.alerts.sender import choose_channel
from monitors.alerts.settings import AlertSettings
from monitors.alerts.slack.render import render_alert
from monitors.config.file import load_config, parse_config
from monitors.config.sections import DeploySender, DrillSettings
from monitors.domains.pack import DEFAULT_DOMAINS, load_domain
from monitors.errors import ConfigError
from monitors.gate.assess import assess_case
from monitors.goldset.load import load_suite
from monitors.graders.base import GraderSettings
from monitors.graders.panel import build_rule_panel, grade_exchange
from monitors.records.grades import CaseOutcome
from monitors.records.incidents import Capability
from monitors.records.self_checks import DRILL_TARGET, DrillStation, StationState
from tests.builders import exchange
from tests.deployments.triggers.senders import GITHUB_SECRET, HUB_SECRET, STANDARD_SECRET, github, hub, standard
from tests.flows.drill.installation import TOML
from tests.flows.messages import format_stable_messages
from tests.servers.slack import TOKEN, SlackServer
from tests.servers.watchdog import Watchdog
from tests.warehouse.sample_drills import BEGAN, drill, station
from warehouse.journal.rows import DrillRow

SETTINGS = AlertSettings(slack_channel="C0ALERTS", slack_monitor_channel="C0MONITOR", slack_buttons=True)
FAILED = drill(
    stations=(station(DrillStation.SLACK, StationState.FAILED, "the token was revoked", "set a new one"),)
)


@pytest.mark.parametrize(
    ("provider", "secret", "make"),
    [
        (DeploySender.GITHUB, GITHUB_SECRET, github),
        (DeploySender.HUGGINGFACE, HUB_SECRET, hub),
        (DeploySender.STANDARD, STANDARD_SECRET, standard),
    ],
)
def test_a_delivery_to_itself_is_proved_by_the_receivers_own_parser_and_starts_nothing(provider, secret, make):
    """The receiver's parser accepts the signed delivery that a drill sends to the receiver.

    The delivery contains no deploy.
    """
    at = int(BEGAN.timestamp())
    signed = build_signed_delivery(provider, secret, "drill-1", at)
    headers = {name: (value,) for name, value in signed.headers.items()}
    parsed = make().verify_and_parse(Delivery(headers, signed.body, BEGAN))
    assert isinstance(parsed, NotForUs)
    assert parsed.reason in (IgnoreReason.PING, IgnoreReason.EVENT)


@pytest.mark.parametrize("case_id", [*FAULT_OF_CASE, RIGHT_CASE])
def test_each_planted_fault_fails_by_the_graders_and_the_right_answer_beside_it_does_not(case_id):
    """The graders fail each wrong answer that a drill plants, and pass the right answer to the same case."""
    case = next(one for one in load_suite(SUITE).cases if one.id == case_id)
    said = Bot(load_policies(), load_vocabulary(), PlantedFaults()).reply(case.turns[0]).text
    answer = exchange(case, said)
    panel = build_rule_panel(GraderSettings(), load_domain(DEFAULT_DOMAINS))
    expected = CaseOutcome.CORRECT if case_id == RIGHT_CASE else CaseOutcome.FAILED
    assert assess_case(case, answer, grade_exchange(panel, case, answer)).outcome is expected


def messages(*, failed: bool):
    """Build the result message of a drill, and the alert about the drill's shadow target."""
    at = ObservationContext(target=DRILL_TARGET, run_id="drill-1", seen_at=BEGAN, owner=Capability.DRILL)
    title = "Drill failed at the browser: why" if failed else "Drill, no action needed: it came"
    seen = [
        drill_seen(at, title=title, detail="It was tried.", failed=failed),
        build_monitor_fault_observation(at, fault_name="DrillMissing", detail="None came."),
    ]
    settled = decide_alerts({}, seen, now=BEGAN, settings=SETTINGS)
    return group_items_into_alerts(settled.items, target=DRILL_TARGET, run_id="drill-1", now=BEGAN)


@pytest.mark.parametrize("failed", [True, False])
def test_every_message_about_a_drill_begins_with_the_word(failed):
    """Each message about a drill begins with the word "Drill", also in the notification."""
    for message in messages(failed=failed):
        shown = render_alert(message, SETTINGS)
        assert shown.text.startswith("Drill")
        assert str(shown.blocks[0]).find("'text': 'Drill") > 0
        if message.kind.value == "drill":
            assert not any(block["type"] == "actions" for block in shown.blocks)
            assert choose_channel(message, SETTINGS) == ("C0MONITOR" if failed else "C0ALERTS")


def test_no_target_may_have_the_name_of_the_shadow_target():
    """A target with the name of the drill's shadow target is rejected, as scores exclude data of this name."""
    with pytest.raises(
        ConfigError,
        match="targets: choose another target name: lookout-drill is reserved for the drills of Lookout",
    ):
        parse_config({"targets": {DRILL_TARGET: {"url": "http://x", "suite": "s"}}}, "here")


WEEKLY = DrillSettings()
NEVER = DrillSettings(enabled=False)
DAYS = timedelta(days=1)


@pytest.mark.parametrize(
    ("report", "settings", "after", "state"),
    [
        pytest.param(None, WEEKLY, DAYS, DrillState.NEVER, id="no-drill"),
        pytest.param(drill(), WEEKLY, DAYS, DrillState.PROVED, id="passed"),
        pytest.param(drill(), WEEKLY, 9 * DAYS, DrillState.OVERDUE, id="overdue"),
        pytest.param(drill(), NEVER, 9 * DAYS, DrillState.PROVED, id="not-scheduled"),
        pytest.param(drill(finished=False), WEEKLY, DAYS, DrillState.FAILED, id="unfinished"),
        pytest.param(drill(finished=False), WEEKLY, DAYS / 100, DrillState.NEVER, id="active"),
        pytest.param(FAILED, WEEKLY, 9 * DAYS, DrillState.FAILED, id="failed"),
    ],
)
def test_how_drills_stand(report, settings, after, state, snapshot):
    """The state of the drills is passed, failed, overdue or never run."""
    stands = build_drill_status(report, settings, BEGAN + after)
    assert stands.state is state
    assert stands.text == snapshot


@pytest.fixture
def slack():
    with SlackServer() as server:
        yield server


@pytest.fixture
def file(tmp_path, slack):
    """Write a configuration and its suite. Return the path of the configuration."""
    (tmp_path / "suite.jsonl").write_bytes(SUITE.read_bytes())
    text = TOML.format(slack=slack.api_url, judge="http://127.0.0.1:9", log="", more="")
    (tmp_path / "lookout.toml").write_text(text, encoding="utf-8")
    return tmp_path / "lookout.toml"


@pytest.mark.parametrize(
    ("report", "health", "to_do"),
    [
        (None, Health.DOUBTFUL, "lookout drill"),
        (drill(), Health.GOOD, ""),
        (FAILED, Health.BROKEN, "set a new one"),
    ],
)
def test_the_doctor_shows_the_last_drill(file, report, health, to_do, monkeypatch):
    """`lookout doctor` shows the result of the last drill, read from the report file of drills."""
    if report is not None:
        write_drill_report_file(file.parent / "data", report)
    only = next(one for one in CHECKS if one.__name__ == "check_drill")
    monkeypatch.setattr("deployments.cli.doctor.checks.CHECKS", (only,))
    (found,) = run_checks(file, environment={}, now=BEGAN + DAYS)[1:]
    assert (found.name, found.health, found.to_do) == ("last drill", health, to_do)


@pytest.mark.whole_only
async def test_drills_that_do_not_come_any_more_are_reported_once(file, slack, monkeypatch, snapshot):
    """If drills no longer take place, for example because their schedule is paused, this is reported once."""
    monkeypatch.setenv("SLACK_BOT_TOKEN", TOKEN)
    config = load_config(file)
    await notify_if_drill_overdue(config)
    assert slack.messages == []
    store = open_store(config)
    store.journal.append([DrillRow(row=drill(started_at=BEGAN - 900 * DAYS))], run_id=None)
    store.load_pending(5)
    await notify_if_drill_overdue(config)
    await notify_if_drill_overdue(config)
    (message,) = slack.messages
    assert message.text.startswith("Drill: ")
    assert message.channel == "C0MONITOR"
    assert re.sub(r"\b\d+ days\b", "N days", format_stable_messages([message])) == snapshot


async def test_a_failed_drill_goes_outside_at_once_and_to_slack_when_it_works(file, slack, monkeypatch, snapshot):
    """A failed drill is reported at once to the external watchdog, and to Slack as soon as Slack works.

    The watchdog gets the name of the failed station.
    """
    slack.always = "internal_error"
    with Watchdog() as check:
        monkeypatch.setenv("SLACK_BOT_TOKEN", TOKEN)
        monkeypatch.setenv("LOOKOUT_HEARTBEAT_URL", check.check)
        done = build_drill_context(load_config(file), file)
        assert await notify_drill_failure(done, FAILED) == ("heartbeat",)
    (ping,) = check.pings
    assert ping.kind == "/fail"
    assert ping.body == snapshot
    assert slack.messages == []
    slack.always = None
    await send_outbox(build_drill_notifier(done, open_store(done.config)))
    (message,) = slack.messages
    assert message.text.startswith("Drill failed at Slack")
    assert message.channel == "C0MONITOR"

"""``lookout alerts``: decisions that a user makes in a terminal apply to the next run."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from typer.testing import CliRunner

from deployments.cli.alerts.silences import compute_silence_end
from deployments.cli.app import app
from deployments.cli.exit_codes import ExitCode
from flows.alerting.pipeline import notify
from monitors.errors import ConfigError
from monitors.records.grades import FailureKind
from tests.flows.operator_actions import Clock, build_notifier, build_operator_actions
from tests.in_process import run_in_process
from tests.monitors.alerts.sample_observations import NIGHT, observation
from tests.servers.slack import TOKEN, SlackServer
from tests.servers.slack_rules import texts


@pytest.fixture
def slack():
    with SlackServer() as server:
        yield server


class Place:
    """A data folder with two open incidents, and methods that run commands on it."""

    def __init__(self, folder, slack):
        self.folder = folder
        self.clock = Clock(datetime.now(UTC) - timedelta(hours=3))
        self.people = build_operator_actions(folder, slack, self.clock)
        self.night("run-1", observation(), observation("limit-3", FailureKind.WRONG_FACT))

    def night(self, run_id, *failures):
        seen = [one.model_copy(update={"run_id": run_id, "seen_at": self.clock()}) for one in failures]
        return asyncio.run(notify(build_notifier(self.people, self.clock, run_id=run_id), seen))

    def run(self, *words, fails=None, user="meera"):
        arguments = ["alerts", *words, "--data-folder", str(self.folder)]
        result = CliRunner().invoke(app, arguments, env={"USER": user, "COLUMNS": "100", "LOOKOUT_USER": None})
        if fails is None:
            assert result.exit_code == 0, result.output + repr(result.exception)
        else:
            assert isinstance(result.exception, ConfigError)
            assert fails in str(result.exception)
        return result.stdout

    def rows(self, *words):
        printed = self.run(*words, "--json")
        return (
            json.loads(printed)
            if words[0] in ("list", "silences")
            else [json.loads(line) for line in printed.splitlines()]
        )

    def id_of(self, case_id):
        return next(one["fingerprint"][:8] for one in self.rows("list") if one["case_id"] == case_id)


def test_the_former_option_for_a_name_is_refused_with_the_present_one(tmp_path):
    """If a command gets the renamed option ``--by``, the error suggests ``--as``."""
    for words in (("alerts", "ack", "LK-KWJXK4PA", "--by", "asha"), ("review", "--by", "asha")):
        done = run_in_process(*words, cwd=tmp_path, env={"COLUMNS": "100"})
        assert done.returncode == ExitCode.USAGE
        assert "--as" in done.stderr


@pytest.fixture
def place(tmp_path, slack):
    return Place(tmp_path, slack)


def test_the_list_names_each_incident_with_its_severity_and_state(place):
    shown = place.run("list")
    for words in ("leak-1 · demo", "limit-3 · demo", "SEV 3", "open"):
        assert words in shown
    assert place.run("list", "--target", "other").startswith("No open incidents")


@pytest.mark.whole_only
def test_the_list_names_the_last_message_about_each_incident(place):
    (first,) = message_ids(place)
    assert place.run("list").count(f"message {first}") == 2
    place.clock.skip(days=2)
    (reminder,) = place.night("run-2", observation())
    shown = place.run("list")
    assert f"message {reminder.id}" in shown
    assert shown.count(f"message {first}") == 2 - len(reminder.items)


@pytest.mark.whole_only
def test_an_acknowledged_incident_is_not_reminded_and_its_history_says_who(place):
    place.run("ack", place.id_of("leak-1"), "--note", "call with the vendor at nine")
    place.clock.skip(days=2)
    assert [item.incident.case_id for alert in place.night("run-2", observation()) for item in alert.items] == []
    history = place.run("show", place.id_of("leak-1"))
    for words in ("acknowledged by meera (command)", "call with the vendor at nine", "first seen, LK-", "2 runs"):
        assert words in history


@pytest.mark.whole_only
def test_the_id_of_a_message_means_all_that_it_shows(place):
    (alert_id,) = message_ids(place)
    place.run("ack", alert_id.lower())
    assert {row["state"] for row in place.rows("list")} == {"acknowledged"}


def message_ids(place):
    """Return the ids of all alert messages about the listed incidents."""
    histories = [place.rows("show", row["fingerprint"]) for row in place.rows("list")]
    return {message["alert_id"] for (history,) in histories for message in history["messages"]}


@pytest.mark.whole_only
def test_resolved_by_hand_and_seen_again_is_regressed(place):
    place.run("resolve", place.id_of("leak-1"))
    assert [row["case_id"] for row in place.rows("list")] == ["limit-3"]
    assert len(place.rows("list", "--all")) == 2
    (alert,) = place.night("run-2", observation())
    assert alert.reason == "regressed"


@pytest.mark.whole_only
def test_a_silence_holds_until_it_ends(place):
    place.clock.at = datetime.now(UTC)
    made = place.run("silence", "--case", "leak-9", "--reason", "fix on Monday", "--for", "2d")
    assert "leak-9" in made
    place.clock.skip(minutes=5)
    assert place.night("run-2", observation("leak-9")) == ()
    (silence,) = place.rows("silences")
    assert (silence["author"], silence["comment"]) == ("meera", "fix on Monday")
    assert "leak-9" in place.run("silences")
    place.run("unsilence", silence["id"])
    assert silence["id"] not in place.run("silences")
    place.clock.skip(minutes=5)
    assert [alert.reason for alert in place.night("run-3", observation("leak-9"))] == ["first_seen"]


def test_f18_a_silence_that_ends_by_itself_lets_the_failure_out(place):
    place.clock.at = datetime.now(UTC)
    place.run("silence", "--failure", "unsafe_action", "--reason", "known", "--for", "4h")
    place.clock.skip(minutes=5)
    seen = observation("tool-1", FailureKind.UNSAFE_ACTION)
    assert place.night("run-2", seen) == ()
    place.clock.skip(hours=5)
    assert len(place.night("run-3", seen)) == 1


REFUSED = (
    (("--case", "leak-1"), "must have exactly one end"),
    (("--case", "leak-1", "--for", "2d", "--until", "2030-01-01"), "must have exactly one end"),
    (("--case", "leak-1", "--for", "soon"), "90m, 4h or 2d"),
    (("--case", "leak-1", "--until", "2020-01-01T00:00"), "must end after it starts"),
    (("--case", "leak-1", "--for", "91d"), "too long"),
    (("--for", "2d"), "cannot silence everything"),
    (("zz", "--for", "2d"), "is not a valid id"),
    (("--case", "leak-1", "--for", "2d", "--from", "2020-01-01T00:00"), "in the past"),
    (("--case", "leak-1", "--for", "2d", "--from", "tonight"), "--from 'tonight'"),
    (("--case", "leak-1", "--until", "2030-01-01", "--from", "2030-01-02"), "but the start is 2030-01-02"),
    (("--case", "leak-1", "--for", "2d", "--zone", "Europe/Berlin"), "--zone has no effect"),
    (("--case", "leak-1", "--every", "Sunday 02:00-04:00"), "--every needs a time zone"),
    (
        ("--case", "leak-1", "--every", "Sundy 02:00-04:00", "--zone", "Europe/Berlin"),
        "--every: 'Sundy 02:00-04:00'",
    ),
    (("--case", "leak-1", "--every", "Sunday 02:00-04:00", "--zone", "Berlin"), "--zone: 'Berlin'"),
    (("--every", "Sunday 02:00-04:00", "--zone", "Europe/Berlin"), "cannot silence everything"),
    (("--case", "leak-1", "--every", "day 00:00-24:00", "--zone", "UTC"), "the whole week"),
)


def test_a_silence_without_an_end_or_a_matcher_is_refused(place):
    for words, why in REFUSED:
        place.run("silence", "--reason", "because", *words, fails=why)
    assert place.rows("silences") == []


def test_a_recurring_silence_mutes_within_its_periods(place):
    """A recurring silence in Berlin keeps its local hours in the week in which the clocks change there."""
    place.clock.at = datetime(2027, 3, 22, 12, tzinfo=UTC)
    words = ("--target", "demo", "--every", "every Sunday 02:00–04:00", "--zone", "Europe/Berlin")
    with time_machine.travel(place.clock.at):
        place.run("silence", "--reason", "release window", *words)
        (silence,) = place.rows("silences")
        shown = place.run("list"), place.run("silences"), place.run("show", place.id_of("leak-1"))
    assert silence["recurrence"] == {"every": "Sunday 02:00-04:00", "zone": "Europe/Berlin"}
    for text in shown:
        text = " ".join(text.split())  # noqa: PLW2901 - without line breaks
        assert "from 2027-03-28 01:00 UTC until 2027-03-28 02:00 UTC" in text
        assert "every Sunday 02:00–04:00 Europe/Berlin" in text

    place.clock.at = datetime(2027, 3, 28, 1, 30, tzinfo=UTC)
    assert place.night("run-2", observation("leak-9")) == ()
    with time_machine.travel(place.clock.at):
        assert "silenced until 2027-03-28 02:00 UTC" in " ".join(place.run("list").split())
    place.clock.at = datetime(2027, 3, 28, 2, 30, tzinfo=UTC)
    assert "first_seen" in [alert.reason for alert in place.night("run-3", observation("leak-9"))]
    with time_machine.travel(place.clock.at):
        place.run("unsilence", silence["id"])
        assert silence["id"] not in place.run("silences")


def test_a_silence_begins_at_the_chosen_time(place):
    """A silence that begins at 22:00 in Berlin begins at 21:00 UTC in March.

    If the silence is created after 22:00, it begins at 22:00 of the following day.
    """
    with time_machine.travel(datetime(2027, 3, 22, 12, tzinfo=UTC)):
        place.run(
            "silence",
            "--case",
            "leak-1",
            "--reason",
            "r",
            "--from",
            "22:00",
            "--zone",
            "Europe/Berlin",
            "--for",
            "2h",
        )
        assert "leak-1" in place.run("list").partition("Planned silences")[2]
    with time_machine.travel(datetime(2027, 3, 22, 21, 30, tzinfo=UTC)):
        place.run(
            "silence",
            "--case",
            "limit-3",
            "--reason",
            "r",
            "--from",
            "22:00",
            "--zone",
            "Europe/Berlin",
            "--until",
            "23:00",
        )
        place.run("silence", "--case", "limit-3", "--reason", "r", "--from", "2027-04-01T08:00", "--for", "1d")
        times = [(row["starts_at"][5:16], row["ends_at"][5:16]) for row in place.rows("silences")]
    assert sorted(times) == [
        ("03-22T21:00", "03-22T23:00"),
        ("03-23T21:00", "03-23T22:00"),
        ("04-01T08:00", "04-02T08:00"),
    ]


def test_a_configured_silence_is_listed_and_ends_in_its_file(place, tmp_path):
    config = tmp_path / "lookout.toml"
    config.write_text(
        'data_folder = "."\n[targets.demo]\nurl = "http://127.0.0.1:1"\nsuite = "suite.jsonl"\n'
        '[[silences]]\nevery = "Mon-Fri, Sun 22:00-06:00"\nzone = "Asia/Kolkata"\ncase = "leak-1"\nreason = "batch"\n'
    )
    with time_machine.travel(datetime(2027, 3, 22, 12, tzinfo=UTC)):
        (silence,) = json.loads(place.run("silences", "--json", "--config", str(config)))
        assert "from 2027-03-22 16:30 UTC" in " ".join(place.run("list", "--config", str(config)).split())
        place.run("unsilence", silence["id"], "--config", str(config), fails="lookout.toml")
    assert (silence["author"], silence["comment"]) == ("lookout.toml", "batch")


def test_a_time_without_a_zone_is_utc():
    assert compute_silence_end(NIGHT, lasting=None, until="2026-03-02T08:00") == datetime(2026, 3, 2, 8, tzinfo=UTC)
    assert compute_silence_end(NIGHT, lasting=None, until="2026-03-02T08:00+02:00") == datetime(
        2026, 3, 2, 6, tzinfo=UTC
    )


def test_an_unknown_id_is_an_error_that_repeats_it(place):
    for words in (("ack", "LK-AAAAAAAA"), ("ack", "00000000"), ("unsilence", "S-1")):
        place.run(*words, fails=words[1])


@pytest.mark.parametrize("user", [None, " "])
def test_without_a_user_name_no_decision_is_stored(place, user):
    """Without a user name, for example in a service, a decision is refused and nothing is stored."""
    incident = place.id_of("limit-3")
    silence = ("silence", "--reason", "because", "--for", "4h", "--case", "limit-3")
    for words in (("ack", incident), ("resolve", incident), silence, ("unsilence", "S-1")):
        place.run(*words, fails="LOOKOUT_USER", user=user)
    assert place.rows("silences") == []
    assert {one["state"] for one in place.rows("list")} == {"open"}


def test_a_folder_without_a_warehouse_is_a_usage_error(tmp_path):
    result = CliRunner().invoke(app, ["alerts", "list", "--data-folder", str(tmp_path)])
    assert isinstance(result.exception, ConfigError)
    assert str(tmp_path) in str(result.exception)


def test_an_acknowledgement_by_command_is_shown_in_slack(place, slack, tmp_path, monkeypatch):
    monkeypatch.setenv("SLACK_BOT_TOKEN", TOKEN)
    config = tmp_path / "lookout.toml"
    config.write_text(
        f'data_folder = "."\n[alerts]\nslack_channel = "C0ALERTS"\nslack_api_url = "{slack.api_url}"\n'
        'slack_buttons = true\n[targets.demo]\nurl = "http://127.0.0.1:1"\nsuite = "suite.jsonl"\n'
    )
    place.run("ack", place.id_of("leak-1"), "--config", str(config))
    assert any("*Acknowledged* by meera" in text for text in texts(slack.messages[0].blocks))

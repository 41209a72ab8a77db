from __future__ import annotations

import io

import pytest
from rich.console import Console

from monitors.alerts.observe import ObservationContext, build_app_down_observation
from monitors.alerts.redact import build_redacted_excerpt
from monitors.alerts.slack.render import render_alert
from monitors.alerts.terminal import TerminalSender, build_terminal_panel, format_plain_text
from monitors.alerts.wording import FAILURE_TITLES
from monitors.records.base import Severity
from monitors.records.grades import FailureKind
from monitors.records.incidents import DeliveryStatus, NotifyReason
from tests.monitors.alerts.hostile import HOSTILE
from tests.monitors.alerts.sample_observations import NIGHT, alert, observation
from tests.servers.slack_rules import texts
from tests.tools.alert_examples import SETTINGS, examples


def printed(sent, width: int = 100) -> str:
    shown = io.StringIO()
    Console(file=shown, width=width).print(build_terminal_panel(sent, SETTINGS))
    return shown.getvalue()


async def test_without_credentials_the_message_is_printed_and_the_receipt_says_so():
    shown = io.StringIO()
    receipt = await TerminalSender(SETTINGS, console=Console(file=shown, width=100), now=lambda: NIGHT).send(
        alert()
    )
    assert receipt.status is DeliveryStatus.PRINTED
    assert receipt.alert_id in shown.getvalue()


@pytest.mark.parametrize("example", examples(), ids=lambda example: example.name)
def test_the_terminal_says_what_slack_says(example):
    """The terminal and Slack show the same headline, alert id and run id."""
    shown = format_plain_text(example.alert, SETTINGS)
    said = "\n".join(texts(list(render_alert(example.alert, SETTINGS).blocks)))
    for line in (shown.splitlines()[0], example.alert.id, example.alert.run_id):
        assert line in shown
        assert line in said


def test_of_several_kinds_the_gravest_says_what_helps():
    """If an alert has failures of several kinds, its only line of advice is about the most severe kind."""
    mild = observation("case-2", FailureKind.MISSING_CITATION, severity=Severity.MAJOR)
    grave = observation("case-1")
    (line,) = [
        row for row in format_plain_text(alert(mild, grave), SETTINGS).splitlines() if row.startswith("To do")
    ]
    assert FAILURE_TITLES[FailureKind.PII_DISCLOSURE] in line
    assert FAILURE_TITLES[FailureKind.MISSING_CITATION] not in line


@pytest.mark.parametrize(("target", "shown"), [("demo", "demo (production)"), ("demo-prod", "demo-prod")])
def test_production_is_named_in_the_first_line_where_the_name_does_not(target, shown):
    first = format_plain_text(alert(target=target, production=True), SETTINGS).splitlines()[0]
    assert first.endswith(f" · {shown} · leak-1")
    assert "production" not in format_plain_text(alert(), SETTINGS)


def test_a_recovered_alert_leaves_nothing_to_do():
    assert "To do" not in format_plain_text(alert().model_copy(update={"reason": NotifyReason.RECOVERED}), SETTINGS)


@pytest.mark.parametrize(("title", "says"), [("", True), ("No answers since a change of lookout.toml", False)])
def test_a_message_with_a_title_of_its_own_says_the_next_step_itself(title, says):
    at = ObservationContext(target="demo", run_id="run-1", seen_at=NIGHT)
    shown = format_plain_text(
        alert(build_app_down_observation(at, detail="no answer. Next: `lookout doctor demo`", title=title)),
        SETTINGS,
    )
    assert ("To do" in shown) is says


def test_a_flaky_failure_says_how_often_it_was_right():
    assert "flaky: 2 of 3" in format_plain_text(alert(observation(flaky="2 of 3 asks")), SETTINGS)


@pytest.mark.parametrize("width", [40, 80, 160])
def test_the_frame_fits_the_terminal(width):
    assert max(len(line) for line in printed(alert(), width).splitlines()) <= width


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_an_answer_cannot_steer_the_terminal(text):
    """An answer cannot control the terminal.

    The output has no escape sequences, no markup from the answer, and no lines that look like Lookout's.
    """
    seen = observation(answered=build_redacted_excerpt(f"[bold red]{text}[/]", limit=280) or None)
    shown = format_plain_text(alert(seen), SETTINGS)
    assert not {"\x1b", "\x07", "\x00", "\u202e"} & set(shown)
    assert shown.count("\nSeverity 3") == 1
    assert "[bold red]" in printed(alert(seen), 400)

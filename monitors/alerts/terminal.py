"""Prints alerts in the terminal, for a run without Slack credentials.

The receipt records that the alert was only printed.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.style import Style
from rich.text import Text

from monitors.alerts.digest import Digest
from monitors.alerts.message import TO_DO_LABEL, Message, MessageSection, build_message
from monitors.alerts.settings import AlertSettings
from monitors.alerts.slack.render import format_digest_as_plain_text
from monitors.errors import NotifyRejected
from monitors.records.base import Severity
from monitors.records.incidents import Alert, DeliveryStatus, Receipt

_COLOURS: dict[Severity, str] = {
    Severity.MINOR: "yellow",
    Severity.MAJOR: "dark_orange",
    Severity.CRITICAL: "red",
}
_LABEL_WIDTH = 15


def build_terminal_panel(alert: Alert, settings: AlertSettings) -> RenderableType:
    """Build a framed message for a rich console. The words are the same as in the Slack message."""
    content = build_message(alert, group_limit=settings.group_limit)
    colour = "green" if content.is_over else _COLOURS[alert.severity]
    return Panel(
        Group(
            Text(content.headline, style=Style(bold=True)), *_build_body_lines(content)
        ),  # a title would be cut off
        subtitle=Text(f"{content.id} · run {content.run_id} · {content.at}", style=Style(dim=True)),
        subtitle_align="left",
        border_style=colour,
        padding=(1, 2),
    )


def format_plain_text(alert: Alert, settings: AlertSettings) -> str:
    """Format the message without colour or frame, for logs and files. The result ends with a line break."""
    content = build_message(alert, group_limit=settings.group_limit)
    lines = [content.headline, *(line.plain for line in _build_body_lines(content))]
    return "\n".join([*lines, f"{content.id} · run {content.run_id} · {content.at}", ""])


def _build_body_lines(content: Message) -> list[Text]:
    context = " · ".join(piece for piece in (content.why_sent, content.since, content.scores) if piece)
    lines = [
        Text(context, style=Style(italic=True)),
        *(Text(mark, style=Style(bold=True)) for mark in content.marks),
    ]
    if content.dimensions:
        lines.append(Text(content.dimensions))
    lines += [Text(explanation) for explanation in content.explanations]
    for number, part in enumerate(content.parts, start=1):
        lines += [Text(""), *_format_part(part, "" if content.has_one_failure else f"{number}.")]
    if content.more:
        lines += [Text(""), Text(f"… {content.more}", style=Style(bold=True))]
    if content.to_do:
        lines += [Text(""), _build_labelled_line(TO_DO_LABEL, content.to_do)]
    if content.links:
        lines += [Text(""), *(_build_labelled_line(link.label, link.href) for link in content.links)]
    return lines


def _format_part(part: MessageSection, number: str) -> list[Text]:
    """Format one failure with its examples.

    ``number`` is the failure's number in the message, or an empty string if the message has only one failure.
    """
    rows: list[Text] = []
    if number:
        title = Text(f"{number} {part.heading}", style=Style(bold=True))
        severity = "" if part.finding else f" · {part.severity.lower()}"  # a gate's headline has the worst severity
        rows.append(Text.assemble(title, f" · {part.case_id}" if part.case_id else "", severity))
    elif part.case_id:
        rows.append(_build_labelled_line("Case", part.case_id))
    rows += [_build_labelled_line(label, text) for label, text in part.excerpts]
    if part.finding:
        finding = (
            _build_labelled_line(part.finding_label, part.finding) if part.finding_label else Text(part.finding)
        )
        rows.append(finding)
    if part.row:
        rows.append(_build_labelled_line(part.severity, part.row))
    rows += [Text(text, style=Style(italic=True)) for text in (part.others, part.history) if text]
    if part.doubt:
        rows.append(_build_labelled_line("Note", part.doubt))
    if part.flaky:
        rows.append(
            _build_labelled_line("Note", f"flaky: {part.flaky}. A flaky case alone does not decide the verdict")
        )
    for n, case in enumerate(part.examples, start=1):
        rows += [Text(""), *_format_part(case, f"{number}{n}.")]
    return rows


def _build_labelled_line(label: str, text: str) -> Text:
    return Text.assemble((f"{label:<{_LABEL_WIDTH}}", Style(dim=True)), text)


class TerminalSender:
    """Prints alerts on ``console`` with the same words as in Slack."""

    def __init__(self, settings: AlertSettings, *, console: Console, now: Callable[[], datetime]) -> None:
        self._settings = settings
        self._console = console
        self._now = now

    @property
    def notifies(self) -> bool:
        """Return False, because printed text does not notify an on-call engineer."""
        return False

    async def send(
        self, alert: Alert, *, thread: str | None = None, channel: str | None = None, again: bool = False
    ) -> Receipt:
        """Print ``alert``. All other arguments are ignored, because a terminal has no threads and no channels."""
        del thread, channel, again
        if self._console.is_terminal:
            self._console.print(build_terminal_panel(alert, self._settings))
        else:  # a log has lines, but no frames
            self._console.print(
                format_plain_text(alert, self._settings), highlight=False, markup=False, soft_wrap=True
            )
        return self._build_receipt(alert.id)

    async def send_digest(self, digest: Digest, *, again: bool = False) -> Receipt:
        """Print the nightly digest."""
        del again
        self._console.print(format_digest_as_plain_text(digest), highlight=False, markup=False)
        return self._build_receipt(digest.id)

    async def update(self, alert: Alert, *, channel: str, ts: str) -> None:
        """Raise `NotifyRejected`, because printed text cannot be edited."""
        del alert, channel, ts
        raise NotifyRejected("a message in the terminal cannot be edited")

    def _build_receipt(self, message_id: str) -> Receipt:
        return Receipt(
            alert_id=message_id,
            status=DeliveryStatus.PRINTED,
            at=self._now(),
            detail="only printed: no Slack credentials are set",
        )

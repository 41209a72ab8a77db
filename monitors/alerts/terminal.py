"""An alert as a person sees it in the terminal: what is shown when there is nobody to send it through."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.style import Style
from rich.text import Text

from monitors.alerts.message import Message, Part, message
from monitors.alerts.settings import AlertSettings
from monitors.records.base import Severity
from monitors.records.incidents import Alert

_COLOURS: dict[Severity, str] = {
    Severity.ANNOYING: "yellow",
    Severity.WRONG: "dark_orange",
    Severity.PAGE: "red",
}
_LABEL_WIDTH = 14


def terminal_panel(alert: Alert, settings: AlertSettings) -> RenderableType:
    """A framed message for a rich console, in the words that Slack would show."""
    words = message(alert, group_limit=settings.group_limit)
    colour = "green" if words.over else _COLOURS[alert.severity]
    return Panel(
        Group(*(line for line in _body(words))),
        title=Text(words.headline, style=Style(bold=True)),
        title_align="left",
        subtitle=Text(f"{words.id} · run {words.run_id} · {words.at}", style=Style(dim=True)),
        subtitle_align="left",
        border_style=colour,
        padding=(1, 2),
    )


def plain_text(alert: Alert, settings: AlertSettings) -> str:
    """The same without colour or frame, for logs and files; ends with a line break."""
    words = message(alert, group_limit=settings.group_limit)
    lines = [words.headline, *(line.plain for line in _body(words))]
    return "\n".join([*lines, f"{words.id} · run {words.run_id} · {words.at}", ""])


def _body(words: Message) -> list[Text]:
    where = " · ".join(piece for piece in (words.why_sent, words.since, words.scores) if piece)
    lines = [Text(where, style=Style(italic=True))]
    for number, part in enumerate(words.parts, start=1):
        lines += [Text(""), *_part(part, 0 if words.alone else number)]
    if words.more:
        lines += [Text(""), Text(f"… {words.more}", style=Style(bold=True))]
    if words.links:
        lines += [Text(""), *(_row(link.label, link.href) for link in words.links)]
    if words.marks:
        lines += [Text(""), *(Text(mark, style=Style(bold=True)) for mark in words.marks)]
    return lines


def _part(part: Part, number: int) -> list[Text]:
    """One failure; ``number`` 0 is an only one, whose name is the headline."""
    rows = [_row(label, text) for label, text in part.excerpts]
    rows.append(_row(part.finding_label, part.finding) if part.finding_label else Text(part.finding))
    if part.row:
        rows.append(_row(part.severity, f"by row {part.row}{part.row_note}"))
    if part.history:
        rows.append(Text(part.history, style=Style(italic=True)))
    if part.unconfirmed:
        rows.append(_row("Note", "unconfirmed: it rests on one judge"))
    if part.flaky:
        rows.append(_row("Note", f"flaky: {part.flaky}; it does not decide the verdict alone"))
    return [*_title(part, number), *rows]


def _title(part: Part, number: int) -> list[Text]:
    if number:
        title = Text(f"{number}. {part.heading}", style=Style(bold=True))
        return [Text.assemble(title, f" · {part.case_id}" if part.case_id else "")]
    return [_row("Case", part.case_id)] if part.case_id else []


def _row(label: str, text: str) -> Text:
    return Text.assemble((f"{label:<{_LABEL_WIDTH}}", Style(dim=True)), text)

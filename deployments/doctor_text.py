"""What `lookout doctor` prints: what was found, how sure, the lines that pin it, and what to do."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from deployments.doctor_health import Check, Health
from monitors.probes.page_look import PageLook, Part
from monitors.probes.settings import Selectors
from monitors.probes.wire import WireRule

SHOWN_OF_ANSWER = 200
COLOURS = {Health.GOOD: "green", Health.DOUBTFUL: "yellow", Health.BROKEN: "red"}


def print_look(console: Console, look: PageLook, *, name: str, pinned: Selectors) -> None:
    """One look, for a person. ``name`` is the target's, ``pinned`` what it had pinned before."""
    console.print(f"[bold]{escape(look.address)}[/]  {escape(look.overview.title)}", highlight=False)
    console.print(_grid(_rows(look)))
    if look.trouble is not None:
        console.print(_grid(_seen(look)))
        console.print(f"\n[bold red]{escape(look.trouble.detail)}[/]", highlight=False, soft_wrap=True)
        console.print(f"What to do: {escape(look.trouble.to_do)}", highlight=False, soft_wrap=True)
    if look.picture:
        console.print(
            f"\nPicture with what was found outlined: {escape(os.path.relpath(look.picture))}", soft_wrap=True
        )
    if look.box is not None:
        console.print(_pins_title(look, pinned))
        console.print(escape(toml_of(look, name)), highlight=False, soft_wrap=True)
        _print_wire(console, look, name)


def _rows(look: PageLook) -> Iterator[tuple[str, str]]:
    yield "page", _page(look)
    if look.frame:
        yield "frame", f"the chat is in a frame: {look.frame}"
    if look.profile:
        yield (
            "kind",
            f"profile {look.profile}" + (" (nobody described this page)" if look.profile == "generic" else ""),
        )
    if look.box is not None:
        yield "message box", _part(look.box)
        yield "send", _part(look.send) if look.send else "Enter"
        yield "answer", _part(look.answer) if look.answer else "not found out"
        yield "question", f"“{look.asked}” was asked: {look.why_asked}" if look.asked else look.why_asked
    if look.answer_text:
        cut = look.answer_text[:SHOWN_OF_ANSWER] + ("…" if len(look.answer_text) > SHOWN_OF_ANSWER else "")
        yield "it said", f"after {look.answered_s} s: {cut}"
    for error in look.console_errors:
        yield "page's error", error


def _page(look: PageLook) -> str:
    status = "no answer" if look.http_status is None else f"HTTP {look.http_status}"
    loaded = "" if look.loaded_s is None else f", loaded after {look.loaded_s} s"
    usable = "" if look.usable_s is None else f", ready to be asked after {look.usable_s} s"
    return f"{status}{loaded}{usable}"


def _part(part: Part) -> str:
    name = f" “{part.name}”" if part.name else ""
    where = f"  {part.selector}" if part.selector else "  (no selector finds just this)"
    shadow = ", in a shadow root" if part.in_shadow else ""
    return f"{part.role}{name}{where}  ·  {part.how_sure}{shadow}"


def _seen(look: PageLook) -> Iterator[tuple[str, str]]:
    """What was on the page, where no chat was found."""
    seen = look.overview
    lists = (
        ("headings", seen.headings),
        ("boxes", seen.boxes),
        ("buttons", seen.buttons),
        ("dialogs", seen.dialogs),
        ("frames", seen.frames),
    )
    for what, found in lists:
        yield what, "; ".join(found) or "none"
    yield "text", seen.text or "none"


def _grid(rows: Iterable[tuple[str, str]]) -> Table:
    table = Table.grid(padding=(0, 2))
    for what, value in rows:
        table.add_row(f"[dim]{what}[/]", escape(value))
    return table


def _pins_title(look: PageLook, pinned: Selectors) -> str:
    if look.selectors == pinned:
        return "\nIt is pinned already:"
    return "\nNothing needs to be configured. To pin what was found, in lookout.toml:"


def _print_wire(console: Console, look: PageLook, name: str) -> None:
    if not look.wire:
        if look.asked:
            console.print("\nNothing that came over the wire carried this answer in a form that can be read.")
        return
    best = look.wire[0]
    same = "the same text as the page showed" if best.likeness == 1 else "more than the page showed"
    more = f": {best.more}" if best.more else ""
    console.print(
        f"\nThe answer came as a {best.kind}, {same}{escape(more)}. To grade what was sent instead:", soft_wrap=True
    )
    console.print(escape(wire_toml(best.rule, name)), highlight=False, soft_wrap=True)
    for other in look.wire[1:4]:
        console.print(
            f"[dim]also: {escape(other.kind)} {escape(other.rule.url)}, path {escape(other.rule.text)}[/]",
            soft_wrap=True,
        )


def toml_of(look: PageLook, name: str) -> str:
    """The lines that pin what was found; a profile that the page has anyway is pinned too."""
    lines = list[str]()
    if look.profile and look.profile != "generic":
        lines += [f"[targets.{_key(name)}.probe]", f"profile = {_string(look.profile)}", ""]
    lines.append(f"[targets.{_key(name)}.probe.selectors]")
    lines += [f"{key} = {_string(value)}" for key, value in look.selectors.model_dump(exclude_none=True).items()]
    return "\n".join(lines)


def wire_toml(rule: WireRule, name: str) -> str:
    """The lines that name the response which carries the answer."""
    given = rule.model_dump(mode="json", exclude_none=True, exclude_defaults=True) | {"joins": rule.joins}
    lines = [f"[targets.{_key(name)}.probe.wire]"]
    for key, value in given.items():
        lines.append(f"{key} = {_string(value) if isinstance(value, str) else json.dumps(value)}")
    return "\n".join(lines)


def _key(name: str) -> str:
    return name if name.replace("-", "").replace("_", "").isalnum() and name.isascii() else _string(name)


def _string(text: str) -> str:
    """A TOML string: as it is between single quotes where that can be, so that a pattern stays readable."""
    plain = "'" not in text and text.isprintable()
    return f"'{text}'" if plain else json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def print_checks(console: Console, found: Iterable[Check]) -> None:
    """A line for each check, and what to do where something is wrong."""
    table = Table.grid(padding=(0, 2))
    for check in found:
        colour = COLOURS[check.health]
        table.add_row(f"[{colour}]{check.health.word}[/]", f"[bold]{check.name}[/]", escape(check.found))
        if check.to_do:
            table.add_row("", "", f"[{colour}]→[/] {escape(check.to_do)}")
    console.print(table)

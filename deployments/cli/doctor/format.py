"""Formats and prints the results of `lookout doctor`: findings, lines for lookout.toml, and what to do."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from deployments.cli.doctor.checks import BROWSER_FIX
from deployments.cli.doctor.fixes import Fix
from deployments.cli.doctor.services import Health, HealthCheck
from flows.terminal_console import print_named_lines, print_wrapped
from monitors.facts.citations import DEFAULT_PATTERNS, Citation, find_citations
from monitors.graders.base import GraderSettings
from monitors.probes.inspect.findings import NewChat, PageElement, PageInspection, Trial
from monitors.probes.settings import ProbeSettings, Selectors
from monitors.probes.wire import WireRule
from monitors.records.exchanges import Channel

MAX_SHOWN_CHARACTERS = 200
LEGEND = {
    "broken": "broken: runs need this part, so fix it first",
    "check": "check: a run may fail because of this",
    "optional": "optional: runs work without this",
}
COLOURS = {Health.GOOD: "green", Health.DOUBTFUL: "yellow", Health.BROKEN: "red"}


def print_inspection(
    console: Console, inspection: PageInspection, name: str, configured: ProbeSettings, graders: GraderSettings
) -> None:
    """Print the results of inspecting one page.

    ``name`` is the target's name; ``configured`` and ``graders`` are the target's settings.
    """
    console.print(f"[bold]{escape(inspection.address)}[/]  {escape(inspection.overview.title)}", highlight=False)
    console.print(_build_two_column_grid(_iterate_page_rows(inspection)))
    if inspection.problem is not None:
        console.print(_build_two_column_grid(_iterate_rows_of_page_without_chat(inspection)))
        console.print(f"\n[bold red]{escape(inspection.problem.detail)}[/]", highlight=False, soft_wrap=True)
        console.print(f"What to do: {escape(inspection.problem.to_do)}", highlight=False, soft_wrap=True)
    if inspection.picture:
        console.print(
            f"\nPicture of the page with the elements found: {escape(os.path.relpath(inspection.picture))}",
            soft_wrap=True,
        )
    if inspection.box is not None:
        for line in _explain_trials(inspection, configured):
            console.print(f"\n{escape(line)}", highlight=False, soft_wrap=True)
        _print_citation_suggestion(console, inspection, name, graders)
        _print_network_answer_settings(console, inspection, name, configured)
        _print_new_chat_button_result(console, inspection.new_chat, name)
        console.print(_format_selectors_title(inspection, configured.selectors))
        console.print(escape(format_selectors_toml(inspection, name)), highlight=False, soft_wrap=True)


def _iterate_page_rows(inspection: PageInspection) -> Iterator[tuple[str, str]]:
    status = "no answer" if inspection.http_status is None else f"HTTP {inspection.http_status}"
    loaded = "" if inspection.loaded_s is None else f", loaded after {inspection.loaded_s} s"
    usable = "" if inspection.usable_s is None else f", ready for questions after {inspection.usable_s} s"
    yield "page", f"{status}{loaded}{usable}"
    if inspection.frame:
        yield "frame", f"the chat is in a frame: {inspection.frame}"
    if inspection.profile:
        yield (
            "kind",
            f"profile {inspection.profile}"
            + (" (no profile fits this page)" if inspection.profile == "generic" else ""),
        )
    if inspection.box is not None:
        yield "message box", _format_element(inspection.box)
        yield "send", _format_element(inspection.send) if inspection.send else "Enter"
        yield "answer", _format_element(inspection.answer) if inspection.answer else "not found"
        yield (
            "question",
            f"asked “{inspection.asked}”: {inspection.why_asked}" if inspection.asked else inspection.why_asked,
        )
    if inspection.answer_text:
        yield "answer text", f"after {inspection.answered_s} s: {_shorten_text(inspection.answer_text)}"
    for trial in inspection.trials:
        yield "tried", _format_trial(trial)
        if trial.stripped:
            yield "not the answer", _shorten_text("; ".join(" ".join(text.split()) for text in trial.stripped))
    for error in inspection.console_errors:
        yield "page's error", error
    for refusal in inspection.refused:
        yield "refused", refusal


def _format_trial(trial: Trial) -> str:
    if trial.problem is not None:
        return f"“{trial.question}”: no answer: {trial.problem.detail}"
    reply = _shorten_text(trial.text)
    if trial.doubt:
        return f"“{trial.question}”: doubtful, {trial.doubt}: {reply}"
    grades = (("as shown on the page", trial.by_page), ("as sent over the network", trial.by_wire))
    outcomes = [f"{how}: {wrong or 'right'}" for how, wrong in grades if wrong is not None]
    return f"“{trial.question}”: {'; '.join(outcomes) or 'plausible'}: {reply}"


def _shorten_text(text: str) -> str:
    return text[:MAX_SHOWN_CHARACTERS] + ("…" if len(text) > MAX_SHOWN_CHARACTERS else "")


def _explain_trials(inspection: PageInspection, configured: ProbeSettings) -> Iterator[str]:
    """Yield sentences that explain what the answers to the test questions prove."""
    trials, best = inspection.trials, next(iter(inspection.wire), None)
    if not trials:
        yield (
            "Lookout asked no question. To check whether Lookout can read the answers, run this command with --ask."
        )
        return
    bad = [trial for trial in trials if trial.doubt or trial.problem]
    if inspection.fallback_answer:
        yield (
            "Your application gave the same answer to all three questions: "
            f"“{_shorten_text(inspection.fallback_answer)}”. "
            + (
                "Lookout then asked questions that the page itself suggests."
                if trials[0].question in inspection.starters
                else (
                    "Perhaps the application cannot answer general questions. Therefore Lookout does not know "
                    "whether it reads the answers. Run `lookout doctor` again when the target has a suite."
                )
            )
        )
    elif bad:
        yield f"{len(bad)} of {len(trials)} answers are doubtful. Compare the texts above with the picture."
    hides = best is not None and best.hides and configured.wire is None
    if best is not None and hides:
        hidden_sources = "; ".join(dict.fromkeys((*best.sources[:3], *([best.more] if best.more else []))))
        yield f"The page received sources, but does not show them: {hidden_sources}."
    by_wire = configured.wire is not None and configured.wire.graded is Channel.WIRE
    wrong = [trial for trial in trials if (trial.by_wire if by_wire else trial.by_page)]
    if wrong:
        right = sum(trial.by_wire == "" for trial in trials)
        else_right = (
            f" If Lookout grades the text sent over the network, {right} of {len(trials)} answers are right."
            if hides
            else ""
        )
        yield f"With the current settings, a run grades {len(wrong)} of {len(trials)} answers as wrong.{else_right}"
    if inspection.pins_note:
        yield (
            "Lookout does not propose the following selectors, because it read no answer with them: "
            f"{inspection.pins_note}."
        )
    if not bad and not hides and not wrong:
        yield "Lookout read all answers, and all answers are plausible. You need no more settings."


def _print_citation_suggestion(
    console: Console, inspection: PageInspection, name: str, graders: GraderSettings
) -> None:
    """If most answers name a source but none is required yet, print the settings that require one."""
    read = [trial for trial in inspection.trials if trial.problem is None]
    citing = sum(
        any(source.strip() for source in (trial.sent.citations if trial.sent else ()))
        or any(_iterate_citations(trial, graders))
        for trial in read
    )
    if graders.citation_required or 2 * citing <= len(read):
        return
    console.print(
        (
            f"\n{citing} of {len(read)} answers name their source. To make answers without a source fail, add "
            "these lines to lookout.toml:"
        ),
        highlight=False,
        soft_wrap=True,
    )
    lines = [f"[targets.{name}.graders]", "citation_required = true"]
    forms = dict.fromkeys(citation.form for trial in read for citation in _iterate_citations(trial, graders))
    if forms and graders.citation_patterns == DEFAULT_PATTERNS:
        lines.append(f"citation_patterns = [{', '.join(map(_format_toml_string, forms))}]")
    console.print(escape("\n".join(lines)), highlight=False)


def _iterate_citations(trial: Trial, graders: GraderSettings) -> Iterator[Citation]:
    for text in (trial.text, *([trial.sent.text] if trial.sent else [])):
        yield from find_citations(text, graders.citation_patterns)


def _print_new_chat_button_result(console: Console, new_chat: NewChat | None, name: str) -> None:
    """Print whether the page's "new chat" button clears the chat, and the setting for runs to use this button."""
    if new_chat is None:
        return
    if not new_chat.recalled:
        text = (
            "The page has a button for a new chat. Lookout cannot check whether the button clears the chat, "
            "because the application did not remember an earlier message. Lookout opens a new page for each case."
        )
    elif not new_chat.forgotten:
        text = (
            "The page's button for a new chat does not clear the chat: the application still remembered a word "
            "after the click. Lookout opens a new page for each case."
        )
    else:
        text = (
            "The page's button for a new chat clears the chat: the application remembered a word before the click, "
            f"but not after the click. The button takes {new_chat.button_s:g} s. A new page takes "
            f"{new_chat.fresh_s:g} s. To use the button, add these lines to lookout.toml:"
        )
    console.print(f"\n{text}", highlight=False, soft_wrap=True)
    if new_chat.forgotten:
        console.print(escape(f'[targets.{_format_toml_key(name)}.probe]\nisolation = "new-chat"'), highlight=False)


def _format_element(element: PageElement) -> str:
    name = f" “{element.name}”" if element.name else ""
    where = f"  {element.selector}" if element.selector else "  (no selector matches only this element)"
    shadow = ", in a shadow root" if element.in_shadow else ""
    return f"{element.role}{name}{where}  ·  {element.how_sure}{shadow}"


def _iterate_rows_of_page_without_chat(inspection: PageInspection) -> Iterator[tuple[str, str]]:
    """Yield rows that list the elements of a page on which no chat was found."""
    overview = inspection.overview
    lists = (
        ("headings", overview.headings),
        ("boxes", overview.boxes),
        ("buttons", overview.buttons),
        ("dialogs", overview.dialogs),
        ("frames", overview.frames),
    )
    for name, items in lists:
        yield name, "; ".join(items) or "none"
    yield "text", overview.text or "none"


def _build_two_column_grid(rows: Iterable[tuple[str, str]]) -> Table:
    table = Table.grid(padding=(0, 2))
    for name, value in rows:
        table.add_row(f"[dim]{name}[/]", escape(value))
    return table


def _format_selectors_title(inspection: PageInspection, pinned: Selectors) -> str:
    if inspection.selectors == pinned:
        return "\nAlready configured:"
    if inspection.problem is not None:
        return "\nLines for lookout.toml with the elements found:"
    return "\nLookout works without selectors. To make Lookout always use these elements, add to lookout.toml:"


def _print_network_answer_settings(
    console: Console, inspection: PageInspection, name: str, configured: ProbeSettings
) -> None:
    if configured.wire is not None:
        return
    if not inspection.wire:
        if inspection.asked or inspection.trials:
            console.print("\nNo network message contained this answer as readable text.")
        return
    best = inspection.wire[0]
    same = "with the same text as on the page" if best.likeness == 1 else "with more text than on the page"
    more = f": {best.more}" if best.more else ""
    when = (
        "You need this only if the page hides something that you want to grade, such as sources. Then add these "
        "lines to lookout.toml"
    )
    to_do = "Add these lines to lookout.toml" if best.hides else when
    console.print(
        f"\nThe answer came over the network as a {best.kind}, {same}{escape(more)}. {to_do}:", soft_wrap=True
    )
    console.print(escape(format_wire_toml(best.rule, name)), highlight=False, soft_wrap=True)
    for alternative in inspection.wire[1:4]:
        console.print(
            f"[dim]also: {escape(alternative.kind)} {escape(alternative.rule.url)}, "
            f"path {escape(alternative.rule.text)}[/]",
            soft_wrap=True,
        )


def format_selectors_toml(inspection: PageInspection, name: str) -> str:
    """Return the lines for lookout.toml that set the page's profile and the selectors of the found elements."""
    lines = list[str]()
    probe = list[str]()
    if inspection.profile and inspection.profile != "generic":
        probe.append(f"profile = {_format_toml_string(inspection.profile)}")
    if inspection.open:
        probe.append(f"open = [{', '.join(_format_toml_string(selector) for selector in inspection.open)}]")
    if probe:
        lines += [f"[targets.{_format_toml_key(name)}.probe]", *probe, ""]
    lines.append(f"[targets.{_format_toml_key(name)}.probe.selectors]")
    lines += [
        f"{key} = {_format_toml_string(value)}"
        for key, value in inspection.selectors.model_dump(exclude_none=True).items()
    ]
    return "\n".join(lines)


def format_wire_toml(rule: WireRule, name: str) -> str:
    """Return the lines for lookout.toml that select the network message with the answer."""
    values = rule.model_dump(mode="json", exclude_none=True, exclude_defaults=True) | {"joins": rule.joins}
    lines = [f"[targets.{_format_toml_key(name)}.probe.wire]"]
    for key, value in values.items():
        lines.append(f"{key} = {_format_toml_string(value) if isinstance(value, str) else json.dumps(value)}")
    return "\n".join(lines)


def _format_toml_key(name: str) -> str:
    return (
        name if name.replace("-", "").replace("_", "").isalnum() and name.isascii() else _format_toml_string(name)
    )


def _format_toml_string(text: str) -> str:
    """Return the text as a TOML string. Single quotes are preferred, because they keep patterns readable."""
    plain = "'" not in text and text.isprintable()
    return f"'{text}'" if plain else json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def print_fixes(console: Console, fixes: Sequence[Fix], checks: Iterable[HealthCheck]) -> None:
    """Print the fixes that ``--fix`` applied, the fixes that failed, and the steps that a person must take."""
    console.print()
    done = [f"[green]{escape(fix.name)}[/]: {escape(fix.text)}" for fix in fixes if fix.done]
    print_named_lines(console, "Done", done or ["nothing, because no safe fix is needed or possible"])
    print_named_lines(console, "Not done", [f"{fix.name}: {escape(fix.text)}" for fix in fixes if not fix.done])
    asked = [check for check in checks if check.to_do and not (fixes and check.to_do == BROWSER_FIX)]
    left = [f"{check.name}: {escape(check.to_do)}" for check in asked]
    print_named_lines(console, "Left", left or ["nothing"])


def print_checks(console: Console, checks: Iterable[HealthCheck]) -> None:
    """Print a line for each check and, if something is wrong, what to do."""
    table = Table.grid(padding=(0, 2))
    words: list[str] = []
    for check in checks:
        colour = COLOURS[check.health]
        words.append(check.word)
        table.add_row(f"[{colour}]{check.word}[/]", f"[bold]{check.name}[/]", escape(check.found))
        if check.to_do:
            table.add_row("", "", f"[{colour}]→[/] {escape(check.to_do)}")
    console.print(table)
    legend = "; ".join(text for word, text in LEGEND.items() if word in words)
    if legend:
        console.print()
        print_wrapped(console, f"{legend}.")

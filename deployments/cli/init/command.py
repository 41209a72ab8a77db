"""``lookout init``: four questions, and what is needed to begin."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from rich.console import Console

from deployments.cli.exit_codes import ExitCode
from deployments.cli.init.answers import Answers, Prompter
from deployments.cli.init.api import Probe, check_driver, probe_of
from deployments.cli.init.files import SUITE_NAME, WEBHOOKS_NAME, places, refuse_existing, write
from flows.terminal import write_json, write_note
from flows.terminal_console import terminal_console
from monitors.config.file import load_config
from monitors.goldset.load import load_suite
from monitors.records.base import Record

_SEEN_PAGE: Final = "what is seen on the page, with a picture"
_SEEN_API: Final = "ask the API one question, and see what it says"


class NextStep(Record):
    """Something to do next: a command, and what for."""

    command: str
    why: str


class InitReport(Record):
    """What was written, as ``--json`` prints it."""

    target: str
    config: Path
    suite: Path
    webhooks: Path
    questions: int
    moved_aside: tuple[Path, ...]
    next: tuple[NextStep, ...]


def init_command(
    config_path: Path,
    given: Mapping[str, str],
    *,
    take_defaults: bool,
    force: bool,
    as_json: bool,
    driver: str | None = None,
    may_ask: bool = True,
) -> ExitCode:
    """Ask what ``given`` leaves open, and write; see ``lookout init --help``. Raises `ConfigError`."""
    from flows.context import environment  # duckdb

    check_driver(driver)
    if not force:
        refuse_existing(config_path)
    asker = Prompter(
        given, take_defaults=take_defaults, say=_say, line=sys.stdin.readline, is_typed=sys.stdin.isatty()
    )
    answers = asker.answers()
    probe = probe_of(answers.target, environment(), driver=driver, may_ask=may_ask, say=_say)
    moved = write(config_path, answers, force=force, probe=probe.table)
    result = _summarise(config_path, answers, moved, probe)
    if as_json:
        write_json(result.model_dump_json(indent=2) + "\n")
    else:
        _print(result)
    return ExitCode.PASS


def _summarise(config_path: Path, answers: Answers, moved: tuple[Path, ...], probe: Probe) -> InitReport:
    """Read back what was written, as the next command will."""
    where = places(config_path)
    config = load_config(config_path)
    suite = load_suite(config.target(answers.target.name).suite)
    return InitReport(
        target=answers.target.name,
        config=config_path,
        suite=where[SUITE_NAME],
        webhooks=where[WEBHOOKS_NAME],
        questions=len(suite.cases),
        moved_aside=moved,
        next=_next(config_path, answers, probe, judged=config.judge is not None),
    )


def _next(config_path: Path, answers: Answers, probe: Probe, *, judged: bool) -> tuple[NextStep, ...]:
    name = answers.target.name
    option = "" if config_path == Path("lookout.toml") else f" --config {config_path}"
    steps = [
        NextStep(command=f"lookout doctor{option}", why="is everything there?"),
        NextStep(command=f"lookout doctor {name}{option}", why=_SEEN_API if probe.is_api else _SEEN_PAGE),
        NextStep(command=f"lookout verify {name}{option}", why="ask the questions, once"),
        NextStep(
            command=f"lookout gold starter adversarial >> {places(config_path)[SUITE_NAME]}",
            why="adds twenty attacks that any application must decline",
        ),
        NextStep(command=f"lookout up{option}", why="watch it: every night, and after each deploy"),
    ]
    if probe.export:
        again = f"lookout init --force --target {answers.target.address}{option}"
        steps[:0] = [
            NextStep(command=f"export {probe.export}=…", why="the API answers nobody without"),
            NextStep(command=again, why="finds out how the API is asked"),
        ]
    if judged:
        steps.insert(0, NextStep(command="export ANTHROPIC_API_KEY=…", why="turns the judge on"))
    if answers.channel:
        why = f"so that alerts reach {answers.channel}; the bot needs chat:write there"
        steps.insert(0, NextStep(command="export SLACK_BOT_TOKEN=…", why=why))
    return tuple(steps)


def _print(result: InitReport) -> None:
    out = terminal_console(highlight=False, soft_wrap=True)
    rows = (
        (result.config, f"the target {result.target}; every key is in docs/configuration.md"),
        (result.suite, f"{result.questions} example questions: replace them with your own"),
        (result.webhooks, "what to enter at Hugging Face and GitHub"),
    )
    for path in result.moved_aside:
        out.print(f"Kept what was there as {path}", markup=False)
    out.print("Written")
    _table(out, [(str(path), text) for path, text in rows])
    out.print("Next")
    _table(out, [(step.command, step.why) for step in result.next])


def _table(out: Console, rows: list[tuple[str, str]]) -> None:
    width = max(len(left) for left, _ in rows)
    for left, right in rows:
        out.print(f"  {left:<{width}}  {right}", markup=False)
    out.print()


def _say(text: str) -> None:
    """Write to the terminal, so that a question does not go into a pipe."""
    write_note(text)

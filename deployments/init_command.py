"""``lookout init``: four questions, and what is needed to begin."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from rich.console import Console

from deployments.exit_codes import ExitCode
from deployments.init_answers import Answers
from deployments.init_ask import Asker
from deployments.init_files import places, refuse_existing, write
from deployments.init_texts import SUITE_NAME, WEBHOOKS_NAME
from monitors.config import load_config
from monitors.goldset.load import load_suite
from monitors.records.base import Record


class Step(Record):
    """Something to do next: a command, and what for."""

    command: str
    why: str


class Begun(Record):
    """What was written, as ``--json`` prints it."""

    target: str
    config: Path
    suite: Path
    webhooks: Path
    questions: int
    moved_aside: tuple[Path, ...]
    next: tuple[Step, ...]


def init_command(
    config_path: Path, given: Mapping[str, str], *, take_defaults: bool, force: bool, as_json: bool
) -> ExitCode:
    """Ask what ``given`` leaves open, and write; see ``lookout init --help``. Raises `ConfigError`."""
    if not force:
        refuse_existing(config_path)
    asker = Asker(
        given, take_defaults=take_defaults, say=_say, line=sys.stdin.readline, is_typed=sys.stdin.isatty()
    )
    answers = asker.answers()
    moved = write(config_path, answers, force=force)
    begun = _begun(config_path, answers, moved)
    if as_json:
        sys.stdout.write(begun.model_dump_json(indent=2) + "\n")
    else:
        _print(begun)
    return ExitCode.PASS


def _begun(config_path: Path, answers: Answers, moved: tuple[Path, ...]) -> Begun:
    """Read back what was written, as the next command will."""
    where = places(config_path)
    config = load_config(config_path)
    suite = load_suite(config.target(answers.target.name).suite)
    return Begun(
        target=answers.target.name,
        config=config_path,
        suite=where[SUITE_NAME],
        webhooks=where[WEBHOOKS_NAME],
        questions=len(suite.cases),
        moved_aside=moved,
        next=_next(config_path, answers, judged=config.judge is not None),
    )


def _next(config_path: Path, answers: Answers, *, judged: bool) -> tuple[Step, ...]:
    name = answers.target.name
    option = "" if config_path == Path("lookout.toml") else f" --config {config_path}"
    steps = [
        Step(command=f"lookout doctor{option}", why="is everything there?"),
        Step(command=f"lookout doctor {name}{option}", why="what is seen on the page, with a picture"),
        Step(command=f"lookout verify {name}{option}", why="ask the questions, once"),
        Step(command=f"lookout up{option}", why="watch it: every night, and after each deploy"),
    ]
    if judged:
        steps.insert(0, Step(command="export ANTHROPIC_API_KEY=…", why="turns the judge on"))
    if answers.channel:
        why = f"so that alerts reach {answers.channel}; the bot needs chat:write there"
        steps.insert(0, Step(command="export SLACK_BOT_TOKEN=…", why=why))
    return tuple(steps)


def _print(begun: Begun) -> None:
    out = Console(highlight=False, soft_wrap=True)
    rows = (
        (begun.config, f"the target {begun.target}; every key is in docs/configuration.md"),
        (begun.suite, f"{begun.questions} example questions: replace them with your own"),
        (begun.webhooks, "what to enter at Hugging Face and GitHub"),
    )
    for path in begun.moved_aside:
        out.print(f"Kept what was there as {path}", markup=False)
    out.print("Written")
    _table(out, [(str(path), words) for path, words in rows])
    out.print("Next")
    _table(out, [(step.command, step.why) for step in begun.next])


def _table(out: Console, rows: list[tuple[str, str]]) -> None:
    width = max(len(left) for left, _ in rows)
    for left, right in rows:
        out.print(f"  {left:<{width}}  {right}", markup=False)
    out.print()


def _say(words: str) -> None:
    """Questions go to the terminal and not into what is piped on."""
    sys.stderr.write(words)
    sys.stderr.flush()

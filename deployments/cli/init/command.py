"""``lookout init``: ask five questions, and write a configuration, a first suite and notes about webhooks."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.markup import escape

from deployments.cli.exit_codes import ExitCode
from deployments.cli.init.answers import NOWHERE, UNKNOWN, Answers, Prompter
from deployments.cli.init.api import Probe, detect_probe_table, require_supported_driver
from deployments.cli.init.files import (
    SUITE_NAME,
    WEBHOOKS_NAME,
    list_init_file_paths,
    refuse_existing_files,
    write_init_files,
)
from deployments.cli.options import DEFAULT_CONFIG
from flows.terminal import write_json, write_note
from flows.terminal_console import make_terminal_console, print_wrapped
from flows.waiting import show_waiting
from monitors.config.file import load_config
from monitors.domains.pack import list_shipped_packs
from monitors.errors import ConfigError
from monitors.goldset.load import load_suite
from monitors.records.base import Record

_SEEN_PAGE: Final = "shows what Lookout reads on the page, with a picture"
_SEEN_API: Final = "asks the API one question and shows the answer"


class NextStep(Record):
    """A command to run next, and its purpose."""

    command: str
    why: str


class InitReport(Record):
    """The files that were written, and the next steps. ``--json`` prints this record."""

    target: str
    config: Path
    suite: Path
    webhooks: Path
    questions: int
    moved_aside: tuple[Path, ...]
    next: tuple[NextStep, ...]


DriverOption = Annotated[
    str | None,
    typer.Option(
        help="how to ask the application: browser (a page), json or sse (a chat API); default: Lookout detects it"
    ),
]


def init_command(
    *,
    config: Annotated[
        Path,
        typer.Option("--config", help="the configuration file to write; the other files are written next to it"),
    ] = DEFAULT_CONFIG,
    target: Annotated[
        str | None,
        typer.Option(
            help="the application: the address of a chat page or API, or a Hugging Face Space as owner/name"
        ),
    ] = None,
    environment: Annotated[
        str | None, typer.Option(help="the environment of the application: staging or production")
    ] = None,
    model_family: Annotated[
        str | None, typer.Option(help="the family or the name of the application's model, or unknown")
    ] = None,
    domains: Annotated[
        str | None, typer.Option(help="the subject of the application: general, health_insurance, or none")
    ] = None,
    slack_channel: Annotated[
        str | None, typer.Option(help="the channel for alerts: #name, a channel id, webhook, or none")
    ] = None,
    driver: DriverOption = None,
    ask: Annotated[
        bool, typer.Option("--ask/--no-ask", help="ask a chat API one harmless question, to detect its format")
    ] = True,
    yes: Annotated[
        bool, typer.Option("--yes", help="ask no questions; use the default of each option that is not given")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="rename existing files to FILE.old")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print the result as JSON")] = False,
) -> ExitCode:
    """Set up Lookout: answer five questions to get a lookout.toml, a first suite and instructions for webhooks."""
    from flows.runtime.secrets import get_environment as variables  # slow: imports duckdb

    require_supported_driver(driver)
    if not force:
        refuse_existing_files(config)
    flags = {
        "--target": target,
        "--environment": environment,
        "--model-family": model_family,
        "--domains": domains,
        "--slack-channel": slack_channel,
    }
    options = {flag: answer for flag, answer in flags.items() if answer is not None}
    known_options = (
        _add_and_print_stored_answers(config, target, options) if force and target is not None else options
    )
    line, is_typed = sys.stdin.readline, sys.stdin.isatty()
    answers = Prompter(known_options, take_defaults=yes, say=write_note, line=line, is_typed=is_typed).ask_all()
    with show_waiting(f"Looking at {answers.target.address}"):
        probe = detect_probe_table(answers.target, variables(), driver=driver, may_ask=ask, say=write_note)
    moved = write_init_files(config, answers, force=force, probe=probe.table)
    again = _format_rerun_command(config, options, answers, driver=driver, yes=yes)
    result = _build_init_report(config, answers, moved, probe, again)
    if as_json:
        write_json(result.model_dump_json(indent=2) + "\n")
    else:
        _print_init_report(result)
    return ExitCode.PASS


def _add_and_print_stored_answers(config: Path, address: str, options: dict[str, str]) -> dict[str, str]:
    """Return the options, completed with the answers in the existing configuration. Print the added answers."""
    stored = read_stored_answers(config, address)
    if taken := [f"{flag} {answer}" for flag, answer in stored.items() if flag not in options]:
        write_note(f"Lookout takes these answers from {config}: {', '.join(taken)}\n")
    return stored | options


def read_stored_answers(config_path: Path, address: str) -> dict[str, str]:
    """Read the answers for the target with this address from an existing lookout.toml.

    The result is empty if there is no such target.
    """
    try:
        config = load_config(config_path)
    except (ConfigError, OSError):
        return {}
    target = next((target for target in config.targets.values() if address in {target.url, target.space}), None)
    if target is None:
        return {}
    own_packs = set(target.domains) - set(list_shipped_packs())
    return {
        "--environment": target.environment.value,
        "--model-family": target.model_family or UNKNOWN,
        **({} if own_packs else {"--domains": ",".join(target.domains) or NOWHERE}),
        "--slack-channel": config.alerts.slack_channel or NOWHERE,
    }


def _format_rerun_command(
    config_path: Path, options: Mapping[str, str], answers: Answers, *, driver: str | None, yes: bool
) -> str:
    """Return the ``lookout init`` command that detects the API's format again, with the same options."""
    values = {"--target": answers.target.address, **options}
    if driver is not None:
        values["--driver"] = driver
    if config_path != DEFAULT_CONFIG:
        values["--config"] = str(config_path)
    flags = [part for flag, answer in values.items() for part in (flag, answer)]
    return shlex.join(["lookout", "init", "--force", *flags, *(["--yes"] if yes else [])])


def _build_init_report(
    config_path: Path, answers: Answers, moved: tuple[Path, ...], probe: Probe, again: str
) -> InitReport:
    """Read the written files, and build the report with the next steps."""
    paths = list_init_file_paths(config_path)
    config = load_config(config_path)
    suite = load_suite(config.require_target(answers.target.name).suite)
    return InitReport(
        target=answers.target.name,
        config=config_path,
        suite=paths[SUITE_NAME],
        webhooks=paths[WEBHOOKS_NAME],
        questions=len(suite.cases),
        moved_aside=moved,
        next=_list_next_steps(config_path, answers, probe, again, judged=config.judge is not None),
    )


def _list_next_steps(
    config_path: Path, answers: Answers, probe: Probe, again: str, *, judged: bool
) -> tuple[NextStep, ...]:
    name = answers.target.name
    option = "" if config_path == DEFAULT_CONFIG else f" --config {config_path}"
    steps = [
        NextStep(command=f"lookout doctor{option}", why="checks everything that a run needs"),
        NextStep(command=f"lookout doctor {name}{option}", why=_SEEN_API if probe.is_api else _SEEN_PAGE),
        NextStep(command=f"lookout verify {name}{option}", why="asks all questions of the suite once"),
        NextStep(
            command=f"lookout gold starter adversarial >> {list_init_file_paths(config_path)[SUITE_NAME]}",
            why="adds twenty attack questions that every application must decline",
        ),
        NextStep(command=f"lookout up{option}", why="verifies the application every night and after each deploy"),
    ]
    if probe.export:
        steps[:0] = [
            NextStep(command=f"export {probe.export}=…", why="the API rejects requests without this value"),
            NextStep(command=again, why="detects how to ask the API"),
        ]
    if answers.channel:
        why = f"sends alerts to {answers.channel}; the Slack bot needs the permission chat:write"
        steps.append(NextStep(command="export SLACK_BOT_TOKEN=…", why=why))
    if answers.by_webhook:
        steps.append(
            NextStep(command="export SLACK_WEBHOOK_URL=…", why="sends alerts to the channel of this webhook")
        )
    if judged:
        steps.append(NextStep(command="export ANTHROPIC_API_KEY=…", why="optional: switches the judge on"))
    return tuple(steps)


def _print_init_report(result: InitReport) -> None:
    out = make_terminal_console(highlight=False, soft_wrap=True)
    rows = (
        (
            result.config,
            f"the configuration with the target {result.target}. docs/configuration.md explains all settings",
        ),
        (result.suite, f"{result.questions} example questions. Replace them with your own"),
        (result.webhooks, "how to set up webhooks at Hugging Face and GitHub"),
    )
    for path in result.moved_aside:
        out.print(f"Renamed the old file to {path}", markup=False)
    out.print("Lookout wrote")
    _print_two_columns(out, [(str(path), text) for path, text in rows])
    out.print("Next")
    _print_two_columns(out, [(step.command, step.why) for step in result.next])


def _print_two_columns(out: Console, rows: list[tuple[str, str]]) -> None:
    width = max(len(left) for left, _ in rows)
    for left, right in rows:
        if out.is_terminal:
            print_wrapped(out, escape(right), f"  {left:<{width}}  ")
        else:
            out.print(f"  {left:<{width}}  {right}", markup=False)
    out.print()

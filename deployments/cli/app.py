"""The command ``lookout``, and the table of its subcommands.

Each error is printed as one line and sets the exit code. The module of a subcommand is imported only when that
subcommand runs or shows its own help. ``lookout --help`` imports none of these modules.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager, nullcontext
from importlib import import_module
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

import typer
from rich.markup import escape
from typer._click.exceptions import NoSuchOption
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from deployments.cli.exit_codes import SPECIAL_CODES, ExitCode, exit_code_from_error
from deployments.cli.options import DEFAULT_CONFIG, ConfigOption, JsonOption
from deployments.start import explain_import_error
from flows.terminal import (
    escape_controls_in_output,
    flush_stdout_or_report_failure,
    make_standard_streams_safe,
    print_text,
    write_note,
)
from flows.waiting import show_waiting
from monitors.errors import MonitorError

# fmt: off
COMMANDS: Final[Mapping[str, Mapping[str, tuple[str, str]]]] = {
    "lookout": {
        "verify": ("cli.verify", "Ask a live application the questions of a suite, grade the answers and print a verdict."),
        "demo": ("demo.command",
            "Try Lookout in two minutes: start a demo application with planted faults and run Lookout against it."),
        "report": ("cli.report", "Write a run's reports again from its stored results. For a nightly run, print its report."),
        "sql": ("cli.sql", "Query the warehouse, the database of all results, with SQL. A query can only read."),
        "nightly": ("cli.nightly",
            "Grade a sample of last night's real conversations, and estimate the failure rate of all conversations."),
        "repeatability": ("cli.repeatability",
            "Ask some questions twice, to measure how often an answer changes and how often a run fails by chance."),
        "reconcile": ("cli.reconcile",
            "Compare the bad replies that the app's guard and the nightly judge found. Estimate how many both missed."),
        "watch": ("cli.watch",
            "Follow the applications' hallucination logs. Store new entries and send alerts about them."),
        "slack-actions": ("cli.receive", (
            "Receive clicks on the buttons of Slack messages. Set SLACK_SIGNING_SECRET in the environment."
        )),
        "login": ("cli.login",
            "Sign in to a page that requires a login, and store the session for runs."),
        "receive": ("cli.receive",
            "Receive webhooks about deploys from Hugging Face, GitHub and others. Verify each commit once."),
        "up": ("cli.up",
            "Run the whole monitor on this machine: server, schedules, receivers and site. Ctrl-C or SIGTERM stops it."),
        "down": ("cli.up",
            "Stop the local Prefect server that earlier runs started. Also list the servers of other data folders."),
        "facts": ("cli.pipes.commands", "Find quantities, such as amounts and durations, in texts. Input on stdin: JSON Lines with id and text."),
        "grade": ("cli.pipes.commands",
            "Grade replies. Input on stdin: JSON Lines with id, question, gold, answer and expected_refusal."),
        "redact": ("cli.pipes.commands",
            "Mask personal data and secrets in texts. Input on stdin: JSON Lines with id and text."),
        "conversations": ("cli.pipes.conversations",
            "Show the conversations that a nightly run reads from a log. Input on stdin: the log's JSON Lines."),
        "localise": ("cli.pipes.commands",
            "Score the files an agent named: precision, recall, F1. Input on stdin: JSON Lines with id, named and gold."),
        "efficiency": ("cli.pipes.commands",
            "Count an agent's tool calls and repeated calls. Input on stdin: JSON Lines with id, calls and reference."),
        "first-look": ("cli.pipes.commands",
            "Find what failed cases have in common. Input on stdin: JSON Lines with id and cases."),
        "bisect": ("cli.explain.bisect",
            "Find the first build that fails. Each build must have its own address."),
        "shrink": ("cli.explain.shrink",
            "Find the shortest question that still fails in the same way as a case."),
        "review": ("cli.reviews.answers",
            "Review a sample of the graded answers yourself. Lookout shows its own verdicts after your decision."),
        "gate": ("cli.gate.gate",
            "Verify a staging deploy, or evaluate the results of a run again. The exit code is the verdict."),
        "init": ("cli.init.command",
            "Set up Lookout: answer five questions to get a lookout.toml, a first suite and instructions for webhooks."),
        "doctor": ("cli.doctor.command",
            (
                "Check everything that a run needs. With an address, show what Lookout reads on that page, with a "
                "picture."
            )),
        "prefect-yaml": ("prefect.prefect_yaml",
            "Print a prefect.yaml with all deployments and schedules, for your own Prefect work pool."),
        "drill": ("cli.drill",
            "Test the alert path end to end with a planted failure."),
        "automations": ("cli.automations",
            "Create Prefect automations that send alerts about missing or crashed runs. It is safe to run this again."),
        "backup": ("cli.backup",
            "Write a backup of the data folder into one file. Runs can continue during the backup."),
        "restore": ("cli.backup",
            "Verify a backup and restore it into a new or empty data folder. Then rebuild the warehouse."),
    },
    "browser": {
        "install": ("install_browser",
            (
                "Install a browser for Lookout if none works: download it or, as root, install the system's package."
            )),
    },
    "site": {
        "export": ("cli.site.export",
            "Write the site as static files with masked personal data, for a static Space or any web server."),
    },
    "site token": {
        "add": ("cli.site.token", (
            "Create a person's token for the login to the site. The token is shown only once."
        )),
        "list": ("cli.site.token", "List the people who have a token, and their permissions."),
        "revoke": ("cli.site.token", "Revoke a person's token. Their open sessions end at once."),
    },
    "warehouse": {
        "load": ("cli.warehouse",
            "Load new results of runs into the warehouse."),
        "check": ("cli.warehouse",
            "Check that the warehouse contains every row of its source, the journal."),
        "rebuild": ("cli.warehouse", "Rebuild the warehouse from the journal. The old file stays next to the new one."),
        "compact": ("cli.warehouse", (
            "Move old journal segments into Parquet archives. Lookout checks each archive before it deletes a segment."
        )),
        "age": ("cli.warehouse",
            "Remove personal data from old records, or from one conversation."),
        "pictures": ("cli.warehouse",
            "Delete screenshots and traces that are older than the limits under [evidence] in lookout.toml."),
        "export": ("cli.warehouse",
            "Export the warehouse as Parquet files, in one folder for each table and day."),
    },
    "alerts": {
        "list": ("cli.alerts.commands", "List the incidents that are not resolved, worst first."),
        "show": ("cli.alerts.commands",
            (
                "Show an incident or an alert message, with its history and evidence."
            )),
        "ack": ("cli.alerts.commands", "Acknowledge an incident. Lookout sends no reminder unless the incident gets worse."),
        "resolve": ("cli.alerts.commands",
            "Mark an incident as resolved. If a later run finds the fault again, Lookout sends a new alert."),
        "false-alarm": ("cli.alerts.commands",
            "Mark an alert as a false alarm, because the answer was right. Lookout sends no alerts about it for a week."),
        "draft": ("cli.alerts.commands",
            "Create a draft of a new case from an alert about a real user's question. Personal data is masked."),
        "silence": ("cli.alerts.commands",
            "Stop alerts for some time. At the end, Lookout reports the faults that remain."),
        "silences": ("cli.alerts.commands", "List the silences with their author, reason and end."),
        "unsilence": ("cli.alerts.commands", (
            "End a silence now. The next run reports the faults that are still there."
        )),
    },
    "gold": {
        "build": ("cli.gold.build",
            "Build cases from fact sheets: one question for each template and policy, with its right answer and clause."),
        "mutants": ("cli.gold.mutants",
            "Test the graders: make wrong answers from every gold, and count how many the rules catch without a judge."),
        "check": ("cli.gold.check",
            "Check a suite: find golds that are wrong, contain personal data or cannot be graded."),
        "freeze": ("cli.gold.freeze",
            "Freeze a version of a suite: write a numbered copy with its hash and counts."),
        "diff": ("cli.gold.freeze",
            "List the changes between two versions of a suite, or between a suite and a dataset."),
        "push": ("cli.gold.datasets",
            "Write a suite into a dataset. Lookout first shows the changes, and stops if people changed the dataset."),
        "pull": ("cli.gold.datasets",
            "Copy people's changes from a dataset into the suite. New entries become drafts for `gold grow`."),
        "import": ("cli.gold.import_array",
            "Import questions from a CSV table, or from the JSON suite of another project."),
        "draft": ("cli.gold.draft",
            "Let a model draft questions about a document. A person must accept each draft with `lookout gold review`."),
        "review": ("cli.gold.review",
            "Review each draft next to its clause: accept, reject or edit it. Only accepted drafts become gold."),
        "translate": ("cli.gold.translate",
            "Let a model draft missing translations of English cases. Accept each draft with `lookout gold review`."),
        "grow": ("cli.gold.grow",
            "Review drafts of cases that come from failures: incidents, Slack, reviews and live traffic."),
        "vary": ("cli.gold.vary",
            "Write variants of a suite's questions, with the same expected answers and without a model."),
        "starter": ("cli.gold.starter",
            "Write starter files: attack questions that every application must decline, or a first domain pack."),
    },
}
# fmt: on
"""All commands, by group and name.

Each entry contains the command's module below ``deployments``, and the first paragraph of the command's help. The
command ``some-thing`` is the function ``some_thing_command`` of its module.
"""

USERS: Final[Mapping[str, tuple[str, ...]]] = {
    "Bot owner: are the answers of my application right?": (
        *("demo", "init", "doctor", "login", "verify", "report", "gate", "nightly", "reconcile", "repeatability"),
    ),
    "On-call: what is broken, and since when?": ("alerts", "site", "bisect", "shrink", "sql"),
    "Domain expert: which answers are right?": ("gold", "review"),
    "Platform engineer: does Lookout keep running?": (
        *("up", "down", "receive", "slack-actions", "watch", "drill", "automations", "prefect-yaml", "warehouse"),
        *("backup", "restore"),
        "browser",
    ),
    "Scripts: JSON lines in, JSON lines out": (
        *("grade", "facts", "redact", "conversations", "localise", "efficiency", "first-look"),
    ),
}
"""The headings of the help, with the commands and groups under each heading. Each command is listed once."""

_PANELS: Final = {name: user for user, names in USERS.items() for name in names}

# fmt: off
EXAMPLES: Final[Mapping[str, str]] = {
    "verify": "bot",
    "demo": "--no-faults",
    "report": "--json",
    "sql": "'from run_summary'",
    "nightly": "bot --plan",
    "repeatability": "bot --figures",
    "reconcile": "bot --days 14",
    "watch": "bot --once",
    "slack-actions": "--port 8067",
    "login": "bot --window",
    "receive": "--only",
    "up": "--port 8066",
    "down": "--json",
    "facts": "< lines.jsonl",
    "grade": "< lines.jsonl",
    "redact": "< lines.jsonl",
    "conversations": "< log.jsonl",
    "localise": "< lines.jsonl",
    "efficiency": "< lines.jsonl",
    "first-look": "< lines.jsonl",
    "bisect": "bot --good 9b00d5a --bad 4f2a91c --repo . --url-of 'https://{short}.example.com'",
    "shrink": "room-rent --budget 20",
    "review": "bot --figures",
    "gate": "--target staging --github",
    "init": "--target owner/space --slack-channel '#alerts'",
    "doctor": "https://owner-space.hf.space --ask",
    "prefect-yaml": "--pool lookout",
    "drill": "--here",
    "automations": "--json",
    "backup": "lookout-backup.tar.gz",
    "restore": "lookout-backup.tar.gz --moved",
    "site": "--port 8068",
    "browser": "--json",
    "browser install": "",
    "site export": "public",
    "site token add": "asha --role operate",
    "site token list": "--json",
    "site token revoke": "asha",
    "warehouse load": "--wait-s 10",
    "warehouse check": "--json",
    "warehouse rebuild": "--wait-s 10",
    "warehouse compact": "--json",
    "warehouse age": "--days 90",
    "warehouse pictures": "--json",
    "warehouse export": "out --since 2026-03-01 --until 2026-03-31",
    "alerts list": "--all",
    "alerts show": "LK-KWJXK4PA",
    "alerts ack": "LK-KWJXK4PA --as asha",
    "alerts resolve": "LK-KWJXK4PA --as asha --note 'rolled back'",
    "alerts false-alarm": "LK-KWJXK4PA --as asha --note '24 months is right since March'",
    "alerts draft": "LK-KWJXK4PA --as asha",
    "alerts silence": "LK-KWJXK4PA --for 4h --as asha --reason 'the fix is on its way'",
    "alerts silences": "--all",
    "alerts unsilence": "3f1c77aa --as asha",
    "gold build": "--facts facts --out suite.jsonl",
    "gold mutants": "suite.jsonl",
    "gold check": "suite.jsonl --documents documents",
    "gold freeze": "suite.jsonl --note 'prices of March'",
    "gold diff": "frozen/suite-v1.json suite.jsonl",
    "gold push": "langsmith:gold --suite suite.jsonl",
    "gold pull": "langfuse:gold --suite suite.jsonl --as asha",
    "gold import": "array.json --out suite.jsonl --severity claims=3 --severity 2",
    "gold draft": "--document policy.md --count 10",
    "gold review": "gold-drafts.jsonl --suite suite.jsonl --as asha",
    "gold translate": "suite.jsonl --to hi",
    "gold grow": "--suite suite.jsonl --as asha",
    "gold vary": "suite.jsonl --kinds typo",
    "gold starter": "adversarial --out attacks.jsonl",
}
# fmt: on
"""The arguments of each command's example. The command's help and ``docs/commands.md`` show the example."""

GROUPS: Final = {
    "warehouse": "Manage the warehouse, the database of all results.",
    "alerts": "List, show, acknowledge, silence and resolve incidents.",
    "gold": "Build, check, freeze and compare suites, which are questions with their right answers (golds).",
}


NESTED_GROUPS: Final = {"token": "site token"}
"""Maps the name of each group that is inside another group to its full name, such as ``site token``."""
GROUP_OF_SITE: Final = "Serve the web site with the current state, runs, incidents and decisions."
GROUP_OF_BROWSER: Final = "Show which browser Lookout uses and whether it works, or install one."
GROUP_OF_TOKENS: Final = "Manage the tokens that give people access to the site from other machines."


RENAMED_OPTIONS: Final[Mapping[str, str]] = {"--by": "--as"}
"""Option names of earlier versions, with the current names."""


class LazyGroup(TyperGroup):
    """A group of commands from `COMMANDS`.

    The group lists all its commands, but imports the module of a command only when that command is called.
    """

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self._path = NESTED_GROUPS.get(self.name or "", self.name or "")
        self._rows = COMMANDS[self._path]
        listed = {name: TyperCommand(name, help=escape(line)) for name, (_, line) in self._rows.items()}
        self.commands = {**listed, **self.commands}
        if self.name == "lookout":
            self._sort_under_user_headings()

    def _sort_under_user_headings(self) -> None:
        """Sort the commands in the order of `USERS`, and list each under its heading."""
        order = [*(name for name in _PANELS if name in self.commands), *self.commands]
        self.commands = {name: self.commands[name] for name in order}
        for name, command in self.commands.items():
            setattr(command, "rich_help_panel", _PANELS.get(name))  # noqa: B010 - the base class does not declare it

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command's name, the command itself and the remaining arguments.

        For an unknown name, the error lists similar names.
        """
        name, command, rest = super().resolve_command(ctx, args)
        return name, self.load_command(name) if name else command, rest

    def invoke(self, ctx: Any) -> Any:
        """Run the command. If an option has been renamed, the error for its old name shows the new name."""
        try:
            return super().invoke(ctx)
        except NoSuchOption as error:
            if (renamed := RENAMED_OPTIONS.get(error.option_name)) is not None:
                error.possibilities = [renamed]
            raise

    def load_command(self, name: str) -> Any:
        """Import and return the command or group with this name. Raises `KeyError` for an unknown name."""
        if name not in self._rows:
            return self.commands[name]
        with show_waiting("Starting"):
            module = import_module(f"deployments.{self._rows[name][0]}")
        single = typer.Typer(add_completion=False)
        single.command(name)(getattr(module, f"{name.replace('-', '_')}_command"))
        path = " ".join(part for part in (self._path, name) if part != "lookout")
        command: Any = get_command(single)
        for part in (command, *command.params):
            if part.help:
                part.help = escape(part.help)  # otherwise the renderer reads ``[[judge.models]]`` as markup
        codes = [f"{int(code)} {meaning}" for code, meaning in SPECIAL_CODES.get(path, {}).items()]
        code_lines = f"\n\nExit codes: {'; '.join(codes)}." if codes else ""
        command.epilog = escape(f"Example: lookout {path} {EXAMPLES.get(path, '')}".rstrip() + code_lines)
        return command


def _exit_with_code(code: ExitCode | None, **_options: object) -> None:
    raise typer.Exit(int(code or ExitCode.PASS))


app = typer.Typer(
    name="lookout",
    cls=LazyGroup,
    help="Monitor a deployed LLM application through the page that its users see.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    result_callback=_exit_with_code,
    epilog="Exit codes: 0 PASS, 1 FAIL, 2 wrong usage or configuration, 3 INCONCLUSIVE, 4 Lookout itself failed.",
)
for _name, _help in GROUPS.items():
    app.add_typer(typer.Typer(cls=LazyGroup, help=_help, no_args_is_help=True), name=_name)


def _serve_site_unless_subcommand(
    context: typer.Context,
    config: ConfigOption = DEFAULT_CONFIG,
    host: Annotated[
        str | None, typer.Option(help="the address to listen on; default: the setting site.host")
    ] = None,
    port: Annotated[
        int | None, typer.Option(min=1, max=65_535, help="the port to listen on; default: the setting site.port")
    ] = None,
) -> None:
    if context.invoked_subcommand is None:
        from deployments.cli.site.serve import serve_site  # slow import

        serve_site(config, host=host, port=port)


_site_group = typer.Typer(
    cls=LazyGroup,
    help=GROUP_OF_SITE,
    callback=_serve_site_unless_subcommand,
    invoke_without_command=True,
    no_args_is_help=False,
)
_site_group.add_typer(typer.Typer(cls=LazyGroup, help=GROUP_OF_TOKENS, no_args_is_help=True), name="token")
app.add_typer(_site_group, name="site")


def _report_browser_unless_subcommand(context: typer.Context, as_json: JsonOption = False) -> ExitCode | None:
    if context.invoked_subcommand is None:
        from deployments.install_browser import report_browser  # slow import

        return report_browser(as_json=as_json)
    return None


app.add_typer(
    typer.Typer(
        cls=LazyGroup,
        help=GROUP_OF_BROWSER,
        callback=_report_browser_unless_subcommand,
        invoke_without_command=True,
        no_args_is_help=False,
    ),
    name="browser",
)


@app.callback(invoke_without_command=True)
def _print_version_or_help(
    context: typer.Context,
    show_version: Annotated[bool, typer.Option("--version", help="print the version")] = False,
) -> None:
    if show_version:
        from importlib.metadata import version  # slow: not needed for --help

        print_text(f"lookout {version('lookout-monitor')}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        print_text(context.get_help())


def main() -> None:
    """Run the command. Print each error as one line with the action to take, and exit with the error's code."""
    make_standard_streams_safe()
    code: object = ExitCode.PASS
    try:
        with escape_controls_in_output(), nullcontext() if _is_gate_command() else _disable_workflow_commands():
            _run_app_and_exit()
    except SystemExit as end:
        code = end.code
    sys.exit(code if flush_stdout_or_report_failure() else int(ExitCode.MONITOR))


def _is_gate_command() -> bool:
    """Return whether the command is ``gate``. ``gate`` writes its own workflow commands for GitHub's runner."""
    return sys.argv[1:2] == ["gate"]


@contextmanager
def _disable_workflow_commands() -> Generator[None]:
    """Prevent GitHub's runner from executing workflow commands in the output.

    The output may contain text from an application or a log, and this text may look like a workflow command.
    """
    if not os.environ.get("GITHUB_ACTIONS"):
        yield
        return
    from deployments.cli.gate.github import disable_workflow_commands  # slow: imports pydantic

    with disable_workflow_commands(os.environ):
        yield


def _run_app_and_exit() -> None:
    try:
        get_command(app)()
    except (KeyboardInterrupt, BrokenPipeError):
        sys.exit(int(ExitCode.INCONCLUSIVE))
    except Exception as error:  # noqa: BLE001 - every error ends as a line and an exit code
        advice = (
            explain_import_error(error) if isinstance(error, ImportError) else _explain_invalid_file_name(error)
        )
        with _disable_workflow_commands() if _is_gate_command() else nullcontext():
            write_note(f"lookout: {advice}\n" if advice else _format_error(error))
        code = exit_code_from_error(error) if isinstance(error, MonitorError) else ExitCode.MONITOR
        sys.exit(int(ExitCode.USAGE if advice else code))
    except BaseException as error:  # SystemExit and KeyboardInterrupt get their exit code here too
        # Prefect raises this error in a run that received SIGTERM.
        prefect = sys.modules.get("prefect.exceptions")
        if not (prefect is not None and isinstance(error, prefect.TerminationSignal)):
            raise
        write_note(f"lookout: SIGTERM stopped the command. {RESUME_HINT}.\n")
        sys.exit(int(ExitCode.INCONCLUSIVE))


def _explain_invalid_file_name(error: Exception) -> str | None:
    """Explain why a file name in the command line or the configuration is invalid.

    Returns ``None`` for other errors.
    """
    if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
        return f"{str(error.filename)[:60]}… is too long for a file or folder name. Use a shorter name"
    if type(error) is ValueError and "null byte" in str(error):
        return "a file or folder name contains a NUL character. Remove this character"
    return None


def _format_error(error: Exception) -> str:
    """Format an error as one line for a person. If LOOKOUT_DEBUG is set, add the traceback."""
    from flows.server.prefect_server import is_server_gone  # slow: imported only after an error
    from monitors.alerts.redact import redact, redact_except_hosts

    text = redact_except_hosts(str(error), filter(_is_http_address, sys.argv[1:]))
    if is_server_gone(error):
        text = f"the Prefect server stopped answering ({text}). {RESUME_HINT}"
    elif not isinstance(error, MonitorError):
        text = f"Lookout has an internal error: {type(error).__name__}: {text}"
    if os.environ.get("LOOKOUT_DEBUG"):
        import traceback

        return f"{redact(''.join(traceback.format_exception(error)))}lookout: {text}\n"
    hint = "" if isinstance(error, MonitorError) else "Set LOOKOUT_DEBUG=1 to see the traceback.\n"
    return f"lookout: {text}\n{hint}"


def _is_http_address(argument: str) -> bool:
    try:
        return urlsplit(argument).scheme in {"http", "https"}
    except ValueError:  # such as an opening bracket without a closing bracket
        return False


RESUME_HINT: Final = (
    "All answers and grades so far are stored. To continue, run the same command again. A verification can "
    "continue only within one hour"
)


if __name__ == "__main__":
    main()

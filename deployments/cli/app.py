"""The command ``lookout``: the table of its commands, and the conversion of errors to one line and an exit code.

A command's module is imported when the command is run or asked for its own help; ``lookout --help`` imports none.
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
from flows.terminal import finish_output, guard_output, prepare_output, print_text, write_note
from flows.waiting import show_waiting
from monitors.errors import MonitorError

# fmt: off
COMMANDS: Final[Mapping[str, Mapping[str, tuple[str, str]]]] = {
    "lookout": {
        "verify": ("cli.verify", "Run the suite against a live page in a real browser."),
        "demo": ("demo.command",
            "Start a demo chat page or agent with planted faults and run Lookout against it (two minutes)."),
        "report": ("cli.report", "Write the reports of a run again from its results.json and print their paths, or print a night's report."),
        "sql": ("cli.sql", "Query the warehouse. The query can only read; it also works during runs."),
        "nightly": ("cli.nightly",
            "Grade a night of live traffic: sample real conversations, grade them, estimate the rate for all."),
        "repeatability": ("cli.repeatability",
            "Ask some cases twice, and measure how often answers flip and how often the gate fails by chance."),
        "reconcile": ("cli.reconcile",
            "Compare the app's own guard with the nightly judge, and estimate the failures that both missed."),
        "watch": ("cli.watch",
            "Follow the applications' hallucination logs; store new entries and send alerts about them."),
        "slack-actions": ("cli.receive", (
            "Receive clicks on the buttons of Slack messages; needs SLACK_SIGNING_SECRET."
        )),
        "login": ("cli.login",
            "Sign in to a page behind a login, in a window or with its form, and store the session for runs."),
        "receive": ("cli.receive",
            "Receive deploys from Hugging Face, GitHub and others as webhooks, and verify each commit once."),
        "up": ("cli.up",
            "Run the whole monitor on this machine (server, schedules, receivers, site) until SIGTERM or Ctrl-C."),
        "down": ("cli.up",
            "Stop the local Prefect server that runs left running, and list the servers of other data folders."),
        "facts": ("cli.pipes", "Find quantities. Read JSON Lines with id and text from stdin; write the facts of each line."),
        "grade": ("cli.pipes",
            "Grade replies. Read JSON Lines (id, question, gold, answer, expected_refusal) from stdin; write verdicts."),
        "redact": ("cli.pipes",
            "Mask personal data and secrets. Read JSON Lines with id and text from stdin; write the masked texts."),
        "conversations": ("cli.conversations",
            "Show how a nightly run reads a log. Read JSON Lines from stdin; write question, answer, passages and time."),
        "localise": ("cli.pipes",
            "Score file lists. Read JSON Lines with id, named and gold from stdin; write precision, recall and F1."),
        "efficiency": ("cli.pipes",
            "Count an agent's calls. Read JSON Lines with id, calls, reference from stdin; write calls and repeats."),
        "first-look": ("cli.pipes",
            'Find what failed cases share. Read JSON Lines (id, cases: [{attribute: value, "failed": true}]) on stdin.'),
        "bisect": ("cli.explain.bisect",
            "Find the first bad build, if each build has an address; exit code 3 if it is not found."),
        "shrink": ("cli.explain.shrink",
            "Find the shortest question that still fails in the same way as a case."),
        "review": ("cli.reviews.answers",
            "Review a share of the graded answers. Lookout shows the verdicts after your decision."),
        "gate": ("cli.gate.gate",
            "Verify a staging deploy, or evaluate the results of a run again; the exit code is the verdict."),
        "init": ("cli.init.command",
            "Ask five questions; write a lookout.toml, a first suite, and what to enter where deploys are reported."),
        "doctor": ("cli.doctor.command",
            (
                "Show what Lookout reads on a chat page, with a picture; without an address, check everything "
                "runs need."
            )),
        "prefect-yaml": ("prefect.prefect_yaml",
            "Print a prefect.yaml with every deployment and schedule, for workers of a work pool."),
        "drill": ("cli.drill",
            "Test the alert path end to end with a planted failure."),
        "automations": ("cli.automations",
            "Create Prefect automations that alert on missing or crashed runs (idempotent)."),
        "backup": ("cli.backup",
            "Write the journal, keys and reports of the data folder into one file; runs continue meanwhile."),
        "restore": ("cli.backup",
            "Verify a backup, restore it into a missing or empty data folder, and rebuild the warehouse."),
    },
    "browser": {
        "install": ("install_browser",
            (
                "Install a browser for the probes if none works: a download, or the system's package if you are "
                "root."
            )),
    },
    "site": {
        "export": ("cli.site.export",
            "Write the redacted pages, a badge and figures as files for a static Space or any web server."),
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
            "Load new results of runs; exit code 4 if some are damaged or missing."),
        "check": ("cli.warehouse",
            "Compare the warehouse with the journal; exit code 4 if rows are missing or changed."),
        "rebuild": ("cli.warehouse", "Rebuild the warehouse from the journal; the old file stays next to it."),
        "compact": ("cli.warehouse", (
            "Move old segments into Parquet archives; each archive is checked before a segment is deleted."
        )),
        "age": ("cli.warehouse",
            "Remove personal data from old records, or from one conversation."),
        "pictures": ("cli.warehouse",
            "Remove screenshots and traces that are older than the limits under [evidence]."),
        "export": ("cli.warehouse",
            "Write Parquet files, one folder for each table and day; a second export gives the same files."),
    },
    "alerts": {
        "list": ("cli.alerts.commands", "List the incidents that are not resolved, worst first."),
        "show": ("cli.alerts.commands",
            (
                "Show a message, or the last message of an incident, with its history and evidence."
            )),
        "ack": ("cli.alerts.commands", "Acknowledge an incident: no reminder until it is worse."),
        "resolve": ("cli.alerts.commands",
            "Mark an incident as resolved. If a later run finds the fault again, Lookout sends a new alert."),
        "false-alarm": ("cli.alerts.commands",
            "Mark an alert as a false alarm: the answer was right. No alerts about it for a week."),
        "draft": ("cli.alerts.commands",
            "Draft a redacted gold case for review from a real user's question and the answer."),
        "silence": ("cli.alerts.commands",
            "Stop alerts for some time; give your name and a reason. Remaining faults are reported at the end."),
        "silences": ("cli.alerts.commands", "List the silences with their author, reason and end."),
        "unsilence": ("cli.alerts.commands", (
            "End a silence now; the next run reports the faults that are still there."
        )),
    },
    "gold": {
        "build": ("cli.gold.build",
            "Build cases from facts: each template asks about each policy; each gold names its field and clause."),
        "mutants": ("cli.gold.mutants",
            "Create known-bad mutants of every gold, and count the mutants that graders catch without a judge."),
        "check": ("cli.gold.check",
            (
                "Find golds that are wrong, disclose data or cannot be graded. Exit code 1 if something must be "
                "fixed."
            )),
        "freeze": ("cli.gold.freeze",
            "Freeze a suite: a numbered copy with its hash and counts. Exit code 1 if it must be fixed first."),
        "diff": ("cli.gold.freeze",
            "List the changes between two versions of a suite, or a suite and a dataset; severity changes first."),
        "push": ("cli.gold.datasets",
            (
                "Write a suite into a dataset. Lookout first shows the difference and never overwrites people's "
                "changes."
            )),
        "pull": ("cli.gold.datasets",
            "Copy people's changes from a dataset into the suite. New entries become drafts for `gold grow`."),
        "import": ("cli.gold.import_array",
            "Import questions from a table or from a suite of another project; give missing severities as options."),
        "draft": ("cli.gold.draft",
            (
                "Let a model draft users' questions about a document. A draft becomes gold only with `lookout "
                "gold review`."
            )),
        "review": ("cli.gold.review",
            "Review each draft next to its clause: accept, reject or edit it. Only accepted drafts become gold."),
        "translate": ("cli.gold.translate",
            "Let a model draft missing translations of English cases. Only `lookout gold review` makes a draft gold."),
        "grow": ("cli.gold.grow",
            (
                "Make gold cases from failures: drafts of incidents, Slack's \"Add to gold\", reviews and live "
                "traffic."
            )),
        "vary": ("cli.gold.vary",
            "Write other wordings of a suite's questions with the same expected answers, without a model."),
        "starter": ("cli.gold.starter",
            "Write a starter: attacks that every application must decline, or a first domain pack."),
    },
}
# fmt: on
"""By group and name: the module below ``deployments`` and the first paragraph of the help.

The command ``some-thing`` is the function ``some_thing_command`` of its module.
"""

USERS: Final[Mapping[str, tuple[str, ...]]] = {
    "Bot owner: are the answers of my application right?": (
        *("demo", "init", "doctor", "login", "verify", "report", "gate", "nightly", "reconcile", "repeatability"),
    ),
    "On-call: what is broken, and since when?": ("alerts", "site", "bisect", "shrink", "sql"),
    "Domain expert: which answers are right?": ("gold", "review"),
    "Platform engineer: does it keep running?": (
        *("up", "down", "receive", "slack-actions", "watch", "drill", "automations", "prefect-yaml", "warehouse"),
        *("backup", "restore"),
        "browser",
    ),
    "Scripts: JSON lines in, JSON lines out": (
        *("grade", "facts", "redact", "conversations", "localise", "efficiency", "first-look"),
    ),
}
"""Who uses which commands and groups, in the order of the help. Each is listed once."""

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
"""An example of each command, as it is typed behind its name: in its help and in ``docs/commands.md``."""

GROUPS: Final = {
    "warehouse": "Look after the warehouse: load, check, rebuild, compact, age, export.",
    "alerts": "Open incidents: list, show, ack, silence, resolve.",
    "gold": "Build, check, freeze and compare suites of gold questions.",
}


NESTED_GROUPS: Final = {"token": "site token"}
"""Groups inside another group, by their own name."""
GROUP_OF_SITE: Final = "Serve the site: the present state, runs, incidents, decisions."
GROUP_OF_BROWSER: Final = "Show which browser the probes use and whether it works; install one."
GROUP_OF_TOKENS: Final = "Access to the site from other machines: add, list, revoke tokens."


RENAMED_OPTIONS: Final[Mapping[str, str]] = {"--by": "--as"}
"""Options of earlier versions, and what they are called now."""


class LazyGroup(TyperGroup):
    """The group of `COMMANDS` that has its name: lists commands by the table, imports the one that is called."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self._path = NESTED_GROUPS.get(self.name or "", self.name or "")
        self._rows = COMMANDS[self._path]
        listed = {name: TyperCommand(name, help=escape(line)) for name, (_, line) in self._rows.items()}
        self.commands = {**listed, **self.commands}
        if self.name == "lookout":
            self._group_by_users()

    def _group_by_users(self) -> None:
        """Sort the commands in the order of `USERS`, each under its heading."""
        order = [*(name for name in _PANELS if name in self.commands), *self.commands]
        self.commands = {name: self.commands[name] for name in order}
        for name, command in self.commands.items():
            setattr(command, "rich_help_panel", _PANELS.get(name))  # noqa: B010 - the base class does not declare it

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The name, the command and its arguments. An unknown name is an error that offers similar ones."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, self.load(name) if name else command, rest

    def invoke(self, ctx: Any) -> Any:
        """Run the command. An option that has another name now is an error that names the new one."""
        try:
            return super().invoke(ctx)
        except NoSuchOption as error:
            if (renamed := RENAMED_OPTIONS.get(error.option_name)) is not None:
                error.possibilities = [renamed]
            raise

    def load(self, name: str) -> Any:
        """The command with its options, or the group, of this name. Raises `KeyError` for an unknown one."""
        if name not in self._rows:
            return self.commands[name]
        with show_waiting("Starting"):
            module = import_module(f"deployments.{self._rows[name][0]}")
        single = typer.Typer(add_completion=False)
        single.command(name)(getattr(module, f"{name.replace('-', '_')}_command"))
        path = " ".join(part for part in (self._path, name) if part != "lookout")
        command = _escape_help(get_command(single))
        codes = [f"{int(code)} {meaning}" for code, meaning in SPECIAL_CODES.get(path, {}).items()]
        code_lines = f"\n\nExit codes: {'; '.join(codes)}." if codes else ""
        command.epilog = escape(f"Example: lookout {path} {EXAMPLES.get(path, '')}".rstrip() + code_lines)
        return command


def _escape_help(command: Any) -> Any:
    """Escape brackets in a command's help: the renderer would take ``[[judge.models]]`` as markup."""
    for part in (command, *command.params):
        if part.help:
            part.help = escape(part.help)
    return command


def _exit_with_code(code: ExitCode | None, **_options: object) -> None:
    raise typer.Exit(int(code or ExitCode.PASS))


app = typer.Typer(
    name="lookout",
    cls=LazyGroup,
    help="Monitor a deployed LLM application through the same page as its users.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    result_callback=_exit_with_code,
    epilog="Exit codes: 0 PASS, 1 FAIL, 2 usage or configuration, 3 INCONCLUSIVE, 4 the monitor itself failed.",
)
for _name, _help in GROUPS.items():
    app.add_typer(typer.Typer(cls=LazyGroup, help=_help, no_args_is_help=True), name=_name)


def _run_site(
    context: typer.Context,
    config: ConfigOption = DEFAULT_CONFIG,
    host: Annotated[str | None, typer.Option(help="the address to listen on, instead of site.host")] = None,
    port: Annotated[int | None, typer.Option(min=1, max=65_535, help="the port, instead of site.port")] = None,
) -> None:
    if context.invoked_subcommand is None:
        from deployments.cli.site.serve import serve_site  # as for every command

        serve_site(config, host=host, port=port)


_site_group = typer.Typer(
    cls=LazyGroup, help=GROUP_OF_SITE, callback=_run_site, invoke_without_command=True, no_args_is_help=False
)
_site_group.add_typer(typer.Typer(cls=LazyGroup, help=GROUP_OF_TOKENS, no_args_is_help=True), name="token")
app.add_typer(_site_group, name="site")


def _run_browser(context: typer.Context, as_json: JsonOption = False) -> ExitCode | None:
    if context.invoked_subcommand is None:
        from deployments.install_browser import report_browser  # as for every command

        return report_browser(as_json=as_json)
    return None


app.add_typer(
    typer.Typer(
        cls=LazyGroup,
        help=GROUP_OF_BROWSER,
        callback=_run_browser,
        invoke_without_command=True,
        no_args_is_help=False,
    ),
    name="browser",
)


@app.callback(invoke_without_command=True)
def _run_root(
    context: typer.Context,
    show_version: Annotated[bool, typer.Option("--version", help="print the version")] = False,
) -> None:
    if show_version:
        from importlib.metadata import version  # slow to load, like all that --help can do without

        print_text(f"lookout {version('lookout-monitor')}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        print_text(context.get_help())


def main() -> None:
    """Run the command; print every error as one line that says what to do, and exit with a code."""
    prepare_output()
    code: object = ExitCode.PASS
    try:
        with guard_output(), nullcontext() if _is_gate_command() else _disable_workflow_commands():
            _run_app()
    except SystemExit as end:
        code = end.code
    sys.exit(code if finish_output() else int(ExitCode.MONITOR))


def _is_gate_command() -> bool:
    """Whether the command writes commands to GitHub's runner itself, and switches off the others' where it must."""
    return sys.argv[1:2] == ["gate"]


@contextmanager
def _disable_workflow_commands() -> Generator[None]:
    """Let GitHub's runner execute nothing of what is printed: it may quote an application, a suite or a log."""
    if not os.environ.get("GITHUB_ACTIONS"):
        yield
        return
    from deployments.cli.gate.github import disable_workflow_commands  # pydantic, which --help can do without

    with disable_workflow_commands(os.environ):
        yield


def _run_app() -> None:
    try:
        get_command(app)()
    except (KeyboardInterrupt, BrokenPipeError):
        sys.exit(int(ExitCode.INCONCLUSIVE))
    except Exception as error:  # noqa: BLE001 - every error ends as a line and an exit code
        advice = explain_import_error(error) if isinstance(error, ImportError) else _explain_bad_name(error)
        with _disable_workflow_commands() if _is_gate_command() else nullcontext():
            write_note(f"lookout: {advice}\n" if advice else _format_error(error))
        sys.exit(int(_choose_exit_code(error, is_refused=advice is not None)))
    except BaseException as error:  # SystemExit and KeyboardInterrupt get their exit code here, too
        # Prefect raises this in a run that got SIGTERM.
        prefect = sys.modules.get("prefect.exceptions")
        if not (prefect is not None and isinstance(error, prefect.TerminationSignal)):
            raise
        write_note(f"lookout: ended by SIGTERM. {RESUME_HINT}.\n")
        sys.exit(int(ExitCode.INCONCLUSIVE))


def _explain_bad_name(error: Exception) -> str | None:
    """Explain a name that no file can have: only the command line and the configuration give such names."""
    if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
        return f"{str(error.filename)[:60]}… is too long for a file or folder name; use a shorter one"
    if type(error) is ValueError and "null byte" in str(error):
        return "a file or folder name contains a zero byte; remove it"
    return None


def _choose_exit_code(error: Exception, *, is_refused: bool) -> ExitCode:
    if is_refused:
        return ExitCode.USAGE
    return exit_code_from_error(error) if isinstance(error, MonitorError) else ExitCode.MONITOR


def _format_error(error: Exception) -> str:
    """Format the error for a person; with LOOKOUT_DEBUG also its traceback."""
    from flows.server.prefect_server import is_server_gone  # only where something went wrong
    from monitors.alerts.redact import redact, redact_except_hosts

    text = redact_except_hosts(str(error), filter(_is_http_address, sys.argv[1:]))
    if is_server_gone(error):
        text = f"the Prefect server does not answer any more ({text}). {RESUME_HINT}"
    elif not isinstance(error, MonitorError):
        text = f"internal error of Lookout: {type(error).__name__}: {text}"
    if os.environ.get("LOOKOUT_DEBUG"):
        import traceback

        return f"{redact(''.join(traceback.format_exception(error)))}lookout: {text}\n"
    hint = "" if isinstance(error, MonitorError) else "Set LOOKOUT_DEBUG=1 to see the traceback.\n"
    return f"lookout: {text}\n{hint}"


def _is_http_address(argument: str) -> bool:
    try:
        return urlsplit(argument).scheme in {"http", "https"}
    except ValueError:  # a bracket without its pair
        return False


RESUME_HINT: Final = (
    "Answers and grades so far are stored. Run the same command again to continue (a verification: within the hour)"
)


if __name__ == "__main__":
    main()

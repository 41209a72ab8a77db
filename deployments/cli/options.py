"""The options of the commands that register themselves: doctor, gate, init, automations, prefect-yaml and review.

``lookout prefect-yaml`` and ``lookout automations`` are for installations whose runs a work pool does. They do once
for many machines what ``lookout up`` does on one.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final

import typer

from flows.terminal import write_data, write_json, write_text


def register_doctor(app: typer.Typer, environment: Mapping[str, str]) -> None:
    """Add the command to a command line; the checks read ``environment``."""

    @app.command()
    def doctor(
        target: Annotated[
            str | None,
            typer.Argument(help="a target or an address to look at; everything is checked when left out"),
        ] = None,
        *,
        config: Annotated[Path, typer.Option("--config", help="the configuration file")] = Path("lookout.toml"),
        ask: Annotated[
            bool | None,
            typer.Option(
                "--ask/--no-ask",
                help="ask each API one harmless question, and a page three of the suite's; --no-ask asks nothing",
            ),
        ] = None,
        picture: Annotated[
            Path | None, typer.Option(help="where the picture goes; the data folder when left out")
        ] = None,
        alert: Annotated[
            bool, typer.Option("--alert/--no-alert", help="send a test message by every way that is configured")
        ] = True,
        judge: Annotated[
            bool,
            typer.Option("--judge/--no-judge", help="have each judge grade two known answers, for about a cent"),
        ] = True,
        as_json: Annotated[
            bool, typer.Option("--json", help="print the result as JSON on standard output")
        ] = False,
    ) -> None:
        """Show what is seen on a chat page, with a picture and the lines that pin it; or check what runs need."""
        from deployments.cli.doctor.command import doctor_command  # rich, httpx and pydantic's models
        from monitors.probes.inspect.findings import AskPermission  # pydantic's models

        asking = AskPermission.IF_NEEDED if ask is None else AskPermission.ALWAYS if ask else AskPermission.NEVER
        code = doctor_command(
            target,
            config,
            asking=asking,
            picture=picture,
            environment=environment,
            send_alerts=alert,
            ask_judges=judge,
            as_json=as_json,
        )
        raise typer.Exit(int(code))


ResultsArgument = Annotated[
    Path | None, typer.Argument(help="the results.json of a run, to evaluate it again; nothing is asked then")
]
TargetOption = Annotated[
    str | None, typer.Option(help="what to verify: a target of the configuration, or a chat page's address")
]
SuiteOption = Annotated[Path | None, typer.Option(help="gold questions, JSON lines; needed with an address")]
ConfigOption = Annotated[
    Path | None, typer.Option("--config", help="the configuration file; lookout.toml for a --target")
]
CommitOption = Annotated[str | None, typer.Option(help="the deployed commit, when it is known")]
BaselineOption = Annotated[
    str,
    typer.Option(
        help="what to compare with: auto (the last accepted run of the target that belonged to no pull "
        "request), none, a run's id, or the path of its results.json"
    ),
]
MinScoreOption = Annotated[
    float | None,
    typer.Option(
        help="up to 1 the least weighted score (0.98), above 1 the least average rating of the reports, 1 to 5 "
        "(4.0), which needs a judge that rates them"
    ),
]
FailOnRegressionOption = Annotated[
    bool,
    typer.Option(
        "--fail-on-regression",
        help="a significant regression against the baseline fails; a drop of the average rating by more than "
        "0.3 always does",
    ),
]
StrictOption = Annotated[
    bool, typer.Option("--strict", help="a suite that is not balanced makes the run INCONCLUSIVE")
]
JunitOption = Annotated[Path | None, typer.Option(help="write the cases here as JUnit XML too")]
GithubOption = Annotated[
    bool,
    typer.Option(
        "--github",
        help="in GitHub Actions: a comment, a commit status, the job's page, notes; needs GITHUB_TOKEN",
    ),
]
AllowProductionOption = Annotated[
    str | None,
    typer.Option(help="a CI run may not touch production; a reason here lets it, and is said"),
]
AsJsonOption = Annotated[bool, typer.Option("--json", help="print the result as JSON on standard output")]


def register_gate(app: typer.Typer) -> None:
    """Add the command to a command line."""
    app.command()(gate)


def gate(
    results: ResultsArgument = None,
    *,
    target: TargetOption = None,
    suite: SuiteOption = None,
    config: ConfigOption = None,
    commit: CommitOption = None,
    baseline: BaselineOption = "auto",
    min_score: MinScoreOption = None,
    fail_on_regression: FailOnRegressionOption = False,
    strict: StrictOption = False,
    junit: JunitOption = None,
    github: GithubOption = False,
    allow_production: AllowProductionOption = None,
    as_json: AsJsonOption = False,
) -> None:
    """Verify a staging deploy, or evaluate a run's results again; the exit code is the verdict.

    0 PASS, 1 FAIL, 2 usage or configuration, 3 INCONCLUSIVE, also when the app did not serve, 4 the monitor failed.
    """
    from deployments.cli.gate.gate import GateOptions, gate_command  # rich, httpx and pydantic's models
    from flows.context import environment  # as above

    options = GateOptions(
        results=results,
        config=config,
        target=target,
        suite=suite,
        commit=commit,
        baseline=baseline,
        min_score=min_score,
        fail_on_regression=fail_on_regression,
        strict=strict,
        junit=junit,
        as_json=as_json,
        github=github,
        allow_production=allow_production,
    )
    raise typer.Exit(int(gate_command(options, environment())))


def register_init(app: typer.Typer) -> None:
    """Add the command to a command line."""
    app.command()(init)


def init(
    *,
    config: Annotated[Path, typer.Option("--config", help="where to write; the rest goes beside it")] = Path(
        "lookout.toml"
    ),
    target: Annotated[
        str | None, typer.Option(help="what to watch: the address of a chat page or API, or a Space as owner/name")
    ] = None,
    environment: Annotated[str | None, typer.Option(help="where it stands: staging or production")] = None,
    model_family: Annotated[
        str | None, typer.Option(help="family or name of the model that answers, or unknown")
    ] = None,
    slack_channel: Annotated[
        str | None, typer.Option(help="where alerts go: #name, a channel's id, or none")
    ] = None,
    driver: Annotated[
        str | None,
        typer.Option(help="what the address is: browser (a page), json or sse (a chat API); left out: found out"),
    ] = None,
    ask: Annotated[
        bool, typer.Option("--ask/--no-ask", help="ask a chat API a harmless question, to find out how it is asked")
    ] = True,
    yes: Annotated[bool, typer.Option("--yes", help="ask nothing: take the defaults of what is left out")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="where a file is there already, give it the name FILE.old and go on")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print what was written as JSON")] = False,
) -> None:
    """Ask four questions; write a lookout.toml, a first suite, and what to enter where deploys are reported."""
    from deployments.cli.init.command import init_command  # pydantic's models

    answers = {
        "--target": target,
        "--environment": environment,
        "--model-family": model_family,
        "--slack-channel": slack_channel,
    }
    given = {flag: answer for flag, answer in answers.items() if answer is not None}
    code = init_command(config, given, take_defaults=yes, force=force, as_json=as_json, driver=driver, may_ask=ask)
    raise typer.Exit(int(code))


POOL: Final = "lookout"


def register_pools(app: typer.Typer, environment: Mapping[str, str]) -> None:
    """Add the commands to a command line; ``environment`` says whom to notify."""
    app.command("prefect-yaml")(print_prefect_yaml)

    @app.command()
    def automations(
        *,
        config: Annotated[Path, typer.Option("--config", help="the configuration file")] = Path("lookout.toml"),
        as_json: Annotated[bool, typer.Option("--json", help="print what became of each as JSON")] = False,
    ) -> None:
        """Have Prefect's server report runs that do not come or whose process is gone; again changes nothing."""
        _automations(config, environment, as_json=as_json)


def print_prefect_yaml(
    *,
    config: Annotated[Path, typer.Option("--config", help="the configuration file")] = Path("lookout.toml"),
    at: Annotated[
        Path | None, typer.Option(help="where workers find that file; the same path as here when left out")
    ] = None,
    pool: Annotated[str, typer.Option(help="the work pool whose workers do the runs")] = POOL,
    image: Annotated[str | None, typer.Option(help="the image of a pool of containers")] = None,
) -> None:
    """Print a prefect.yaml with every deployment and schedule, for workers of a work pool."""
    from deployments.prefect.prefect_yaml import prefect_yaml  # pydantic's models
    from monitors.config.file import load_config

    write_data(prefect_yaml(load_config(config), at or config.resolve(), pool=pool, image=image))


def _automations(config: Path, environment: Mapping[str, str], *, as_json: bool) -> None:
    from flows.context import (
        connect_prefect,
        slack_way,  # slack_sdk, duckdb
    )
    from flows.server.schedules import planned_deployments
    from monitors.config.file import load_config

    loaded = load_config(config)
    planned = planned_deployments(loaded, config.resolve(), loaded.schedules)
    way = slack_way(loaded, environment)  # before anything is started: it may refuse
    connect_prefect(loaded)
    from flows.server.registration import (
        watched_over,  # Prefect reads its settings at import, so it must be connected
    )

    changes = asyncio.run(watched_over(planned, way))
    if as_json:
        write_json(json.dumps(changes, indent=2) + "\n")
        return
    for name, change in changes.items():
        write_text(f"{change:<9}  {name}\n")
    if way is None:
        write_text("No SLACK_BOT_TOKEN or SLACK_WEBHOOK_URL: crashed runs are marked, and nobody is notified.\n")


def register_review(app: typer.Typer) -> None:
    """Add the command to a command line."""
    app.command()(review)


def review(
    target: Annotated[str | None, typer.Argument(help="a target of the configuration; all when left out")] = None,
    *,
    config: Annotated[Path, typer.Option("--config", help="the configuration file")] = Path("lookout.toml"),
    data_folder: Annotated[Path | None, typer.Option(help="instead of the configuration's")] = None,
    by: Annotated[str | None, typer.Option(help="who reviews; asked once and remembered when left out")] = None,
    share: Annotated[
        float | None, typer.Option(min=0, max=1, help="share of graded answers to look at; 0.05 unless configured")
    ] = None,
    days: Annotated[int, typer.Option(min=1, help="how many days back to sample")] = 30,
    figures: Annotated[
        bool, typer.Option("--figures", help="how often each rule and each judge is wrong instead")
    ] = False,
    raw: Annotated[bool, typer.Option("--raw", help="show texts as they are, personal data too")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="list what is to be reviewed, as JSON lines")] = False,
) -> None:
    """Review a share of the graded answers: is each right? The verdicts of rules and judge show after your word."""
    from deployments.cli.review import review_command  # rich, duckdb and pydantic's models

    code = review_command(
        config,
        data_folder=data_folder,
        target=target,
        by=by,
        share=share,
        days=days,
        figures=figures,
        raw=raw,
        as_json=as_json,
    )
    raise typer.Exit(int(code))

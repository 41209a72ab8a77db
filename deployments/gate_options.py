"""The options of ``lookout gate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ResultsArgument = Annotated[
    Path | None, typer.Argument(help="the results.json of a run, to weigh it again; nothing is asked then")
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


def register(app: typer.Typer) -> None:
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
    """Verify a staging deploy, or weigh a run's results again; the exit code is the verdict.

    0 PASS, 1 FAIL, 2 usage or configuration, 3 INCONCLUSIVE, also when the app did not serve, 4 the monitor failed.
    """
    from deployments.gate_command import GateOptions, gate_command  # rich, httpx and pydantic's models
    from flows.wiring import environment  # as above

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

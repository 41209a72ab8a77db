"""``lookout gate --github``: what a job of GitHub Actions says of the run, everywhere it can be read.

Pending status at the start; at the end the status, the comment, the job's page and notes on the suite's lines. What
GitHub does not take is told on standard error, and the verdict's exit code stays: a verdict is what the application
did. A status that could not be set is missing or pending, and where it is required it holds the pull request.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from deployments.suite_lines import lines_of, path_in
from flows.github_posts import GitHubPlace, words_of
from flows.keys import nonce
from flows.pull_requests import AT_END, AT_START
from monitors.errors import ConfigError, NotifyError
from monitors.github.job_summary import add_summary
from monitors.github.statuses import State
from monitors.github.workflow import TOKEN_VARIABLE, Job, is_actions
from monitors.github.workflow_commands import Annotation, Level, commands_of, switch_off, switch_on
from monitors.records.grades import CaseOutcome
from monitors.records.runs import CaseResult, RunReport
from monitors.reports.comment import pull_request_comment
from monitors.reports.comment_folded import what_happened
from monitors.reports.masking import Redact, redaction_of
from monitors.reports.ordering import with_outcome

LEVELS = {
    CaseOutcome.FAILED: Level.ERROR,
    CaseOutcome.NO_ANSWER: Level.WARNING,
    CaseOutcome.UNTOLD: Level.NOTICE,
}


class JobResults:
    """Where one job's results go. Raises `ConfigError` where the token is missing: before anything is asked."""

    def __init__(self, job: Job, target: str, environment: Mapping[str, str]) -> None:
        token = environment.get(TOKEN_VARIABLE)
        if not token:
            raise ConfigError(
                f"--github needs {TOKEN_VARIABLE}; in a workflow: env: {TOKEN_VARIABLE}: ${{{{ github.token }}}}, "
                "with permissions pull-requests: write and statuses: write"
            )
        self._job = job
        self._notes = is_actions(environment)
        self._place = GitHubPlace(
            api_url=job.api_url,
            token=token,
            repository=job.repository,
            target=target,
            patience=AT_END,
            commit=job.commit,
            pull_request=job.pull_request,
            log=job.log,
        )
        self._at_start = replace(self._place, patience=AT_START)

    @contextmanager
    def following(self) -> Generator[None]:
        """Pending, and an error when the run ends without a verdict."""
        asyncio.run(self._at_start.say_state(State.PENDING, "asking the gold questions"))
        try:
            yield
        except (Exception, KeyboardInterrupt) as error:
            asyncio.run(
                self._place.say_state(State.ERROR, f"no verdict: {type(error).__name__}; see the job's log")
            )
            raise

    def stopped(self) -> None:
        """The run was stopped by a person or by the runner."""
        asyncio.run(self._place.say_state(State.ERROR, "the run was stopped before its verdict"))

    def say(self, report: RunReport, cases: Sequence[CaseResult], *, redact: Redact, suite: Path | None) -> None:
        """Everything, each thing by itself: one that fails keeps no other from being said."""
        wrong, posted = asyncio.run(self._place.say_results(report, cases, redact))
        pull = self._job.pull_request
        if posted is not None and pull is not None:
            sys.stderr.write(f"GitHub: {words_of(posted, pull)}\n")
        if pull is None:
            sys.stderr.write("GitHub: this job belongs to no pull request, so there is no comment\n")
        problems = [*wrong, *self._summary(report, cases, redact)]
        for problem in problems:
            sys.stderr.write(f"lookout: not on GitHub: {problem}\n")
        if self._notes:
            notes = [*_failures_to_post(problems), *_notes(report, cases, redact, suite, self._job.workspace)]
            sys.stderr.writelines(f"{line}\n" for line in commands_of(notes))

    def _summary(self, report: RunReport, cases: Sequence[CaseResult], redact: Redact) -> Iterator[NotifyError]:
        if self._job.summary is not None:
            try:
                add_summary(self._job.summary, pull_request_comment(report, cases, redact=redact))
            except NotifyError as error:
                yield error


@contextmanager
def runner_obeys_nothing(environment: Mapping[str, str]) -> Generator[None]:
    """While texts of an application may be printed: a line of theirs must not be a command to GitHub's runner."""
    if not is_actions(environment):
        yield
        return
    word = nonce()
    sys.stderr.write(f"{switch_off(word)}\n")
    sys.stderr.flush()
    try:
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.write(f"\n{switch_on(word)}\n")
        sys.stderr.flush()


def _failures_to_post(problems: Sequence[NotifyError]) -> Iterator[Annotation]:
    for problem in problems:
        yield Annotation(level=Level.WARNING, title="Lookout: not on GitHub", text=str(problem))


def _notes(
    report: RunReport, cases: Sequence[CaseResult], redact: Redact, suite: Path | None, workspace: Path | None
) -> Iterator[Annotation]:
    """A note on the line of each case that is not right, worst first."""
    lines = lines_of(suite) if suite else {}
    for outcome, level in LEVELS.items():
        for result in with_outcome(cases, outcome):
            line = lines.get(result.case.id)
            found = result.assessment
            yield Annotation(
                level=level,
                title=f"{report.target.name}: severity {found.severity}, {_what(result)}",
                text=f"{result.case.id}: {redaction_of(result, redact)(found.reason)}",
                file=path_in(workspace, suite) if suite and line else None,
                line=line,
            )


def _what(result: CaseResult) -> str:
    return what_happened(result) if result.assessment.outcome is not CaseOutcome.UNTOLD else "could not tell"

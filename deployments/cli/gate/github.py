"""``lookout gate --github``: report a run from a GitHub Actions job: status, comment, job page, annotations.

It sets a pending status at the start; at the end the status, the comment, the job's page and notes on the lines of
the suite's file. When GitHub does not take something, it says so on standard error, and the verdict's exit code
stays: a verdict is what the application did. A status that could not be set is missing or pending, and where it is
required it holds the pull request.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from flows.clock import utc_now
from flows.deploys.github_results import (
    GitHubDestination,
    build_result_retry_policy,
    build_status_retry_policy,
    format_comment_result,
)
from flows.runtime.secrets import generate_nonce
from flows.terminal import flush_output, write_note, write_notes
from monitors.errors import ConfigError, NotifyError
from monitors.github.actions import (
    TOKEN_VARIABLE,
    Annotation,
    Level,
    WorkflowJob,
    add_summary,
    format_commands,
    format_resume_commands,
    format_stop_commands,
    is_actions,
)
from monitors.github.pull_requests import State
from monitors.records.grades import CaseOutcome
from monitors.records.runs import CaseResult, RunReport, Verdict
from monitors.reports.case_view import select_cases_by_outcome
from monitors.reports.comment import build_pull_request_comment, format_failure_briefly
from monitors.reports.marked_text import Redact, build_case_redactor


def find_case_lines(suite: Path) -> Mapping[str, int]:
    """Map case ids to their line (from 1) in the suite's file. Empty for a file that cannot be read."""
    try:
        text = suite.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return {}
    lines: dict[str, int] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        case_id = _parse_case_id(line)
        if case_id is not None:
            lines.setdefault(case_id, number)
    return lines


def format_repository_path(workspace: Path | None, file: Path) -> str:
    """Return the file's path relative to the repository, if it is inside; else its absolute path."""
    whole = file.absolute()
    if workspace is not None and whole.is_relative_to(workspace.absolute()):
        return whole.relative_to(workspace.absolute()).as_posix()
    return whole.as_posix()


def _parse_case_id(line: str) -> str | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    case_id = value.get("id") if isinstance(value, dict) else None
    return case_id if isinstance(case_id, str) else None


LEVELS = {
    CaseOutcome.FAILED: Level.ERROR,
    CaseOutcome.NO_ANSWER: Level.WARNING,
    CaseOutcome.UNGRADED: Level.NOTICE,
}


class JobResults:
    """Posts one job's results to GitHub under ``name``. Raises `ConfigError` at once where the token is missing.

    ``change`` is what the job checks: the event's, and what it does not name of a pull request asked for at GitHub.
    """

    def __init__(self, job: WorkflowJob, name: str, environment: Mapping[str, str]) -> None:
        token = environment.get(TOKEN_VARIABLE)
        if not token:
            raise ConfigError(
                f"--github needs {TOKEN_VARIABLE}. In a workflow, set env: {TOKEN_VARIABLE}: ${{{{ github.token "
                "}}, with permissions pull-requests: write and statuses: write"
            )
        self._job = job
        self.change = job.change
        self._has_annotations = is_actions(environment)
        self._place = GitHubDestination(
            api_url=job.api_url,
            token=token,
            repository=job.repository,
            name=name,
            retry_policy=build_result_retry_policy(utc_now),
            pull_request=job.pull_request,
            log=job.log,
        )
        if job.pull_request and not (job.change.head and job.change.target_branch):
            asked, errors = asyncio.run(self._place.read_pull_request_change())
            self.change = job.change.fill_missing_from(asked)
            for error in errors:
                write_note(f"lookout: GitHub did not give the facts about this job: {error}\n")
        if self.change.head is None:
            write_note("GitHub: the commit is unknown, so Lookout sets no status\n")
        self._place = replace(self._place, commit=self.change.head)
        self._at_start = replace(self._place, retry_policy=build_status_retry_policy(utc_now))

    @contextmanager
    def track_status(self) -> Generator[None]:
        """Set the status to pending, and to an error when the run ends without a verdict."""
        asyncio.run(self._at_start.post_commit_status(State.PENDING, "asking the gold questions"))
        try:
            yield
        except (Exception, KeyboardInterrupt) as error:  # a pending status must get an end; raised again
            asyncio.run(
                self._place.post_commit_status(
                    State.ERROR, f"no verdict: {type(error).__name__}; see the job's log"
                )
            )
            raise

    def report_run_stop(self) -> None:
        """Report that a person or the runner stopped the run."""
        asyncio.run(self._place.post_commit_status(State.ERROR, "the run was stopped before its verdict"))

    def post_results(
        self, report: RunReport, cases: Sequence[CaseResult], *, redact: Redact, suite: Path | None
    ) -> None:
        """Post status, comment, job page and annotations; one that fails does not stop the others."""
        wrong, posted = asyncio.run(self._place.post_comment_and_verdict(report, cases, redact))
        pull = self._job.pull_request
        if posted is not None and pull is not None:
            write_note(f"GitHub: {format_comment_result(posted, pull)}\n")
        if pull is None:
            write_note("GitHub: this job does not belong to a pull request, so there is no comment\n")
        problems = [*wrong, *self._write_summary(report, cases, redact)]
        for problem in problems:
            write_note(f"lookout: could not write to GitHub: {problem}\n")
        if self._has_annotations:
            notes = [
                *_list_post_failures(problems),
                *_list_annotations(report, cases, redact, suite, self._job.workspace),
            ]
            write_notes(f"{line}\n" for line in format_commands(notes))

    def _write_summary(
        self, report: RunReport, cases: Sequence[CaseResult], redact: Redact
    ) -> Iterator[NotifyError]:
        if self._job.summary is not None:
            try:
                markdown = build_pull_request_comment(report, cases, redact=redact, name=self._place.name)
                add_summary(self._job.summary, markdown)
            except NotifyError as error:
                yield error


@contextmanager
def disable_workflow_commands(environment: Mapping[str, str]) -> Generator[None]:
    """Stop GitHub's runner from executing workflow commands in an application's text."""
    if not is_actions(environment):
        yield
        return
    word = generate_nonce()
    write_note(f"{format_stop_commands(word)}\n")
    try:
        yield
    finally:
        flush_output()
        write_note(f"\n{format_resume_commands(word)}\n")


def _list_post_failures(problems: Sequence[NotifyError]) -> Iterator[Annotation]:
    for problem in problems:
        yield Annotation(level=Level.WARNING, title="Lookout could not write to GitHub", text=str(problem))


def _list_annotations(
    report: RunReport, cases: Sequence[CaseResult], redact: Redact, suite: Path | None, workspace: Path | None
) -> Iterator[Annotation]:
    """Yield an annotation on the line of each case that is not correct, worst first; no error beside a PASS."""
    lines = find_case_lines(suite) if suite else {}
    for outcome, failed_level in LEVELS.items():
        passes = report.verdict is Verdict.PASS and failed_level is Level.ERROR
        level = Level.WARNING if passes else failed_level
        for result in select_cases_by_outcome(cases, outcome):
            line = lines.get(result.case.id)
            assessment = result.assessment
            yield Annotation(
                level=level,
                title=f"{report.target.name}: severity {assessment.severity}, {_format_outcome(result)}",
                text=f"{result.case.id}: {build_case_redactor(result, redact)(assessment.reason)}",
                file=format_repository_path(workspace, suite) if suite and line else None,
                line=line,
            )


def _format_outcome(result: CaseResult) -> str:
    return format_failure_briefly(result) if result.assessment.outcome is not CaseOutcome.UNGRADED else "not graded"

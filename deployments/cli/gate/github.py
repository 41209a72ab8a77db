"""``lookout gate --github``: post the results of a run to GitHub from a GitHub Actions job.

At the start, the commit status is set to pending. At the end, the final status is set, and a comment on the pull
request, the job summary, and annotations on lines of the suite are written. If GitHub rejects any of these, the
error is printed and the exit code is still the verdict. A required status that could not be set blocks the pull
request.
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
from flows.terminal import flush_output, write_note, write_notes_to_stderr
from monitors.errors import ConfigError, NotifyError
from monitors.github.actions import (
    TOKEN_VARIABLE,
    Annotation,
    AnnotationLevel,
    WorkflowJob,
    append_job_summary,
    format_first_commands_per_level,
    format_resume_commands,
    format_stop_commands,
    is_github_actions,
)
from monitors.github.pull_requests import State
from monitors.records.grades import CaseOutcome
from monitors.records.runs import CaseResult, RunReport, Verdict
from monitors.reports.case_view import select_by_outcome_worst_first
from monitors.reports.comment import build_pull_request_comment, format_failure_briefly
from monitors.reports.marked_text import Redact, build_case_redactor


def find_case_line_numbers(suite: Path) -> Mapping[str, int]:
    """Find the line number of each case in the suite's file. Line numbers start at 1.

    Returns an empty mapping if the file cannot be read.
    """
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
    """Format a file's path relative to the repository, or its absolute path if it is outside the repository."""
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
    CaseOutcome.FAILED: AnnotationLevel.ERROR,
    CaseOutcome.NO_ANSWER: AnnotationLevel.WARNING,
    CaseOutcome.UNGRADED: AnnotationLevel.NOTICE,
}


NOT_POSTED = "Lookout could not write to GitHub"


class JobResults:
    """Posts the results of one job to GitHub under ``name``. The constructor raises `ConfigError` without a token.

    ``change`` is the commit and branch that the job checks, according to the job's event or GitHub's API.
    """

    def __init__(self, job: WorkflowJob, name: str, environment: Mapping[str, str]) -> None:
        token = environment.get(TOKEN_VARIABLE)
        if not token:
            raise ConfigError(
                f"--github needs {TOKEN_VARIABLE}. In the workflow, set `env: {TOKEN_VARIABLE}: ${{{{ github.token "
                "}}` and the permissions `pull-requests: write` and `statuses: write`"
            )
        self._job = job
        self.change = job.change
        self._has_annotations = is_github_actions(environment)
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
                write_note(f"lookout: could not get the pull request of this job from GitHub: {error}\n")
        if self.change.head is None:
            write_note("GitHub: Lookout sets no commit status, because the commit is unknown\n")
        self._place = replace(self._place, commit=self.change.head)
        self._at_start = replace(self._place, retry_policy=build_status_retry_policy(utc_now))

    @contextmanager
    def track_commit_status(self) -> Generator[None]:
        """Set the commit status to pending. If the ``with`` block raises an error, set the status to error."""
        asyncio.run(self._at_start.post_commit_status(State.PENDING, "asking the questions of the suite"))
        try:
            yield
        except (Exception, KeyboardInterrupt) as error:  # the status must not stay pending
            asyncio.run(
                self._place.post_commit_status(
                    State.ERROR, f"no verdict: {type(error).__name__}. See the log of the job"
                )
            )
            raise

    def post_run_stop_status(self) -> None:
        """Set the commit status to error, because a person or the runner has stopped the run."""
        asyncio.run(self._place.post_commit_status(State.ERROR, "the run was stopped before its verdict"))

    def post_results(
        self, report: RunReport, cases: Sequence[CaseResult], *, redact: Redact, suite: Path | None
    ) -> None:
        """Post the status, the comment, the summary and the annotations.

        If one of these cannot be posted, the others are still posted.
        """
        wrong, posted = asyncio.run(self._place.post_comment_and_verdict(report, cases, redact))
        pull = self._job.pull_request
        if posted is not None and pull is not None:
            write_note(f"GitHub: {format_comment_result(posted, pull)}\n")
        if pull is None:
            write_note("GitHub: Lookout writes no comment, because this job is not for a pull request\n")
        problems = [*wrong, *self._write_job_summary(report, cases, redact)]
        for problem in problems:
            write_note(f"lookout: could not write to GitHub: {problem}\n")
        if self._has_annotations:
            notes = [
                *(
                    Annotation(level=AnnotationLevel.WARNING, title=NOT_POSTED, text=str(problem))
                    for problem in problems
                ),
                *_iterate_annotations(report, cases, redact, suite, self._job.workspace),
            ]
            write_notes_to_stderr(f"{line}\n" for line in format_first_commands_per_level(notes))

    def _write_job_summary(
        self, report: RunReport, cases: Sequence[CaseResult], redact: Redact
    ) -> Iterator[NotifyError]:
        if self._job.summary is not None:
            try:
                markdown = build_pull_request_comment(report, cases, redact=redact, name=self._place.name)
                append_job_summary(self._job.summary, markdown)
            except NotifyError as error:
                yield error


@contextmanager
def disable_workflow_commands(environment: Mapping[str, str]) -> Generator[None]:
    """Prevent GitHub's runner from executing workflow commands that the output contains."""
    if not is_github_actions(environment):
        yield
        return
    word = generate_nonce()
    write_note(f"{format_stop_commands(word)}\n")
    try:
        yield
    finally:
        flush_output()
        write_note(f"\n{format_resume_commands(word)}\n")


def _iterate_annotations(
    report: RunReport, cases: Sequence[CaseResult], redact: Redact, suite: Path | None, workspace: Path | None
) -> Iterator[Annotation]:
    """Yield an annotation for each case that is not correct, most severe first.

    After a PASS, no annotation has the level "error".
    """
    lines = find_case_line_numbers(suite) if suite else {}
    for outcome, failed_level in LEVELS.items():
        passes = report.verdict is Verdict.PASS and failed_level is AnnotationLevel.ERROR
        level = AnnotationLevel.WARNING if passes else failed_level
        for result in select_by_outcome_worst_first(cases, outcome):
            line = lines.get(result.case.id)
            assessment = result.assessment
            yield Annotation(
                level=level,
                title=f"{report.target.name}: severity {assessment.severity}, {_format_case_outcome(result)}",
                text=f"{result.case.id}: {build_case_redactor(result, redact)(assessment.reason)}",
                file=format_repository_path(workspace, suite) if suite and line else None,
                line=line,
            )


def _format_case_outcome(result: CaseResult) -> str:
    return format_failure_briefly(result) if result.assessment.outcome is not CaseOutcome.UNGRADED else "not graded"

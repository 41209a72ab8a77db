"""Find the GitHub Actions job in which Lookout runs, and write the job's summary and annotations.

The environment variables and the event file of a job name the repository, commit, pull request and log:
https://docs.github.com/en/actions/reference/workflows-and-actions/variables

GitHub executes each command that is printed to the log of a job, even if the text comes from an application.
Therefore, Lookout switches commands off before it prints texts of an application.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

from pydantic import Field, TypeAdapter, ValidationError

from monitors.errors import ConfigError, NotifyRejected
from monitors.github.api import PUBLIC_API, GitHubRecord
from monitors.records.base import Record
from monitors.records.targets import GitChange, HttpUrl, PullRequest

MAX_SUMMARY_BYTES: Final = 1024 * 1024
"""Maximum size of the summary of one step in bytes. GitHub does not show a larger summary."""
CUT_NOTE: Final = "\n\n*The summary ends here, because GitHub limits its length. The report is complete.*\n"


def append_job_summary(file: Path, markdown: str) -> None:
    """Append ``markdown`` to the summary of the job. Text beyond `MAX_SUMMARY_BYTES` is cut.

    Raises `NotifyRejected` if the summary cannot be written.
    """
    try:
        before = file.stat().st_size if file.exists() else 0
        with file.open("ab") as summary:
            summary.write(_fit_summary(markdown, MAX_SUMMARY_BYTES - before).encode())
    except OSError as error:
        raise NotifyRejected(f"the job's summary cannot be written ({error.strerror})") from error


def _fit_summary(markdown: str, limit: int) -> str:
    text = markdown if markdown.endswith("\n") else markdown + "\n"
    raw = text.encode()
    if len(raw) <= limit:
        return text
    remaining = limit - len(CUT_NOTE.encode())
    if remaining <= 0:
        return ""
    head, _, _ = raw[:remaining].rpartition(b"\n")
    return head.decode() + CUT_NOTE


MAX_PER_LEVEL: Final = 10
"""Maximum number of annotations of one level, such as errors, that GitHub shows for one step."""
_VALUE_ESCAPES: Final = {"%": "%25", "\r": "%0D", "\n": "%0A", ":": "%3A", ",": "%2C"}


class AnnotationLevel(StrEnum):
    """The level of an annotation."""

    ERROR = "error"
    WARNING = "warning"
    NOTICE = "notice"


class Annotation(Record):
    """An annotation of one line in a file. An annotation without a file belongs to the whole step of the job.

    The path is relative to the repository, and line numbers start at 1. Personal data in ``text`` is already
    redacted.
    """

    level: AnnotationLevel
    title: str
    text: str
    file: str | None = None
    line: Annotated[int, Field(ge=1)] | None = None


def format_first_commands_per_level(annotations: Sequence[Annotation]) -> Iterator[str]:
    """Yield a command for each annotation, but at most ten commands for each level.

    If a level has more than ten annotations, the tenth command states how many annotations are not shown.
    """
    for level in AnnotationLevel:
        same = [annotation for annotation in annotations if annotation.level is level]
        if len(same) <= MAX_PER_LEVEL:
            yield from map(format_command, same)
            continue
        shown = MAX_PER_LEVEL - 1
        yield from map(format_command, same[:shown])
        more = Annotation(
            level=level, title=f"and {len(same) - shown} more", text="See the report for all annotations."
        )
        yield format_command(more)


def format_command(annotation: Annotation) -> str:
    """Format an annotation as a command on one line: ``::error file=suite.jsonl,line=3,title=…::text``."""
    values = {"file": annotation.file, "line": annotation.line, "title": annotation.title}
    properties = ",".join(
        f"{name}={_escape_value(str(value))}" for name, value in values.items() if value is not None
    )
    return f"::{annotation.level} {properties}::{_escape_text(annotation.text)}"


def format_stop_commands(nonce: str) -> str:
    """Return a line after which GitHub ignores commands. ``nonce`` is a secret.

    After the line of `format_resume_commands` with the same ``nonce``, GitHub executes commands again.
    """
    return f"::stop-commands::{nonce}"


def format_resume_commands(nonce: str) -> str:
    """Return the line after which GitHub executes commands again.

    ``nonce`` is the secret of `format_stop_commands`.
    """
    return f"::{nonce}::"


def _escape_value(text: str) -> str:
    return "".join(_VALUE_ESCAPES.get(character, character) for character in text)


def _escape_text(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


TOKEN_VARIABLE: Final = "GITHUB_TOKEN"  # noqa: S105 - the variable's name
API_VARIABLE: Final = "GITHUB_API_URL"
SUMMARY_VARIABLE: Final = "GITHUB_STEP_SUMMARY"
CI_OFF_VALUES: Final = frozenset({"", "0", "false", "no", "off"})
"""Values of the variable ``CI`` which mean that the process does not run in CI."""
BRANCH_REF_PREFIX: Final = "refs/heads/"
_PULL_REF: Final = re.compile(r"refs/pull/([1-9][0-9]{0,8})/(?:merge|head)", re.ASCII)
_REPOSITORY: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*/[A-Za-z0-9_.-]+", re.ASCII)
_URL: Final[TypeAdapter[str]] = TypeAdapter(HttpUrl)
Number = Annotated[int, Field(ge=1, le=2**31)]


class WorkflowJob(Record):
    """The repository, commit and pull request to which a job reports its results.

    ``pull_request`` is ``None`` for a job without a pull request. ``change.head`` is the last commit of the pull
    request, not the commit of GitHub's test merge. ``change.head`` is ``None`` if the event does not contain this
    commit, for example for a comment.
    """

    api_url: HttpUrl
    repository: str
    change: GitChange = GitChange()
    pull_request: PullRequest | None = None
    log: HttpUrl | None = None
    summary: Path | None = None
    workspace: Path | None = None


class PullRef(GitHubRecord):
    """One side of a pull request: a commit and its branch."""

    sha: str | None = None
    ref: str | None = None


class Pull(GitHubRecord):
    """A pull request, in the format that events and API responses of GitHub share."""

    number: Number
    head: PullRef = PullRef()
    base: PullRef = PullRef()


class _Issue(GitHubRecord):
    number: Number
    pull_request: dict[str, object] | None = None


class _EventRun(GitHubRecord):
    pull_requests: list[Pull] | None = None
    head_sha: str | None = None
    head_branch: str | None = None


class _EventDeployment(GitHubRecord):
    sha: str | None = None
    ref: str = ""


class _MergeGroup(GitHubRecord):
    head_sha: str | None = None
    base_ref: str | None = None


class _Repository(GitHubRecord):
    default_branch: str | None = None


class _WorkflowEvent(GitHubRecord):
    """The fields of an event that name a pull request, a commit or a branch."""

    pull_request: Pull | None = None
    merge_group: _MergeGroup | None = None
    repository: _Repository = _Repository()
    issue: _Issue | None = None
    workflow_run: _EventRun | None = None
    deployment: _EventDeployment | None = None

    @property
    def number(self) -> int | None:
        """Return the number of the pull request."""
        if self.pull_request:
            return self.pull_request.number
        if self.issue and self.issue.pull_request is not None:
            return self.issue.number
        if self.workflow_run and self.workflow_run.pull_requests:
            return self.workflow_run.pull_requests[0].number
        return parse_pull_number(self.deployment.ref) if self.deployment else None

    @property
    def commit(self) -> str | None:
        """Return the commit that the event is about."""
        if self.pull_request:
            return self.pull_request.head.sha
        if self.merge_group:
            return self.merge_group.head_sha
        if self.workflow_run:
            return self.workflow_run.head_sha
        return self.deployment.sha if self.deployment else None

    def find_change(self, environment: Mapping[str, str]) -> GitChange:
        """Return the commit and both branches of the change.

        The result is empty for a comment on a pull request, because the event of a comment contains only the commit
        of the main branch.
        """
        ref = environment.get("GITHUB_REF", "")
        branch = environment.get("GITHUB_HEAD_REF") or (ref if ref.startswith(BRANCH_REF_PREFIX) else None)
        target = environment.get("GITHUB_BASE_REF") or None
        commit = self.commit
        if self.pull_request:
            branch, target = self.pull_request.head.ref or branch, self.pull_request.base.ref or target
        elif self.merge_group:
            target = self.merge_group.base_ref or target
        elif self.issue and self.issue.pull_request is not None:
            return GitChange()
        elif self.workflow_run:
            pulls = self.workflow_run.pull_requests
            branch, target = self.workflow_run.head_branch, pulls[0].base.ref if pulls else None
        if self.number is None and parse_pull_number(ref) is None:
            target = target or self.repository.default_branch
        return GitChange(
            head=commit or environment.get("GITHUB_SHA") or None,
            branch=_shorten_ref(branch),
            target_branch=_shorten_ref(target),
        )


def is_ci(environment: Mapping[str, str]) -> bool:
    """Return whether this process runs in CI. Most CI systems set the variable ``CI``."""
    return any(environment.get(name, "").strip().lower() not in CI_OFF_VALUES for name in ("CI", "GITHUB_ACTIONS"))


def is_github_actions(environment: Mapping[str, str]) -> bool:
    """Return whether this process runs in a job of GitHub Actions."""
    return environment.get("GITHUB_ACTIONS", "").strip().lower() == "true"


def parse_job(environment: Mapping[str, str]) -> WorkflowJob:
    """Return the job that the variables in ``environment`` describe.

    Raises a `ConfigError` that names the missing or invalid variable.
    """
    repository = environment.get("GITHUB_REPOSITORY", "")
    if not _REPOSITORY.fullmatch(repository):
        raise ConfigError(
            "GITHUB_REPOSITORY must have the form owner/name. GitHub Actions sets this variable. Elsewhere, set "
            "GITHUB_REPOSITORY, GITHUB_REF (refs/pull/12/merge) and GITHUB_SHA yourself"
        )
    event = _read_event(environment.get("GITHUB_EVENT_PATH"))
    number = event.number or parse_pull_number(environment.get("GITHUB_REF", ""))
    summary, workspace = environment.get(SUMMARY_VARIABLE), environment.get("GITHUB_WORKSPACE")
    return WorkflowJob(
        api_url=_parse_address(environment.get(API_VARIABLE) or PUBLIC_API),
        repository=repository,
        change=event.find_change(environment),
        pull_request=PullRequest(repository=repository, number=number) if number else None,
        log=_build_log_url(environment, repository),
        summary=Path(summary) if summary else None,
        workspace=Path(workspace) if workspace else None,
    )


def _shorten_ref(ref: str | None) -> str | None:
    return (ref or "").removeprefix(BRANCH_REF_PREFIX) or None


def parse_pull_number(ref: str) -> int | None:
    """Return the number in ``refs/pull/12/merge``, or ``None`` for any other ref."""
    match = _PULL_REF.fullmatch(ref)
    return int(match[1]) if match else None


def _parse_address(text: str) -> str:
    try:
        return _URL.validate_python(text)
    except ValidationError:
        raise ConfigError(
            f"{API_VARIABLE} is not an http address; correct it, or remove it to use {PUBLIC_API}"
        ) from None


def _build_log_url(environment: Mapping[str, str], repository: str) -> str | None:
    server, run = environment.get("GITHUB_SERVER_URL", ""), environment.get("GITHUB_RUN_ID", "")
    if not run.isdecimal() or not server.startswith(("http://", "https://")):
        return None
    return f"{server.rstrip('/')}/{repository}/actions/runs/{run}"


def _read_event(path: str | None) -> _WorkflowEvent:
    """Read the event that started the job. The result is empty if the file cannot be read."""
    if not path:
        return _WorkflowEvent()
    try:
        return _WorkflowEvent.model_validate(json.loads(Path(path).read_bytes()))
    except (OSError, ValueError, RecursionError):
        return _WorkflowEvent()

"""What a job of GitHub Actions knows of itself: repository, commit, pull request, where its log is.

Everything is read from the variables and the event that the runner gives
(https://docs.github.com/en/actions/reference/workflows-and-actions/variables), given as arguments.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final

from pydantic import Field, TypeAdapter, ValidationError

from monitors.errors import ConfigError
from monitors.github.answers import Answer
from monitors.github.api import PUBLIC_API
from monitors.records.base import Record
from monitors.records.deploys import PullRequest
from monitors.records.targets import HttpUrl

TOKEN_VARIABLE: Final = "GITHUB_TOKEN"  # noqa: S105 - the variable's name
API_VARIABLE: Final = "GITHUB_API_URL"
SUMMARY_VARIABLE: Final = "GITHUB_STEP_SUMMARY"
OFF: Final = frozenset({"", "0", "false", "no", "off"})
"""What ``CI`` is set to by those who mean that it is none."""
_PULL: Final = re.compile(r"refs/pull/([1-9][0-9]{0,8})/(?:merge|head)", re.ASCII)
_REPOSITORY: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*/[A-Za-z0-9_.-]+", re.ASCII)
_URL: Final[TypeAdapter[str]] = TypeAdapter(HttpUrl)
Number = Annotated[int, Field(ge=1, le=2**31)]


class Job(Record):
    """Where a job's results belong. ``pull_request`` is ``None`` for a job that belongs to none.

    ``commit`` is what a status is set on: the pull request's own head, not the merge that GitHub makes to try it.
    """

    api_url: HttpUrl
    repository: str
    commit: str | None = None
    pull_request: PullRequest | None = None
    log: HttpUrl | None = None
    summary: Path | None = None
    workspace: Path | None = None


class _Head(Answer):
    sha: str | None = None


class _Pull(Answer):
    number: Number
    head: _Head = _Head()


class _Issue(Answer):
    number: Number
    pull_request: dict[str, object] | None = None


class _Run(Answer):
    pull_requests: list[_Pull] | None = None
    head_sha: str | None = None


class _Deployment(Answer):
    sha: str | None = None
    ref: str = ""


class _Event(Answer):
    """The parts of the events that can name a pull request."""

    pull_request: _Pull | None = None
    issue: _Issue | None = None
    workflow_run: _Run | None = None
    deployment: _Deployment | None = None

    @property
    def number(self) -> int | None:
        """The pull request's number."""
        if self.pull_request:
            return self.pull_request.number
        if self.issue and self.issue.pull_request is not None:
            return self.issue.number
        if self.workflow_run and self.workflow_run.pull_requests:
            return self.workflow_run.pull_requests[0].number
        return number_in(self.deployment.ref) if self.deployment else None

    @property
    def commit(self) -> str | None:
        """The commit that the event is about."""
        if self.pull_request:
            return self.pull_request.head.sha
        if self.workflow_run:
            return self.workflow_run.head_sha
        return self.deployment.sha if self.deployment else None


def is_ci(environment: Mapping[str, str]) -> bool:
    """Whether this process runs in CI, as GitHub, GitLab, CircleCI and most others say it."""
    return any(environment.get(name, "").strip().lower() not in OFF for name in ("CI", "GITHUB_ACTIONS"))


def is_actions(environment: Mapping[str, str]) -> bool:
    """Whether GitHub's runner reads what this process prints."""
    return environment.get("GITHUB_ACTIONS", "").strip().lower() == "true"


def job_of(environment: Mapping[str, str]) -> Job:
    """The job that ``environment`` describes. Raises `ConfigError` naming the variable."""
    repository = environment.get("GITHUB_REPOSITORY", "")
    if not _REPOSITORY.fullmatch(repository):
        raise ConfigError(
            "GITHUB_REPOSITORY is not owner/name: a job of GitHub Actions has it; elsewhere set it, with "
            "GITHUB_REF (refs/pull/12/merge) and GITHUB_SHA"
        )
    event = _event(environment.get("GITHUB_EVENT_PATH"))
    number = event.number or number_in(environment.get("GITHUB_REF", ""))
    summary, workspace = environment.get(SUMMARY_VARIABLE), environment.get("GITHUB_WORKSPACE")
    return Job(
        api_url=_address(environment.get(API_VARIABLE) or PUBLIC_API),
        repository=repository,
        commit=event.commit or environment.get("GITHUB_SHA") or None,
        pull_request=PullRequest(repository=repository, number=number) if number else None,
        log=_log(environment, repository),
        summary=Path(summary) if summary else None,
        workspace=Path(workspace) if workspace else None,
    )


def number_in(ref: str) -> int | None:
    """The number in ``refs/pull/12/merge``."""
    found = _PULL.fullmatch(ref)
    return int(found[1]) if found else None


def _address(text: str) -> str:
    try:
        return _URL.validate_python(text)
    except ValidationError:
        raise ConfigError(f"{API_VARIABLE} is no http address; {PUBLIC_API} when left out") from None


def _log(environment: Mapping[str, str], repository: str) -> str | None:
    server, run = environment.get("GITHUB_SERVER_URL", ""), environment.get("GITHUB_RUN_ID", "")
    if not run.isdecimal() or not server.startswith(("http://", "https://")):
        return None
    return f"{server.rstrip('/')}/{repository}/actions/runs/{run}"


def _event(path: str | None) -> _Event:
    """The event that started the job. One that cannot be read names nothing; the ref still may."""
    if not path:
        return _Event()
    try:
        return _Event.model_validate(json.loads(Path(path).read_bytes()))
    except (OSError, ValueError, RecursionError):
        return _Event()

"""GitHub Actions jobs for the gate's tests: their variables, and gates that run in several processes."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests import fork_server
from tests.servers.github import HEAD, PULL, REPOSITORY, WORKFLOW_TOKEN, GitHub

OTHER_HEAD = "fedcba0987654321fedcba0987654321fedcba09"
MAIN_HEAD = "aaaabbbbccccddddeeeeffff0000111122223333"
REPOSITORY_EVENT = {"repository": {"default_branch": "main"}}


def pull_event(head: str = HEAD, base: str = "main") -> dict[str, Any]:
    """Return the event of a pull request with the head commit ``head``."""
    pull = {"number": PULL, "head": {"sha": head, "ref": "feature"}, "base": {"ref": base}}
    return REPOSITORY_EVENT | {"pull_request": pull}


def push_event(head: str) -> dict[str, Any]:
    """Return the event of a push."""
    return REPOSITORY_EVENT | {"after": head}


def merge_group_event(head: str, base: str = "main") -> dict[str, Any]:
    """Return the event of a pull request in the merge queue."""
    return REPOSITORY_EVENT | {"merge_group": {"head_sha": head, "base_ref": f"refs/heads/{base}"}}


def comment_event() -> dict[str, Any]:
    """Return the event of a comment on the pull request. The event contains no commit of the pull request."""
    return REPOSITORY_EVENT | {"issue": {"number": PULL, "pull_request": {"url": "x"}}, "comment": {"id": 1}}


def job_variables(
    folder: Path,
    github: GitHub,
    event: Mapping[str, Any] | None = None,
    *,
    ref: str = f"refs/pull/{PULL}/merge",
    sha: str = HEAD,
    token: str = WORKFLOW_TOKEN,
    run: int = 77,
) -> dict[str, str]:
    """Return a job's variables as GitHub's runner sets them. ``folder`` is the checkout of the repository."""
    file = folder / "event.json"
    file.write_text(json.dumps(pull_event() if event is None else event), encoding="utf-8")
    return {
        "CI": "true",
        "GITHUB_ACTIONS": "true",
        "GITHUB_API_URL": github.url,
        "GITHUB_EVENT_PATH": str(file),
        "GITHUB_REF": ref,
        "GITHUB_REPOSITORY": REPOSITORY,
        "GITHUB_RUN_ID": str(run),
        "GITHUB_SERVER_URL": "https://github.com",
        "GITHUB_SHA": sha,
        "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
        "GITHUB_TOKEN": token,
        "GITHUB_WORKSPACE": str(folder),
    }


def start_gate(
    folder: Path, environment: Mapping[str, str], *options: str, github: bool = True
) -> fork_server.Process:
    """Start a gate on the target ``demo`` in a separate process, so that it runs in parallel with the test."""
    pipe = subprocess.PIPE
    return fork_server.start(
        *("gate", "--target", "demo", *(["--github"] if github else []), *options),
        cwd=folder,
        env={**environment, **fork_server.WARM},
        stdout=pipe,
        stderr=pipe,
    )

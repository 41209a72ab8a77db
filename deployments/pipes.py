"""``lookout facts``, ``lookout grade``, ``lookout redact``: the flows' own code on JSON lines."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

import typer

from deployments.pipe_lines import Fields, run_pipe


def register(app: typer.Typer) -> None:
    """Add the three pipes to a command line."""
    for name, command in (("facts", facts), ("grade", grade), ("redact", redact)):
        app.command(name)(command)


def facts() -> None:
    """Read quantities: {"id", "text"} lines in, {"id", "facts": […]} lines out."""
    from deployments.pipe_facts import facts_of  # each pipe starts with only its own rules

    _run(facts_of)


def grade() -> None:
    """Grade replies: {"id", "question", "gold", "answer", "expected_refusal"} lines in, verdicts out."""
    from deployments.pipe_grade import graded  # each pipe starts with only its own rules

    _run(graded)


def redact() -> None:
    """Mask personal data and secrets: {"id", "text"} lines in, {"id", "text", "found": […]} lines out."""
    from deployments.pipe_redact import redacted  # each pipe starts with only its own rules

    _run(redacted)


def _run(answer: Callable[[Fields], Fields]) -> None:
    try:
        code = run_pipe(sys.stdin.buffer, sys.stdout.buffer, answer)
    except BrokenPipeError:  # whoever read our lines has had enough; nothing may be flushed to them at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None
    raise typer.Exit(code)

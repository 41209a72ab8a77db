"""``lookout facts``, ``grade``, ``redact`` and the other pipes: the flows' own code on JSON lines.

They read JSON lines and write one answer for each, in the same order, also for a bad line.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable
from typing import Any, BinaryIO, cast

from deployments.cli.exit_codes import ExitCode
from flows.terminal import escape_json, get_byte_output

Fields = dict[str, Any]
"""One line as parsed from JSON, or one answer before it is encoded."""


class Unreadable(ValueError):
    """A line that cannot be answered; the message says what is wrong and what is accepted."""


def run_pipe(lines: Iterable[bytes], out: BinaryIO, answer: Callable[[Fields], Fields]) -> ExitCode:
    """Answer every line. A bad one gets ``{"id": …, "error": …}`` and the rest goes on.

    Returns ``PASS`` (0), also for no lines at all; ``USAGE`` (2) when there were lines and none could be read.
    """
    read = failed = 0
    for line in lines:
        reply, is_read = _answer_line(line, answer)
        read, failed = read + is_read, failed + (not is_read)
        out.write(reply)
        out.flush()
    return ExitCode.USAGE if failed and not read else ExitCode.PASS


def _answer_line(line: bytes, answer: Callable[[Fields], Fields]) -> tuple[bytes, bool]:
    line_id: Any = None
    try:
        fields = _parse_line(line)
        line_id = fields.get("id")
        return encode_line({"id": line_id} | answer(fields)), True
    except Unreadable as error:
        return _encode_error(line_id, str(error)), False
    except RecursionError:
        return _encode_error(None, "the JSON is nested too deeply; use fewer levels"), False
    except Exception as error:  # noqa: BLE001 - one line must never end the rest
        return _encode_error(line_id, f"this line could not be processed: {type(error).__name__}"), False


def _parse_line(line: bytes) -> Fields:
    try:
        text = line.decode("utf-8").lstrip("\ufeff")
    except UnicodeDecodeError as error:
        raise Unreadable(f"byte {error.start + 1} of the line is not UTF-8") from None
    if not text.strip():
        raise Unreadable("the line is empty; write one JSON object on each line")
    value = _parse_json(text)
    if not isinstance(value, dict):
        raise Unreadable(f"expected one JSON object in braces, found a {_name_json_type(value)}")
    return cast("Fields", value)


def _parse_json(text: str) -> object:
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise Unreadable(f"broken JSON at column {error.colno}: {error.msg}") from None
    except RecursionError:
        raise Unreadable("the JSON is nested too deeply; use fewer levels") from None
    except Unreadable:
        raise
    except ValueError:
        raise Unreadable("a number has too many digits") from None


def _refuse_constant(name: str) -> object:
    raise Unreadable(f"{name} is not a valid JSON number")


def _name_json_type(value: object) -> str:
    names = {list: "list", str: "string", bool: "truth value", int: "number", float: "number", type(None): "null"}
    return names.get(type(value), type(value).__name__)


def encode_line(fields: Fields) -> bytes:
    """Return an answer as a line of JSON."""
    try:
        return (escape_json(json.dumps(fields, ensure_ascii=False, allow_nan=False)) + "\n").encode()
    except UnicodeEncodeError:  # an id with half of a surrogate pair is echoed as it was written, escaped
        return (json.dumps(fields, allow_nan=False) + "\n").encode()


def _encode_error(line_id: Any, message: str) -> bytes:
    try:
        return encode_line({"id": line_id, "error": message})
    except (RecursionError, ValueError):
        return encode_line({"id": None, "error": message})


def facts_command() -> ExitCode:
    """Find quantities. Read JSON Lines with id and text from stdin; write the facts of each line."""
    from deployments.cli.pipe_answers import extract_facts  # each pipe starts with only its own rules

    return _run_on_stdin(extract_facts)


def grade_command() -> ExitCode:
    """Grade replies. Read JSON Lines (id, question, gold, answer, expected_refusal) from stdin; write verdicts."""
    from deployments.cli.pipe_answers import grade_line  # each pipe starts with only its own rules

    return _run_on_stdin(grade_line)


def redact_command() -> ExitCode:
    """Mask personal data and secrets. Read JSON Lines with id and text from stdin; write the masked texts."""
    from deployments.cli.pipe_answers import redact_line  # each pipe starts with only its own rules

    return _run_on_stdin(redact_line)


def localise_command() -> ExitCode:
    """Score file lists. Read JSON Lines with id, named and gold from stdin; write precision, recall and F1."""
    from deployments.cli.pipe_answers import score_named_files  # each pipe starts with only its own rules

    return _run_on_stdin(score_named_files)


def efficiency_command() -> ExitCode:
    """Count an agent's calls. Read JSON Lines with id, calls, reference from stdin; write calls and repeats."""
    from deployments.cli.pipe_answers import count_calls  # each pipe starts with only its own rules

    return _run_on_stdin(count_calls)


def first_look_command() -> ExitCode:
    """Find what failed cases share. Read JSON Lines (id, cases: [{attribute: value, "failed": true}]) on stdin."""
    from deployments.cli.pipe_answers import find_common_causes  # each pipe starts with only its own rules

    return _run_on_stdin(find_common_causes)


def _run_on_stdin(answer: Callable[[Fields], Fields]) -> ExitCode:
    return answer_stream(lambda lines, out: run_pipe(lines, out, answer))


def answer_stream(answer: Callable[[BinaryIO, BinaryIO], ExitCode]) -> ExitCode:
    """Call ``answer`` with standard input and output; a reader may close the pipe early."""
    try:
        return answer(sys.stdin.buffer, get_byte_output())
    except BrokenPipeError:  # the reader closed the pipe; nothing may be flushed to it at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), get_byte_output().fileno())
        return ExitCode.PASS

"""``lookout facts``, ``grade``, ``redact`` and other pipes: apply the graders of runs to JSON Lines.

A pipe reads JSON Lines and writes one output line for each input line, in the same order. For an invalid line, the
output line contains an error.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable
from typing import Any, BinaryIO, cast

from deployments.cli.exit_codes import ExitCode
from flows.terminal import escape_control_characters_in_json, get_binary_stdout

Fields = dict[str, Any]
"""The fields of one input line or one output line."""


class Unreadable(ValueError):
    """Raised for an invalid input line. The message contains the fault and the accepted values."""


def answer_each_line(lines: Iterable[bytes], out: BinaryIO, answer: Callable[[Fields], Fields]) -> ExitCode:
    """Write one output line for every input line. The output for an invalid line is ``{"id": …, "error": …}``.

    Returns ``USAGE`` (2) if there are lines and all are invalid. Otherwise, returns ``PASS`` (0).
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
        return _encode_error(None, "the JSON is nested too deeply. Use fewer levels"), False
    except Exception as error:  # noqa: BLE001 - one line must never end the rest
        return _encode_error(line_id, f"Lookout could not process this line: {type(error).__name__}"), False


def _parse_line(line: bytes) -> Fields:
    try:
        text = line.decode("utf-8").lstrip("\ufeff")
    except UnicodeDecodeError as error:
        raise Unreadable(f"byte {error.start + 1} of the line is not UTF-8. Encode the input as UTF-8") from None
    if not text.strip():
        raise Unreadable("the line is empty. Write one JSON object on each line")
    value = _parse_json(text)
    if not isinstance(value, dict):
        raise Unreadable(f'expected a JSON object, such as {{"id": 1}}, but found a {_name_json_type(value)}')
    return cast("Fields", value)


def _parse_json(text: str) -> object:
    try:
        return json.loads(text, parse_constant=_reject_json_constant)
    except json.JSONDecodeError as error:
        raise Unreadable(f"the JSON is invalid at column {error.colno}: {error.msg}") from None
    except RecursionError:
        raise Unreadable("the JSON is nested too deeply. Use fewer levels") from None
    except Unreadable:
        raise
    except ValueError:
        raise Unreadable("a number has too many digits") from None


def _reject_json_constant(name: str) -> object:
    raise Unreadable(f"{name} is not a valid JSON number")


def _name_json_type(value: object) -> str:
    names = {list: "list", str: "string", bool: "truth value", int: "number", float: "number", type(None): "null"}
    return names.get(type(value), type(value).__name__)


def encode_line(fields: Fields) -> bytes:
    """Encode the fields as a line of JSON in UTF-8."""
    try:
        return (
            escape_control_characters_in_json(json.dumps(fields, ensure_ascii=False, allow_nan=False)) + "\n"
        ).encode()
    except UnicodeEncodeError:  # an id with half of a surrogate pair is repeated as it was written, escaped
        return (json.dumps(fields, allow_nan=False) + "\n").encode()


def _encode_error(line_id: Any, message: str) -> bytes:
    try:
        return encode_line({"id": line_id, "error": message})
    except (RecursionError, ValueError):
        return encode_line({"id": None, "error": message})


def facts_command() -> ExitCode:
    """Find quantities, such as amounts and durations, in texts. Input on stdin: JSON Lines with id and text."""
    from deployments.cli.pipes.answers import extract_facts  # slow: imports only the rules of this pipe

    return _answer_standard_input(extract_facts)


def grade_command() -> ExitCode:
    """Grade replies. Input on stdin: JSON Lines with id, question, gold, answer and expected_refusal."""
    from deployments.cli.pipes.answers import grade_line  # slow: imports only the rules of this pipe

    return _answer_standard_input(grade_line)


def redact_command() -> ExitCode:
    """Mask personal data and secrets in texts. Input on stdin: JSON Lines with id and text."""
    from deployments.cli.pipes.answers import redact_line  # slow: imports only the rules of this pipe

    return _answer_standard_input(redact_line)


def localise_command() -> ExitCode:
    """Score the files an agent named: precision, recall, F1. Input on stdin: JSON Lines with id, named and gold."""
    from deployments.cli.pipes.answers import (
        compute_file_precision_and_recall,  # slow: imports only the rules of this pipe
    )

    return _answer_standard_input(compute_file_precision_and_recall)


def efficiency_command() -> ExitCode:
    """Count an agent's tool calls and repeated calls. Input on stdin: JSON Lines with id, calls and reference."""
    from deployments.cli.pipes.answers import (
        count_tool_calls_and_repeats,  # slow: imports only the rules of this pipe
    )

    return _answer_standard_input(count_tool_calls_and_repeats)


def first_look_command() -> ExitCode:
    """Find what failed cases have in common. Input on stdin: JSON Lines with id and cases."""
    from deployments.cli.pipes.answers import (
        find_attributes_shared_by_failures,  # slow: imports only the rules of this pipe
    )

    return _answer_standard_input(find_attributes_shared_by_failures)


def _answer_standard_input(answer: Callable[[Fields], Fields]) -> ExitCode:
    return run_on_standard_streams(lambda lines, out: answer_each_line(lines, out, answer))


def run_on_standard_streams(answer: Callable[[BinaryIO, BinaryIO], ExitCode]) -> ExitCode:
    """Call ``answer`` with standard input and output. It is not an error if the reader closes the pipe early."""
    try:
        return answer(sys.stdin.buffer, get_binary_stdout())
    except BrokenPipeError:  # the reader closed the pipe, so nothing may be flushed at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), get_binary_stdout().fileno())
        return ExitCode.PASS

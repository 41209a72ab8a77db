"""Tests of tool calls that repeat an earlier call."""

from __future__ import annotations

from monitors.facts.tool_calls import ToolCall, find_repeated_call_indexes


def call(name: str = "read_file", arguments: object = None) -> ToolCall:
    return ToolCall(name=name, arguments=arguments)


def test_the_same_call_again_is_a_repeat_however_it_is_written():
    calls = [
        call(arguments={"path": "a.py", "lines": [1, 2]}),
        call(arguments={"lines": [1, 2.0], "path": "a.py"}),
        call(arguments='{"path":"a.py",  "lines":[1,2]}'),
        call(arguments={"path": "a.py", "lines": [2, 1]}),
        call("grep", {"path": "a.py", "lines": [1, 2]}),
        call("grep", {"path": "a.py", "lines": [1, 2]}),
    ]
    assert find_repeated_call_indexes(calls) == (1, 2, 5)


def test_other_arguments_are_another_call():
    assert (
        find_repeated_call_indexes(
            [call(arguments=one) for one in (None, 1, "1", True, "x", "X", [], {}, "{broken")]
        )
        == ()
    )

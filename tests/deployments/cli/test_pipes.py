"""Tests of the commands that read JSON Lines and write JSON Lines.

`test_bare_commands` runs each of them as a process.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from tests import fork_server
from tests.in_process import run_in_process

ROOT = Path(__file__).parents[3]
PIPES = ("facts", "grade", "redact")


def run(pipe: str, payload: bytes, *, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run the command ``pipe`` in the empty folder ``cwd``. Its environment contains only an empty home."""
    return run_in_process(pipe, cwd=cwd, env=fork_server.bare(PATH=""), given=payload)


def answers(pipe: str, *lines: object, cwd: Path) -> list[dict[str, Any]]:
    """Return the output for well-formed input lines."""
    payload = "".join(json.dumps(line) + "\n" for line in lines).encode()
    done = run(pipe, payload, cwd=cwd)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return [json.loads(line) for line in done.stdout.splitlines()]


def line(**changes: object) -> dict[str, object]:
    """Build an input line for ``lookout grade`` with a right answer."""
    return {
        "id": 1,
        "question": "What is the waiting period?",
        "gold": "24 months",
        "answer": "It is 24 months. [Source: Gold, clause 4]",
        "expected_refusal": False,
    } | changes


def test_facts_are_read_with_their_places(tmp_path: Path) -> None:
    text = "Pays ₹5 lakh after two years"
    (answer,) = answers("facts", {"id": "a", "text": text}, cwd=tmp_path)
    money, duration = answer["facts"]
    assert (money["kind"], money["value"], money["unit"], money["text"]) == ("money", "500000", "INR", "₹5 lakh")
    assert text[slice(*money["span"])] == "₹5 lakh"
    assert (duration["kind"], duration["unit"], duration["original_unit"]) == ("duration", "day", "year")


def test_redaction_points_into_the_text_as_it_came(tmp_path: Path) -> None:
    text = "नमस्ते, call 98237\u202f40418"
    (answer,) = answers("redact", {"id": None, "text": text}, cwd=tmp_path)
    assert answer["text"] == "नमस्ते, call [phone]"
    assert [text[slice(*found["span"])] for found in answer["found"]] == ["98237\u202f40418"]
    assert [found["kind"] for found in answer["found"]] == ["phone"]


def test_redaction_masks_what_the_words_mark_and_keeps_what_is_the_companys(tmp_path: Path) -> None:
    text = (
        "Dear Ms Calderwood-Finch, your NHS no. 9 4 3 - 4 7 6 - 5 9 1 9 and 7 Larch Row, Leeds LS7 2QX are on file. "
        "Our hotline 0800 555 0190 is free. Run 20330301T012703Z-demo-3ea61e5b9c6f418f1d6f4bf282a80996 of 3 June."
    )
    (answer,) = answers("redact", {"id": 1, "text": text}, cwd=tmp_path)
    assert {mask["kind"]: text[slice(*mask["span"])] for mask in answer["found"]} == {
        "person": "Calderwood-Finch",
        "health_id": "9 4 3 - 4 7 6 - 5 9 1 9",
        "street_address": "7 Larch Row, Leeds LS7 2QX",
    }


def test_a_right_answer(tmp_path: Path) -> None:
    (answer,) = answers("grade", line(), cwd=tmp_path)
    assert list(answer) == [
        "id", "factual_match", "refused", "refusal", "citation_present", "language", "pii", "error_leak", "correct",
        "grades",
    ]  # fmt: skip
    assert answer["factual_match"] is True
    assert answer["correct"] is True
    assert answer["language"] == "en"
    assert {"grader", "passed", "failure_kind", "reason", "evidence"} <= set(answer["grades"][0])


RULE: list[tuple[dict[str, object], dict[str, object]]] = [
    ({"answer": "It is 24 months."}, {"factual_match": True, "citation_present": False, "correct": False}),
    ({"answer": "It is 36 months. [Source: Gold]"}, {"factual_match": False, "correct": False}),
    ({"answer": "I cannot say."}, {"refused": True, "factual_match": False, "correct": False}),
    (
        {"answer": "I cannot say.", "expected_refusal": True},
        {"refused": True, "factual_match": True, "correct": True},
    ),
    ({"expected_refusal": True}, {"refused": False, "factual_match": False, "correct": False}),
    ({"answer": "It is 24 months. [Source: Gold] PAN BQRPK4417L"}, {"factual_match": True, "correct": False}),
    ({"answer": "Error code: 429 - {'error': 'x'}"}, {"error_leak": True, "correct": False}),
    ({"expected_citation": "Silver"}, {"citation_present": True, "correct": False}),
    ({"answer": "Pratiksha avadhi 24 mahine ki hai. [Source: Gold]"}, {"language": "hinglish"}),
    ({"gold": ["two years", "24 months"]}, {"correct": True}),
    (
        {"gold": "₹5 lakh", "answer": "₹5 lakh, one of the highest. [Source: Gold]", "severity": 3},
        {"factual_match": True, "correct": True},
    ),
]


def test_the_rule(tmp_path: Path) -> None:
    requests = [line(**changes) for changes, _ in RULE]
    for answer, (changes, expected) in zip(answers("grade", *requests, cwd=tmp_path), RULE, strict=True):
        assert {name: answer[name] for name in expected} == expected, changes


def test_null_where_nobody_can_tell(tmp_path: Path) -> None:
    open_line = line(gold="A kind and thorough explanation", answer="Sure, let me explain it. [Source: Gold]")
    (answer,) = answers("grade", open_line, cwd=tmp_path)
    assert answer["factual_match"] is None
    assert answer["correct"] is None


def test_disclosures_are_pointed_at_and_never_quoted(tmp_path: Path) -> None:
    text = "It is 24 months. [Source: Gold] Write to tara.devi@mailbox.example"
    (answer,) = answers("grade", line(answer=text), cwd=tmp_path)
    assert [(one["kind"], text[slice(*one["span"])]) for one in answer["pii"]] == [
        ("email", "tara.devi@mailbox.example")
    ]
    assert "tara" not in json.dumps(answer["grades"])


BAD_LINES: list[bytes] = [
    b"",
    b"   ",
    b"not json",
    b"\xff\xfe\x00",
    b"[" * 10_000,
    b'{"id": ' + b"[" * 10_000 + b"]" * 10_000 + b', "text": "a"}',
    b"[1, 2]",
    b'"text"',
    b"null",
    b'{"id": 3}',
    b'{"id": 3, "text": 7, "question": 7, "gold": 7, "answer": 7}',
    b'{"id": 3, "text": NaN, "question": "a", "gold": NaN, "answer": "a"}',
    b'{"id": 3, "text": ' + b"9" * 5_000 + b"}",
    b'{"id": 3, "text": "a", "language": "klingon", "question": "a", "gold": null, "answer": "a"}',
    b'{"id": 3, "text": null, "question": "a", "gold": "b", "answer": "c", "severity": 9}',
]


@pytest.mark.parametrize("pipe", PIPES)
def test_a_bad_line_says_so_and_the_rest_goes_on(pipe: str, tmp_path: Path) -> None:
    good = json.dumps({"id": "last", "text": "a", "question": "q", "gold": "24 months", "answer": "24 months"})
    bad = [line for line in BAD_LINES if pipe == "grade" or b"severity" not in line]
    bad = [line for line in bad if pipe == "facts" or b"klingon" not in line or pipe == "grade"]
    done = run(pipe, b"\n".join([*bad, good.encode()]) + b"\n", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stderr == ""
    answered = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answered) == len(bad) + 1
    assert all(set(answer) == {"id", "error"} and answer["error"] for answer in answered[:-1])
    assert answered[-1]["id"] == "last"
    assert "error" not in answered[-1]


@pytest.mark.parametrize("pipe", PIPES)
def test_strange_texts_are_answered(pipe: str, tmp_path: Path) -> None:
    texts = [
        "",
        "\ud800 half",
        "\u202egnorw\u202c \u200f",
        "\x00\x01",
        "😀" * 50,
        "x" * 1_000_000,
        "\u200b",
        "नमस्ते",
    ]
    lines = [{"id": n, "text": t, "question": t, "gold": t, "answer": t} for n, t in enumerate(texts)]
    assert [answer["id"] for answer in answers(pipe, *lines, cwd=tmp_path)] == list(range(len(texts)))


def test_any_id_is_echoed(tmp_path: Path) -> None:
    ids = [None, 7, "x", "\ud800", ["a", {"b": 1}], 1.5, True, "नमस्ते"]
    requests = [{"id": line_id, "text": "a"} for line_id in ids]
    assert [answer["id"] for answer in answers("redact", *requests, cwd=tmp_path)] == ids


def test_exit_codes(tmp_path: Path) -> None:
    assert run("redact", b"", cwd=tmp_path).returncode == 0
    assert run("redact", b"nothing\n{}\n", cwd=tmp_path).returncode == 2
    assert run("redact", b'nothing\n{"text": "a"}', cwd=tmp_path).returncode == 0


def test_a_reader_that_stops_is_no_failure(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "deployments.cli.app", "redact"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
    )  # fmt: skip
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        try:
            process.stdin.write(b'{"id": 1, "text": "a"}\n' * 100)
            process.stdin.close()
        except BrokenPipeError:
            pass
        assert process.wait(timeout=60) == 0
        assert b"Traceback" not in process.stderr.read()


def test_the_pipes_load_nothing_heavy(tmp_path: Path) -> None:
    code = (
        "import sys; from deployments.cli.pipes import answers;"
        "heavy = {'prefect', 'anthropic', 'playwright', 'duckdb', 'scipy', 'slack_sdk', 'huggingface_hub'};"
        "print(sorted(heavy & {name.split('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}, check=True
    )
    assert done.stdout.strip() == b"[]"


def test_files_are_scored_as_the_grader_of_reports_scores_them(tmp_path: Path) -> None:
    lines = [
        {"id": 1, "named": ["./src/a.py", "src/a.py:3", "src/b.py"], "gold": ["src/a.py"]},
        {"id": 2, "named": [], "gold": ["src/a.py"]},
        {"id": 3, "named": ["x.py"], "gold": []},
    ]
    first, second, third = answers("localise", *lines, cwd=tmp_path)
    assert first == {"id": 1, "precision": 0.5, "recall": 1.0, "f1": pytest.approx(2 / 3)}
    assert second == {"id": 2, "precision": 0.0, "recall": 0.0, "f1": 0.0}
    assert third == {"id": 3, "precision": None, "recall": None, "f1": None}


def test_shared_properties_of_failed_cases_are_named(tmp_path: Path) -> None:
    cases = [{"page": "embed" if at < 9 else "chat", "hour": at % 7, "failed": at < 8} for at in range(60)]
    silent = [{"page": "embed", "failed": at % 9 == 0} for at in range(60)]
    first, second = answers("first-look", {"id": 1, "cases": cases}, {"id": 2, "cases": silent}, cwd=tmp_path)
    assert first == {"id": 1, "causes": [{"page": "embed"}]}
    assert second == {"id": 2, "causes": []}


def test_repeated_calls_are_counted(tmp_path: Path) -> None:
    calls = [{"name": "read", "arguments": {"path": "a"}}, {"name": "read", "arguments": '{"path": "a"}'}]
    (answer,) = answers("efficiency", {"id": 1, "calls": calls, "reference": calls[:1]}, cwd=tmp_path)
    assert answer == {"id": 1, "calls": 2, "reference": 1, "repeats": 1}


@pytest.mark.parametrize(
    ("pipe", "bad"),
    [
        ("localise", {"named": "a.py", "gold": []}),
        ("localise", {"named": [1], "gold": []}),
        ("localise", {"named": []}),
        ("efficiency", {"calls": [{}], "reference": []}),
        ("first-look", {"cases": "all"}),
        ("first-look", {"cases": [{"page": "chat"}]}),
        ("first-look", {"cases": [{"failed": True, "tags": []}]}),
        ("efficiency", {"calls": [], "reference": {}}),
    ],
)
def test_a_bad_list_is_named(
    pipe: str, bad: dict[str, object], tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    done = run(pipe, json.dumps({"id": 9, **bad}).encode(), cwd=tmp_path)
    assert done.returncode == 2
    assert json.loads(done.stdout) == snapshot

"""Tests from two runs of `lookout verify` to the description of what changed between them."""

from __future__ import annotations

import json
import re

import pytest

from tests.flows.chat import RIGHT, Chat, watched
from tests.stable_text import replace_volatile

pytestmark = pytest.mark.prefect

WRONG = "The waiting period is 36 months. [Source: Gold, clause 4.2]"
HINDI = "इस योजना में पहले से मौजूद बीमारियों की प्रतीक्षा अवधि 24 महीने है। [Source: Gold, clause 4.2]"
CASES = 10


def body(text: str, model: str) -> dict[str, object]:
    """Build a response as a completion API sends it."""
    return {"answer": text, "model": model, "system_fingerprint": "fp_44"}


def newest_report(folder):
    """Return the report of the newest run."""
    newest = max((folder / "data").glob("runs/*/results.json"))
    return json.loads(newest.read_text(encoding="utf-8"))["report"]


def changed_lines(output, report):
    """Return the terminal lines about the last PASS and about changes, without parts that differ from run to run."""
    lines = [line for line in output.splitlines() if re.match(r" *(Changed|Last PASS)", line)]
    return replace_volatile("\n".join(lines), run_id=report["run_id"]).splitlines()


@pytest.mark.whole_only
def test_the_second_run_names_the_model_that_changed_between_them(tmp_path, lookout, snapshot):
    """An owner's two runs of `lookout verify` are a PASS and a FAIL with another model. Only the model is reported."""
    with Chat(body(RIGHT, "small-2026-01")) as chat:
        watched(tmp_path, chat, cases=CASES)
        first = lookout("verify", "demo", cwd=tmp_path)
        assert first.returncode == 0, first.stdout + first.stderr
        assert newest_report(tmp_path)["what_changed"] is None
        chat.answers = (body(WRONG, "small-2026-03"),)
        second = lookout("verify", "demo", "--fresh", cwd=tmp_path)
    assert second.returncode == 1, second.stdout + second.stderr
    report = newest_report(tmp_path)
    (change,) = [change for change in report["what_changed"]["changes"] if not change["follows"]]
    assert change["kind"] == "model"
    assert change["evidence"] == snapshot
    assert report["snapshot"]["fingerprints"] == {"fp_44": CASES}
    assert changed_lines(second.stdout + second.stderr, report) == snapshot


@pytest.mark.whole_only
def test_answers_in_another_language_are_named_by_it_and_by_nothing_else(tmp_path, lookout):
    """If the answers about one document are in Hindi with the same figures, the report names the language.

    The wrong answer about another document is reported as a separate change with an unknown cause.
    """
    with Chat(RIGHT) as chat:
        watched(tmp_path, chat, cases=2 * CASES)
        suite = tmp_path / "suite.jsonl"
        rows = [json.loads(line) for line in suite.read_text(encoding="utf-8").splitlines()]
        for number, row in enumerate(rows):
            row["provenance"]["document"] = "prices" if number < CASES else "terms"
        suite.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        assert lookout("verify", "demo", cwd=tmp_path).returncode == 0
        chat.by_question = {row["question"]: HINDI for row in rows[:CASES]} | {rows[-1]["question"]: WRONG}
        assert lookout("verify", "demo", "--fresh", cwd=tmp_path).returncode == 1
    changes = newest_report(tmp_path)["what_changed"]["changes"]
    assert [change["kind"] for change in changes] == ["unknown", "model"]  # the wrong answer, and the language
    assert "Hindi: 10 of 20 answers" in changes[1]["evidence"]


@pytest.mark.whole_only
def test_a_change_of_ours_is_not_blamed_on_the_application(tmp_path, lookout, snapshot):
    """If only Lookout's side changed, the report says so and does not blame the application.

    A stricter gate turns a PASS into a FAIL.
    """
    with Chat(*[RIGHT] * (CASES - 1), WRONG) as chat:
        strict = watched(tmp_path, chat, cases=CASES).read_text(encoding="utf-8")
        suite = tmp_path / "suite.jsonl"
        mild = suite.read_text(encoding="utf-8").replace('"severity": 3', '"severity": 1')
        suite.write_text(mild, encoding="utf-8")
        config = tmp_path / "lookout.toml"
        config.write_text(
            strict + "min_weighted_score = 0.5\n[gate.targets]\nfactual_accuracy = 0.5\n", encoding="utf-8"
        )
        first = lookout("verify", "demo", "--commit", "aaa1111", cwd=tmp_path)
        assert first.returncode == 0, first.stdout + first.stderr
        config.write_text(strict, encoding="utf-8")
        second = lookout("verify", "demo", "--fresh", "--commit", "aaa1111", cwd=tmp_path)
    assert second.returncode == 1, second.stdout + second.stderr
    report = newest_report(tmp_path)
    assert changed_lines(second.stdout + second.stderr, report) == snapshot
    assert {change["kind"] for change in report["what_changed"]["changes"]} == {"limit"}

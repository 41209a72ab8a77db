"""From two runs of the command to the words about what changed between them."""

from __future__ import annotations

import json

import pytest

from tests.flows.chat import RIGHT, Chat, watched

pytestmark = pytest.mark.prefect

WRONG = "The waiting period is 36 months. [Source: Gold, clause 4.2]"
CASES = 10


def body(text: str, model: str) -> dict[str, object]:
    """A reply as a completion API gives it."""
    return {"answer": text, "model": model, "system_fingerprint": "fp_44"}


def results(folder):
    """The newest run's text and its report."""
    newest = max((folder / "data").glob("runs/*/results.json"))
    report = json.loads(newest.read_text(encoding="utf-8"))["report"]
    return newest.with_name("results.md").read_text(encoding="utf-8"), report


def test_the_second_run_names_the_model_that_changed_between_them(tmp_path, lookout):
    """Two runs of `lookout verify` as an owner starts them: a PASS, then a FAIL by another model, and nothing else."""
    with Chat(body(RIGHT, "small-2026-01")) as chat:
        watched(tmp_path, chat, cases=CASES)
        first = lookout("verify", "demo", cwd=tmp_path)
        assert first.returncode == 0, first.stdout + first.stderr
        assert "Changed" not in first.stdout
        chat.answers = (body(WRONG, "small-2026-03"),)
        second = lookout("verify", "demo", "--fresh", cwd=tmp_path)
    assert second.returncode == 1, second.stdout + second.stderr
    text, report = results(tmp_path)
    assert "- Model: the model was small-2026-01, is small-2026-03" in text
    assert [change["kind"] for change in report["what_changed"]["changes"] if not change["follows"]] == ["model"]
    assert report["snapshot"]["fingerprints"] == {"fp_44": CASES}
    assert "Changed   Model: the model was small-2026-01, is small-2026-03" in second.stdout
    assert "Changed, model: the model was small-2026-01, is small-2026-03" in second.stdout + second.stderr


def test_a_change_of_ours_is_not_blamed_on_the_application(tmp_path, lookout):
    """A stricter gate turns a PASS into a FAIL: the report says that only Lookout's side changed."""
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
    assert "Last PASS: this same deploy, 20" in second.stdout + second.stderr
    text, report = results(tmp_path)
    assert "- Only Lookout's side changed: nothing that is recorded says that the application did." in text
    assert "- Monitor (our side): lookout.toml has other settings for gate" in text
    assert {change["kind"] for change in report["what_changed"]["changes"]} == {"monitor"}

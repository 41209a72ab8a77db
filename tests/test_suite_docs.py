"""Test that docs/suite.md describes every key of a case, and that `lookout gold check` accepts its examples."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from deployments.cli.init.files import FIRST_SUITE
from monitors.goldset.lines import CASE_KEYS
from monitors.records.cases import NEEDS_REVIEW, GoldCase, Pipeline, Provenance
from monitors.records.triage import Issue, TriageReference
from tests import fork_server
from tests.tools.configuration_reference import suite_reference

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "suite.md"
HAND_WRITTEN = {
    "id": "refund",
    "question": "How many days do I have to send a lamp back?",
    "gold": "30 days",
    "severity": 2,
    "language": "en",
    "type": "returns",
    "provenance": {"pipeline": "manual"},
}
QUESTIONS = [f"How many days do I have to send a {thing} back?" for thing in (
    "lamp", "chair", "kettle", "bicycle", "carpet", "mirror", "violin", "tent"
)]  # fmt: skip


def example() -> str:
    """Return the first block of JSON lines on the page."""
    found = re.search(r"^```json\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert found
    return found[1]


def keys_below(heading: str) -> list[str]:
    """Return the first cell of each row of the table below a heading, from top to bottom."""
    section = PAGE.read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)


def gold_check(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    """Run `lookout gold check` on a suite with the content ``text``, in the environment of a new machine."""
    (folder / "suite.jsonl").write_text(text, encoding="utf-8")
    return fork_server.run("gold", "check", "suite.jsonl", cwd=folder, env=fork_server.bare())


def test_the_page_is_the_records_own():
    """docs/suite.md equals the page that is generated from the records.

    To update the page, run `python -m tests.tools.configuration_reference`.
    """
    assert PAGE.read_text(encoding="utf-8") == suite_reference()


def test_the_page_names_every_key_and_every_pipeline():
    headings = re.findall(r"^## (A case|An issue .*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(key for heading in headings for key in keys_below(heading)) == sorted(CASE_KEYS)
    assert keys_below("`reference`") == list(TriageReference.model_fields)
    assert keys_below("`provenance`") == list(Provenance.model_fields)
    assert keys_below("`provenance.pipeline`") == [pipeline.value for pipeline in Pipeline]


@pytest.mark.parametrize("record", [GoldCase, Provenance, Issue, TriageReference])
def test_every_key_says_what_it_means(record):
    assert [name for name, field in record.model_fields.items() if not field.description] == []


def test_every_key_of_the_page_is_tried_in_a_line_that_gold_check_accepts(tmp_path):
    cases = [json.loads(line) for line in example().splitlines()]
    assert {key for case in cases for key in case} == set(CASE_KEYS)
    assert {key for case in cases for key in case.get("provenance", {})} == set(Provenance.model_fields)
    assert {key for case in cases for key in case.get("reference", {})} == set(TriageReference.model_fields)
    done = gold_check(tmp_path, example())
    assert (done.returncode, "✕" in done.stdout) == (0, False), done.stdout + done.stderr


def test_every_pipeline_of_the_page_is_accepted_and_the_page_says_which_need_a_name(tmp_path):
    """Every pipeline is accepted if a reviewer is given.

    Without a reviewer, a pipeline is rejected if the page says that a reviewer is required. The error names the
    missing key `provenance.reviewed_by`.
    """
    rows = PAGE.read_text(encoding="utf-8").split("\n## `provenance.pipeline`\n")[1].splitlines()
    marked = [re.findall(r"`(\w+)`", row)[0] for row in rows if row.endswith("| `reviewed_by` required |")]
    assert set(marked) == NEEDS_REVIEW
    for reviewer, refused in (({"reviewed_by": "asha"}, []), ({}, marked)):
        cases = [
            HAND_WRITTEN
            | {"id": pipeline.value, "question": question, "provenance": {"pipeline": pipeline.value} | reviewer}
            for pipeline, question in zip(Pipeline, QUESTIONS, strict=True)
        ]
        done = gold_check(tmp_path, "".join(f"{json.dumps(case)}\n" for case in cases))
        assert (done.returncode, re.findall(r"✕ line \d+ (\w+)", done.stdout)) == (int(bool(refused)), refused)
        assert done.stdout.count('"provenance.reviewed_by" is missing') == len(refused)


def test_a_suite_written_by_hand_is_accepted_and_says_so(tmp_path):
    done = gold_check(tmp_path, json.dumps(HAND_WRITTEN) + "\n")
    assert done.returncode == 0, done.stdout + done.stderr
    assert {json.loads(line)["provenance"]["pipeline"] for line in FIRST_SUITE.read_text().splitlines()} == {
        "manual"
    }


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"provenance": {"pipeline": "handwritten"}}, '"handwritten" is not valid; accepted: manual (written by hand), template,'),
        ({"provenance": {}}, '"provenance.pipeline" is missing; accepted: manual (written by hand), template,'),
        ({"provenance": "asha"}, 'accepted: an object with "pipeline", such as {"pipeline": "manual"}'),
        ({"gold": ["30 days", "a month"]}, 'other right answers go into "alternatives"'),
    ],
)  # fmt: skip
def test_a_refusal_names_what_is_accepted(tmp_path, changed, said):
    done = gold_check(tmp_path, json.dumps(HAND_WRITTEN | changed) + "\n")
    assert done.returncode == 1
    assert said in " ".join(done.stdout.split())

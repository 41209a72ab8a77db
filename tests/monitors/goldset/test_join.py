"""A reviewed case is added to the suite file exactly once, despite other writers and killed processes.

The existing lines are unchanged.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitors.errors import GoldSetError
from monitors.goldset.drafts import append_new_drafts, read_drafts, store_draft_decision
from monitors.goldset.lines import format_case_line, parse_case_line
from monitors.goldset.load import load_suite
from monitors.goldset.versions import append_case_if_new, read_suite_cases
from monitors.records.base import Language, Severity
from monitors.records.cases import DraftState, Pipeline, Provenance
from tests.builders import NOON, gold_case
from tests.conftest import ROOT
from tests.deployments.gold_drafts import draft_gold_case, gold_draft

REVIEWED = Provenance(pipeline=Pipeline.DRAFT, reviewed_by="asha", reviewed_at=NOON)


def test_existing_content_stays_byte_for_byte(tmp_path):
    """Existing lines, their spacing and a missing final line end are preserved byte for byte."""
    path = tmp_path / "suite.jsonl"
    before = format_case_line(gold_case("first")).replace('": ', '":  ')
    path.write_text(before, encoding="utf-8")
    assert append_case_if_new(path, draft_gold_case(provenance=REVIEWED))
    assert path.read_text(encoding="utf-8").split("\n")[0] == before
    assert [case.id for case in load_suite(path).cases] == ["first", "draft-1"]


def test_joining_again_changes_nothing(tmp_path):
    path = tmp_path / "new" / "suite.jsonl"
    case = draft_gold_case(provenance=REVIEWED)
    assert append_case_if_new(path, case)
    text = path.read_bytes()
    assert not append_case_if_new(path, case)
    assert path.read_bytes() == text
    assert [one.name for one in path.parent.iterdir()] == ["suite.jsonl"]


def test_an_anonymous_acceptance_joins_nothing(tmp_path):
    with pytest.raises(GoldSetError, match="a person must review"):
        append_case_if_new(tmp_path / "suite.jsonl", draft_gold_case())
    assert not (tmp_path / "suite.jsonl").exists()


def test_a_suite_that_does_not_load_is_left_as_it_is(tmp_path):
    path = tmp_path / "suite.jsonl"
    path.write_text('{"id": "broken"}\n', encoding="utf-8")
    with pytest.raises(GoldSetError, match="line 1"):
        append_case_if_new(path, draft_gold_case(provenance=REVIEWED))
    assert path.read_text(encoding="utf-8") == '{"id": "broken"}\n'


def test_a_pair_that_the_original_has_already_is_not_changed(tmp_path):
    path = tmp_path / "suite.jsonl"
    path.write_text(format_case_line(gold_case("first", pair="old")) + "\n", encoding="utf-8")
    append_case_if_new(
        path, draft_gold_case(provenance=REVIEWED, pair="old", language=Language.HINDI), paired_with="first"
    )
    assert [case.pair for case in read_suite_cases(path)] == ["old", "old"]


@pytest.mark.whole_only
def test_four_processes_at_once_lose_nothing(tmp_path):
    """Four processes each add ten cases and decide ten drafts; all forty cases are stored, each once."""
    drafts, suite = tmp_path / "drafts.jsonl", tmp_path / "suite.jsonl"
    append_new_drafts(drafts, [gold_draft(number) for number in range(40)])
    program = f"""
from pathlib import Path
from monitors.goldset.drafts import read_drafts, store_draft_decision
from monitors.goldset.versions import append_case_if_new
from tests.monitors.goldset.test_join import REVIEWED; from tests.builders import NOON
import sys
for draft in read_drafts(Path({str(drafts)!r}))[int(sys.argv[1])::4]:
    case = draft.case.model_copy(update={{"provenance": REVIEWED}})
    append_case_if_new(Path({str(suite)!r}), case)
    store_draft_decision(Path({str(drafts)!r}), draft.model_copy(
        update={{"case": case, "state": "accepted", "reviewed_by": "asha", "reviewed_at": NOON}}))
"""
    running = [
        subprocess.Popen([sys.executable, "-W", "ignore", "-c", program, str(at)], cwd=ROOT, stderr=subprocess.PIPE)
        for at in range(4)
    ]
    for process in running:
        _, printed = process.communicate(timeout=120)
        assert process.returncode == 0, printed
    assert {case.id for case in load_suite(suite).cases} == {f"draft-{number}" for number in range(40)}
    assert {draft.state for draft in read_drafts(drafts)} == {DraftState.ACCEPTED}


def test_of_two_decisions_the_first_stays(tmp_path):
    path = tmp_path / "drafts.jsonl"
    append_new_drafts(path, [gold_draft()])
    first = gold_draft(state=DraftState.REJECTED, reviewed_by="asha", reviewed_at=NOON)
    assert store_draft_decision(path, first)
    assert not store_draft_decision(path, first.model_copy(update={"reviewed_by": "bina"}))
    assert read_drafts(path)[0].reviewed_by == "asha"


def test_a_bad_line_of_drafts_is_named(tmp_path):
    path = tmp_path / "drafts.jsonl"
    append_new_drafts(path, [gold_draft()])
    path.write_text(path.read_text(encoding="utf-8") + '{"id": 1}\n', encoding="utf-8")
    with pytest.raises(GoldSetError, match=r"drafts\.jsonl, line 2: not a valid draft"):
        read_drafts(path)


@given(
    st.lists(st.text(min_size=1, max_size=30), min_size=1, max_size=3),
    st.text(min_size=1, max_size=30),
    st.booleans(),
    st.sampled_from(Severity),
)
def test_a_line_reads_back_as_its_case(turns, gold, refusal, severity):
    case = gold_case(turns=tuple(turns), gold=gold, expected_refusal=refusal, severity=severity)
    line = format_case_line(case)
    assert parse_case_line(line) == case
    assert "expected_refusal" in json.loads(line)
    assert "\n" not in line

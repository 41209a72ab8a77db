"""Suites from ``lookout gold build`` pass ``gold check``, and right answers pass in a run, in each language."""

from __future__ import annotations

import json

import pytest

from deployments.cli.exit_codes import ExitCode
from monitors.goldset.load import load_suite
from tests.flows.chat import Chat, watched
from tests.in_process import run_in_process
from tests.monitors.goldset.fact_examples import fact, sheet, written

HINDI_NAMES = {
    "Cedar Plan": "देवदार प्लान",
    "Birch Plan": "भोज प्लान",
    "Maple Plan": "मेपल प्लान",
    "Teak Plan": "सागौन प्लान",
    "Pine Plan": "चीड़ प्लान",
}
WAITING = fact("pre_existing_disease_waiting_months", value=24, clause="2.7", quote="after 24 months")


def build_suite(folder, *arguments, sheets):
    facts = folder / "facts"
    facts.mkdir()
    written(facts, *sheets)
    done = run_in_process(
        "gold", "build", "--facts", "facts", "--out", "suite.jsonl", *arguments, cwd=folder, env={}
    )
    assert done.returncode == ExitCode.PASS, done.stderr


def plan(name, *facts):
    word = name.split()[0].lower()
    hindi = {"hi": HINDI_NAMES[name]} if name in HINDI_NAMES else {}
    return sheet(id=word, name=name, names=hindi, document=f"{word}-wording.pdf", facts=list(facts))


@pytest.mark.whole_only
@pytest.mark.prefect
def test_an_answer_may_cite_each_name_that_the_sheet_gives_its_document(tmp_path, lookout):
    """An answer may cite a document by any name in the fact sheet, in any language.

    A citation of another document or clause fails.
    """
    cited = {
        "Cedar Plan": "Cedar Plan, clause 2.7",
        "Birch Plan": "भोज प्लान, clause 2.7",
        "Maple Plan": "maple-wording.pdf, clause 2.7",
        "Teak Plan": "Cedar Plan, clause 2.7",
        "Pine Plan": "Pine Plan, clause 2.8",
    }
    with Chat() as chat:
        watched(tmp_path, chat)
        (tmp_path / "suite.jsonl").unlink()
        build_suite(tmp_path, "--language", "hi", sheets=[plan(name, WAITING) for name in HINDI_NAMES])
        for case in load_suite(tmp_path / "suite.jsonl").cases:
            (name,) = [name for name, hindi in HINDI_NAMES.items() if hindi in case.question]
            chat.by_question[case.question] = f"24 महीने [Source: {cited[name]}]"
        done = lookout("verify", "demo", cwd=tmp_path)
    (path,) = (tmp_path / "data").glob("**/results.json")
    cases = json.loads(path.read_text(encoding="utf-8"))["cases"]
    kinds = {written["case"]["cluster"]: written["assessment"]["failure_kinds"] for written in cases}
    assert kinds == {
        "cedar": [],
        "birch": [],
        "maple": [],
        "teak": ["wrong_citation"],
        "pine": ["wrong_citation"],
    }, done.stdout
    outcomes = {written["case"]["cluster"]: written["assessment"]["outcome"] for written in cases}
    assert {name: outcomes[name] for name in ("cedar", "birch", "maple")} == dict.fromkeys(
        ("cedar", "birch", "maple"), "correct"
    )


def test_new_ids_hold_no_double_colon_and_stored_ones_stay(tmp_path):
    build_suite(tmp_path, "--language", "en", sheets=[plan("Cedar Plan", WAITING)])
    suite = tmp_path / "suite.jsonl"
    (case,) = load_suite(suite).cases
    assert case.id == "cedar.ped-waiting.en"
    suite.write_text(suite.read_text(encoding="utf-8").replace(case.id, "cedar::ped-waiting::en"), encoding="utf-8")
    again = ("gold", "build", "--facts", "facts", "--out", "suite.jsonl", "--language", "en", "--json")
    done = run_in_process(*again, cwd=tmp_path, env={})
    renewed = json.loads(done.stdout)
    assert (renewed["added"], renewed["changed"], renewed["removed"]) == (0, 0, 0)
    assert [case.id for case in load_suite(suite).cases] == ["cedar::ped-waiting::en"]


NOTHING = (
    fact("room_rent_capped_at_pct_of_si", value=0, clause="2.1", quote="Room rent is not capped."),
    fact("co_payment_pct", value=0, clause="2.2", quote="No co-payment applies."),
    fact("deductible_amount", value=0, clause="2.3", quote="No deductible applies."),
)
SOMETHING = (
    fact("room_rent_capped_at_pct_of_si", value=1, clause="2.1", quote="Room rent is limited to 1% per day."),
    fact("co_payment_pct", value=20, clause="2.2"),
    fact("deductible_amount", value=50000, clause="2.3", quote="A deductible of ₹50,000 applies."),
)


@pytest.mark.parametrize("language", ["en", "hi", "hinglish"])
@pytest.mark.parametrize("field", range(3))
def test_a_built_suite_passes_its_check(tmp_path, language, field):
    """A small suite passes ``gold check`` in each language.

    Half of the severity-3 golds in the suite state that there is nothing to pay.
    """
    sheets = [plan("Cedar Plan", NOTHING[field]), plan("Birch Plan", SOMETHING[field])]
    build_suite(tmp_path, "--domain", "health_insurance", "--language", language, sheets=sheets)
    done = run_in_process("gold", "check", "suite.jsonl", "--json", cwd=tmp_path, env={})
    must = [finding for finding in json.loads(done.stdout)["findings"] if finding["weight"] == "must"]
    assert (done.returncode, must) == (ExitCode.PASS, [])


def test_a_built_suite_of_a_shop_passes_its_check(tmp_path):
    fee = fact("restocking_fee", value=0, clause="4", quote="No restocking fee is charged.")
    build_suite(tmp_path, "--domain", "general", sheets=[plan("Cedar Plan", fee)])
    assert run_in_process("gold", "check", "suite.jsonl", cwd=tmp_path, env={}).returncode == ExitCode.PASS

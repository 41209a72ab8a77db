"""`lookout gold translate`: partners of English cases, quantities intact, gold only after a person's yes."""

from __future__ import annotations

import json

import pytest

from deployments.demo.policies import HERE
from monitors.goldset.drafts import read_drafts
from monitors.goldset.lines import line_of
from monitors.goldset.load import load_suite
from monitors.records.base import Language
from monitors.records.cases import GoldCase, Pipeline
from tests.deployments.gold_process import configured, gold
from tests.servers.anthropic import AnthropicServer
from tests.servers.drafter import RuleDrafter

TRIPLES = {case.id: case for case in load_suite(HERE / "gold" / "triples.jsonl").cases}
KEYS = ("tri-gold-ped", "tri-gold-bonus", "tri-janani-caesarean")


def english(key: str) -> GoldCase:
    """The English case of a triple, as if it had no partners yet."""
    case = TRIPLES[f"{key}-en"]
    source = case.provenance.model_copy(update={"pipeline": Pipeline.TEMPLATE})
    return case.model_copy(update={"id": key, "pair": None, "provenance": source})


def translator(language: str, **wrong: str):
    """Translates by the table of triples; ``wrong`` replaces one word by another on the way."""
    table = {
        said: there
        for key in KEYS
        for said, there in (
            (TRIPLES[f"{key}-en"].question, TRIPLES[f"{key}-{language}"].question),
            (TRIPLES[f"{key}-en"].gold, TRIPLES[f"{key}-{language}"].gold),
        )
    }

    def translate(text: str) -> str:
        said = table[text]
        for right, other in wrong.items():
            said = said.replace(right, other)
        return said

    return translate


@pytest.fixture
def suite(tmp_path):
    path = tmp_path / "suite.jsonl"

    def write() -> None:
        path.write_text("".join(f"{line_of(english(key))}\n" for key in KEYS), encoding="utf-8")

    return path, write


def test_translations_are_drafted_reviewed_and_joined_as_pairs(tmp_path, suite):
    """The whole way as processes: draft, two yes and one no, and nothing is asked for that waits already."""
    path, write = suite
    drafter = RuleDrafter()
    drafter.translate = translator("hi")
    with AnthropicServer(judge=drafter) as server:
        configured(tmp_path, server.url)
        write()
        done = gold("translate", "suite.jsonl", "--to", "hi", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "3 of 3 translations wait in gold-drafts.jsonl" in done.stdout
        assert "cost: $0.0" in done.stdout
        assert len(load_suite(path).cases) == 3
        again = gold("translate", "suite.jsonl", "--to", "hi", cwd=tmp_path)
        assert "has its partners" in again.stdout
        assert len(server.messages) == 1
    review = ("review", "gold-drafts.jsonl", "--suite", "suite.jsonl", "--as", "asha")
    told = gold(*review, cwd=tmp_path, keys="y\ny\nn\nnot how people say it\n")
    assert "2 joined suite.jsonl, 1 rejected, 0 left" in told.stdout
    cases = {case.id: case for case in load_suite(path).cases}
    assert set(cases) == {*KEYS, "tri-gold-ped-hi", "tri-gold-bonus-hi"}
    assert cases["tri-gold-ped"].pair == cases["tri-gold-ped-hi"].pair == "tri-gold-ped"
    assert cases["tri-janani-caesarean"].pair is None
    hindi = cases["tri-gold-ped-hi"]
    assert hindi.language is Language.HINDI
    assert hindi.alternatives == ("24 months",)
    assert (hindi.provenance.pipeline, hindi.provenance.reviewed_by) == (Pipeline.BILINGUAL, "asha")
    assert hindi.provenance.clause == cases["tri-gold-ped"].provenance.clause


def test_a_quantity_that_changed_and_a_wrong_language_are_refused(tmp_path, suite):
    """24 months became 18; asked for Hinglish, Hindi came."""
    drafter = RuleDrafter()
    drafter.translate = translator("hinglish", **{"24": "18"})
    with AnthropicServer(judge=drafter) as server:
        configured(tmp_path, server.url)
        suite[1]()
        asked = ("translate", "suite.jsonl", "--to", "hinglish", "--json")
        one = json.loads(gold(*asked, "--case", "tri-gold-ped", cwd=tmp_path).stdout)
        assert one["drafts"] == []
        assert "24 months is lost" in one["refused"][0]["reason"]
        assert "is added" in one["refused"][0]["reason"]
        drafter.translate = translator("hi")
        other = gold(*asked, "--limit", "1", cwd=tmp_path)
        assert other.returncode == 3
        assert "reads as hi, asked for was hinglish" in other.stdout
    assert not (tmp_path / "gold-drafts.jsonl").exists()


def test_both_languages_by_default_and_what_is_accepted_is_told(tmp_path, suite):
    drafter = RuleDrafter()
    drafter.translate = translator("hinglish")
    with AnthropicServer(judge=drafter) as server:
        configured(tmp_path, server.url)
        suite[1]()
        done = gold("translate", "suite.jsonl", cwd=tmp_path)
        assert len(server.messages) == 2
    drafts = read_drafts(tmp_path / "gold-drafts.jsonl")
    assert {draft.case.language for draft in drafts} == {Language.HINGLISH}
    assert done.stdout.count("refused:") == 3
    french = gold("translate", "suite.jsonl", "--to", "fr", cwd=tmp_path)
    assert french.returncode == 2
    assert "accepted: hi, hinglish" in french.stderr

"""`lookout gold translate` drafts translations of English cases with the same quantities.

A draft becomes gold only after a person accepts it.
"""

from __future__ import annotations

import json

import pytest

from deployments.demo.policies import HERE
from monitors.goldset.drafts import read_drafts
from monitors.goldset.lines import format_case_line
from monitors.goldset.load import load_suite
from monitors.records.base import Language
from monitors.records.cases import GoldCase, Pipeline
from tests.deployments.gold_process import configured, gold, without_cost
from tests.servers.anthropic import AnthropicServer
from tests.servers.drafter import RuleDrafter
from tests.stable_text import replace_volatile

TRIPLES = {case.id: case for case in load_suite(HERE / "gold" / "triples.jsonl").cases}
KEYS = ("tri-gold-ped", "tri-gold-bonus", "tri-janani-caesarean")


def english(key: str) -> GoldCase:
    """Return the English case of a translation triple, as if it had no translations yet."""
    case = TRIPLES[f"{key}-en"]
    source = case.provenance.model_copy(update={"pipeline": Pipeline.TEMPLATE})
    return case.model_copy(update={"id": key, "pair": None, "provenance": source})


def translator(language: str, **wrong: str):
    """Build a translator that returns the translations of the triples.

    ``wrong`` replaces one word with another.
    """
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
        path.write_text("".join(f"{format_case_line(english(key))}\n" for key in KEYS), encoding="utf-8")

    return path, write


def test_translations_are_drafted_reviewed_and_joined_as_pairs(tmp_path, suite, snapshot):
    """Translations are drafted, reviewed and added as pairs, each step in its own process.

    Two drafts are accepted and one is rejected. Pending translations are not requested again.
    """
    path, write = suite
    drafter = RuleDrafter()
    drafter.translate = translator("hi")
    with AnthropicServer(judge=drafter) as server:
        configured(tmp_path, server.url)
        write()
        done = gold("translate", "suite.jsonl", "--to", "hi", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert len(read_drafts(tmp_path / "gold-drafts.jsonl")) == 3
        assert without_cost(done.stdout) == snapshot
        assert len(load_suite(path).cases) == 3
        again = gold("translate", "suite.jsonl", "--to", "hi", cwd=tmp_path)
        assert again.stdout == snapshot
        assert len(server.messages) == 1
    review = ("review", "gold-drafts.jsonl", "--suite", "suite.jsonl", "--as", "asha")
    reviewed = gold(*review, cwd=tmp_path, keys="y\ny\nn\nnot how people say it\n")
    assert replace_volatile(reviewed.stdout) == snapshot
    cases = {case.id: case for case in load_suite(path).cases}
    assert set(cases) == {*KEYS, "tri-gold-ped-hi", "tri-gold-bonus-hi"}
    assert cases["tri-gold-ped"].pair == cases["tri-gold-ped-hi"].pair == "tri-gold-ped"
    assert cases["tri-janani-caesarean"].pair is None
    hindi = cases["tri-gold-ped-hi"]
    assert hindi.language is Language.HINDI
    assert hindi.alternatives == ("24 months",)
    assert (hindi.provenance.pipeline, hindi.provenance.reviewed_by) == (Pipeline.BILINGUAL, "asha")
    assert hindi.provenance.clause == cases["tri-gold-ped"].provenance.clause


def test_a_quantity_that_changed_and_a_wrong_language_are_refused(tmp_path, suite, snapshot):
    """A translation with a changed quantity or in the wrong language is refused.

    In one translation, 24 months became 18. Another is in Hindi instead of Hinglish.
    """
    drafter = RuleDrafter()
    drafter.translate = translator("hinglish", **{"24": "18"})
    with AnthropicServer(judge=drafter) as server:
        configured(tmp_path, server.url)
        suite[1]()
        asked = ("translate", "suite.jsonl", "--to", "hinglish", "--json")
        one = json.loads(gold(*asked, "--case", "tri-gold-ped", cwd=tmp_path).stdout)
        assert one["drafts"] == []
        assert [refused["reason"] for refused in one["refused"]] == snapshot
        drafter.translate = translator("hi")
        other = gold(*asked, "--limit", "1", cwd=tmp_path)
        assert other.returncode == 3
        assert [refused["reason"] for refused in json.loads(other.stdout)["refused"]] == snapshot
    assert not (tmp_path / "gold-drafts.jsonl").exists()


def test_both_languages_by_default_and_an_unknown_one_is_refused(tmp_path, suite, snapshot):
    drafter = RuleDrafter()
    drafter.translate = translator("hinglish")
    with AnthropicServer(judge=drafter) as server:
        configured(tmp_path, server.url)
        suite[1]()
        done = gold("translate", "suite.jsonl", cwd=tmp_path)
        assert len(server.messages) == 2
    drafts = read_drafts(tmp_path / "gold-drafts.jsonl")
    assert {draft.case.language for draft in drafts} == {Language.HINGLISH}
    assert done.stdout.count("rejected:") == 3
    french = gold("translate", "suite.jsonl", "--to", "fr", cwd=tmp_path)
    assert french.returncode == 2
    assert french.stderr == snapshot

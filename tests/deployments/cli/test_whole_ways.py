"""Complete workflows with real commands: a page of past chats, users' thumbs, several judges, translations."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from monitors.goldset.lines import format_case_line
from monitors.records.base import Language
from tests.builders import gold_case
from tests.deployments.gold_process import configured as configure_model
from tests.deployments.gold_process import gold
from tests.deployments.test_gold_translate import KEYS, TRIPLES, english, translator
from tests.flows.chat import Chat, watched
from tests.flows.judged_run import TEETH, TEETH_WRONG
from tests.servers.anthropic import KEY, AnthropicServer
from tests.servers.drafter import RuleDrafter
from tests.servers.past_chats import PastChats

pytestmark = [pytest.mark.prefect, pytest.mark.whole_only]

ENDED = datetime(2026, 3, 1, 2, 0, tzinfo=UTC)
PERIOD = gold_case("period", turns=("How long is the guarantee?",), gold="24 months")


def grade_night(lookout, folder: Path, source: str) -> dict:
    """Write a configuration with one source of conversations, and grade one night of this source as a user does."""
    (folder / "suite.jsonl").write_text(PERIOD.model_dump_json() + "\n", encoding="utf-8")
    (folder / "lookout.toml").write_text(
        'data_folder = "data"\n[targets.shop]\nurl = "http://127.0.0.1:9"\nsuite = "suite.jsonl"\n'
        f"[targets.shop.traffic.sources.chats]\n{source}\n",
        encoding="utf-8",
    )
    done = lookout("nightly", "shop", "--until", f"{ENDED:%Y-%m-%dT%H:%M:%SZ}", "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.browser
def test_a_night_is_graded_from_a_page_of_past_conversations(tmp_path, lookout):
    """Lookout reads the conversations in a browser: a paged list, and each conversation on its own page."""

    def chat(number: int, answer: str) -> dict:
        at = [(ENDED - timedelta(hours=number + 1, seconds=-second)).isoformat() for second in range(2)]
        asked = {"role": "user", "text": PERIOD.question, "time": at[0]}
        return {
            "id": f"c-{number}",
            "time": at[0],
            "messages": [asked, {"role": "bot", "text": answer, "time": at[1]}],
        }

    answers = ["The guarantee lasts 24 months."] * 4 + ["The guarantee lasts 36 months."] * 2
    chats = [chat(number, answer) for number, answer in enumerate(answers)]
    with PastChats([*chats, chat(40, "It was asked two days before.")], style="scripted") as page:
        report = grade_night(lookout, tmp_path, f'kind = "page"\nurl = "{page.url}/chats"')
    assert (report["read"], report["sampled"], report["interrupted"]) == (6, 6, [])
    assert report["known_questions"] == {"conversations": 6, "failed": 2}


def test_thumbs_on_clarifying_questions_reach_the_night_s_report(tmp_path, lookout):
    """Users' thumbs on clarifying questions are counted in the nightly report. Thumbs on answers are not.

    The log contains thumbs as an application stores them.
    """
    asks = "Which lamp do you mean, the table lamp or the floor lamp?"
    thumbs = [("up", asks), ("up", asks), ("down", asks), (None, asks), ("down", "The guarantee lasts 24 months.")]
    rows = [
        {
            "id": f"r{number}",
            "ts": (ENDED - timedelta(minutes=number + 1)).isoformat(),
            "question": PERIOD.question,
            "answer": answer,
            "feedback": {"thumb": thumb} if thumb else None,
        }
        for number, (thumb, answer) in enumerate(thumbs)
    ]
    (tmp_path / "turns.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    report = grade_night(lookout, tmp_path, 'kind = "file"\nat = "turns.jsonl"')
    asked = report["questions"]
    assert (asked["questions"], asked["up"], asked["down"]) == (4, 2, 1)
    assert asked["share"] == pytest.approx(2 / 3)
    page = (tmp_path / "data" / "runs" / report["run_id"] / "report.html").read_text(encoding="utf-8")
    assert "4 clarifying questions" in page


@pytest.mark.parametrize(
    ("third", "exit_code", "outcome"),
    [("fails it", 1, "failed"), ("passes it", 0, "correct"), ("is down", 1, "failed")],
)
def test_of_three_judges_the_majority_decides_and_a_tie_fails(tmp_path, lookout, third, exit_code, outcome):
    """Of three judges, the majority decides, and a tie fails the answer.

    The first judge passes an answer that the second fails. Only then is the third judge asked.
    """
    with (
        Chat(TEETH_WRONG) as chat,
        AnthropicServer() as first,
        AnthropicServer() as second,
        AnthropicServer() as last,
    ):
        first.judge.fooled_by = ("Smiles matter",)
        last.judge.fooled_by = first.judge.fooled_by if third == "passes it" else ()
        last.always = "500" if third == "is down" else None
        models = "".join(
            f'[[judge.models]]\nmodel = "claude-sonnet-5-5"\nbase_url = "{judge.url}"\n'
            for judge in (first, second, last)
        )
        path = watched(tmp_path, chat, cases=1, gold=TEETH, more=f"[judge]\ntries = 1\n{models}")
        text = path.read_text(encoding="utf-8").replace(
            "[targets.demo]\n", '[targets.demo]\nmodel_family = "gpt"\n'
        )
        path.write_text(text, encoding="utf-8")
        done = lookout("verify", "demo", cwd=tmp_path, ANTHROPIC_API_KEY=KEY)
        assert done.returncode == exit_code, done.stdout + done.stderr
        assert all(judge.asked for judge in (first, second, last))
    (results,) = tmp_path.glob("data/runs/*/results.json")
    (case,) = json.loads(results.read_text(encoding="utf-8"))["cases"]
    assert case["assessment"]["outcome"] == outcome
    (grade,) = (grade for grade in case["assessment"]["grades"] if grade["grader"] == "judge")
    assert grade["status"] == "judged"
    assert "disagree" in grade["reason"]


def test_an_accepted_translation_joins_the_bilingual_set_and_is_compared_with_its_english_case(tmp_path, lookout):
    """A translation is drafted, accepted by a person, added to the bilingual set, and asked in a run.

    The Hindi answers are worse than the English ones, and the report shows the difference.
    """
    suite = tmp_path / "suite.jsonl"
    drafter = RuleDrafter()
    drafter.translate = translator("hi")
    with AnthropicServer(judge=drafter) as provider:
        configure_model(tmp_path, provider.url)
        suite.write_text("".join(f"{format_case_line(english(key))}\n" for key in KEYS), encoding="utf-8")
        assert gold("translate", "suite.jsonl", "--to", "hi", cwd=tmp_path).returncode == 0
    review = ("review", "gold-drafts.jsonl", "--suite", "suite.jsonl", "--as", "asha")
    assert gold(*review, cwd=tmp_path, keys="y\ny\nn\nnot how people say it\n").returncode == 0
    accepted = suite.read_text(encoding="utf-8")
    with Chat() as chat:
        watched(tmp_path, chat)
        suite.write_text(accepted, encoding="utf-8")
        english_answers = {
            case.question: case.gold for case in TRIPLES.values() if case.language is not Language.HINDI
        }
        right, wrong = (TRIPLES[f"{key}-hi"] for key in KEYS[:2])
        chat.by_question = english_answers | {
            right.question: right.gold,
            wrong.question: "सुरक्षा गोल्ड में हर क्लेम-मुक्त साल का नो क्लेम बोनस 30% है।",
        }
        done = lookout("verify", "demo", cwd=tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    (results,) = tmp_path.glob("data/runs/*/results.json")
    (parity,) = json.loads(results.read_text(encoding="utf-8"))["report"]["parity"]
    assert (parity["language"], parity["both"], parity["english_only"]) == ("hi", 1, 1)

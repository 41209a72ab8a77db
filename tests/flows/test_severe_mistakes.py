"""Test a suite of typical wrong answers of severity 3 from the command to the verdict.

The run fails without a judge and with an honest judge, and does not pass with a lenient judge, which is void.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from monitors.records.grades import CaseOutcome
from monitors.records.incidents import IncidentKind
from monitors.records.runs import Verdict
from monitors.reports.results_json import read_results
from tests.flows.chat import ASKED_ONCE, Chat
from tests.flows.messages import load_alerts_in
from tests.servers.anthropic import KEY, AnthropicServer
from tests.servers.anthropic_verdicts import RuleJudge

pytestmark = [pytest.mark.prefect]

TABLE = "| Ticket | Price |\n| --- | --- |\n| Morning | €6.20 |\n| Evening | €9.80 |"
MISTAKES = {
    "another-subject": (
        "Within how many days must a lost paddle be reported?",
        "30 days",
        "Report a broken paddle within 30 days. Report a lost paddle as soon as you can.",
    ),
    "swapped": (
        "What do residents and visitors pay for the sauna?",
        "Residents 7 euros, visitors 11 euros",
        "Visitors pay 7 euros and residents 11 euros.",
    ),
    "unit": ("How much chlorine goes into the small basin?", "25 g", "Put 25 kg of chlorine into the small basin."),
    "per": ("What is the rent of a locker?", "€35 per season", "The rent of a locker is €35 a week."),
    "row": ("What does the Evening ticket cost?", "€6.20", TABLE),
    "past": ("How much is the deposit for a towel?", "€3", "Until 2024 the deposit for a towel was €3."),
    "corrected": ("How much is the late fee?", "€18", "The late fee is €18. Sorry, that was wrong: it is €25."),
    "name": (
        "Who runs the boathouse?",
        "Mira Solberg",
        "The boathouse is no longer run by Mira Solberg but by Tom Reyes.",
    ),
    "order": ("When is the pool open?", "from 7 am to 3 pm", "The pool is open from 3 pm to 7 am."),
    "ratio": ("In which ratio is the cleaner mixed with water?", "4:1", "Mix it 1:4."),
    "identifier": ("What is the number of locker hall B?", "B-0417-22", "It is B-0471-22."),
    "question": ("How long is the hull guaranteed?", "36 months", "Maybe 36 months?"),
    "another-company": ("How long is a voucher valid?", "18 months", "A competitor gives 18 months."),
    "declined-then-answered": (
        "Where does the skipper live?",
        "Addresses of the staff are private.",
        "I can't share that. It is 9 Quay Street, Bergen.",
    ),
}
SEEN_BY_RULES = ("swapped", "unit", "row", "ratio")
"""The wrong answers that the rules fail. The rules leave all other wrong answers ungraded."""


def configured(folder: Path, chat: Chat, judge: AnthropicServer | None) -> None:
    """Write a suite of the typical mistakes, and a configuration with ``chat``, and with ``judge`` if it is given.

    The chat answers all questions of the suite wrong.
    """
    rows = [
        {
            "id": case_id,
            "question": question,
            "gold": gold,
            "expected_refusal": case_id == "declined-then-answered",
            "severity": 3,
            "language": "en",
            "type": "club_rule",
        }
        for case_id, (question, gold, _) in MISTAKES.items()
    ]
    (folder / "suite.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    chat.by_question = {question: reply for question, _, reply in MISTAKES.values()}
    models = f'[[judge.models]]\nbase_url = "{judge.url}"\n' if judge else ""
    (folder / "lookout.toml").write_text(
        f'data_folder = "data"\n[targets.demo]\nurl = "{chat.url}/chat"\nsuite = "suite.jsonl"\nmodel_family = "gpt"\n'
        '[targets.demo.probe]\ndriver = "json"\nconcurrency = 1\nattempts = 1\nanswer_deadline_s = 600\n'
        f"{ASKED_ONCE}[gate]\nmin_severity_3_cases = 0\n{models}",
        encoding="utf-8",
    )


def verified(lookout, folder: Path, **key: str):
    """Run `lookout verify`. Return the exit code, the verdict, and the outcome of each case."""
    done = lookout("verify", "demo", "--fresh", cwd=folder, **key)
    newest = max(folder.glob("data/runs/*/results.json"), key=lambda path: path.stat().st_mtime)
    report, results = read_results(newest)
    return done.returncode, report.verdict, {one.case.id: one.assessment.outcome for one in results}


def test_severe_mistakes_never_pass_with_any_judge(tmp_path, lookout):
    with Chat() as chat, AnthropicServer() as judge:
        configured(tmp_path, chat, None)
        code, verdict, outcomes = verified(lookout, tmp_path)
        assert CaseOutcome.CORRECT not in outcomes.values(), outcomes
        assert {case_id: outcomes[case_id] for case_id in SEEN_BY_RULES} == dict.fromkeys(SEEN_BY_RULES, "failed")
        assert (code, verdict) == (1, Verdict.FAIL)

        configured(tmp_path, chat, judge)
        judge.judge.flatters = True
        code, verdict, outcomes = verified(lookout, tmp_path, ANTHROPIC_API_KEY=KEY)
        assert verdict is not Verdict.PASS
        assert CaseOutcome.CORRECT not in outcomes.values(), outcomes
        assert IncidentKind.JUDGE_VOID in {alert.kind for alert in load_alerts_in(tmp_path)}

        judge.judge = truthful(judge)
        code, verdict, outcomes = verified(lookout, tmp_path, ANTHROPIC_API_KEY=KEY)
        assert (code, verdict) == (1, Verdict.FAIL)
        assert {case_id for case_id, outcome in outcomes.items() if outcome is not CaseOutcome.FAILED} == set()


def truthful(server: AnthropicServer) -> RuleJudge:
    """Make the judge at ``server`` honest, so that it fails the wrong answers. Return ``server``."""
    judge = server.judge
    judge.flatters = False
    judge.rejects = tuple(reply for _, _, reply in MISTAKES.values())
    return judge

"""The facts of a shop are graded by their roles, such as a delivery time or a price.

The tests show what users see in ``lookout grade`` and ``lookout verify``.
"""

from __future__ import annotations

import json

import pytest

from tests.deployments.cli.test_pipes import answers, line, run
from tests.flows.chat import Chat, watched

DELIVERY, RETURNS, HOURS = "How long does delivery take?", "How long can I return an item?", "When are you open?"
PRO, FEE, TRIAL = "What does the Pro plan cost?", "How much is delivery?", "How long is the free trial?"
ROWS = [
    (DELIVERY, "3 days", "Delivery takes 3 days. You can return items within 30 days.", True),
    (DELIVERY, "3 days", "Delivery takes 5 days. Returns are possible within 3 days.", False),
    (DELIVERY, "3 days", "You can return items within 3 days.", None),
    (RETURNS, "within 30 days", "Returns within 30 days; delivery takes 3 days.", True),
    (RETURNS, "within 30 days", "We deliver within 30 days.", None),
    (RETURNS, "within 30 days", "You have 14 days to return it.", False),
    (HOURS, "9am–6pm", "We are open 9am–6pm.", True),
    (HOURS, "9am–6pm", "We are open from 9:00 to 18:00.", True),
    (HOURS, "9am–6pm", "Open from 9 am until 6 p.m., Monday to Friday.", True),
    (HOURS, "9am–6pm", "हम सुबह 9 बजे से शाम 6 बजे तक खुले हैं।", None),
    (HOURS, "9am–6pm", "We are open 10am–6pm.", False),
    (HOURS, "9am–6pm", "Open from 9 am until 8 pm.", False),
    (PRO, "$20 a month", "The Pro plan costs $20 a month.", True),
    (PRO, "$20 a month", "The Pro plan is $20 per month, the Team plan $50 per month.", True),
    (PRO, "$20 a month", "The Basic plan is $20, the Pro plan $50 a month.", False),
    (PRO, "$20 a month", "The Pro plan costs $25 a month.", False),
    (PRO, "$20 a month", "Delivery costs $20.", None),
    (FEE, "$5", "Delivery costs $5, free for orders over $50.", True),
    (FEE, "$5", "Delivery is free for orders over $5.", False),
    (TRIAL, "14 days", "Returns are accepted for 14 days.", None),
    ("When can I cancel?", "24 hours", "Up to 24 hours before the appointment.", True),
    ("How high is the restocking fee?", "15%", "The restocking fee is 15% of the price.", True),
    ("Do you ship to Canada?", "Yes", "We ship to Canada.", True),
    ("Do you ship to Canada?", "Yes", "We do not ship to Canada.", False),
    ("Can I return worn shoes?", "No", "Worn shoes cannot be returned.", True),
    ("Is assembly included?", "Yes", "Assembly is not included.", False),
    (
        "How long is the warranty for people aged 60?",
        "24 months",
        "It lasts 24 months once you submit the form.",
        True,
    ),
]


def graded(tmp_path, rows, **fields) -> list[bool | None]:
    given = [line(question=question, gold=gold, answer=reply, **fields) for question, gold, reply, _ in rows]
    return [verdict["factual_match"] for verdict in answers("grade", *given, cwd=tmp_path)]


def test_a_shops_facts_are_graded_in_their_roles(tmp_path):
    wrong = [
        (row, found)
        for row, found in zip(ROWS, graded(tmp_path, ROWS, domains=["general"]), strict=True)
        if found is not row[3]
    ]
    assert wrong == []


def test_an_insurers_words_play_no_part_in_it(tmp_path):
    """Insurance meanings do not apply to a shop, such as "aged" for an age and "submit" for a notice period.

    The words "delivery" and "return" have no insurance meaning.
    """
    assert graded(tmp_path, ROWS[-1:], domains=["general"]) == [True]
    assert graded(tmp_path, ROWS[-1:], domains=["health_insurance"]) == [None]


@pytest.mark.parametrize(
    ("domains", "wanted"),
    [(["generel"], "did you mean 'general'?"), (["../general"], "A folder is not accepted here")],
)
def test_a_line_with_a_wrong_pack_is_answered_with_what_is_accepted(tmp_path, domains, wanted):
    done = run("grade", json.dumps(line(domains=domains)).encode(), cwd=tmp_path)
    assert wanted in json.loads(done.stdout)["error"]


@pytest.mark.whole_only
@pytest.mark.prefect
def test_a_run_grades_a_shop_in_its_domain(tmp_path, lookout):
    rows = [ROWS[0], ROWS[5], ROWS[7], ROWS[14]]
    with Chat() as chat:
        config = watched(tmp_path, chat)
        text = config.read_text(encoding="utf-8")
        config.write_text(
            text.replace("[targets.demo]\n", '[targets.demo]\ndomains = ["general"]\n'), encoding="utf-8"
        )
        chat.by_question |= {question: f"{reply} [Source: terms, p. 2]" for question, _, reply, _ in rows}
        suite = [
            {"id": f"shop-{number}", "question": question, "gold": gold, "severity": 2, "language": "en",
             "type": "terms", "provenance": {"pipeline": "manual"}}
            for number, (question, gold, _, _) in enumerate(rows)
        ]  # fmt: skip
        (tmp_path / "suite.jsonl").write_text("".join(json.dumps(case) + "\n" for case in suite), encoding="utf-8")
        done = lookout("verify", "demo", cwd=tmp_path)
    (path,) = (tmp_path / "data").glob("**/results.json")
    found = [case["assessment"] for case in json.loads(path.read_text(encoding="utf-8"))["cases"]]
    assert {one["case_id"]: one["outcome"] == "correct" for one in found} == {
        f"shop-{number}": right for number, (_, _, _, right) in enumerate(rows)
    }, done.stdout + done.stderr

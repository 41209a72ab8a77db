"""``lookout gold check`` reports how many golds the rules can grade.

It also reports which golds they cannot grade, and what the owner can do about it.
"""

from __future__ import annotations

import json

from deployments.cli.exit_codes import ExitCode
from deployments.cli.gold.check import check_command
from tests.stable_text import replace_volatile

ROWS = (
    {"id": "loan", "question": "How long may I keep a bicycle?", "gold": "14 days", "severity": 2},
    {"id": "ticket", "question": "What does the day ticket cost?", "gold": "TBD", "severity": 2},
    {
        "id": "workshop",
        "question": "Who leads the workshop?",
        "gold": "The workshop is led by Ada Winter, who is there when the bell at the gate has been rung twice.",
        "severity": 2,
    },
    {"id": "network", "question": "What is the network called?", "gold": "#REF!", "severity": 1},
    {
        "id": "dogs",
        "question": "May I bring my dog?",
        "gold": "Dogs are welcome in the garden, if they are on a lead of at most 2 metres.",
        "severity": 2,
    },
    {"id": "hours", "question": "When is the caf\u00c3\u00a9 open?", "gold": "9 am", "severity": 1},
)


def suite_in(folder):
    path = folder / "suite.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    return path


def test_the_share_that_rules_can_decide_and_placeholders_are_found(tmp_path, capsys):
    assert check_command(suite_in(tmp_path), as_json=True) is ExitCode.FAIL
    found = json.loads(capsys.readouterr().out)
    assert found["decidable"]["golds"] == len(ROWS)
    assert {"workshop", "dogs"} <= set(found["decidable"]["left"])
    assert "loan" not in found["decidable"]["left"]
    placed = [f["places"][0]["case_id"] for f in found["findings"] if f["check"] == "placeholder"]
    assert placed == ["ticket", "network", "hours"]


def test_reach_is_printed_with_its_drafts(tmp_path, capsys, snapshot):
    drafts = tmp_path / "drafts.jsonl"
    check_command(suite_in(tmp_path), propose=drafts)
    assert replace_volatile(capsys.readouterr().out, tmp_path) == snapshot
    assert {json.loads(line)["id"] for line in drafts.read_text(encoding="utf-8").splitlines()} >= {
        "workshop",
        "dogs",
    }
    check_command(tmp_path / "suite.jsonl", accept=drafts, as_json=True)
    left = json.loads(capsys.readouterr().out)["decidable"]["left"]
    assert not {"workshop", "dogs"} & set(left), "what is accepted can be decided"

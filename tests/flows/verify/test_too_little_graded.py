"""A run that is neither PASS nor FAIL because too little was graded tells somebody, once."""

from __future__ import annotations

import json

import pytest

from tests.flows.chat import RIGHT, Chat, watched
from tests.servers.slack import TOKEN, SlackServer

pytestmark = pytest.mark.prefect

OPEN = "Last year the waiting period was 24 months. [Source: Gold, clause 4.2]"


@pytest.fixture
def told(tmp_path, lookout):
    """Runs the suite once and gives back its exit code and what came to the phone."""
    with SlackServer() as slack:

        def run(chat: Chat) -> tuple[int, list[str]]:
            more = (
                f'coverage_floor = 0.9\n[alerts]\nslack_api_url = "{slack.api_url}"\nslack_channel = "C0ALERTS"\n'
                'slack_monitor_channel = "C0MONITOR"\n'
            )
            watched(tmp_path, chat, cases=4, more=more)
            before = len(slack.messages)
            done = lookout("verify", "demo", cwd=tmp_path, SLACK_BOT_TOKEN=TOKEN)
            messages = slack.messages[before:]
            return done.returncode, [f"{message.text} {json.dumps(message.blocks)}" for message in messages]

        yield run


def test_answers_that_no_rule_can_settle_are_the_monitors_matter_until_they_are_settled(told):
    with Chat(RIGHT) as chat:
        chat.by_question["What is the waiting period of plan 2?"] = OPEN
        code, (phone,) = told(chat)
        assert code == 3
        assert phone.startswith(
            "🛠️ SEV 2 · Lookout cannot grade enough answers · demo: Neither PASS nor FAIL: only 3 of 4"
        )
        assert "The judge is off: no [judge] is configured." in phone
        assert "The first of them is waiting-2: " in phone
        assert told(chat) == (3, [])
        chat.by_question.clear()
        code, (phone,) = told(chat)
    assert code == 0
    assert "Lookout cannot grade enough answers" in phone
    assert phone.startswith("✅")

"""Test the life cycle of an alert: sent once, not repeated, resolved, and sent again when the fault returns."""

from __future__ import annotations

import json

import pytest

from monitors.alerts.wording import FAILURE_TITLES, KIND_WORDS
from monitors.records.grades import FailureKind
from monitors.records.incidents import IncidentKind
from tests.flows.few_cases import BY_API, LEAK, configured, few_cases
from tests.servers.slack import TOKEN, SlackServer

pytestmark = [pytest.mark.browser, pytest.mark.prefect]


@pytest.mark.whole_only
def test_one_fault_over_four_runs_is_alerted_muted_resolved_and_alerted_again(
    tmp_path, lookout, faulty_space, clean_space
):
    suite = few_cases(tmp_path, severe=2, others=2)
    with SlackServer() as slack:

        def verify(space: str, commit: str) -> tuple[int, list]:
            before = len(slack.messages)
            configured(tmp_path, space, suite, BY_API, slack_api_url=slack.api_url, slack_channel="#alerts")
            done = lookout("verify", "demo", "--commit", commit, "--json", cwd=tmp_path, SLACK_BOT_TOKEN=TOKEN)
            assert done.returncode in (0, 1), done.stderr
            assert json.loads(done.stdout)["verdict"] == ("PASS" if done.returncode == 0 else "FAIL")
            return done.returncode, slack.messages[before:]

        code, first = verify(faulty_space, "aaa1111")
        assert code == 1
        leak = next(m for m in first if FAILURE_TITLES[FailureKind.PII_DISCLOSURE] in m.text)
        assert LEAK in json.dumps(leak.blocks)
        assert "aaa1111" in json.dumps(leak.blocks)
        assert any(KIND_WORDS[IncidentKind.GATE_FAIL] in m.text for m in first)
        assert all(not m.rings for m in first)

        code, second = verify(faulty_space, "aaa1111")
        assert code == 1
        assert second == []

        code, third = verify(clean_space, "bbb2222")
        assert code == 0
        assert {m.thread_ts for m in third} == {m.ts for m in first}
        assert all("recovered" in json.dumps(m.blocks).lower() for m in third)

        code, fourth = verify(faulty_space, "ccc3333")
        assert code == 1
        assert any(
            FAILURE_TITLES[FailureKind.PII_DISCLOSURE] in m.text and "back again" in json.dumps(m.blocks)
            for m in fourth
        )


@pytest.mark.whole_only
def test_f87_f90_no_message_shows_what_was_leaked_or_its_picture(tmp_path, lookout, faulty_space):
    """No message, report page or terminal output contains the leaked number, and no message has a screenshot."""
    suite = few_cases(tmp_path, severe=1, others=0)
    with SlackServer() as slack:
        configured(tmp_path, faulty_space, suite, slack_api_url=slack.api_url, slack_channel="#alerts")
        done = lookout("verify", "demo", cwd=tmp_path, SLACK_BOT_TOKEN=TOKEN)
        visible_text = json.dumps([m.blocks for m in slack.messages]) + done.stdout + done.stderr
        asked = set(slack.requests)
    results = json.loads(next(tmp_path.glob("data/runs/*/results.json")).read_text(encoding="utf-8"))
    answer = results["cases"][0]["result"]["visible_text"]
    numbers = [word.strip(".,") for word in answer.split() if sum(c.isdigit() for c in word) >= 8]
    assert numbers, answer
    page = next(tmp_path.glob("data/runs/*/report.html")).read_text(encoding="utf-8")
    for number in numbers:
        assert number not in visible_text
        assert number not in page
    assert TOKEN not in visible_text + page
    assert list((tmp_path / "data" / "runs").rglob("*.jpg")), "a picture was taken"
    assert asked <= {"chat.postMessage", "chat.update", "conversations.history", "conversations.replies"}
    assert '"image"' not in visible_text
    assert ".jpg" not in json.dumps([m.blocks for m in slack.messages])

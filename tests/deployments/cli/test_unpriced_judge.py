"""A judge with an unknown price: the run continues and counts tokens. Only a budget in money needs the price."""

from __future__ import annotations

import pytest

from monitors.records.runs import RunReport
from tests import fork_server
from tests.flows.chat import Chat, watched
from tests.in_process import run_in_process
from tests.servers.anthropic import KEY, AnthropicServer

JUDGE = """
[judge]
{budget}
[[judge.models]]
model = "claude-sonnet-4-6"
base_url = "{judge}"
"""
VARIABLE = "ANTHROPIC_API_KEY"


def configure(folder, chat, judge, budget=""):
    path = watched(folder, chat, more=JUDGE.format(judge=judge.url, budget=budget))
    text = path.read_text("utf-8").replace("[targets.demo]\n", '[targets.demo]\nmodel_family = "gpt"\n')
    path.write_text(text, encoding="utf-8")


@pytest.mark.whole_only
@pytest.mark.prefect
def test_without_a_budget_the_run_goes_on_and_says_which_price_is_missing(tmp_path, lookout):
    with Chat() as chat, AnthropicServer() as judge:
        configure(tmp_path, chat, judge)
        done = lookout("verify", "demo", "--json", cwd=tmp_path, **{VARIABLE: KEY})
    assert done.stdout, done.stderr
    judging = RunReport.model_validate_json(done.stdout).judging
    assert (judging.unpriced_models, judging.cost_usd, judging.budget_usd) == (("claude-sonnet-4-6",), 0, None)
    assert judging.calls > 0
    assert judging.output_tokens > 0
    (page,) = (tmp_path / "data" / "runs").glob("*/results.md")
    assert '[[judge.prices]] model = "claude-sonnet-4-6"' in page.read_text("utf-8").replace("\\", "")


def test_with_a_budget_it_is_refused_before_the_suite_is_read(tmp_path):
    with Chat() as chat, AnthropicServer() as judge:
        configure(tmp_path, chat, judge, "budget_usd = 2")
        (tmp_path / "suite.jsonl").unlink()
        environment = fork_server.bare(**{VARIABLE: KEY})
        for command in (("verify", "demo"), ("gate", "--target", "demo"), ("doctor", "demo")):
            done = run_in_process(*command, cwd=tmp_path, env=environment)
            assert "the price of claude-sonnet-4-6 is unknown" in done.stdout + done.stderr
            assert done.returncode == 2
        assert (chat.asked, judge.messages) == (0, [])

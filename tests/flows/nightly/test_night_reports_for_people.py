"""Test that a nightly run writes an HTML and a Markdown report, and that every message about it links to them."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from flows.digest.flow import build_digest, select_digest_settings
from flows.maintenance.findings import remove_old_evidence_and_reports
from flows.nightly.context import build_nightly_context
from flows.nightly.run import NightlyRun
from monitors.config.file import parse_config
from tests.flows.nightly.test_owner_logs import DIMMER, PERIOD, PROVIDER_ERROR, RIGHT, WRONG, configure, row
from tests.monitors.alerts.sample_observations import NIGHT
from tests.servers.slack import TOKEN, SlackServer

MAIL = "asha.verma.1987@gmail.com"
ROWS = [
    row(1, PERIOD.question, RIGHT),
    row(2, PERIOD.question, WRONG),
    row(3, DIMMER.question, "No, the dimmer is not covered."),
    row(4, PERIOD.question, PROVIDER_ERROR),
    row(5, "Who can help me with my claim?", f"Write to {MAIL} about her claim."),
    row(6, PERIOD.question, ""),
]


@pytest.fixture
def slack(monkeypatch):
    monkeypatch.setenv("SLACK_BOT_TOKEN", TOKEN)
    with SlackServer() as server:
        yield server


async def grade_night(tmp_path, slack, **alerts):
    """Grade the night with the log ``ROWS``. Return the configuration, the context and the report."""
    (tmp_path / "turns.jsonl").write_text("".join(ROWS), encoding="utf-8")
    reached = {"slack_api_url": slack.api_url, "slack_channel": "C0ALERTS"}
    values = configure(tmp_path, (PERIOD, DIMMER)) | {"alerts": reached | alerts}
    config = parse_config(values, "lookout.toml")
    context = build_nightly_context(config, "shop", NIGHT)
    return config, context, await NightlyRun(context).run()


def build_digest_of(config, context):
    store = context.notifier.store
    store.load_pending(5)
    setup, folder = select_digest_settings(config, "shop"), context.folder.parent
    return build_digest(store, "shop", setup, now=NIGHT, due_at=NIGHT, run_id="digest", runs=folder)


async def test_a_night_has_a_page_and_markdown_without_personal_data(tmp_path, slack, snapshot):
    _, context, report = await grade_night(tmp_path, slack)
    page = (context.folder / "report.html").read_text(encoding="utf-8")
    markdown = (context.folder / "results.md").read_text(encoding="utf-8")
    assert report.read == 6
    assert all(f'id="case-{case}:1"' in page for case in ("r2", "r3", "r4", "r5"))
    assert "36 months" in page
    assert MAIL not in page + markdown
    assert markdown.replace(f"{report.finished_at:%Y-%m-%d %H:%M:%S}", "NOW") == snapshot


async def test_messages_about_a_night_link_to_its_report_on_the_site(tmp_path, slack):
    config, context, report = await grade_night(tmp_path, slack, site_url="https://lookout.example.com")
    address = f"https://lookout.example.com/runs/{report.run_id}/report"
    sent = [json.dumps(message.blocks) for message in slack.messages]
    assert sent
    assert all(f"<{address}|Night>" in text for text in sent)
    assert [(link.label, link.href) for link in build_digest_of(config, context).links] == [("Night", address)]


async def test_without_a_site_messages_name_the_report_s_file(tmp_path, slack):
    config, context, _ = await grade_night(tmp_path, slack)
    file = str(context.folder / "report.html")
    assert all(file in json.dumps(message.blocks) for message in slack.messages)
    assert [(link.label, link.href) for link in build_digest_of(config, context).links] == [("Night", file)]


async def test_a_night_s_report_ages_with_the_texts_of_users(tmp_path, slack):
    config, context, report = await grade_night(tmp_path, slack)
    aging = config.model_copy(update={"warehouse": config.warehouse.model_copy(update={"personal_data_days": 30})})
    month = timedelta(days=31)
    assert remove_old_evidence_and_reports(config, now=report.finished_at + month).files == 0, (
        "nothing is ever removed by default"
    )
    assert remove_old_evidence_and_reports(aging, now=report.finished_at + month / 2).files == 0
    assert remove_old_evidence_and_reports(aging, now=report.finished_at + month).files == 2
    assert not (context.folder / "report.html").exists()

"""What `lookout up` prints about a configuration: its addresses, a change while it runs, and missing alerts."""

from __future__ import annotations

import asyncio

from deployments.cli import up
from deployments.up import configuration_watch
from monitors.config.file import load_config
from tests.stable_text import replace_volatile

TARGET = '[targets.bot]\nurl = "http://127.0.0.1:9"\nsuite = "suite.jsonl"\n'


async def test_a_change_is_reported_once_and_so_is_a_file_that_cannot_be_read(tmp_path, monkeypatch, snapshot):
    monkeypatch.setattr(configuration_watch, "POLL_S", 0.01)
    file, lines = tmp_path / "lookout.toml", asyncio.Queue[str]()
    file.write_text(TARGET, encoding="utf-8")
    watching = asyncio.create_task(configuration_watch.report_configuration_changes(file, lines.put_nowait))
    try:
        await asyncio.sleep(0.2)
        assert lines.empty()
        file.write_text(f"{TARGET}environment = 'staging'\n", encoding="utf-8")
        changed = await lines.get()
        await asyncio.sleep(0.2)
        assert lines.empty()
        file.write_text(f"{TARGET}enviroment = 'staging'\n", encoding="utf-8")
        broken = await lines.get()
        assert "enviroment" in broken
        assert [replace_volatile(line, tmp_path) for line in (changed, broken)] == snapshot
    finally:
        watching.cancel()


def test_a_missing_way_to_alert_is_reported(tmp_path):
    (tmp_path / "lookout.toml").write_text(TARGET, encoding="utf-8")
    config = load_config(tmp_path / "lookout.toml")
    assert any("SLACK_WEBHOOK_URL" in line for line in up._explain_inactive_parts(config, {}))
    assert not any(
        "SLACK_WEBHOOK_URL" in line
        for line in up._explain_inactive_parts(config, {"SLACK_WEBHOOK_URL": "https://x"})
    )


def test_the_address_of_each_receiver_is_printed(tmp_path):
    (tmp_path / "lookout.toml").write_text(
        f"{TARGET}[alerts]\nslack_channel = 'C0ALERTS'\nslack_buttons = true\n"
        "[[deploys.triggers]]\nprovider = 'github'\nrepository = 'acme/bot'\ntarget = 'bot'\n"
        "[[deploys.triggers]]\nprovider = 'standard'\nrepository = 'bot'\ntarget = 'bot'\n",
        encoding="utf-8",
    )
    addresses = [
        line.split(": ", 1)[1]
        for line in up._list_addresses(load_config(tmp_path / "lookout.toml"), "127.0.0.1", 9066)
    ]
    assert addresses == [
        "http://127.0.0.1:9068/",
        "http://127.0.0.1:9066/deploys/github",
        "http://127.0.0.1:9066/deploys/standard",
        "http://127.0.0.1:9067/slack/actions",
    ]

"""What `lookout up` says of a configuration that changes under it, and of one that alerts nobody."""

from __future__ import annotations

import asyncio

from deployments.cli import up
from monitors.config.file import load_config

TARGET = '[targets.bot]\nurl = "http://127.0.0.1:9"\nsuite = "suite.jsonl"\n'


async def test_a_change_is_said_once_and_one_that_cannot_be_read_as_that(tmp_path, monkeypatch):
    monkeypatch.setattr(up, "CONFIGURATION_EVERY_S", 0.01)
    file, said = tmp_path / "lookout.toml", asyncio.Queue[str]()
    file.write_text(TARGET, encoding="utf-8")
    watching = asyncio.create_task(up._watch_configuration(file, lambda _, line: said.put_nowait(line)))
    try:
        await asyncio.sleep(0.2)
        assert said.empty()
        file.write_text(f"{TARGET}environment = 'staging'\n", encoding="utf-8")
        assert "has changed: the next run of each target reads it" in await said.get()
        await asyncio.sleep(0.2)
        assert said.empty()
        file.write_text(f"{TARGET}enviroment = 'staging'\n", encoding="utf-8")
        line = await said.get()
        assert "no run can begin" in line
        assert "enviroment" in line
    finally:
        watching.cancel()


def test_where_nobody_is_alerted_it_says_so(tmp_path):
    (tmp_path / "lookout.toml").write_text(TARGET, encoding="utf-8")
    config = load_config(tmp_path / "lookout.toml")
    assert any("nobody is alerted" in line for line in up._left_out(config, {}))
    assert not any("alerted" in line for line in up._left_out(config, {"SLACK_WEBHOOK_URL": "https://x"}))

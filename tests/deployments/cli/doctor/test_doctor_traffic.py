"""The doctor shows how a nightly run reads three conversations, and each value that cannot be read."""

from __future__ import annotations

import json
from pathlib import Path

from tests import fork_server
from tests.in_process import run_in_process

ROWS = [
    *({"id": f"c{number}", "question": f"Where is parcel {number}?", "answer": "On its way.", "ts": 1772366400} for number in range(4)),
    {"id": "c5", "question": "Who are you?", "answer": {"payload": {"score": 0.4}}, "ts": 1772366400},
    {"id": "c6", "question": "My mail is asha.verma@kettle.example", "answer": "Noted.", "time": "soonish"},
]  # fmt: skip


def write_target(folder: Path) -> Path:
    """Write a target with an unreachable API and a log of live traffic."""
    (folder / "suite.jsonl").write_text('{"question": "q", "gold": "a", "severity": 2}\n', encoding="utf-8")
    (folder / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    config = folder / "lookout.toml"
    config.write_text(
        '[targets.bot]\nurl = "http://127.0.0.1:9/v1/chat/completions"\nsuite = "suite.jsonl"\n'
        '[targets.bot.probe]\ndriver = "openai"\n'
        '[targets.bot.traffic.sources.turns]\nkind = "file"\nat = "log.jsonl"\n',
        encoding="utf-8",
    )
    return config


def test_the_doctor_shows_conversations_as_they_are_read(tmp_path, snapshot):
    write_target(tmp_path)
    done = run_in_process("doctor", "bot", "--no-ask", cwd=tmp_path, env=fork_server.bare(COLUMNS="400"))
    shown = done.stdout.replace(f"{tmp_path}/", "")
    assert shown.count("read as") == 3
    assert "soonish" in shown
    assert "asha.verma" not in shown
    assert shown[shown.index("traffic ") :] == snapshot

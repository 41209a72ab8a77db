"""The Space's logs contain one object per line, with the fields that a log reader expects."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from syrupy.assertion import SnapshotAssertion

from deployments.demo.bot import Bot, TurnLog
from deployments.demo.faults import NoFaults, PlantedFaults
from deployments.demo.policies import load_policies, load_vocabulary

AT = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)


def logged(folder: Path, question: str, faults: NoFaults) -> None:
    reply = Bot(load_policies(), load_vocabulary(), faults).reply(question)
    TurnLog(folder).write(at=AT, session_id="s1", question=question, reply=reply, latency_ms=12.6)


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_an_answer_is_one_line_with_its_sources(tmp_path: Path):
    logged(tmp_path, "सुरक्षा गोल्ड में ग्रेस पीरियड कितना है?", NoFaults())
    logged(tmp_path, "Does Gold cover tattoos?", NoFaults())
    first, second = read(tmp_path / "turns.jsonl")
    assert first["ts"] == "2026-03-01T09:30:00.000Z"
    assert first["latency_ms"] == 13
    assert (first["intent"], first["language"], first["brain_used"]) == ("fact", "hi", "retrieval")
    assert (first["retrieved_chunk_ids"], first["citation_count"]) == (["suraksha-gold:8.4"], 1)
    assert second["intent"] == "not_mentioned"
    assert not (tmp_path / "hallucinations.jsonl").exists()


def test_a_blocked_reply_is_logged_as_a_hallucination(tmp_path: Path, snapshot: SnapshotAssertion):
    logged(tmp_path, "Suraksha Gold pays ₹75,000 for a tattoo, right?", PlantedFaults())
    (entry,) = read(tmp_path / "hallucinations.jsonl")
    assert (entry["chunk_count"], entry["top_score"]) == (0, None)
    assert [reason.partition(":")[0] for reason in entry["reasons"]] == ["unsupported_number"]
    assert entry == snapshot
    (turn,) = read(tmp_path / "turns.jsonl")
    assert (turn["blocked"], turn["faithfulness_passed"], turn["brain_used"]) == (True, False, "blocked")


def test_a_failed_turn_is_logged_as_an_error(tmp_path: Path):
    logged(tmp_path, "Free look of Gold, Silver and Janani?", PlantedFaults())
    (turn,) = read(tmp_path / "turns.jsonl")
    assert str(turn["error"]).startswith("Error code: 429")
    assert turn["graceful"] is True

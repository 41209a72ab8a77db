"""The two logs that the Space keeps, one JSON object a line, appended and flushed line by line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from deployments.demo.bot import Reply
from deployments.demo.guards import Intent

TURNS = "turns.jsonl"
HALLUCINATIONS = "hallucinations.jsonl"


@dataclass(frozen=True)
class TurnLog:
    """Appends to ``turns.jsonl`` and ``hallucinations.jsonl`` in ``folder``, which must exist."""

    folder: Path

    def write(self, *, at: datetime, session_id: str, question: str, reply: Reply, latency_ms: float) -> None:
        """Log one answered turn, and the draft that was held back, if one was."""
        stamp = at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        self._append(TURNS, _turn(stamp, session_id, question, reply, latency_ms))
        if reply.blocked is not None:
            self._append(HALLUCINATIONS, _hallucination(stamp, session_id, question, reply))

    def _append(self, name: str, record: Mapping[str, object]) -> None:
        line = json.dumps(record, ensure_ascii=False) + "\n"
        with (self.folder / name).open("a", encoding="utf-8") as log:
            log.write(line)


def _turn(stamp: str, session_id: str, question: str, reply: Reply, latency_ms: float) -> dict[str, object]:
    head: dict[str, object] = {"ts": stamp, "session_id": session_id, "user_text": question}
    if reply.intent is Intent.PROVIDER_ERROR:
        return {**head, "error": reply.text, "graceful": True, "latency_ms": round(latency_ms)}
    return {
        **head,
        "reply_text": reply.text,
        "brain_used": reply.path,
        "intent": reply.intent.value,
        "language": reply.language.value,
        "latency_ms": round(latency_ms),
        "retrieved_chunk_ids": [f"{hit.policy.id}:{hit.fact.clause}" for hit in reply.hits],
        "citation_count": reply.text.count("[Source:"),
        "faithfulness_passed": reply.blocked is None,
        "faithfulness_reasons": list(reply.blocked.reasons) if reply.blocked else [],
        "blocked": reply.blocked is not None,
    }


def _hallucination(stamp: str, session_id: str, question: str, reply: Reply) -> dict[str, object]:
    blocked = reply.blocked
    assert blocked is not None  # the caller looked
    return {
        "ts": stamp,
        "user_text": question,
        "blocked_reply": blocked.reply,
        "reasons": list(blocked.reasons),
        "unsupported_claims": list(blocked.unsupported_claims),
        "chunk_count": len(reply.hits),
        "top_score": max((hit.score for hit in reply.hits), default=None),
        "policy_ids": sorted({hit.policy.id for hit in reply.hits}),
        "session_id": session_id,
    }

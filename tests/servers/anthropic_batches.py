"""Simulate the life cycle of message batches: created, in progress for a few polls, ended.

The results are not in the order of the requests, so clients must use the ``custom_id`` of each result.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.servers.anthropic_replies import Replies
from tests.servers.anthropic_rules import Refusal, wrong_with

CREATED = datetime(2026, 3, 1, 2, 0, tzinfo=UTC)


@dataclass
class Batch:
    """A batch that stays in progress for ``looks`` further polls, or forever if ``looks`` is -1."""

    id: str
    requests: list[dict[str, Any]]
    faults: dict[str, str]
    looks: int
    canceled: bool = False
    results: list[dict[str, Any]] = field(default_factory=list)

    @property
    def ended(self) -> bool:
        """Return whether the results are available."""
        return bool(self.results)

    def shown(self, base_url: str) -> dict[str, Any]:
        """Return the JSON object of the batch, as the API sends it."""
        kinds = [result["result"]["type"] for result in self.results]
        counts = {name: kinds.count(name) for name in ("succeeded", "errored", "canceled", "expired")}
        status = "ended" if self.ended else ("canceling" if self.canceled else "in_progress")
        return {
            "id": self.id,
            "type": "message_batch",
            "processing_status": status,
            "request_counts": counts | {"processing": 0 if self.ended else len(self.requests)},
            "created_at": CREATED.isoformat(),
            "expires_at": (CREATED + timedelta(hours=24)).isoformat(),
            "ended_at": CREATED.isoformat() if self.ended else None,
            "archived_at": None,
            "cancel_initiated_at": CREATED.isoformat() if self.canceled else None,
            "results_url": f"{base_url}/v1/messages/batches/{self.id}/results" if self.ended else None,
        }

    def look(self, replies: Replies) -> None:
        """Count one poll of the batch, and create the results if the batch has been polled often enough."""
        if self.ended:
            return
        if self.canceled or self.looks == 0:
            self.results = [self._result(request, replies) for request in reversed(self.requests)]
        elif self.looks > 0:
            self.looks -= 1

    def _result(self, request: dict[str, Any], replies: Replies) -> dict[str, Any]:
        return {"custom_id": request["custom_id"], "result": self._outcome(request, replies)}

    def _outcome(self, request: dict[str, Any], replies: Replies) -> dict[str, Any]:
        fault = self.faults.get(request["custom_id"])
        if self.canceled:
            return {"type": "canceled"}
        if fault in {"expired", "canceled"}:
            return {"type": fault}
        if fault == "errored":
            return {"type": "errored", "error": Refusal("api_error", "Internal server error").body()}
        refusal = wrong_with(request["params"])
        if refusal is not None:
            return {"type": "errored", "error": refusal.body()}
        return {"type": "succeeded", "message": replies.message(request["params"], fault, batch=True)}

    def lines(self) -> bytes:
        """Return the lines of the results file."""
        return b"".join(json.dumps(result).encode() + b"\n" for result in self.results)

"""Silences: a person's word that a fault is known, with a name under it and an end."""

from __future__ import annotations

from datetime import datetime
from typing import Self

from pydantic import Field, model_validator

from monitors.records.base import Identifier, Record, Sha256, UtcTime
from monitors.records.grades import FailureKind
from monitors.records.incidents import Incident, IncidentKind


class Silence(Record):
    """Says nothing about matching incidents from ``starts_at`` until ``ends_at`` (that moment excluded).

    Every matcher that is set must match; one at least must be set, since a silence of everything is an outage of
    the monitor. ``author`` and ``comment`` are for whoever wonders why it was quiet. ``ended_by`` is who ended it
    before its time: a silence can be made shorter, never longer.
    """

    id: Identifier
    author: str = Field(min_length=1, max_length=200)
    comment: str = Field(min_length=1, max_length=2_000)
    starts_at: UtcTime
    ends_at: UtcTime
    fingerprint: Sha256 | None = None
    target: Identifier | None = None
    kind: IncidentKind | None = None
    case_id: Identifier | None = None
    failure_kind: FailureKind | None = None
    ended_by: str | None = None

    @model_validator(mode="after")
    def _is_bounded(self) -> Self:
        if self.ends_at <= self.starts_at:
            raise ValueError(f"a silence must end after it starts, got {self.starts_at} to {self.ends_at}")
        if not self.matchers():
            raise ValueError(
                "a silence needs one of fingerprint, target, kind, case_id, failure_kind: never everything"
            )
        return self

    def matchers(self) -> dict[str, str]:
        """What an incident must have, by the field's name."""
        named = {
            "fingerprint": self.fingerprint,
            "target": self.target,
            "kind": self.kind,
            "case_id": self.case_id,
            "failure_kind": self.failure_kind,
        }
        return {name: wanted for name, wanted in named.items() if wanted is not None}

    def in_force(self, now: datetime) -> bool:
        """Whether it holds at ``now``."""
        return self.starts_at <= now < self.ends_at

    def covers(self, incident: Incident, now: datetime) -> bool:
        """Whether nothing is said about ``incident`` at ``now``."""
        if not self.in_force(now):
            return False
        return all(getattr(incident, name) == wanted for name, wanted in self.matchers().items())

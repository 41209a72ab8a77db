"""A conversation of a run becomes a drafted case in one step: redacted, with a proposed severity and why."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime

from monitors.alerts.redact import redact
from monitors.errors import ConfigError
from monitors.facts.language import identify
from monitors.gate.policy import CASE_ROW
from monitors.records.base import Severity
from monitors.records.exchanges import Origin
from monitors.records.people import CaseDraft
from warehouse.drafts import Trace


def draft_of_trace(found: Trace, *, by: str, at: datetime, account_patterns: Sequence[str]) -> CaseDraft:
    """The draft of a trace. A reply that failed is the bad one; of any other it is proposed as gold.

    `ConfigError` for what a probe asked: that is a gold case already.
    """
    said = found.said
    if found.origin is Origin.PROBE:
        raise ConfigError(f"{said.run_id}/{said.case_id} was asked by a run of the gold set: it is a case already")

    def clean(text: str) -> str:
        return redact(text, account_patterns=account_patterns)

    turns = tuple(redact(turn, account_patterns=account_patterns) for turn in said.turns if turn.strip())
    if not turns:
        raise ConfigError(f"{said.run_id}/{said.case_id}: what was asked is not kept any more")
    reply = redact(said.answer, account_patterns=account_patterns) if said.answer.strip() else None
    severity, why = _proposed(found)
    return CaseDraft(
        id=f"trace-{hashlib.sha256(chr(0).join((said.run_id, said.case_id)).encode()).hexdigest()[:24]}",
        made_at=at,
        by=by,
        target=found.target,
        run_id=said.run_id,
        origin=found.origin,
        turns=turns,
        gold=None if found.failed else reply,
        bad_reply=reply if found.failed else None,
        failure_kind=found.failure_kind,
        language=identify(turns[-1]),
        suggested_severity=severity,
        severity_reason=why,
        finding=redact(clean(found.reason) or "nothing was found wrong with it"),
    )


def _proposed(found: Trace) -> tuple[Severity, str]:
    """What the run made of a failure, with the policy row; of what did not fail nobody has said how bad it is."""
    if found.failed and found.severity:
        return Severity(found.severity), f"the finding was severity {found.severity} by row {found.policy_row}"
    return (
        Severity.WRONG,
        f"nothing failed here: 2, wrong, as for any plain fact (row {CASE_ROW}); say what it would be",
    )

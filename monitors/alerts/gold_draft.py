"""An incident → a drafted case: redacted, with a proposed severity and why. A person makes it gold, or not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from monitors.alerts.excerpt import EDGE_CHARACTERS
from monitors.alerts.redact import redact
from monitors.alerts.wording import ABOUT_AN_ANSWER
from monitors.facts.language import identify
from monitors.records.base import Severity
from monitors.records.exchanges import Origin
from monitors.records.incidents import AlertItem, IncidentKind, Redacted
from monitors.records.people import CaseDraft, PersonAction, Said

LONGEST_TEXT: Final = 8_000
"""Characters of one turn or reply that a draft keeps: more than any real question has."""
FEW_CHARACTERS: Final = 12


def is_wanted_as_gold(item: AlertItem) -> bool:
    """Whether a case can be drafted of it: a real user asked it. What a probe asked is a gold case already."""
    seen = item.observation
    return item.incident.kind in ABOUT_AN_ANSWER and seen.origin is not Origin.PROBE and bool(seen.asked)


def draft_of(
    action: PersonAction,
    item: AlertItem,
    said: Sequence[Said],
    account_patterns: Callable[[str], Sequence[str]],
) -> CaseDraft:
    """Draft a case of ``item``; ``said`` has the whole conversation where it was kept, else excerpts must do.

    The log's own claims are what was unsupported, not what is right: there the gold is left to a person.
    """
    seen, incident = item.observation, item.incident
    patterns = account_patterns(incident.target)
    whole = next((one for one in said if (one.run_id, one.case_id) == (seen.run_id, seen.case_id)), None)

    def clean(text: str) -> Redacted:
        """Redacted before it is cut: half an account number is one that no pattern knows."""
        seen_whole = redact(text[: LONGEST_TEXT + EDGE_CHARACTERS], account_patterns=patterns)
        return redact(seen_whole[:LONGEST_TEXT], account_patterns=patterns)

    turns = tuple(clean(turn) for turn in whole.turns) if whole else tuple(filter(None, (seen.asked,)))
    severity, why = _proposed(item)
    return CaseDraft(
        id=f"{action.id}-{incident.fingerprint[:FEW_CHARACTERS]}",
        made_at=action.at,
        by=action.by,
        target=incident.target,
        run_id=seen.run_id,
        source_id=seen.case_id,
        fingerprint=incident.fingerprint,
        origin=seen.origin,
        turns=turns,
        gold=None if incident.kind is IncidentKind.HALLUCINATION else seen.expected,
        bad_reply=(clean(whole.answer) if whole and whole.answer else seen.answered),
        failure_kind=incident.failure_kind,
        language=identify(turns[-1]),
        suggested_severity=severity,
        severity_reason=why,
        finding=seen.reason,
        cut=whole is None,
    )


def _proposed(item: AlertItem) -> tuple[Severity, str]:
    """The severity that the finding had, and the policy row that set it."""
    seen = item.observation
    row = f" by row {seen.policy_row}" if seen.policy_row else ""
    doubt = "; unconfirmed: it rests on one judge" if seen.unconfirmed else ""
    return seen.severity, f"the finding was severity {int(seen.severity)}{row}{doubt}"

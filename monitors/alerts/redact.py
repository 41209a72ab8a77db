"""Text made safe to send: personal data and secrets are masked by type. The only place that makes `Redacted`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from monitors.facts.disclosure import Disclosure
from monitors.facts.masking import mask
from monitors.records.incidents import Redacted


class Redaction(NamedTuple):
    """A redacted text, and what was masked: places are in the text as it was given."""

    text: Redacted
    found: tuple[Disclosure, ...]


def redact(text: str, *, account_patterns: Sequence[str] = ()) -> Redacted:
    """The text with all personal data and secrets masked by type. See `redact_with_findings`."""
    return redact_with_findings(text, account_patterns=account_patterns).text


def redact_with_findings(text: str, *, account_patterns: Sequence[str] = ()) -> Redaction:
    """Mask all personal data and secrets, weak finds too, and say what was masked.

    Redacting twice is redacting once. ``account_patterns`` are regular expressions for the target's own numbers.
    """
    masked = mask(text, account_patterns=account_patterns)
    return Redaction(Redacted(masked.text), masked.found)

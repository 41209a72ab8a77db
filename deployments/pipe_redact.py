"""What ``lookout redact`` answers to one line."""

from __future__ import annotations

from deployments.pipe_fields import text_of
from deployments.pipe_lines import Fields
from monitors.alerts.redact import redact_with_findings


def redacted(fields: Fields) -> Fields:
    """``text`` with personal data and secrets masked, and what was found: places are in the text as it came."""
    redaction = redact_with_findings(text_of(fields, "text"))
    found = [{"kind": one.kind.value, "span": [one.start, one.end]} for one in redaction.found]
    return {"text": redaction.text, "found": found}

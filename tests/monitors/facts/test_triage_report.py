"""Reports of agents are read as JSON, as Markdown with headings and as lines with labels."""

from __future__ import annotations

import json

import pytest

from monitors.facts.triage_report import read_report
from monitors.records.triage import IssueSeverity, TriageReport

CAUSE = "The lock is never released when the export fails."
MARKDOWN = f"""# Triage report

**Severity:** High

## Root Cause
{CAUSE}

```python
self.lock.acquire()  # severity: low
```

### Relevant files
- `jobs/export.py:42` holds the lock
- jobs/lock.py::ExportLock.release

## Recommended fix
Release it in a `finally` block.

## Confidence
85 %

## Notes
See docs/old.md.
"""


def test_headings_say_which_part_is_which():
    report = read_report(MARKDOWN)
    assert report.severity is IssueSeverity.HIGH
    assert report.root_cause is not None
    assert report.root_cause.startswith(CAUSE)
    assert report.files == ("jobs/export.py:42", "jobs/lock.py::ExportLock.release")
    assert report.functions == ("jobs/lock.py::ExportLock.release",)
    assert report.recommended_fix == "Release it in a `finally` block."
    assert report.confidence == 0.85


@pytest.mark.parametrize(
    "label", ["Root cause: ", "**Root Cause**: ", "**Root cause:** ", "- Probable cause: ", "2. Cause: "]
)
def test_labels_do_so_too(label: str):
    report = read_report(f"Priority: P0\n{label}{CAUSE}\nSuggested fix: release it, see jobs/lock.py.")
    assert (report.severity, report.root_cause) == (IssueSeverity.CRITICAL, CAUSE)
    assert report.files == ("jobs/lock.py",)


def test_underlined_headings_too():
    assert read_report(f"Root cause\n==========\n{CAUSE}\n\nFix\n---\nRelease it.").recommended_fix == "Release it."


@pytest.mark.parametrize(
    "fields",
    [
        {"severity": "high", "root_cause": CAUSE, "relevant_files": ["jobs/lock.py"], "confidence": 0.85},
        {"severity": "HIGH", "rootCause": CAUSE, "relevantFiles": [{"path": "jobs/lock.py"}], "confidence": "85%"},
        {"report": {"Severity": "High", "Root-Cause": CAUSE, "files": "jobs/lock.py", "confidence": "8.5/10"}},
    ],
)
def test_structured_reports_are_read_by_their_keys(fields: object):
    wanted = TriageReport(
        severity=IssueSeverity.HIGH,
        root_cause=CAUSE,
        files=("jobs/lock.py",),
        confidence=0.85,
        recommended_fix=None,
    )
    assert read_report(json.dumps(fields)) == wanted
    assert read_report(f"```json\n{json.dumps(fields, indent=1)}\n```") == wanted


@pytest.mark.parametrize("nothing", ["", "N/A", "TBD", "<root cause here>", "unknown", "-"])
def test_a_template_has_no_parts(nothing: str):
    report = read_report(
        f"## Severity\n{nothing}\n## Root cause\n{nothing}\n## Fix\n{nothing}\n## Files\n{nothing}"
    )
    assert report == TriageReport(files=())


def test_missing_values_are_not_guessed():
    report = read_report("It may be the lock, which is of high importance to everybody who exports.")
    assert report == TriageReport()
    assert read_report("Severity: between high and critical").severity is None
    assert read_report("Confidence: quite high").confidence is None
    assert read_report('{"severity": 3, "files": 7}').files == ()


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", "#" * 10_000, "**a:**" * 20_000, '{"a":' * 5_000, "\x00\ud7ff"]
)
def test_any_text_is_read(text: str):
    assert read_report(text).root_cause is None

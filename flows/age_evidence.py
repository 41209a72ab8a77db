"""Pictures and traces of a data folder age out; which of them show a failure is read from the runs' results."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from monitors.config import Config
from monitors.errors import ConfigError
from monitors.probes.evidence_age import AgedEvidence, age_evidence
from monitors.records.grades import CaseOutcome
from monitors.reports.results_json import read_results


def age_evidence_of(config: Config, *, now: datetime) -> AgedEvidence:
    """Remove what ``[evidence]`` no longer wants kept. The journal and the warehouse are not touched."""
    return age_evidence(config.data_folder, config.evidence, now=now, failed_cases=failed_cases)


def failed_cases(run: Path) -> frozenset[str] | None:
    """The cases of a run's folder that were not right; ``None`` without results that can be read."""
    try:
        _, results = read_results(run / "results.json")
    except ConfigError:
        return None
    return frozenset(one.case.id for one in results if one.assessment.outcome is not CaseOutcome.CORRECT)

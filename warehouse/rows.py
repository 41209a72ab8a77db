"""What the journal keeps: one row type per table, told apart by ``table``."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from monitors.records.base import Identifier, Record, Sha256
from monitors.records.cases import GoldCase
from monitors.records.exchanges import ProbeResult
from monitors.records.grades import Assessment
from monitors.records.incidents import Alert, Incident, Receipt
from monitors.records.runs import RunReport
from monitors.records.targets import DeployEvent


class SuiteCase(Record):
    """A gold case as it stood in one frozen suite."""

    suite_sha256: Sha256
    suite_name: Identifier
    case: GoldCase


class IncidentVersion(Record):
    """An incident's state after one decision. Of one fingerprint, the largest ``sequence`` is how it stands.

    Sequences are given out under the warehouse's lock, so that their order does not depend on any clock.
    """

    sequence: Annotated[int, Field(ge=1)]
    incident: Incident


class ResultRow(Record):
    """What came back for a case. Natural key: run, case, repeat; the latest segment wins."""

    table: Literal["results"] = "results"
    row: ProbeResult


class AssessmentRow(Record):
    """What a case came to, with its grades. Natural key: run, case, repeat; the latest segment wins."""

    table: Literal["assessments"] = "assessments"
    row: Assessment


class RunRow(Record):
    """A run's report. Natural key: run; the latest segment wins, so a resumed run replaces its first report."""

    table: Literal["runs"] = "runs"
    row: RunReport


class CaseRow(Record):
    """A case of a suite. Natural key: the suite's hash and the case."""

    table: Literal["cases"] = "cases"
    row: SuiteCase


class DeployRow(Record):
    """A deploy as it was reported. Natural key: target and commit; the first report stays."""

    table: Literal["deploys"] = "deploys"
    row: DeployEvent


class IncidentRow(Record):
    """A new state of an incident, written by a decision only. Natural key: the sequence."""

    table: Literal["incidents"] = "incidents"
    row: IncidentVersion


class AlertRow(Record):
    """A message to send, written by a decision only. Natural key: its id."""

    table: Literal["alerts"] = "alerts"
    row: Alert


class ReceiptRow(Record):
    """What became of a message. Natural key: the alert, the time, the status."""

    table: Literal["receipts"] = "receipts"
    row: Receipt


JournalRow = ResultRow | AssessmentRow | RunRow | CaseRow | DeployRow
"""What anyone may append at any time."""

OutboxRow = IncidentRow | AlertRow | ReceiptRow
"""What only ``warehouse.outbox`` writes: decisions that are made once across processes."""

TableName = Literal["results", "assessments", "runs", "cases", "deploys", "incidents", "alerts", "receipts"]

ANY_ROW: TypeAdapter[JournalRow | OutboxRow] = TypeAdapter(
    Annotated[JournalRow | OutboxRow, Field(discriminator="table")]
)
"""Reads one body line of a segment."""

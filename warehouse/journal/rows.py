"""The rows of the journal: one row type per table, distinguished by ``table``."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from monitors.records.base import Identifier, Record, Sha256
from monitors.records.cases import DraftOutcome, GoldCase
from monitors.records.exchanges import ProbeResult
from monitors.records.explanations import RecheckAnswer
from monitors.records.grades import Assessment
from monitors.records.incidents import Alert, Incident, Receipt
from monitors.records.logs import LogCursor, LoggedHallucination, QuarantinedLine
from monitors.records.nightly import NightlyReport, SeenConversation
from monitors.records.operator_actions import ActionOutcome, CaseDraft, HumanLabel, OperatorAction, Silence
from monitors.records.runs import RunReport
from monitors.records.self_checks import DrillReport, RepeatabilityRun
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


class RecheckRow(Record):
    """One asking of a failed case after the verdict. Natural key: run, case, place, repeat; the first stays."""

    table: Literal["rechecks"] = "rechecks"
    row: RecheckAnswer


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


class ActionRow(Record):
    """What a person did. Natural key: its id; the first stays, so that a click delivered twice is one."""

    table: Literal["actions"] = "actions"
    row: OperatorAction


class OutcomeRow(Record):
    """What came of an action, written by a decision only. Natural key: the action."""

    table: Literal["action_outcomes"] = "action_outcomes"
    row: ActionOutcome


class LabelRow(Record):
    """A person's verdict on a finding or an answer. Natural key: its id; the first stays."""

    table: Literal["labels"] = "labels"
    row: HumanLabel


class DraftRow(Record):
    """A drafted case that nobody has reviewed. Natural key: its id."""

    table: Literal["case_drafts"] = "case_drafts"
    row: CaseDraft


class DraftOutcomeRow(Record):
    """What became of a drafted case. Natural key: the draft; the first stays, so that a decision is made once."""

    table: Literal["draft_outcomes"] = "draft_outcomes"
    row: DraftOutcome


class SilenceRow(Record):
    """A silence. Natural key: its id; of two versions the one that ends earlier counts, whatever any clock said."""

    table: Literal["silences"] = "silences"
    row: Silence


class HallucinationRow(Record):
    """An entry of a hallucination log. Natural key: the log and its place in it."""

    table: Literal["hallucinations"] = "hallucinations"
    row: LoggedHallucination


class QuarantineRow(Record):
    """A line of a log that is no entry. Natural key: the log and its place in it."""

    table: Literal["quarantined_lines"] = "quarantined_lines"
    row: QuarantinedLine


class CursorRow(Record):
    """Where reading of a log stands. Written in one segment with what was read. Natural key: log and sequence."""

    table: Literal["log_cursors"] = "log_cursors"
    row: LogCursor


class ConversationRow(Record):
    """A conversation that a nightly run counted. Natural key: target, source and id; the first stays."""

    table: Literal["conversations"] = "conversations"
    row: SeenConversation


class NightlyRunRow(Record):
    """What a nightly run came to. Natural key: run; the latest segment wins."""

    table: Literal["nightly_runs"] = "nightly_runs"
    row: NightlyReport


class DrillRow(Record):
    """What a fire drill came to. Natural key: the drill; the latest segment wins."""

    table: Literal["drills"] = "drills"
    row: DrillReport


class RepeatabilityRow(Record):
    """A session in which cases were asked twice. Natural key: run; the latest segment wins."""

    table: Literal["repeatability_runs"] = "repeatability_runs"
    row: RepeatabilityRun


LogRow = HallucinationRow | QuarantineRow | CursorRow
"""What following a log appends."""

NightlyRow = ConversationRow | NightlyRunRow
"""What a nightly run of live traffic appends."""

JournalRow = (
    ResultRow
    | AssessmentRow
    | RecheckRow
    | RunRow
    | CaseRow
    | DeployRow
    | LogRow
    | LabelRow
    | NightlyRow
    | DraftOutcomeRow
    | DrillRow
    | RepeatabilityRow
)
"""What anyone may append at any time."""

PeopleRow = ActionRow | OutcomeRow | LabelRow | DraftRow | SilenceRow
"""What people did and what came of it, written by ``warehouse.queries.operator_actions``."""

OutboxRow = IncidentRow | AlertRow | ReceiptRow | PeopleRow
"""What only ``warehouse.queries.outbox`` and ``warehouse.queries.operator_actions`` write: decisions that are made
once across processes."""

TableName = Literal[
    "results",
    "assessments",
    "rechecks",
    "runs",
    "cases",
    "deploys",
    "incidents",
    "alerts",
    "receipts",
    "actions",
    "action_outcomes",
    "labels",
    "case_drafts",
    "draft_outcomes",
    "silences",
    "hallucinations",
    "quarantined_lines",
    "log_cursors",
    "conversations",
    "nightly_runs",
    "drills",
    "repeatability_runs",
]

ANY_ROW: TypeAdapter[JournalRow | OutboxRow] = TypeAdapter(
    Annotated[JournalRow | OutboxRow, Field(discriminator="table")]
)
"""Reads one body line of a segment."""

"""The rows of the journal. Each table has its own row type, whose ``table`` field is the name of the table.

In the docstrings of these types, "Key" lists the values that identify a row. Of several rows with the same key,
only one counts in the warehouse.
"""

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
    """A gold case as it appears in a stored suite."""

    suite_sha256: Sha256
    suite_name: Identifier
    case: GoldCase


class IncidentVersion(Record):
    """The state of an incident after a decision.

    Of the versions with the same fingerprint, the one with the largest ``sequence`` is the current state. The
    sequence numbers are assigned under a lock, so their order does not depend on clocks.
    """

    sequence: Annotated[int, Field(ge=1)]
    incident: Incident


class ResultRow(Record):
    """The answer to a case, or the reason for no answer. Key: run, case, repeat. The latest segment counts."""

    table: Literal["results"] = "results"
    row: ProbeResult


class AssessmentRow(Record):
    """The outcome of a case with its grades. Key: run, case, repeat. The latest segment counts."""

    table: Literal["assessments"] = "assessments"
    row: Assessment


class RecheckRow(Record):
    """One repeat of a failed case that was asked again after the verdict. Key: run, case, place, repeat.

    The first row counts.
    """

    table: Literal["rechecks"] = "rechecks"
    row: RecheckAnswer


class RunRow(Record):
    """The report of a run. Key: run. The latest segment counts: a resumed run replaces its first report."""

    table: Literal["runs"] = "runs"
    row: RunReport


class CaseRow(Record):
    """A case of a suite. Key: the suite's hash and the case."""

    table: Literal["cases"] = "cases"
    row: SuiteCase


class DeployRow(Record):
    """A reported deploy. Key: target and commit. The first report counts."""

    table: Literal["deploys"] = "deploys"
    row: DeployEvent


class IncidentRow(Record):
    """A new state of an incident. Key: the sequence."""

    table: Literal["incidents"] = "incidents"
    row: IncidentVersion


class AlertRow(Record):
    """A message to send. Key: the message's id."""

    table: Literal["alerts"] = "alerts"
    row: Alert


class ReceiptRow(Record):
    """The result of an attempt to send a message. Key: alert, time, status."""

    table: Literal["receipts"] = "receipts"
    row: Receipt


class ActionRow(Record):
    """A person's action. Key: the action's id. The first row counts: a click that arrives twice counts once."""

    table: Literal["actions"] = "actions"
    row: OperatorAction


class OutcomeRow(Record):
    """The result of an action. Key: the action."""

    table: Literal["action_outcomes"] = "action_outcomes"
    row: ActionOutcome


class LabelRow(Record):
    """A person's verdict on a finding or an answer. Key: the label's id. The first row counts."""

    table: Literal["labels"] = "labels"
    row: HumanLabel


class DraftRow(Record):
    """A draft of a gold case. Key: the draft's id."""

    table: Literal["case_drafts"] = "case_drafts"
    row: CaseDraft


class DraftOutcomeRow(Record):
    """A person's decision on a draft. Key: the draft. The first decision counts."""

    table: Literal["draft_outcomes"] = "draft_outcomes"
    row: DraftOutcome


class SilenceRow(Record):
    """A silence. Key: the silence's id. If there are two versions, the version that ends earlier counts."""

    table: Literal["silences"] = "silences"
    row: Silence


class HallucinationRow(Record):
    """An entry of a hallucination log. Key: the log and the entry's position in the log."""

    table: Literal["hallucinations"] = "hallucinations"
    row: LoggedHallucination


class QuarantineRow(Record):
    """A line of a log that is not a valid entry. Key: the log and the line's position in the log."""

    table: Literal["quarantined_lines"] = "quarantined_lines"
    row: QuarantinedLine


class CursorRow(Record):
    """The position up to which a log was read. Key: log and sequence.

    The cursor is stored together with the entries that were read.
    """

    table: Literal["log_cursors"] = "log_cursors"
    row: LogCursor


class ConversationRow(Record):
    """A conversation that a nightly run counted. Key: target, source and id. The first row counts."""

    table: Literal["conversations"] = "conversations"
    row: SeenConversation


class NightlyRunRow(Record):
    """The report of a nightly run. Key: run. The latest segment counts."""

    table: Literal["nightly_runs"] = "nightly_runs"
    row: NightlyReport


class DrillRow(Record):
    """The report of a drill. Key: the drill. The latest segment counts."""

    table: Literal["drills"] = "drills"
    row: DrillReport


class RepeatabilityRow(Record):
    """A session in which each case was asked twice. Key: run. The latest segment counts."""

    table: Literal["repeatability_runs"] = "repeatability_runs"
    row: RepeatabilityRun


LogRow = HallucinationRow | QuarantineRow | CursorRow
"""Rows about a hallucination log."""

NightlyRow = ConversationRow | NightlyRunRow
"""Rows of a nightly run."""

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
"""Rows that any process may append at any time."""

PeopleRow = ActionRow | OutcomeRow | LabelRow | DraftRow | SilenceRow
"""Rows about operators' actions. Only ``warehouse.queries.operator_actions`` writes these rows."""

OutboxRow = IncidentRow | AlertRow | ReceiptRow | PeopleRow
"""Rows of decisions that must be made only once. Only ``warehouse.queries`` writes these rows, under a lock."""

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
"""Parses one line of a segment into a row."""

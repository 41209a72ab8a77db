"""``lookout gold review``: review each draft next to the clause that proves it.

The terminal shows one draft at a time and asks for one key. Only a draft that a person accepts becomes gold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import typer
from pydantic import ValidationError
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from deployments.cli.exit_codes import ExitCode
from deployments.cli.gold.draft import DEFAULT_DRAFTS, load_suite_grader_settings
from deployments.cli.options import DEFAULT_CONFIG, ConfigOption, JsonOption
from deployments.cli.reviews.session import (
    Decision,
    ReviewScreen,
    ReviewSession,
    build_label_table,
    get_and_store_reviewer,
)
from flows.clock import utc_now
from flows.goldset.mutation_testing import explain_gold_failure
from flows.terminal import write_jsons
from monitors.alerts.redact import redact
from monitors.config.file import load_config
from monitors.domains.pack import Domain
from monitors.facts.disclosures.find import find_private_data_except_names
from monitors.facts.language import identify_language
from monitors.facts.similarity import find_missing_quantities, list_quantity_differences
from monitors.goldset.drafts import read_drafts, store_draft_decision
from monitors.goldset.versions import append_case_if_new, read_suite_cases
from monitors.graders.base import GraderSettings
from monitors.graders.panel import build_rule_panel
from monitors.records.base import Severity
from monitors.records.cases import DraftState, GoldCase, GoldDraft
from monitors.reports.invisible import replace_invisible_by_code_points

SEVERITIES: Final = {str(int(severity)): severity for severity in Severity}
KEYS = "[y] accept as gold  [n] reject  [e]dit  [1] [2] [3] severity  [s]kip  [q]uit"
WHY_NOT: Final = "Reason, one line (or press Enter):"
NO_CASE: Final = "Not a valid case: a type may contain only letters, digits and _. Nothing was changed."
SET_BY: Final = "set by "
"""The first words of the reason that is stored when a person chooses a severity. The person's name follows."""

SIDE_BY_SIDE_FROM: Final = 100
"""Minimum width of the terminal, in columns, at which the clause is shown beside the case instead of below it."""


def _join_into_one_line(text: str) -> str:
    """Join the lines of a passage into one line."""
    return " ".join(text.split())


@dataclass(frozen=True)
class DraftReview:
    """One person's review of drafts: what the terminal shows, and where decisions are stored.

    ``redact_text`` masks personal data in a text before the text is shown. With ``--raw``, nothing is masked.
    """

    drafts: Path
    suite: Path
    person: str
    screen: ReviewScreen
    redact_text: Callable[[str], str]
    graders: GraderSettings
    domain: Domain

    @property
    def session(self) -> ReviewSession[GoldDraft]:
        """Return the session that shows the drafts and runs an action for each key."""
        severity_actions = {key: partial(self._set_severity, severity) for key, severity in SEVERITIES.items()}
        actions = {"y": self._accept_draft, "n": self._reject_draft, "e": self._edit_draft}
        return ReviewSession(self.screen, KEYS, self._build_draft_view, actions | severity_actions)

    def _build_draft_view(self, draft: GoldDraft) -> RenderableType:
        """Build the view of the case with its clause or, for a translation, with its original."""
        case, (rows, strong) = (
            build_label_table(iterate_case_rows(draft), self.redact_text),
            build_clause_or_original_rows(draft),
        )
        ground = build_label_table(rows, self.redact_text, strong=strong)
        if self.screen.console.width < SIDE_BY_SIDE_FROM:
            return Group(case, Text(), ground)
        both = Table.grid(padding=(0, 2), expand=True)
        both.add_column(ratio=1)
        both.add_column(ratio=1)
        both.add_row(case, ground)
        return both

    def _set_severity(self, severity: Severity, draft: GoldDraft) -> GoldDraft:
        return draft.with_severity(severity, f"{SET_BY}{self.person}")

    def _edit_draft(self, draft: GoldDraft) -> GoldDraft:
        """Ask for a new question, gold and type. If a line is empty, the old text stays."""
        case = draft.case
        question, gold, kind = (
            self.screen.ask_line(
                f"{label} (Enter keeps: {replace_invisible_by_code_points(self.redact_text(now))})"
            )
            or now
            for label, now in (("question", case.question), ("gold", case.gold), ("type", case.type))
        )
        changed = reword_draft(draft, question=question, gold=gold, kind=kind)
        if changed is None:
            self.screen.print_line(NO_CASE, "yellow")
        return changed or draft

    def _accept_draft(self, draft: GoldDraft) -> Decision | None:
        """Accept the draft as gold. If the draft has a fault, print the fault instead."""
        reason = explain_unacceptable_draft(draft, self.graders, self.domain)
        if reason:
            self.screen.print_line(
                f"This draft cannot become gold: {reason}. Edit the draft, or reject it.", "yellow"
            )
            return None
        add_case_and_mark_draft_accepted(self.drafts, self.suite, draft, by=self.person, at=utc_now())
        return Decision.ACCEPTED

    def _reject_draft(self, draft: GoldDraft) -> Decision:
        note = redact(self.screen.ask_line(WHY_NOT))[:2_000]
        store_draft_decision(self.drafts, draft.reject(note, by=self.person, at=utc_now()))
        return Decision.REJECTED

    def mark_accepted_if_in_suite(self, draft: GoldDraft) -> bool:
        """Mark the draft as accepted if its case is already in the suite. Return whether the draft was marked.

        The case is already in the suite if an earlier session added the case and was then interrupted.
        """
        joined_case = next((case for case in read_suite_cases(self.suite) if case.id == draft.case.id), None)
        if (
            joined_case is None
            or joined_case.provenance.reviewed_at is None
            or joined_case.provenance.reviewed_by is None
        ):
            return False
        by, at = joined_case.provenance.reviewed_by, joined_case.provenance.reviewed_at
        store_draft_decision(self.drafts, draft.accept(joined_case, by=by, at=at))
        return True


def reword_draft(draft: GoldDraft, *, question: str, gold: str, kind: str) -> GoldDraft | None:
    """Return the draft with the new texts, or ``None`` if the texts do not make a valid case."""
    case = draft.case
    changes = {"turns": (*case.turns[:-1], question), "gold": gold, "type": kind}
    try:
        return draft.with_case(GoldCase.model_validate(case.model_dump() | changes))
    except ValidationError:
        return None


def add_case_and_mark_draft_accepted(drafts: Path, suite: Path, draft: GoldDraft, *, by: str, at: datetime) -> bool:
    """Add the case to the suite, then mark the draft as accepted.

    Returns false if another person has decided about the draft in the meantime.
    """
    case = draft.case.mark_reviewed(by, at)
    append_case_if_new(suite, case, paired_with=draft.original.id if draft.original else None)
    return store_draft_decision(drafts, draft.accept(case, by=by, at=at))


def iterate_case_rows(draft: GoldDraft) -> Iterator[tuple[str, str]]:
    """Yield the labels and texts of the draft's case."""
    case = draft.case
    yield from (("before", turn) for turn in case.turns[:-1])
    yield "question", case.question
    yield "gold", case.gold
    if case.expected_refusal:
        yield "expected", "a refusal"
    why = draft.why if draft.why.startswith(SET_BY) else f"proposed: {draft.why or 'no reason given'}"
    yield "severity", f"{int(case.severity)}, {why}"
    yield "type", f"{case.type}, in {case.language.value}"
    yield "drafted", f"by {draft.model}, {draft.made_at:%Y-%m-%d %H:%M} UTC"


def build_clause_or_original_rows(draft: GoldDraft) -> tuple[list[tuple[str, str]], str]:
    """Return rows with the draft's clause, or a translation's original, and the label of the row to highlight."""
    if draft.original is not None:
        original = draft.original
        where = ("original", f"{original.id}, in {original.language.value}")
        return [where, ("question", original.question), ("gold", original.gold)], ""
    quote = draft.quote
    if quote is None:
        raise AssertionError("internal error: the draft has neither a quote nor an original")
    before_rows = [("before", f"… {_join_into_one_line(quote.before)}")] if quote.before.strip() else []
    after_rows = [("after", f"{_join_into_one_line(quote.after)} …")] if quote.after.strip() else []
    where = ("document", f"{quote.document}, from character {quote.start:,}")
    return [where, *before_rows, ("clause", _join_into_one_line(quote.text)), *after_rows], "clause"


ByOption = Annotated[
    str | None, typer.Option("--as", help="your name; if you give no name, Lookout asks for it once and stores it")
]


def review_command(
    drafts: Annotated[Path, typer.Argument(help="the file with the drafts")] = DEFAULT_DRAFTS,
    *,
    suite: Annotated[
        Path,
        typer.Option("--suite", help="the suite for accepted cases; Lookout creates the file if it does not exist"),
    ],
    by: ByOption = None,
    config: ConfigOption = DEFAULT_CONFIG,
    data_folder: Annotated[
        Path | None,
        typer.Option(
            "--data-folder", help="the folder where your name is stored; default: the configured data folder"
        ),
    ] = None,
    raw: Annotated[bool, typer.Option("--raw", help="show texts without masking personal data")] = False,
    as_json: JsonOption = False,
) -> ExitCode:
    """Review each draft next to its clause: accept, reject or edit it. Only accepted drafts become gold."""
    folder = data_folder or (load_config(config).data_folder if config.exists() else None)
    waiting = [draft for draft in read_drafts(drafts) if draft.state is DraftState.DRAFTED]
    read_suite_cases(suite)  # report an invalid suite before anybody reads a draft
    if as_json:
        write_jsons(draft.model_dump_json(exclude_defaults=True) + "\n" for draft in waiting)
        return ExitCode.PASS
    screen = ReviewScreen()
    person = get_and_store_reviewer(by, folder, screen)
    graders, domain = load_suite_grader_settings(config, suite)
    review = DraftReview(drafts, suite, person, screen, str if raw else redact, graders, domain)
    finished = [draft for draft in waiting if review.mark_accepted_if_in_suite(draft)]
    if finished:
        screen.print_line(format_interrupted_session_note(len(finished), suite))
    waiting = [draft for draft in waiting if draft not in finished]
    decisions = review.session.run(waiting, len(waiting))
    accepted, rejected = decisions[Decision.ACCEPTED], decisions[Decision.REJECTED]
    left = len(waiting) - accepted - rejected
    screen.print_line(f"Added to {suite}: {accepted}. Rejected: {rejected}. Left in {drafts}: {left}.")
    return ExitCode.PASS


def format_interrupted_session_note(count: int, suite: object) -> str:
    """Format the note about cases that an interrupted session had already added to the suite."""
    return (
        f"An interrupted session had already added {count} of the drafts to {suite}. These drafts are now marked "
        "as accepted."
    )


def explain_unacceptable_draft(draft: GoldDraft, graders: GraderSettings, domain: Domain) -> str:
    """Return why a draft cannot become gold. Returns an empty text if the draft can become gold."""
    case = draft.case
    if draft.quote is not None:
        unfounded = find_missing_quantities(case.gold, draft.quote.text)
        if unfounded:
            return f"the gold contains {', '.join(unfounded)}, but the clause does not"
    if draft.original is not None:
        changed = [
            *list_quantity_differences(draft.original.question, case.question),
            *list_quantity_differences(draft.original.gold, case.gold),
        ]
        if changed:
            return f"its quantities differ from the original: {', '.join(changed)}"
    language = identify_language(case.question)
    if language is not case.language:
        return f"the question is in {language.value}, but the language of the case is {case.language.value}"
    if find_private_data_except_names(f"{case.question}\n{case.gold}", graders.account_patterns):
        return "the question or the gold contains personal data"
    return explain_gold_failure(case, build_rule_panel(graders, domain))

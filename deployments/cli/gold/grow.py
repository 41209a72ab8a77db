"""``lookout gold grow``: review drafts that come from incidents, Slack, people's reviews and live traffic.

For each draft, the command shows the question, the bad reply and the finding. Then it asks for one key and for the
right answer. The new case must detect the bad reply. The command can also create a draft from one conversation of a
run.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import typer
from pydantic import ValidationError
from rich.console import Group, RenderableType
from rich.text import Text

from deployments.cli.alerts.incidents import WAIT_S, open_session_and_apply_actions
from deployments.cli.data_folder import find_data_folder, load_new_results_into_warehouse
from deployments.cli.exit_codes import ExitCode
from deployments.cli.gold.review import NO_CASE, WHY_NOT, ByOption, format_interrupted_session_note
from deployments.cli.options import DEFAULT_CONFIG, ConfigOption, FolderOption, JsonOption
from deployments.cli.reviews.answers import DRAFTS_FILE
from deployments.cli.reviews.session import (
    Decision,
    ReviewScreen,
    ReviewSession,
    build_label_table,
    get_and_store_reviewer,
)
from flows.clock import utc_now
from flows.goldset.drafting import build_draft_from_conversation
from flows.goldset.mutation_testing import MutationOutcome, MutationVerdict, check_bad_reply_is_detected
from flows.terminal import write_json, write_note
from monitors.alerts.redact import redact
from monitors.config.file import Config, load_config
from monitors.domains.pack import Domain, load_domain
from monitors.errors import ConfigError
from monitors.goldset.drafts import (
    DraftCandidate,
    build_case_from_draft,
    derive_case_id,
    merge_drafts_by_question,
    replace_masks_by_invented_data,
)
from monitors.goldset.versions import append_case_if_new, read_suite_cases
from monitors.graders.base import GraderSettings
from monitors.graders.panel import build_rule_panel
from monitors.plural import plural
from monitors.records.base import Severity
from monitors.records.cases import DraftOutcome, GoldCase
from monitors.records.operator_actions import CaseDraft
from warehouse.database.store import Store
from warehouse.queries.operator_actions import (
    append_draft,
    append_draft_outcomes,
    list_decided_draft_ids,
    list_waiting_drafts,
    load_graded_conversation,
)

SEVERITIES: Final = {str(int(severity)): severity for severity in Severity}
KEYS = "[g] write the right answer  [r] a refusal is right  [n] reject  [1] [2] [3] severity  [s]kip  [q]uit"


class ReviewItem(NamedTuple):
    """A draft to review, with its duplicates and the severity that its case will get."""

    candidate: DraftCandidate
    severity: Severity


def build_draft_view(item: ReviewItem) -> RenderableType:
    """Build the view of a draft. If only excerpts of the conversation were stored, add a note."""
    table = build_label_table(build_draft_rows(*item), redact)
    cut = "Lookout stored only excerpts of this conversation. Complete the question before you accept the draft."
    return Group(table, Text(cut, style="yellow")) if item.candidate.draft.cut else table


def build_draft_rows(candidate: DraftCandidate, severity: Severity) -> list[tuple[str, str]]:
    """Build the rows of a draft's view, each with a label and a text."""
    draft = candidate.draft
    rows = [("from", f"{draft.origin.value} of {draft.target}, {draft.made_at:%Y-%m-%d %H:%M} UTC, by {draft.by}")]
    rows += [("before", turn) for turn in draft.turns[:-1]]
    rows.append(("question", draft.turns[-1] if draft.turns else ""))
    rows.append(("bad reply", draft.bad_reply or "none is known"))
    rows.append(("finding", draft.finding))
    if draft.gold is not None:
        rows.append(("proposed", draft.gold))
    proposed = f"proposed: {draft.severity_reason}" if severity is draft.suggested_severity else "set by you"
    rows.append(("severity", f"{int(severity)}, {proposed}"))
    if candidate.same_as:
        more = len(candidate.same_as)
        rows.append(
            (
                "the same",
                (
                    f"{plural(more, 'more draft asks', 'more drafts ask')} this question. Your decision applies to "
                    "all these drafts"
                ),
            )
        )
    if candidate.asked_by is not None:
        rows.append(
            (
                "asked by",
                (
                    f"the case {candidate.asked_by} already asks this question. Press [n] to reject the draft, "
                    "unless its question is different"
                ),
            )
        )
    return rows


def load_waiting_drafts(store: Store, folder: Path, target: str | None) -> Sequence[CaseDraft]:
    """Load the waiting drafts from the warehouse and from the file of `lookout review`, most severe first."""
    drafts = {draft.id: draft for draft in list_waiting_drafts(store, target=target, wait_s=WAIT_S)}
    path = folder / DRAFTS_FILE
    if path.exists():
        done = list_decided_draft_ids(store, wait_s=WAIT_S)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            draft = _parse_draft_line(line, path, number)
            if draft is not None and draft.id not in done and target in {None, draft.target}:
                drafts.setdefault(draft.id, draft)
    return sorted(drafts.values(), key=lambda draft: (-draft.suggested_severity, draft.made_at, draft.id))


def _parse_draft_line(line: str, path: Path, number: int) -> CaseDraft | None:
    """Parse a line of the drafts file. If the line is invalid, print a warning and return ``None``."""
    try:
        return CaseDraft.model_validate_json(line) if line.strip() else None
    except ValidationError:
        write_note(f"lookout: {path}, line {number} is not a valid draft and was skipped\n")
        return None


def store_conversation_draft(store: Store, conversation_id: str, config: Config | None, person: str) -> None:
    """Store a draft of the conversation RUN/CASE. Raises `ConfigError` if this conversation is not stored."""
    run_id, _, case_id = conversation_id.partition("/")
    conversation = load_graded_conversation(store, run_id, case_id, wait_s=WAIT_S) if case_id else None
    if conversation is None:
        raise ConfigError(
            f"--take {conversation_id}: this conversation is not stored. Give RUN/CASE with ids from the view "
            "results (`lookout sql`)"
        )
    patterns = find_target_grader_settings(config, conversation.target)[0].account_patterns
    append_draft(
        store.journal,
        build_draft_from_conversation(conversation, by=person, at=utc_now(), account_patterns=patterns),
    )
    load_new_results_into_warehouse(store)


def find_target_grader_settings(config: Config | None, target: str) -> tuple[GraderSettings, Domain]:
    """Return the target's grader settings and domain, or the defaults if the target is not configured."""
    settings = config.targets.get(target) if config is not None else None
    return (settings.graders, settings.domain) if settings is not None else (GraderSettings(), load_domain())


def print_drafts_to_review(waiting: Sequence[DraftCandidate]) -> None:
    """Print all waiting drafts for a person."""
    screen = ReviewScreen()
    for number, item in enumerate(_build_review_items(waiting), start=1):
        screen.show(f"{number} of {len(waiting)}", build_draft_view(item))
    if waiting:
        screen.print_line("To add the drafts to a suite: lookout gold grow --suite SUITE")
    else:
        screen.print_line(
            'There are no drafts. Create a draft with `lookout alerts draft ID`, with "Add to gold" in Slack, or '
            "with --take."
        )


def print_waiting_drafts_as_json(waiting: Sequence[DraftCandidate]) -> None:
    """Print all waiting drafts as JSON Lines."""
    for candidate in waiting:
        summary = candidate.model_dump(mode="json") | {
            "details": dict(build_draft_rows(candidate, candidate.draft.suggested_severity))
        }
        write_json(json.dumps(summary, ensure_ascii=False) + "\n")


def _build_review_items(waiting: Iterable[DraftCandidate]) -> Iterator[ReviewItem]:
    return (ReviewItem(candidate, candidate.draft.suggested_severity) for candidate in waiting)


TYPE = "incident"


def grow_command(
    *,
    suite: Annotated[
        Path | None,
        typer.Option(
            "--suite", help="the suite for accepted cases; without this option, Lookout only lists the drafts"
        ),
    ] = None,
    take: Annotated[
        str | None, typer.Option("--take", help="first create a draft from the conversation RUN/CASE")
    ] = None,
    target: Annotated[str | None, typer.Option("--target", help="use only drafts of this target")] = None,
    by: ByOption = None,
    config: ConfigOption = DEFAULT_CONFIG,
    data_folder: FolderOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Review drafts of cases that come from failures: incidents, Slack, reviews and live traffic."""
    folder = find_data_folder(config, data_folder)
    store = open_session_and_apply_actions(config, data_folder).store
    load_new_results_into_warehouse(store)
    configured = load_config(config) if config.exists() else None
    if take is not None:
        store_conversation_draft(store, take, configured, get_and_store_reviewer(by, folder, None))
    suite_cases = read_suite_cases(suite) if suite is not None else ()
    waiting = merge_drafts_by_question(load_waiting_drafts(store, folder, target), suite_cases)
    if as_json:
        print_waiting_drafts_as_json(waiting)
    elif suite is None:
        print_drafts_to_review(waiting)
    else:
        screen = ReviewScreen()
        person = get_and_store_reviewer(by, folder, screen)
        _finish_and_review_open_drafts(GrowReview(store, suite, person, screen, configured), waiting)
        load_new_results_into_warehouse(store)
    return ExitCode.PASS


def _finish_and_review_open_drafts(review: GrowReview, waiting: Sequence[DraftCandidate]) -> None:
    """Let the person review the waiting drafts, and print the counts of the decisions.

    First, complete the decisions on drafts whose cases an interrupted session already added to the suite.
    """
    joined_cases = {case.id: case.provenance for case in read_suite_cases(review.suite)}
    finished = [candidate for candidate in waiting if derive_case_id(candidate.draft.id) in joined_cases]
    for candidate in finished:
        source = joined_cases[derive_case_id(candidate.draft.id)]
        review.store_decision(candidate, by=source.reviewed_by, at=source.reviewed_at, joined=True)
    if finished:
        review.screen.print_line(format_interrupted_session_note(len(finished), review.suite))
    left = [candidate for candidate in waiting if candidate not in finished]
    decisions = review.session.run(_build_review_items(left), len(left))
    joined, rejected = decisions[Decision.ACCEPTED], decisions[Decision.REJECTED]
    open_count = len(left) - joined - rejected
    review.screen.print_line(f"Added to {review.suite}: {joined}. Rejected: {rejected}. Left: {open_count}.")


def check_case_catches_bad_reply(
    candidate: DraftCandidate, case: GoldCase, config: Config | None
) -> MutationOutcome:
    """Test whether the case of a draft detects the draft's bad reply. Return the result with its reason.

    A case with the result ``MISSED`` or ``GOLD_FAILS`` must not be added to the suite.
    """
    bad_reply = replace_masks_by_invented_data(candidate.draft.bad_reply) if candidate.draft.bad_reply else None
    return check_bad_reply_is_detected(
        case,
        bad_reply,
        build_rule_panel(*find_target_grader_settings(config, candidate.draft.target)),
        candidate.draft.failure_kind,
    )


def add_draft_case_to_suite(
    store: Store,
    suite: Path,
    candidate: DraftCandidate,
    case: GoldCase,
    outcome: MutationOutcome,
    *,
    by: str,
    at: datetime,
) -> None:
    """Add an accepted case to the suite, then store the decision. Raises `GoldSetError`, `WarehouseUnwritable`.

    If the process is killed between the two steps, the next session finds the case in the suite.
    """
    append_case_if_new(suite, case.mark_reviewed(by, at))
    detected = outcome.detection is MutationVerdict.DETECTED
    store_draft_decision(store, suite, candidate, joined=True, by=by, at=at, note="" if detected else "undecidable")


def store_draft_decision(
    store: Store, suite: Path, candidate: DraftCandidate, *, joined: bool, by: str, at: datetime, note: str = ""
) -> None:
    """Store the decision on a draft and its duplicates. Raises `WarehouseUnwritable`.

    ``joined`` is true if the draft's case was added to the suite, and false if the draft was rejected.
    """
    make_outcome = partial(
        DraftOutcome,
        at=at,
        by=by,
        joined=joined,
        case_id=derive_case_id(candidate.draft.id) if joined else None,
        note=note,
        suite=suite.name if joined else "",
    )
    append_draft_outcomes(
        store.journal, tuple(make_outcome(draft_id=one_id) for one_id in (candidate.draft.id, *candidate.same_as))
    )


@dataclass(frozen=True)
class GrowReview:
    """One person's review of drafts: the stored data, the suite, and the action of each key."""

    store: Store
    suite: Path
    person: str
    screen: ReviewScreen
    config: Config | None

    @property
    def session(self) -> ReviewSession[ReviewItem]:
        """Return the session that shows the drafts and runs an action for each key."""
        severity_actions = {key: partial(self._set_severity, severity) for key, severity in SEVERITIES.items()}
        actions = {
            "g": partial(self._ask_and_add_case, refusal=False),
            "r": partial(self._ask_and_add_case, refusal=True),
            "n": self._reject_draft,
        }
        return ReviewSession(self.screen, KEYS, build_draft_view, actions | severity_actions)

    def _set_severity(self, severity: Severity, item: ReviewItem) -> ReviewItem:
        return item._replace(severity=severity)

    def _reject_draft(self, item: ReviewItem) -> Decision:
        self.store_decision(item.candidate, joined=False, note=redact(self.screen.ask_line(WHY_NOT))[:2_000])
        return Decision.REJECTED

    def _ask_and_add_case(self, item: ReviewItem, *, refusal: bool) -> Decision | None:
        case = self._ask_and_build_case(item.candidate.draft, item.severity, refusal=refusal)
        joined = case is not None and self._add_case_to_suite(item.candidate, case)
        return Decision.ACCEPTED if joined else None

    def _ask_and_build_case(self, draft: CaseDraft, severity: Severity, *, refusal: bool) -> GoldCase | None:
        """Ask for the question, the gold and the type, and build the case. Return ``None`` without a valid gold."""
        asked = self.screen.ask_line("question (press Enter to keep it)") or draft.turns[-1]
        draft = draft.with_question(redact(asked))
        if refusal:
            gold = self.screen.ask_line("Why must the application refuse? Answer in one line:")
        else:
            proposed = " (press Enter to accept the proposal)" if draft.gold else ""
            gold = self.screen.ask_line(f"The right answer, one line{proposed}:") or draft.gold or ""
        kind = self.screen.ask_line(f"type (Enter: {TYPE})") or TYPE
        if not gold:
            self.screen.print_line("A case needs a right answer. Nothing was changed.", "yellow")
            return None
        try:
            return build_case_from_draft(draft, gold, refusal=refusal, severity=severity, kind=kind)
        except ValidationError:
            self.screen.print_line(NO_CASE, "yellow")
            return None

    def _add_case_to_suite(self, candidate: DraftCandidate, case: GoldCase) -> bool:
        """Add the case to the suite if it detects the bad reply. Return whether it was added."""
        outcome = check_case_catches_bad_reply(candidate, case, self.config)
        detected = outcome.detection is MutationVerdict.DETECTED
        self.screen.print_line(redact(outcome.reason), "green" if detected else "yellow")
        if outcome.detection in {MutationVerdict.GOLD_FAILS, MutationVerdict.MISSED}:
            self.screen.print_line("This case cannot be added. Write another right answer, or reject the draft.")
            return False
        if not detected and not self.screen.confirm(
            "Without a judge, Lookout cannot test whether this case catches the bad reply. Add the case anyway?"
        ):
            return False
        add_draft_case_to_suite(self.store, self.suite, candidate, case, outcome, by=self.person, at=utc_now())
        return True

    def store_decision(
        self,
        candidate: DraftCandidate,
        *,
        joined: bool,
        by: str | None = None,
        at: datetime | None = None,
        note: str = "",
    ) -> None:
        """Store the decision on a draft and its duplicates. By default, ``by`` is this person and ``at`` is now.

        ``joined`` is true if the draft's case was added to the suite, and false if the draft was rejected.
        """
        by, at = by or self.person, at or utc_now()
        store_draft_decision(self.store, self.suite, candidate, joined=joined, by=by, at=at, note=note)

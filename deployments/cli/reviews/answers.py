"""``lookout review``: let people review a sample of graded answers, to measure the errors of rules and judges.

The terminal shows one answer at a time, with its question and gold, and asks for one key. For a report about an
issue, it also asks for a rating from 1 to 5. The decision is stored as a label. If the decision on an answer
contradicts the verdicts, a draft of a new case is also stored. Reports on issues get no drafts.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import RenderableType

from deployments.cli.data_folder import find_data_folder, load_new_results_into_warehouse, open_warehouse
from deployments.cli.exit_codes import ExitCode
from deployments.cli.options import DEFAULT_CONFIG, ConfigOption, FolderOption
from deployments.cli.reviews.session import (
    Decision,
    ReviewScreen,
    ReviewSession,
    build_label_table,
    get_and_store_reviewer,
    load_reviewer_name,
)
from flows.clock import utc_now
from flows.terminal import write_json, write_jsons, write_text
from monitors.alerts.redact import redact
from monitors.config.file import Config, load_config
from monitors.errors import WarehouseBusy
from monitors.judge.calibration import check_graders, compare_judges_with_people, compare_ratings_with_people
from monitors.judge.settings import ReviewSettings, sample_for_review
from monitors.plural import plural
from monitors.records.exchanges import Origin
from monitors.records.grades import (
    CRITERION_LABELS,
    FAILURE_WORDS,
    CaseOutcome,
    FailureKind,
    Judged,
    find_aspect_of_failure_kind,
)
from monitors.records.incidents import Redacted
from monitors.records.operator_actions import CaseDraft, HumanLabel
from monitors.records.reviews import AnswerId, AnswerVerdict, GradedAnswer, LabelSource, SampledAnswer, SpotCheck
from warehouse.database.store import Store
from warehouse.journal.rows import LabelRow
from warehouse.queries.reviews import (
    count_rated_reports_by_judge,
    count_verdicts,
    list_answer_ids_reviewed_by,
    list_answers_judged_and_reviewed,
    list_review_candidates,
    list_reviewed_ratings,
    list_reviewed_rule_grades,
    list_reviewers,
    load_spot_checks,
)

Redact = Callable[[str], Redacted]


def build_review_label(
    check: SpotCheck,
    verdict: AnswerVerdict,
    *,
    by: str,
    at: datetime,
    redact: Redact,
    failure_kind: FailureKind | None = None,
    rating: int | None = None,
    note: str = "",
) -> HumanLabel:
    """Build the label that stores one person's decision on one answer.

    If the same person decides on the same answer again, the new label has the same id.
    """
    answer = check.answer
    answer_id = answer.answer_id
    parts = (by, answer.target, answer_id.run_id, answer_id.case_id, str(answer_id.repeat))
    return HumanLabel(
        id=f"review-{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()[:32]}",
        at=at,
        by=by,
        target=answer.target,
        run_id=answer.answer_id.run_id,
        case_id=answer.answer_id.case_id,
        repeat=answer.answer_id.repeat,
        failure_kind=failure_kind,
        reason=redact(describe_failed_or_passed_verdicts(answer)),
        note=redact(note),
        source=LabelSource.REVIEW,
        answer=verdict,
        rating=rating,
        inclusion_probability=check.inclusion_probability,
    )


def is_contradiction(label: HumanLabel, answer: GradedAnswer) -> bool:
    """Return whether the label contradicts the graders and the judge. The label "unsure" is never a contradiction.

    If the person chose a failure kind, the label is compared only with the verdicts about this kind.
    """
    if label.answer is AnswerVerdict.UNSURE:
        return False
    if label.answer is AnswerVerdict.RIGHT:
        return any(not grade.passed for grade in answer.grades)
    aspect = find_aspect_of_failure_kind(label.failure_kind)
    grades = [grade for grade in answer.grades if grade.aspect is aspect]
    if grades:
        return all(grade.passed for grade in grades)
    return answer.outcome is CaseOutcome.CORRECT and all(grade.passed for grade in answer.grades)


def describe_failed_or_passed_verdicts(answer: GradedAnswer) -> str:
    """Describe which graders failed the answer and why.

    If no grader failed it, describe which graders passed it.
    """
    failed = [grade for grade in answer.grades if not grade.passed]
    return "; ".join(
        f"{format_grader_name(grade)} {'passed' if grade.passed else 'failed'} the answer: {grade.reason}"
        for grade in failed or answer.grades
    )


def format_grader_name(grade: Judged) -> str:
    """Return the name of a grader. For a judge, return the name of its model."""
    return grade.lineage.model if grade.lineage else grade.grader


def build_draft_from_label(label: HumanLabel, answer: GradedAnswer, redact: Redact) -> CaseDraft:
    """Build a draft of a case from an answer on which a person and the verdicts disagree.

    If the answer is right and has no gold, the draft proposes the answer as the gold. If the answer is wrong, it
    becomes the bad reply that the new case must detect. The draft's id is not that of a real conversation, because
    drafts may be stored longer than conversations.
    """
    right = label.answer is AnswerVerdict.RIGHT
    gold = redact(answer.gold) if answer.gold is not None else redact(answer.answer) if right else None
    judgement = "right" if right else "wrong"
    note = f" ({label.note})" if label.note else ""
    return CaseDraft(
        id=label.id,
        made_at=label.at,
        by=label.by,
        target=answer.target,
        run_id=answer.answer_id.run_id,
        source_id=answer.answer_id.case_id if answer.origin is Origin.PROBE else None,
        origin=answer.origin,
        turns=tuple(redact(turn) for turn in answer.turns),
        gold=gold,
        bad_reply=None if right else redact(answer.answer),
        failure_kind=label.failure_kind
        or (None if right else next((grade.failure_kind for grade in answer.grades if not grade.passed), None)),
        language=answer.language,
        suggested_severity=answer.severity,
        severity_reason="the severity of the reviewed case",
        finding=redact(
            f"A person decided that the answer is {judgement}{note}. {describe_failed_or_passed_verdicts(answer)}"
        ),
    )


KEYS = "[y] completely right  [n] wrong  [u]nsure  [s]kip for now  [q]uit"
VERDICTS = {"y": AnswerVerdict.RIGHT, "n": AnswerVerdict.WRONG, "u": AnswerVerdict.UNSURE}
KINDS: Mapping[str, FailureKind] = {
    "1": FailureKind.WRONG_FACT,
    "2": FailureKind.MISSING_FACT,
    "3": FailureKind.UNSUPPORTED_CLAIM,
    "4": FailureKind.SHOULD_HAVE_REFUSED,
    "5": FailureKind.OVER_REFUSAL,
    "6": FailureKind.WRONG_CITATION,
    "7": FailureKind.POOR_TRIAGE,
    "8": FailureKind.WRONG_LANGUAGE,
    "9": FailureKind.PII_DISCLOSURE,
    "0": FailureKind.ERROR_LEAK,
    "m": FailureKind.MISSING_CITATION,
}
"""The failure kinds that a person can choose, by the key to press."""

RATING_KEYS = frozenset("12345")
RUBRIC = (
    "How useful is the report?  5: right cause, exactly the right files, clear next step  4: right cause, a small "
    "gap  3: on the right track  2: wrong area, too vague, or lists every file  1: wrong or empty. Any other key: "
    "not rated."
)
_DIFFER = "Your decision differs from these verdicts. Lookout stored a draft of a new case."
_DIFFER_ON_A_REPORT = "Your decision differs from these verdicts. Check the reference of this issue in the suite."

DRAFTS_FILE = Path("drafts") / "review.jsonl"
WAIT_S = 10.0
BATCH_SIZE = 100
"""The number of answers whose texts one query reads."""
NOTHING = "No answer was graded in this period."


def review_command(
    target: Annotated[
        str | None, typer.Argument(help="the name of a configured target; default: all targets")
    ] = None,
    *,
    config: ConfigOption = DEFAULT_CONFIG,
    data_folder: FolderOption = None,
    by: Annotated[
        str | None, typer.Option("--as", help="your name; if it is missing, Lookout asks for it once and stores it")
    ] = None,
    share: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="the share (0 to 1) of the graded answers to review; default: the configured share, or 0.05",
        ),
    ] = None,
    days: Annotated[int, typer.Option(min=1, help="the number of past days to sample from")] = 30,
    figures: Annotated[
        bool, typer.Option("--figures", help="show how often each rule and each judge is wrong")
    ] = False,
    raw: Annotated[bool, typer.Option("--raw", help="show texts without masking personal data")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="list the answers to review as JSON lines")] = False,
) -> ExitCode:
    """Review a sample of the graded answers yourself. Lookout shows its own verdicts after your decision.

    With --figures, the command prints how often each rule and each judge is wrong, and how a judge's ratings differ
    from yours.
    """
    folder = find_data_folder(config, data_folder)
    configured = load_config(config) if config.exists() else None
    store = load_new_results_into_warehouse(open_warehouse(config, data_folder))
    since = utc_now() - timedelta(days=days)
    if figures:
        _print_error_rates_of_graders(store, since, target, as_json=as_json)
        return ExitCode.PASS
    graded = list_review_candidates(store, since=since, target=target, wait_s=WAIT_S)
    if share is None:
        share = (configured.review if configured else ReviewSettings()).share
    sampled = sample_for_review(graded, share)
    if as_json:
        unreviewed = select_distinct_unreviewed_answers(store, sampled, by or load_reviewer_name(folder))
        _print_answers_as_json(_iterate_spot_checks(store, unreviewed), _build_redactors(configured))
        return ExitCode.PASS
    screen = ReviewScreen()
    if not sampled:
        screen.print_line("There is nothing to review: no answer was graded in this period, or the share is 0.")
        return ExitCode.PASS
    person = get_and_store_reviewer(by, folder, screen)
    review = AnswerReview(store, folder, person, screen, _build_redactors(configured), raw)
    unreviewed = select_distinct_unreviewed_answers(store, sampled, person)
    answered = review.session.run(_iterate_spot_checks(store, unreviewed), len(unreviewed))[Decision.ACCEPTED]
    screen.print_line(
        f"{person} reviewed {plural(answered, 'answer')}. Answers left: {len(unreviewed) - answered}. To see the "
        "results, run `lookout review --figures`"
    )
    load_new_results_into_warehouse(store)
    return ExitCode.PASS


Redactors = Callable[[str], Callable[[str], Redacted]]
"""A function that returns the masking function of a target. Each target has its own formats of account numbers."""


@dataclass(frozen=True)
class AnswerReview:
    """One person's review of sampled answers: what the terminal shows, and where labels are stored."""

    store: Store
    folder: Path
    person: str
    screen: ReviewScreen
    redactors: Redactors
    raw: bool

    @property
    def session(self) -> ReviewSession[SpotCheck]:
        """Return the session that shows the answers and runs an action for each key."""
        actions = {key: partial(self._ask_and_store_label, verdict) for key, verdict in VERDICTS.items()}
        return ReviewSession(self.screen, KEYS, self._build_answer_view, actions)

    def _build_answer_view(self, check: SpotCheck) -> RenderableType:
        """Build the view of the question, the gold and the answer, without verdicts."""
        return build_label_table(iterate_answer_rows(check.answer), self._choose_redactor(check))

    def _choose_redactor(self, check: SpotCheck) -> Callable[[str], str]:
        return str if self.raw else self.redactors(check.answer.target)

    def _ask_and_store_label(self, verdict: AnswerVerdict, check: SpotCheck) -> Decision:
        """Store the person's label, then show the verdicts."""
        answer, clean = check.answer, self.redactors(check.answer.target)
        wrong = verdict is AnswerVerdict.WRONG
        label = build_review_label(
            check,
            verdict,
            by=self.person,
            at=utc_now(),
            redact=clean,
            failure_kind=self._ask_failure_kind() if wrong else None,
            rating=self._ask_rating() if answer.issue is not None else None,
            note=self.screen.ask_line("Reason, one line (or press Enter):") if wrong else "",
        )
        others = load_and_describe_other_reviewers(self.store, answer.answer_id, self.person)
        contradicted = store_label_and_draft_contradiction(self.store, self.folder, label, answer, clean)
        self.screen.console.print(build_label_table(build_verdict_rows(answer), self._choose_redactor(check)))
        if contradicted:
            self.screen.print_line(format_contradiction_notice(answer))
        if others:
            self.screen.print_line(others)
        return Decision.ACCEPTED

    def _ask_rating(self) -> int | None:
        """Ask for a rating from 1 to 5. Return ``None`` for any other key."""
        self.screen.print_line(RUBRIC)
        key = self.screen.read_key()
        return int(key) if key in RATING_KEYS else None

    def _ask_failure_kind(self) -> FailureKind | None:
        """Ask for the failure kind. Return ``None`` for an unknown key."""
        offered = "  ".join(f"{key} {FAILURE_WORDS[kind]}" for key, kind in KINDS.items())
        self.screen.print_line(f"What is the worst fault of the answer? {offered}")
        self.screen.print_line(
            "Any other key: no failure kind. Then Lookout does not use your decision to measure rules."
        )
        return KINDS.get(self.screen.read_key())


def store_label_and_draft_contradiction(
    store: Store, folder: Path, label: HumanLabel, answer: GradedAnswer, redact: Redact
) -> bool:
    """Store the label, and return whether the label contradicts the verdicts.

    For a contradiction, first store a draft of a new case, except for a report on an issue. If the process is
    killed before the label is stored, the person is asked about the answer again. Raises `WarehouseUnwritable`.
    """
    contradicted = is_contradiction(label, answer)
    if contradicted and answer.issue is None:
        _append_draft_once(folder / DRAFTS_FILE, build_draft_from_label(label, answer, redact))
    store.journal.append([LabelRow(row=label)], run_id=None)
    return contradicted


ORDINALS = ("first", "second", "third", "fourth", "fifth")


def load_and_describe_other_reviewers(store: Store, answer: AnswerId, person: str) -> str:
    """Return a sentence with the names of the answer's other reviewers. The sentence is empty if there are none."""
    with suppress(WarehouseBusy):  # labels of another session stay in the journal until they are loaded
        store.load_pending(WAIT_S)
    others = [name for name in list_reviewers(store, answer, wait_s=WAIT_S) if name != person]
    if not others:
        return ""
    ordinal = ORDINALS[len(others)] if len(others) < len(ORDINALS) else f"{len(others) + 1}th"
    return f"Already reviewed by {' and '.join(others)}. Your verdict is the {ordinal} one."


def format_contradiction_notice(answer: GradedAnswer) -> str:
    """Return the message for a decision that contradicts the verdicts."""
    return _DIFFER if answer.issue is None else _DIFFER_ON_A_REPORT


def iterate_answer_rows(answer: GradedAnswer) -> Iterator[tuple[str, str]]:
    """Yield labels and texts of the question, the gold and the answer, without verdicts."""
    yield "asked", f"{answer.asked_at:%Y-%m-%d %H:%M} UTC on {answer.target}, severity {int(answer.severity)}"
    yield from (("before", turn) for turn in answer.turns[:-1])
    yield "question", answer.turns[-1] if answer.turns else ""
    if answer.issue is not None and answer.issue not in answer.turns:
        yield "issue", answer.issue
    if answer.expected_refusal:
        yield "expected", "a refusal"
    yield (
        "gold",
        answer.gold if answer.gold is not None else "this question has no gold, so decide from your own knowledge",
    )
    if answer.expected_citation is not None:
        yield "source", f"{answer.expected_citation} is expected"
    if answer.issue is None:
        yield "answer", answer.answer
    else:
        yield "report", _indent_json(answer.answer)


def _indent_json(report: str) -> str:
    """Indent a report that is JSON. Return any other report unchanged."""
    try:
        value = json.loads(report)
    except (ValueError, RecursionError):
        return report
    return json.dumps(value, ensure_ascii=False, indent=2)


def build_verdict_rows(answer: GradedAnswer) -> tuple[tuple[str, str], ...]:
    """Build the rows with the verdicts and ratings, which are shown after the person's decision."""
    return (*map(_format_verdict_row, answer.grades), *map(_format_rating_row, answer.ratings))


def _format_verdict_row(grade: Judged) -> tuple[str, str]:
    """Format the verdict of one grader."""
    word = "passed the answer" if grade.passed else f"failed the answer ({grade.failure_kind})"
    score = "" if grade.score is None else f", score {grade.score:.2f}"
    return "judge" if grade.lineage else "rule", f"{format_grader_name(grade)} {word}{score}: {grade.reason}"


def _format_rating_row(grade: Judged) -> tuple[str, str]:
    """Format the rating of one judge."""
    answers = [f"{'' if c.score else 'not '}{CRITERION_LABELS[c.name]}" for c in grade.criteria]
    criteria = f" ({', '.join(answers)})" if answers else ""
    return "judge", f"{format_grader_name(grade)} rated the report {grade.rubric} of 5{criteria}: {grade.reason}"


def _append_draft_once(path: Path, draft: CaseDraft) -> None:
    """Append a draft to the file, unless the file already contains it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and f'"id":"{draft.id}"' in path.read_text(encoding="utf-8"):
        return
    with path.open("a", encoding="utf-8") as drafts:
        drafts.write(draft.model_dump_json() + "\n")
        drafts.flush()
        os.fsync(drafts.fileno())


def select_unreviewed_answers(
    store: Store, sampled: Sequence[SampledAnswer], person: str | None
) -> Sequence[SampledAnswer]:
    """Return the answers that this person has not reviewed yet. Without a person, return all answers."""
    done = list_answer_ids_reviewed_by(store, person, wait_s=WAIT_S) if person else frozenset()
    return [sample for sample in sampled if sample.answer_id not in done]


def select_distinct_unreviewed_answers(
    store: Store, sampled: Sequence[SampledAnswer], person: str | None
) -> Sequence[SampledAnswer]:
    """Return the answers that this person has not reviewed yet, without duplicates.

    Duplicates have the same question, gold and answer, but may come from different runs.
    """
    unreviewed = {sample.answer_id: sample for sample in select_unreviewed_answers(store, sampled, person)}
    reviewed = [sample for sample in sampled if sample.answer_id not in unreviewed]
    shown = {_hash_shown_texts(check.answer) for check in _iterate_spot_checks(store, reviewed)}
    distinct: list[SampledAnswer] = []
    for check in _iterate_spot_checks(store, tuple(unreviewed.values())):
        if (digest := _hash_shown_texts(check.answer)) not in shown:
            shown.add(digest)
            distinct.append(unreviewed[check.answer.answer_id])
    return distinct


def _hash_shown_texts(answer: GradedAnswer) -> bytes:
    """Return a hash of the texts that a reviewer sees."""
    texts = (answer.target, answer.turns, answer.issue, answer.gold, answer.expected_refusal, answer.answer)
    return hashlib.sha256(repr(texts).encode()).digest()


def _iterate_spot_checks(store: Store, sampled: Sequence[SampledAnswer]) -> Iterator[SpotCheck]:
    """Yield the sampled answers with their texts. The answers are loaded in batches, to limit memory."""
    for start in range(0, len(sampled), BATCH_SIZE):
        yield from load_spot_checks(store, sampled[start : start + BATCH_SIZE], wait_s=WAIT_S)


def _print_answers_as_json(checks: Iterable[SpotCheck], redactors: Redactors) -> None:
    for check in checks:
        answer, clean = check.answer, redactors(check.answer.target)
        line = answer.answer_id.model_dump() | {
            "target": answer.target,
            "asked_at": answer.asked_at.isoformat(),
            "severity": int(answer.severity),
            "language": answer.language.value,
            "turns": [clean(turn) for turn in answer.turns],
            "gold": clean(answer.gold) if answer.gold is not None else None,
            "issue": clean(answer.issue) if answer.issue is not None else None,
            "expected_citation": answer.expected_citation,
            "expected_refusal": answer.expected_refusal,
            "answer": clean(answer.answer),
            "inclusion_probability": check.inclusion_probability,
        }
        write_json(json.dumps(line, ensure_ascii=False) + "\n")


def _print_error_rates_of_graders(store: Store, since: datetime, target: str | None, *, as_json: bool) -> None:
    counts = count_verdicts(store, since=since, target=target, wait_s=WAIT_S)
    calibrations = (
        *check_graders(list_reviewed_rule_grades(store, target=target, wait_s=WAIT_S), counts),
        *compare_judges_with_people(list_answers_judged_and_reviewed(store, target=target, wait_s=WAIT_S), counts),
        *compare_ratings_with_people(
            list_reviewed_ratings(store, target=target, wait_s=WAIT_S),
            count_rated_reports_by_judge(store, since=since, target=target, wait_s=WAIT_S),
        ),
    )
    if as_json:
        write_jsons(calibration.model_dump_json() + "\n" for calibration in calibrations)
        return
    blocks = ["\n  ".join(calibration.lines) for calibration in calibrations]
    write_text("\n\n".join(blocks or [NOTHING]) + "\n")


def _build_redactors(configured: Config | None) -> Redactors:
    def find_redactor(target: str) -> Callable[[str], Redacted]:
        settings = configured.targets.get(target) if configured else None
        patterns = settings.graders.account_patterns if settings else ()
        return lambda text: redact(text, account_patterns=patterns)

    return find_redactor

"""``lookout review``: people review a share of the graded answers, and so grade the rules and the judge too.

The terminal shows one answer at a time: what was asked, what should come, what came; then it asks for one key. The
reviewer's word becomes a label, and a draft for the gold set where it contradicts a verdict.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Protocol

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from deployments.cli.data_folder import data_folder_of, store_of
from deployments.cli.exit_codes import ExitCode
from deployments.cli.options import DEFAULT_CONFIG, ConfigOption, FolderOption
from flows.terminal import write_json, write_jsons, write_note, write_text
from flows.terminal_console import terminal_console
from monitors.alerts.redact import redact
from monitors.config.file import Config, load_config
from monitors.errors import ConfigError, WarehouseBusy
from monitors.judge.calibration import calibrate, check_graders
from monitors.judge.settings import ReviewSettings, spot_checks
from monitors.records.exchanges import Origin
from monitors.records.grades import FAILURE_WORDS, CaseOutcome, FailureKind, Judged, aspect_of_kind
from monitors.records.incidents import Redacted
from monitors.records.operator_actions import CaseDraft, HumanLabel
from monitors.records.reviews import AnswerVerdict, GradedAnswer, LabelSource, SampledAnswer, SpotCheck
from monitors.reports.invisible import show_invisible
from warehouse.database.store import FILE_NAME, Store
from warehouse.journal.rows import LabelRow
from warehouse.queries.reviews import candidates, labelled_by, reviewed, reviewed_grades, verdict_counts, with_texts

Redact = Callable[[str], Redacted]


def label_of(
    check: SpotCheck,
    verdict: AnswerVerdict,
    *,
    by: str,
    at: datetime,
    redact: Redact,
    failure_kind: FailureKind | None = None,
    note: str = "",
) -> HumanLabel:
    """The label of one answer by one person; a second label of the same person on it has the same id."""
    answer = check.answer
    return HumanLabel(
        id=_id(answer, by),
        at=at,
        by=by,
        target=answer.target,
        run_id=answer.answer_id.run_id,
        case_id=answer.answer_id.case_id,
        repeat=answer.answer_id.repeat,
        failure_kind=failure_kind,
        reason=redact(describe_verdicts(answer)),
        note=redact(note),
        source=LabelSource.REVIEW,
        answer=verdict,
        inclusion_probability=check.inclusion_probability,
    )


def contradicts(label: HumanLabel, answer: GradedAnswer) -> bool:
    """Whether the person contradicts the graders and the judge. Unsure contradicts nobody.

    A failure that the person names is compared with the verdicts on the same question, where there are any.
    """
    if label.answer is AnswerVerdict.UNSURE:
        return False
    if label.answer is AnswerVerdict.RIGHT:
        return any(not grade.passed for grade in answer.grades)
    asked = aspect_of_kind(label.failure_kind)
    about = [grade for grade in answer.grades if grade.aspect is asked]
    if about:
        return all(grade.passed for grade in about)
    return answer.outcome is CaseOutcome.CORRECT and all(grade.passed for grade in answer.grades)


def describe_verdicts(answer: GradedAnswer) -> str:
    """What failed the answer and why; what passed it where nothing failed it."""
    failed = [grade for grade in answer.grades if not grade.passed]
    return "; ".join(f"{grader_name(grade)} {_done(grade)} it: {grade.reason}" for grade in failed or answer.grades)


def grader_name(grade: Judged) -> str:
    """The grader's name, or the judging model's."""
    return grade.lineage.model if grade.lineage else grade.grader


def _done(grade: Judged) -> str:
    return "passed" if grade.passed else "failed"


def draft_of(label: HumanLabel, answer: GradedAnswer, redact: Redact) -> CaseDraft:
    """A draft for the gold set: where a person and the verdicts differ, a case is worth having.

    When the person found the answer right and nobody wrote a gold, the draft proposes the answer itself as gold; a
    wrong answer becomes the reply that the case must fail. Nothing of it is gold before its review. The draft
    leaves out the id of a real conversation: drafts live longer than conversations may.
    """
    right = label.answer is AnswerVerdict.RIGHT
    gold = redact(answer.gold) if answer.gold is not None else redact(answer.answer) if right else None
    said = "right" if right else "wrong"
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
        failure_kind=label.failure_kind or (None if right else _kind_found(answer)),
        language=answer.language,
        suggested_severity=answer.severity,
        severity_reason="the severity of the case that was reviewed",
        finding=redact(f"{describe_verdicts(answer)} A person found it {said}{note}"),
    )


def _kind_found(answer: GradedAnswer) -> FailureKind | None:
    return next((grade.failure_kind for grade in answer.grades if not grade.passed), None)


def _id(answer: GradedAnswer, by: str) -> str:
    where = answer.answer_id
    parts = (by, answer.target, where.run_id, where.case_id, str(where.repeat))
    return f"review-{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()[:32]}"


KEYS = "[r]ight in every way  [w]rong  [u]nsure  [s]kip for now  [q]uit"
VERDICTS = {"r": AnswerVerdict.RIGHT, "w": AnswerVerdict.WRONG, "u": AnswerVerdict.UNSURE}
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
"""What a person can say is wrong, by its key."""
SKIP, QUIT = "s", "q"
_LABEL_WIDTH = 9


class Keyboard(Protocol):
    """Where answers come from."""

    def key(self) -> str:
        """One key in lower case; empty when nothing more will come."""
        ...

    def line(self) -> str:
        """One line without its end; empty when nothing more will come."""
        ...


class RealKeyboard:
    """The terminal, a key at a time; or lines from a pipe, of which a key is the first character.

    What is typed ahead stays. Keys that send a sequence (arrows) are no letter, whatever their sequence ends in.
    """

    def __init__(self) -> None:
        self._ahead = ""

    def key(self) -> str:
        """One key; Ctrl-C and Ctrl-D read as nothing more to come."""
        if not sys.stdin.isatty():
            return self.line().strip().lower()[:1]
        try:
            typed = self._ahead or _typed(sys.stdin.fileno())
        except KeyboardInterrupt:
            return ""
        if typed.startswith(_ESCAPE):
            self._ahead = ""
            return _ESCAPE
        self._ahead = typed[1:]
        return "" if typed[:1] in {"", _END} else typed[0].lower()

    def line(self) -> str:
        """One line."""
        try:
            return sys.stdin.readline().rstrip("\n")
        except KeyboardInterrupt:
            return ""


_ESCAPE, _END = "\x1b", "\x04"
_MOST_BYTES = 64


def _typed(terminal: int) -> str:
    """What was typed, without waiting for Enter. Nothing that is waiting already is thrown away."""
    import termios  # only where somebody sits at a terminal
    import tty

    before = termios.tcgetattr(terminal)
    try:
        tty.setcbreak(terminal, termios.TCSANOW)
        return os.read(terminal, _MOST_BYTES).decode("utf-8", "replace")
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


class Screen:
    """Shows and asks. ``clean`` is what texts go through before they are shown: redaction, unless switched off."""

    def __init__(self, console: Console, keyboard: Keyboard, clean: Callable[[str], str]) -> None:
        self._console = console
        self._keyboard = keyboard
        self._clean = clean

    def show(self, check: SpotCheck, number: int, total: int) -> None:
        """The question, the gold and the answer; nothing of what any grader or judge said."""
        answer = check.answer
        self._console.rule(f"{number} of {total}")
        self._row(
            "asked", f"{answer.asked_at:%Y-%m-%d %H:%M} UTC on {answer.target}, severity {int(answer.severity)}"
        )
        for turn in answer.turns[:-1]:
            self._row("before", turn)
        self._row("question", answer.turns[-1] if answer.turns else "")
        if answer.expected_refusal:
            self._row("expected", "a refusal")
        self._row(
            "gold", answer.gold if answer.gold is not None else "nobody wrote one down: judge by what you know"
        )
        if answer.expected_citation is not None:
            self._row("source", f"{answer.expected_citation} is expected")
        self._row("answer", answer.answer)

    def ask(self) -> str:
        """One of r, w, u, s, q; other keys are asked again. Nothing more to come reads as q."""
        self._console.print(KEYS, style="bold", markup=False)
        while True:
            pressed = self._keyboard.key()
            if pressed in {*VERDICTS, SKIP}:
                return pressed
            if pressed in {"", QUIT}:
                return QUIT
            self._console.print(KEYS, markup=False)

    def what_is_wrong(self) -> FailureKind | None:
        """The kind of failure by its key; anything else leaves it open."""
        offered = "  ".join(f"{key} {FAILURE_WORDS[kind]}" for key, kind in KINDS.items())
        self._console.print(f"What is wrong with it? Name what weighs most: {offered}", markup=False)
        self._console.print("Another key: not said; then it says nothing about any rule.", markup=False)
        return KINDS.get(self._keyboard.key())

    def note(self) -> str:
        """A line in the person's own words, or an empty one."""
        self._console.print("Why? One line, or only Enter:", markup=False)
        return self._keyboard.line().strip()

    def name(self) -> str:
        """Who is asking."""
        self._console.print("Who reviews? Your name goes on every label; it is remembered here:", markup=False)
        return self._keyboard.line().strip()

    def reveal(self, answer: GradedAnswer, *, contradicted: bool) -> None:
        """What the graders and the judge had said, now that it cannot sway anybody."""
        for grade in answer.grades:
            word = "passed" if grade.passed else f"failed ({grade.failure_kind})"
            score = "" if grade.score is None else f", score {grade.score:.2f}"
            said = f"{grader_name(grade)} {word} it{score}: {grade.reason}"
            self._row("judge" if grade.lineage else "rule", said)
        if contradicted:
            self.say("You and these verdicts differ: kept as a draft for the gold set.")

    def say(self, text: str) -> None:
        """One plain line."""
        self._console.print(text, markup=False, highlight=False)

    def _row(self, label: str, text: str) -> None:
        """A label and its text beside it, however many lines that has."""
        row = Table.grid(padding=(0, 1))
        row.add_column(style="dim", width=_LABEL_WIDTH)
        row.add_column(overflow="fold")
        row.add_row(label, Text(show_invisible(self._clean(text))))
        self._console.print(row)


REVIEWER_FILE = "reviewer"
DRAFTS_FILE = Path("drafts") / "review.jsonl"
WAIT_S = 10.0
AT_ONCE = 100
"""Answers whose texts are read by one query."""
NOTHING = "Nothing was graded here lately."


def review_command(
    target: Annotated[str | None, typer.Argument(help="a target of the configuration; all when left out")] = None,
    *,
    config: ConfigOption = DEFAULT_CONFIG,
    data_folder: FolderOption = None,
    by: Annotated[str | None, typer.Option(help="who reviews; asked once and remembered when left out")] = None,
    share: Annotated[
        float | None, typer.Option(min=0, max=1, help="share of graded answers to look at; 0.05 unless configured")
    ] = None,
    days: Annotated[int, typer.Option(min=1, help="how many days back to sample")] = 30,
    figures: Annotated[
        bool, typer.Option("--figures", help="how often each rule and each judge is wrong instead")
    ] = False,
    raw: Annotated[bool, typer.Option("--raw", help="show texts as they are, personal data too")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="list what is to be reviewed, as JSON lines")] = False,
) -> ExitCode:
    """Review a share of the graded answers: is each right? The verdicts of rules and judge show after your word."""
    from flows.context import utc_now  # slack_sdk

    folder = data_folder_of(config, data_folder)
    if not (folder / FILE_NAME).exists():
        raise ConfigError(f"{folder}: no warehouse here yet; a run makes one")
    configured = load_config(config) if config.exists() else None
    store = store_of(config, data_folder)
    _load(store)
    since = utc_now() - timedelta(days=days)
    if figures:
        _print_figures(store, since, target, as_json=as_json)
        return ExitCode.PASS
    graded = candidates(store, since=since, target=target, wait_s=WAIT_S)
    sampled = spot_checks(graded, _share(share, configured))
    if as_json:
        _print_queue(_checks(store, _left(store, sampled, by or _remembered(folder))), _redactors(configured))
        return ExitCode.PASS
    return _review(store, folder, sampled, by=by, redactors=_redactors(configured), raw=raw)


Redactors = Callable[[str], Callable[[str], Redacted]]
"""For each target, how its texts are redacted: account numbers differ everywhere."""


def _review(
    store: Store, folder: Path, sampled: Sequence[SampledAnswer], *, by: str | None, redactors: Redactors, raw: bool
) -> ExitCode:
    console, keyboard = terminal_console(), RealKeyboard()
    screen = Screen(console, keyboard, str if raw else redactors(""))
    if not sampled:
        screen.say(f"{NOTHING} There is nothing to review.")
        return ExitCode.PASS
    person = by or _remembered(folder) or screen.name()
    if not person:
        raise ConfigError("a label needs a name; say who you are with --by")
    (folder / REVIEWER_FILE).write_text(f"{person}\n", encoding="utf-8")
    left = _left(store, sampled, person)
    answered = 0
    for number, check in enumerate(_checks(store, left), 1):
        clean = redactors(check.answer.target)
        asking = Screen(console, keyboard, str if raw else clean)
        asking.show(check, number, len(left))
        key = asking.ask()
        if key == QUIT:
            break
        if key != SKIP:
            label = _label(asking, check, VERDICTS[key], person, clean)
            contradicted = _save(store, folder, check, label, clean)
            asking.reveal(check.answer, contradicted=contradicted)
            answered += 1
    screen.say(f"{answered} reviewed, {len(left) - answered} left for {person}. Figures: lookout review --figures")
    _load(store)
    return ExitCode.PASS


def _label(
    screen: Screen, check: SpotCheck, verdict: AnswerVerdict, person: str, clean: Callable[[str], Redacted]
) -> HumanLabel:
    from flows.context import utc_now  # as above

    wrong = verdict is AnswerVerdict.WRONG
    kind = screen.what_is_wrong() if wrong else None
    note = screen.note() if wrong else ""
    return label_of(check, verdict, by=person, at=utc_now(), redact=clean, failure_kind=kind, note=note)


def _save(
    store: Store, folder: Path, check: SpotCheck, label: HumanLabel, clean: Callable[[str], Redacted]
) -> bool:
    """Save the draft first, then the label: after a kill between them the person is asked again."""
    contradicted = contradicts(label, check.answer)
    if contradicted:
        _append_draft(folder / DRAFTS_FILE, draft_of(label, check.answer, clean))
    store.journal.append([LabelRow(row=label)], run_id=None)
    return contradicted


def _append_draft(path: Path, draft: CaseDraft) -> None:
    """One line, safe on disk; a draft that is there already is not written twice."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and f'"id":"{draft.id}"' in path.read_text(encoding="utf-8"):
        return
    with path.open("a", encoding="utf-8") as drafts:
        drafts.write(draft.model_dump_json() + "\n")
        drafts.flush()
        os.fsync(drafts.fileno())


def _left(store: Store, sampled: Sequence[SampledAnswer], person: str | None) -> Sequence[SampledAnswer]:
    """The answers that this person has not reviewed yet; all of them while nobody said who asks."""
    done = labelled_by(store, person, wait_s=WAIT_S) if person else frozenset()
    return [each for each in sampled if each.answer_id not in done]


def _checks(store: Store, sampled: Sequence[SampledAnswer]) -> Iterator[SpotCheck]:
    """Each with its texts, some at a time: a month of texts is more than anybody reads."""
    for start in range(0, len(sampled), AT_ONCE):
        yield from with_texts(store, sampled[start : start + AT_ONCE], wait_s=WAIT_S)


def _print_queue(checks: Iterable[SpotCheck], redactors: Redactors) -> None:
    for check in checks:
        answer, clean = check.answer, redactors(check.answer.target)
        line = answer.answer_id.model_dump() | {
            "target": answer.target,
            "asked_at": answer.asked_at.isoformat(),
            "severity": int(answer.severity),
            "language": answer.language.value,
            "turns": [clean(turn) for turn in answer.turns],
            "gold": clean(answer.gold) if answer.gold is not None else None,
            "expected_citation": answer.expected_citation,
            "expected_refusal": answer.expected_refusal,
            "answer": clean(answer.answer),
            "inclusion_probability": check.inclusion_probability,
        }
        write_json(json.dumps(line, ensure_ascii=False) + "\n")


def _print_figures(store: Store, since: datetime, target: str | None, *, as_json: bool) -> None:
    given = verdict_counts(store, since=since, target=target, wait_s=WAIT_S)
    found = (
        *check_graders(reviewed_grades(store, target=target, wait_s=WAIT_S), given),
        *calibrate(reviewed(store, target=target, wait_s=WAIT_S), given),
    )
    if as_json:
        write_jsons(each.model_dump_json() + "\n" for each in found)
        return
    blocks = ["\n  ".join(each.lines) for each in found]
    write_text("\n\n".join(blocks or [NOTHING]) + "\n")


def _remembered(folder: Path) -> str | None:
    path = folder / REVIEWER_FILE
    return (path.read_text(encoding="utf-8").strip() or None) if path.exists() else None


def _share(given: float | None, configured: Config | None) -> float:
    if given is not None:
        return given
    return (configured.review if configured else ReviewSettings()).share


def _redactors(configured: Config | None) -> Redactors:
    def of(target: str) -> Callable[[str], Redacted]:
        known = configured.targets.get(target) if configured else None
        patterns = known.graders.account_patterns if known else ()
        return lambda text: redact(text, account_patterns=patterns)

    return of


def _load(store: Store) -> None:
    """Load what is pending; if another process is loading, it loads this as well."""
    try:
        store.load_pending(WAIT_S)
    except WarehouseBusy:
        write_note("lookout: the warehouse is busy; labels are kept and loaded later\n")

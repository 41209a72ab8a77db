"""``lookout review``: people look at a share of what the judge graded, and so the judge is graded too."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path

from rich.console import Console

from deployments.data_folder import data_folder_of, store_of
from deployments.exit_codes import ExitCode
from deployments.review_labels import contradicts, draft_of, label_of
from deployments.review_screen import QUIT, SKIP, VERDICTS, RealKeyboard, Screen
from flows.wiring import utc_now
from monitors.alerts.redact import redact
from monitors.config import Config, load_config
from monitors.errors import ConfigError, WarehouseBusy
from monitors.judge.calibration import calibrate
from monitors.judge.sampling_queue import spot_checks
from monitors.judge.settings import JudgeSettings
from monitors.records.incidents import Redacted
from monitors.records.people import CaseDraft, HumanLabel
from monitors.records.reviews import AnswerVerdict, JudgedAnswer, Reviewed, SpotCheck
from warehouse.reviews import judged_answers, labelled_by, reviewed
from warehouse.rows import LabelRow
from warehouse.store import FILE_NAME, Store

REVIEWER_FILE = "reviewer"
DRAFTS_FILE = Path("drafts") / "review.jsonl"
WAIT_S = 10.0


def review_command(
    config: Path,
    *,
    data_folder: Path | None,
    target: str | None,
    by: str | None,
    share: float | None,
    days: int,
    figures: bool,
    raw: bool,
    as_json: bool,
) -> ExitCode:
    """Ask about what is drawn and not told yet; or list it, or print each judge's figures."""
    folder = data_folder_of(config, data_folder)
    if not (folder / FILE_NAME).exists():
        raise ConfigError(f"{folder}: no warehouse here yet; a run with a judge makes one")
    configured = load_config(config) if config.exists() else None
    store = store_of(config, data_folder)
    _load(store)
    judged = judged_answers(store, since=utc_now() - timedelta(days=days), target=target, wait_s=WAIT_S)
    if figures:
        _print_figures(reviewed(store, target=target, wait_s=WAIT_S), judged, as_json=as_json)
        return ExitCode.PASS
    checks = spot_checks(judged, _share(share, configured))
    if as_json:
        _print_queue(_left(store, checks, by or _remembered(folder)), _redactors(configured))
        return ExitCode.PASS
    return _review(store, folder, checks, by=by, redactors=_redactors(configured), raw=raw)


Redactors = Callable[[str], Callable[[str], Redacted]]
"""For each target, how its texts are redacted: account numbers look different everywhere."""


def _review(
    store: Store, folder: Path, checks: Sequence[SpotCheck], *, by: str | None, redactors: Redactors, raw: bool
) -> ExitCode:
    console, keyboard = Console(), RealKeyboard()
    screen = Screen(console, keyboard, str if raw else redactors(""))
    if not checks:
        screen.say("No judge has graded anything here lately, so there is nothing to review.")
        return ExitCode.PASS
    person = by or _remembered(folder) or screen.name()
    if not person:
        raise ConfigError("a label needs a name; say who you are with --by")
    (folder / REVIEWER_FILE).write_text(f"{person}\n", encoding="utf-8")
    left = _left(store, checks, person)
    told = 0
    for number, check in enumerate(left, 1):
        clean = redactors(check.answer.target)
        asking = Screen(console, keyboard, str if raw else clean)
        asking.show(check, number, len(left))
        key = asking.ask()
        if key == QUIT:
            break
        if key != SKIP:
            label = _label(asking, check, VERDICTS[key], person, clean)
            contradicted = _keep(store, folder, check, label, clean)
            asking.reveal(check.answer, contradicted=contradicted)
            told += 1
    screen.say(f"{told} told, {len(left) - told} left for {person}. Figures: lookout review --figures")
    _load(store)
    return ExitCode.PASS


def _label(
    screen: Screen, check: SpotCheck, verdict: AnswerVerdict, person: str, clean: Callable[[str], Redacted]
) -> HumanLabel:
    wrong = verdict is AnswerVerdict.WRONG
    kind = screen.what_is_wrong() if wrong else None
    note = screen.note() if wrong else ""
    return label_of(check, verdict, by=person, at=utc_now(), redact=clean, failure_kind=kind, note=note)


def _keep(
    store: Store, folder: Path, check: SpotCheck, label: HumanLabel, clean: Callable[[str], Redacted]
) -> bool:
    """The draft first, then the label: who is killed between them is asked again, and loses nothing."""
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


def _left(store: Store, checks: Sequence[SpotCheck], person: str | None) -> Sequence[SpotCheck]:
    """What this person has not told yet; all of it while nobody said who asks."""
    done = labelled_by(store, person, wait_s=WAIT_S) if person else frozenset()
    return [check for check in checks if check.answer.answer_id not in done]


def _print_queue(checks: Sequence[SpotCheck], redactors: Redactors) -> None:
    for check in checks:
        answer, clean = check.answer, redactors(check.answer.target)
        line = answer.answer_id.model_dump() | {
            "target": answer.target,
            "asked_at": answer.asked_at.isoformat(),
            "severity": int(answer.severity),
            "language": answer.language.value,
            "turns": [clean(turn) for turn in answer.turns],
            "gold": clean(answer.gold) if answer.gold is not None else None,
            "expected_refusal": answer.expected_refusal,
            "answer": clean(answer.answer),
            "inclusion_probability": check.inclusion_probability,
        }
        sys.stdout.write(json.dumps(line, ensure_ascii=False) + "\n")


def _print_figures(told: Sequence[Reviewed], judged: Sequence[JudgedAnswer], *, as_json: bool) -> None:
    found = calibrate(told, judged)
    if as_json:
        sys.stdout.writelines(each.model_dump_json() + "\n" for each in found)
        return
    blocks = ["\n  ".join(each.lines) for each in found]
    sys.stdout.write("\n\n".join(blocks or ["No judge has graded anything here lately."]) + "\n")


def _remembered(folder: Path) -> str | None:
    path = folder / REVIEWER_FILE
    return (path.read_text(encoding="utf-8").strip() or None) if path.exists() else None


def _share(given: float | None, configured: Config | None) -> float:
    if given is not None:
        return given
    judge = configured.judge if configured and configured.judge else JudgeSettings()
    return judge.spot_check_share


def _redactors(configured: Config | None) -> Redactors:
    def of(target: str) -> Callable[[str], Redacted]:
        known = configured.targets.get(target) if configured else None
        patterns = known.graders.account_patterns if known else ()
        return lambda text: redact(text, account_patterns=patterns)

    return of


def _load(store: Store) -> None:
    """Take in what is pending; somebody else who is at it will do it as well."""
    try:
        store.load_pending(WAIT_S)
    except WarehouseBusy:
        sys.stderr.write("lookout: the warehouse is busy; labels are kept and loaded later\n")

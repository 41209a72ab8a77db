"""The file of drafts: JSON lines, one `GoldDraft` each. A decision replaces its line, and a kill loses nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from pydantic import ValidationError

from monitors.errors import GoldSetError
from monitors.goldset.atomic_file import alone_with, replace_text, text_of
from monitors.goldset.line_problems import of_validation
from monitors.records.drafts import DraftState, GoldDraft


def read_drafts(path: Path) -> tuple[GoldDraft, ...]:
    """All drafts of a file in its order. `GoldSetError` names the file and the first bad line."""
    if not path.exists():
        raise GoldSetError(f"{path}: no such file; `lookout gold draft` and `lookout gold translate` make one")
    return _parsed(text_of(path), path)


def add_drafts(path: Path, drafts: Iterable[GoldDraft]) -> Sequence[GoldDraft]:
    """Append the drafts that are not there yet, by id; those that were added."""
    with alone_with(path):
        text = text_of(path)
        known = {draft.id for draft in _parsed(text, path)}
        new: list[GoldDraft] = []
        for draft in drafts:
            if draft.id not in known:
                known.add(draft.id)
                new.append(draft)
        if new:
            replace_text(path, _ended(text) + "".join(f"{_line(draft)}\n" for draft in new))
    return new


def decide(path: Path, decided: GoldDraft) -> bool:
    """Put a decision in the place of its draft. False when somebody else has decided meanwhile: theirs stays."""
    with alone_with(path):
        drafts = list(_parsed(text_of(path), path))
        at = next((at for at, draft in enumerate(drafts) if draft.id == decided.id), None)
        if at is None:
            raise GoldSetError(f"{path} holds no draft {decided.id} any more")
        if drafts[at].state is not DraftState.DRAFTED:
            return False
        drafts[at] = decided
        replace_text(path, "".join(f"{_line(draft)}\n" for draft in drafts))
    return True


def _line(draft: GoldDraft) -> str:
    return draft.model_dump_json(exclude_defaults=True)


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"


def _parsed(text: str, path: Path) -> tuple[GoldDraft, ...]:
    found: list[GoldDraft] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            found.append(GoldDraft.model_validate_json(line))
        except ValidationError as error:
            raise GoldSetError(f"{path}, line {number}: no draft: {'; '.join(of_validation(error))}") from None
    return tuple(found)

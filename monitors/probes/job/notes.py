"""Store running jobs on disk, so that a killed run resumes its jobs instead of starting new ones."""

from __future__ import annotations

import re
from pathlib import Path

from pydantic import ValidationError

from monitors.records.base import Record, UtcTime
from monitors.records.exchanges import AgentQuestion
from monitors.storage import OWNER_ONLY_MODE, write_atomically

FOLDER = "jobs"
MIN_UNIQUE_ID_CHARACTERS = 16
"""Minimal characters of a unique id: half a UUID."""


class JobNote(Record):
    """A started job: its conversation, the earlier answers, its id or its ``Location``.

    ``questions`` are the agent's, with the answers that were sent. ``delivered``: the last answer has surely
    arrived.
    """

    turns: tuple[str, ...]
    conversation: str
    earlier: tuple[str, ...]
    job: str
    location: str
    started_at: UtcTime
    questions: tuple[AgentQuestion, ...] = ()
    delivered: bool = True


class JobNotes:
    """The notes of one run's folder, one per question. Only their owner can read them: they hold questions."""

    def __init__(self, run_folder: Path) -> None:
        self._folder = run_folder / FOLDER
        self._elsewhere: frozenset[str] | None = None

    def load(self, name: str, turns: tuple[str, ...]) -> JobNote | None:
        """Return the running job of this question; ``None`` without a job, or if the question has changed."""
        try:
            note = JobNote.model_validate_json(self._path(name).read_text(encoding="utf-8"))
        except (OSError, ValidationError):
            return None
        return note if note.turns == turns else None

    def save(self, name: str, note: JobNote) -> None:
        """Store a job's note atomically."""
        write_atomically(self._path(name), note.model_dump_json(), mode=OWNER_ONLY_MODE)

    def list_jobs_of_other_runs(self) -> frozenset[str]:
        """Return the ids of jobs that earlier runs noted, if the ids are long enough to be unique.

        An app that numbers its jobs starts again at 1 after a restart, so short ids prove nothing.
        """
        if self._elsewhere is None:
            notes = self._folder.parent.parent.glob(f"*/{FOLDER}/*.json")
            job_ids = (_read_job_id(note) for note in notes if note.parent != self._folder)
            self._elsewhere = frozenset(job for job in job_ids if len(job) >= MIN_UNIQUE_ID_CHARACTERS)
        return self._elsewhere

    def delete(self, name: str) -> None:
        """Delete the note of a failed job: the next try starts a new one."""
        self._path(name).unlink(missing_ok=True)

    def _path(self, name: str) -> Path:
        return self._folder / f"{re.sub(r'[.]t[0-9]+$', '', name)}.json"


def _read_job_id(path: Path) -> str:
    try:
        return JobNote.model_validate_json(path.read_text(encoding="utf-8")).job
    except (OSError, ValidationError):
        return ""

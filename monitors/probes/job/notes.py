"""Store running jobs in files. After a killed run, the jobs are resumed and not started again."""

from __future__ import annotations

import re
from pathlib import Path

from pydantic import ValidationError

from monitors.records.base import Record, UtcTime
from monitors.records.exchanges import AgentQuestion
from monitors.storage import OWNER_ONLY_MODE, write_atomically

FOLDER = "jobs"
MIN_UNIQUE_ID_CHARACTERS = 16
"""An id with at least this many characters is treated as unique. A UUID has twice as many."""


class JobNote(Record):
    """A job that was started, with its conversation, the earlier answers, its id and its ``Location``.

    ``questions`` are questions of the agent with their answers. ``delivered`` is True if the app accepted the last
    answer.
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
    """The files with the jobs of one run, one file for each question. Only the owner of the files can read them."""

    def __init__(self, run_folder: Path) -> None:
        self._folder = run_folder / FOLDER
        self._jobs_of_other_runs: frozenset[str] | None = None

    def read_note_if_turns_match(self, name: str, turns: tuple[str, ...]) -> JobNote | None:
        """Return the stored job of a question, or ``None`` if no job is stored, or if the turns have changed."""
        try:
            note = JobNote.model_validate_json(self._build_note_path(name).read_text(encoding="utf-8"))
        except (OSError, ValidationError):
            return None
        return note if note.turns == turns else None

    def write_note(self, name: str, note: JobNote) -> None:
        """Store the job of a question."""
        write_atomically(self._build_note_path(name), note.model_dump_json(), mode=OWNER_ONLY_MODE)

    def list_other_runs_job_ids(self) -> frozenset[str]:
        """Return the ids of jobs that earlier runs stored. Short ids are omitted.

        Short ids are not unique: an app that numbers its jobs may start again at 1 after a restart.
        """
        if self._jobs_of_other_runs is None:
            notes = self._folder.parent.parent.glob(f"*/{FOLDER}/*.json")
            job_ids = (_read_job_id(note) for note in notes if note.parent != self._folder)
            self._jobs_of_other_runs = frozenset(job for job in job_ids if len(job) >= MIN_UNIQUE_ID_CHARACTERS)
        return self._jobs_of_other_runs

    def delete_note(self, name: str) -> None:
        """Delete the file of a failed job. The next attempt then starts a new job."""
        self._build_note_path(name).unlink(missing_ok=True)

    def _build_note_path(self, name: str) -> Path:
        return self._folder / f"{re.sub(r'[.]t[0-9]+$', '', name)}.json"


def _read_job_id(path: Path) -> str:
    try:
        return JobNote.model_validate_json(path.read_text(encoding="utf-8")).job
    except (OSError, ValidationError):
        return ""

"""The commands that write into a data folder, and what each must have written when it ends."""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Final, NamedTuple

from flows.data_folder import open_store_in
from tests import fork_server
from tests.soak.soak_files import INCIDENTS, fill
from tests.warehouse.sample_rows import NOON, assessment, exchange
from warehouse.journal.rows import AssessmentRow, ResultRow

WAITING_RESULTS: Final = 10
"""The number of results in the journal that are not loaded into the warehouse yet."""
ENVIRONMENT: Final = os.environ | fork_server.WARM | {"LOOKOUT_AGE_KEY": "0123456789abcdef" * 2}
_DAYS: Final = (
    "--since",
    f"{NOON - timedelta(days=1):%Y-%m-%d}",
    "--until",
    f"{NOON + timedelta(days=1):%Y-%m-%d}",
)


class WritingCommand(NamedTuple):
    """A command, and the query ``proof`` that shows what the command wrote.

    The query must return the same rows if the command is interrupted and then repeated.
    """

    words: tuple[str, ...]
    proof: str = "select fingerprint, state from incidents order by all"


COMMANDS: Final[dict[str, WritingCommand]] = {
    "ack": WritingCommand(("alerts", "ack", "fa0ff6", "--as", "asha")),
    "resolve": WritingCommand(("alerts", "resolve", "725333", "--as", "asha")),
    "false alarm": WritingCommand(("alerts", "false-alarm", "384dff", "--as", "asha")),
    "silence": WritingCommand(
        ("alerts", "silence", "04c09c", "--as", "asha", "--reason", "planned", "--for", "4h"),
        "select count(*) > 0 from silences",
    ),
    "load": WritingCommand(("warehouse", "load"), "select run_id, case_id, repeat from results order by all"),
    "compact": WritingCommand(("warehouse", "compact", "--days", "0"), "select count(*) from assessments"),
    "rebuild": WritingCommand(("warehouse", "rebuild"), "select count(*) from results"),
    "age": WritingCommand(("warehouse", "age", "--days", "0"), "select count(*) from results"),
    "export": WritingCommand(("warehouse", "export", "parquet", *_DAYS), "select count(*) from results"),
    "freeze": WritingCommand(("gold", "freeze", "suite.jsonl"), "select 1"),
}


def parse_options(description: str | None) -> argparse.Namespace:
    """Read the command-line options of a soak: ``minutes``, ``seed`` and one ``command`` (``None`` for all)."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10_000))
    parser.add_argument("--command", choices=COMMANDS, default=None)
    return parser.parse_args()


def prepare_folder(folder: Path) -> None:
    """Fill ``folder`` with a suite, and with a data folder whose results are not loaded into the warehouse yet."""
    data = folder / "data"
    data.mkdir(parents=True)
    fill(data)
    store = open_store_in(data)
    for number in range(WAITING_RESULTS):
        case = f"late-{number}"
        rows = [ResultRow(row=exchange("run-3", case)), AssessmentRow(row=assessment("run-3", case))]
        store.journal.append(rows, run_id="run-3")
    case = {"id": "wait", "question": "How long is the waiting period?", "gold": "36 months", "severity": 3}
    (folder / "suite.jsonl").write_text(json.dumps(case) + "\n", encoding="utf-8")


def build_arguments(name: str) -> Sequence[str]:
    """Return all arguments of the command ``name``. Its data folder is ``data``."""
    words = COMMANDS[name].words
    return words if words[0] == "gold" else (*words, "--data-folder", "data")


def run_command(name: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the command ``name`` in ``folder`` until it ends."""
    return fork_server.run(*build_arguments(name), cwd=folder, env=ENVIRONMENT)


def read_proof(name: str, folder: Path) -> object:
    """Load everything into the warehouse, and return what the command ``name`` must have written.

    The result has the rows of the command's query, whether the number of incidents is right, and the names of the
    frozen files.
    """
    store = open_store_in(folder / "data")
    store.load_pending(30)
    incidents = store.query("select count(*) from incidents").rows[0][0]
    frozen = sorted(path.name for path in (folder / "frozen").rglob("*.jsonl"))
    return store.query(COMMANDS[name].proof).rows, incidents == INCIDENTS, frozen

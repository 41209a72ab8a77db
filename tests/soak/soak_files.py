"""Damage each kind of file in a data folder: each command gives a complete answer or reports the damage.

    python -m tests.soak.soak_files --minutes 10 --seed 1 [--kind outbox]

A data folder with a run, an archive, five open incidents, deploys and related files is copied. In the copy, one
file of one kind is cut, emptied, deleted or replaced by a foreign file, or one of its bytes is flipped. The
warehouse file stays or is removed. Then `alerts list`, `warehouse check` and `warehouse load` run. Each command
must give a complete answer, or end with exit code 4 and a reason. No message may say "a fault of Lookout itself".
After the damaged file is restored, a rebuild must restore everything.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

from deployments.cli.exit_codes import ExitCode
from flows.data_folder import open_store_in
from flows.deploys.queue import DeployAttempt, DeployOutcome, DeployQueue
from tests import fork_server
from tests.flows.deploys.sample_deploys import queued
from tests.warehouse.sample_rows import NOON, alert, assessment, exchange, incident, run_report, suite
from tests.warehouse.temporary_stores import SteppingClock, store_in
from warehouse.database.retention import compact_segments
from warehouse.journal.rows import AlertRow, AssessmentRow, IncidentRow, IncidentVersion, ResultRow, RunRow

INCIDENTS = 5
RESULTS = 24
SPOKEN = ("this is a fault of lookout itself", "traceback")

KINDS = {
    "warehouse": "warehouse.duckdb",
    "ledger": "warehouse.duckdb.ledger",
    "lock": "warehouse.duckdb.lock",
    "segment": "journal/run-2/*.jsonl",
    "outbox": "journal/_outbox/*.jsonl",
    "suite": "journal/_suites/*.jsonl",
    "archive": "journal/_archive/*.parquet",
    "manifest": "journal/_archive/*.json",
    "deploy": "deploys/*/*.json",
    "deploy's run": "deploys/*/*.run",
    "deploy's open run": "deploys/*/*.open",
    "foreign file": "notes.txt",
}
"""The kinds of files, with the path of an example."""


def cut(file: Path, chance: random.Random) -> None:
    """Cut the file at a random position."""
    os.truncate(file, chance.randrange(max(1, file.stat().st_size)))


def empty(file: Path, _: random.Random) -> None:
    """Make the file empty."""
    os.truncate(file, 0)


def flip(file: Path, chance: random.Random) -> None:
    """Flip one random byte of the file."""
    data = bytearray(file.read_bytes() or b"\0")
    data[chance.randrange(len(data))] ^= 0xFF
    file.write_bytes(data)


def delete(file: Path, _: random.Random) -> None:
    """Delete the file."""
    file.unlink()


def replace_by_foreign(file: Path, chance: random.Random) -> None:
    """Replace the file by a file of another program."""
    file.write_bytes(b"PK\x03\x04" + chance.randbytes(2_000))


DAMAGES: dict[str, Callable[[Path, random.Random], None]] = {
    "cut": cut,
    "emptied": empty,
    "flipped": flip,
    "deleted": delete,
    "foreign": replace_by_foreign,
}


def fill(folder: Path) -> None:
    """Fill a data folder with one of each kind of file."""
    store = store_in(folder, clock=SteppingClock())
    store.journal.append_suite(suite())
    for run_id in ("run-1", "run-2"):
        for number in range(RESULTS // 2):
            case = f"case-{number}"
            rows = [ResultRow(row=exchange(run_id, case)), AssessmentRow(row=assessment(run_id, case))]
            store.journal.append(rows, run_id=run_id)
        store.journal.append([RunRow(row=run_report(run_id))], run_id=run_id)
        if run_id == "run-1":
            compact_segments(store, before=NOON + timedelta(days=1), wait_s=30)
    for number in range(INCIDENTS):
        fault = incident(f"leak-{number}")
        version = IncidentVersion(sequence=number + 1, incident=fault)
        store.journal.append_outbox([IncidentRow(row=version), AlertRow(row=alert(f"alert-{number}", about=fault))])
    store.load_pending(30)
    deploys, deploy = DeployQueue(folder), queued()
    deploys.save_if_new(deploy)
    deploys.store_attempt(deploy.deploy, DeployAttempt(run_id="run-1", number=1, plan_sha256="0" * 64))
    deploys.store_outcome(deploy.deploy, DeployOutcome(run_id="run-1", at=NOON))
    (folder / "notes.txt").write_text("a person's own notes\n", encoding="utf-8")
    open_store_in(folder).load_pending(30)


def ask(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the command ``words`` on the data folder, and return the ended process with its output."""
    return fork_server.run(
        *words, "--data-folder", folder.name, cwd=folder.parent, env=os.environ | fork_server.WARM
    )


def find_faults(folder: Path) -> Iterator[str]:
    """Return the faults in the answers about a data folder with a damaged file."""
    answers = {
        words: ask(folder, *words)
        for words in (
            ("alerts", "list", "--json"),
            ("warehouse", "check"),
            ("warehouse", "load"),
            ("alerts", "list", "--json", "--all"),
        )
    }
    for words, answer in answers.items():
        name, text = " ".join(words), (answer.stdout + answer.stderr).lower()
        if any(spoken in text for spoken in SPOKEN) or answer.returncode not in {0, int(ExitCode.MONITOR)}:
            yield f"{name} ends with {answer.returncode}: {text[-200:]}"
        if answer.returncode == int(ExitCode.MONITOR) and not text.strip():
            yield f"{name} ends with 4 and says nothing"
        if (
            words[0] == "alerts"
            and answer.returncode == 0
            and (count := len(json.loads(answer.stdout))) < INCIDENTS
        ):
            yield f"{name} is calm with {count} of {INCIDENTS} incidents"
    check = answers["warehouse", "check"]
    if check.returncode == 0:
        counts = ask(folder, "sql", "select count(*) as results from results", "--json")
        if counts.returncode != 0 or json.loads(counts.stdout)["results"] != RESULTS:
            yield f"the check is content, and results are missing: {counts.stdout}{counts.stderr}"


def list_losses(folder: Path) -> Iterator[str]:
    """Return what a rebuild does not restore after the file is restored."""
    rebuilt = ask(folder, "warehouse", "rebuild")
    store = open_store_in(folder)
    counts = {
        table: int(str(store.query(f"select count(*) from {table}").rows[0][0]))
        for table in ("results", "incidents")
    }
    if counts != {"results": RESULTS, "incidents": INCIDENTS}:
        yield f"after the file is back and a rebuild ({rebuilt.returncode}) there are {counts}"


def damage_once(
    source: Path, folder: Path, kind: str, damage: str, *, is_away: bool, chance: random.Random
) -> list[str]:
    """Damage one file of a copy of ``source``, and return the faults.

    If ``is_away`` is true, also remove the warehouse file.
    """
    shutil.copytree(source, folder)
    file = chance.choice(sorted(folder.glob(KINDS[kind])))
    whole = file.read_bytes()
    if is_away and kind != "warehouse":
        (folder / "warehouse.duckdb").unlink()
    DAMAGES[damage](file, chance)
    faults = list(find_faults(folder))
    for place in (folder / "journal" / "_damaged").glob("*"):
        place.unlink()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(whole)
    faults += list_losses(folder)
    shutil.rmtree(folder)
    return faults


def main() -> int:
    """Test each kind of file with each damage, for at most ``--minutes`` minutes, and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10_000))
    parser.add_argument("--kind", choices=KINDS, default=None)
    options = parser.parse_args()
    chance, end = random.Random(options.seed), time.monotonic() + options.minutes * 60
    rows = [
        (kind, damage, is_away)
        for kind in KINDS
        for damage in DAMAGES
        for is_away in (False, True)
        if options.kind in {None, kind}
    ]
    chance.shuffle(rows)
    print(f"seed {options.seed}, {len(rows)} rows", flush=True)
    done: Counter[str] = Counter()
    faults: list[str] = []
    with tempfile.TemporaryDirectory() as root:
        source = Path(root) / "source"
        source.mkdir()
        fill(source)
        for number, (kind, damage, is_away) in enumerate(rows):
            if time.monotonic() > end:
                break
            wrong = damage_once(source, Path(root) / str(number), kind, damage, is_away=is_away, chance=chance)
            done[kind] += 1
            where = f"{kind} {damage}{', warehouse away' if is_away else ''}"
            faults += [f"{where}: {text}" for text in wrong]
            for text in wrong:
                print(f"WRONG {where}: {text}", flush=True)
    print(f"{sum(done.values())} of {len(rows)} damages ({dict(done)}), {len(faults)} wrong")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

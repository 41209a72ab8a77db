"""Kill each command that writes at a random moment, then repeat it: the result is the same as without the kill.

    python -m tests.soak.soak_command_kills --minutes 10 --seed 1 [--command compact]

For each kill, a filled data folder is copied, and the command is killed (SIGKILL) at a moment of up to 1.2 times
its usual duration. Then the same command runs to its end. Its result must be the same as without a kill, the check
must find no fault in the warehouse, and no message may say "a fault of Lookout itself". Kills of a verification, of
its browser and of the browser's driver are in `tests.soak.soak_probe`; kills of the site and of Slack's alerts are
in separate files.
"""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests import fork_server
from tests.soak.writing_commands import (
    COMMANDS,
    ENVIRONMENT,
    build_arguments,
    parse_options,
    prepare_folder,
    read_proof,
    run_command,
)


def kill_once(name: str, folder: Path, life_s: float) -> bool:
    """Start the command ``name``, and kill it after ``life_s`` seconds.

    Return whether it was running until then.
    """
    process = fork_server.start(
        *build_arguments(name), cwd=folder, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    time.sleep(life_s)
    is_running = process.poll() is None
    process.kill()
    process.wait()
    return is_running


def find_faults(name: str, folder: Path, wanted: object) -> Iterator[str]:
    """Repeat the killed command, and return the faults in its result. ``wanted`` is the result without a kill."""
    again = run_command(name, folder)
    if again.returncode != 0 or "fault of Lookout itself" in again.stderr:
        yield f"the command again ends with {again.returncode}: {again.stderr[-300:]}"
    if (proof := read_proof(name, folder)) != wanted:
        yield f"it brought about {str(proof)[:300]} instead of {str(wanted)[:300]}"
    check = fork_server.run("warehouse", "check", "--data-folder", "data", cwd=folder, env=ENVIRONMENT)
    if check.returncode != 0:
        yield f"the check ends with {check.returncode}: {check.stdout[-300:]}"


def main() -> int:
    """Kill commands for ``--minutes`` minutes, and print the counts."""
    options = parse_options(__doc__)
    chance, end = random.Random(options.seed), time.monotonic() + options.minutes * 60
    names = [options.command] if options.command else list(COMMANDS)
    kills: Counter[str] = Counter()
    in_time: Counter[str] = Counter()
    faults = 0
    print(f"seed {options.seed}, commands: {', '.join(names)}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        prepare_folder(root / "source")
        proofs: dict[str, object] = {}
        usual_s: dict[str, float] = {}
        for name in names:
            shutil.copytree(root / "source", root / "calm")
            began = time.monotonic()
            calm = run_command(name, root / "calm")
            usual_s[name] = time.monotonic() - began
            if calm.returncode != 0:
                print(f"WRONG {name}, undisturbed, ends with {calm.returncode}: {calm.stderr}{calm.stdout}")
                return 1
            proofs[name] = read_proof(name, root / "calm")
            shutil.rmtree(root / "calm")
        while time.monotonic() < end:
            for name in names:
                place = root / f"{name}-{kills[name]}"
                shutil.copytree(root / "source", place)
                in_time[name] += kill_once(name, place, chance.uniform(0, 1.2 * usual_s[name]))
                kills[name] += 1
                for text in find_faults(name, place, proofs[name]):
                    faults += 1
                    print(f"WRONG {name}, kill {kills[name]}: {text}", flush=True)
                shutil.rmtree(place)
    shown = ", ".join(f"{name} {in_time[name]} of {kills[name]}" for name in names)
    print(f"{kills.total()} kills, {in_time.total()} before the command's end ({shown}), {faults} wrong")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

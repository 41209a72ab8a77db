"""P2, P5 and P12: measure the time to the first question, the time to an alert, and the overhead of a run.

    python -m tests.bench.bench_run [--cases 40] [--pairs 5] [--suite 200] [--samples 3]

P12 is the time from the command to its first question, on a page whose bot takes a second. It is measured in a data
folder without a running Prefect server, which must then create its database and start, and with a running server.

P2 is measured with `lookout verify` on a suite of 200 cases. One case of severity 3 is answered wrong, some dozen
questions after the start. The time is measured from the moment when the app sends the last word of that answer
until the request arrives at the local Slack server. Then the run is stopped.

P5 is the time of a run on the same page, from its first question to the end of the command. It is compared in turn
with the same questions asked by the bare runner: the same driver, settings and number of pages, but no Prefect,
grading, journal or reports. The number of pages is fixed on both sides. Otherwise a run adapts it to the machine,
and the two sides would not be comparable.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from flows.runtime.slack import TOKEN_VARIABLE
from flows.server import prefect_server
from monitors.goldset.load import load_suite
from monitors.probes.browser.driver import BrowserDriver
from monitors.probes.settings import BROWSER_VARIABLE, CapturePolicy, ProbeSettings
from monitors.records.cases import GoldCase
from monitors.records.exchanges import Exchange, ProbeResult
from tests.bench.measurements import Figure, report
from tests.bench.verify_measurements import (
    Ended,
    read_noted,
    run_verify,
    serve_app,
    start_verify,
    write_configuration,
)
from tests.servers.slack import TOKEN, SlackServer
from tests.soak.soak_plans import question_on, write_suite
from tests.tools.probe_cases import probe_cases

BOT_S = "1"
PAGES = 4
PROBE = f'screenshots = "never"\nconcurrency = {PAGES}'
SETTINGS = ProbeSettings(
    screenshots=CapturePolicy.NEVER, concurrency=PAGES, browser_path=os.environ.get(BROWSER_VARIABLE)
)
"""The settings of `PROBE` as an object, for the bare runner."""
ALERT_MOST_S = 3.0
ADDED_MOST = 1.05
FIRST_QUESTION_MOST_S = 5.0
WITH_SERVER_START_MOST_S = 8.0
PATIENCE_S = 300.0
WRONG_RANK = 3
"""Position of the failing case among the severity-3 cases, in dozens: 3 means the 36th case.

By then, all pages are busy. In a small suite, an earlier case fails.
"""


def main() -> int:
    """Print the figures of P2, P5 and P12. Return the number of missed goals as the exit code."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--cases", type=int, default=40, help="of P5's runs")
    options.add_argument("--pairs", type=int, default=5, help="of P5")
    options.add_argument("--suite", type=int, default=200, help="cases of P2's suite")
    options.add_argument("--samples", type=int, default=3, help="of P2 and P12")
    arguments = options.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
        homes = [folder / f"cold-{number}" for number in range(arguments.samples)]
        try:
            met = [measure_cold(homes, environment)]
            environment["PREFECT_API_URL"] = _server(homes[-1]).api_url
            met += [
                measure_warm(folder, environment, arguments.samples),
                measure_alerts(folder / "alerts", environment, arguments.suite, arguments.samples),
                *measure_overhead(folder, environment, arguments.cases, arguments.pairs),
            ]
        finally:
            for home in homes:
                prefect_server.stop_server(home / "data" / "prefect")
    return met.count(False)


def measure_cold(homes: Sequence[Path], environment: dict[str, str]) -> bool:
    """Measure P12 without a running Prefect server, in one data folder after the other.

    The server of the last data folder keeps running.
    """
    values: list[float] = []
    for home in homes:
        values.append(measure_first_question(home, environment))
        if home != homes[-1]:
            prefect_server.stop_server(home / "data" / "prefect")
    what = "command to first question, no Prefect server running"
    return report(Figure(id="P12", what=what, unit="s", values=tuple(values), goal=WITH_SERVER_START_MOST_S))


def measure_warm(folder: Path, environment: dict[str, str], samples: int) -> bool:
    """Measure P12 ``samples`` times with a running Prefect server."""
    values = tuple(measure_first_question(folder / f"warm-{number}", environment) for number in range(samples))
    what = "command to first question, Prefect server up"
    return report(Figure(id="P12", what=what, unit="s", values=values, goal=FIRST_QUESTION_MOST_S))


def _server(folder: Path) -> prefect_server.LocalServer:
    running_server = prefect_server.find_running_server(folder / "data" / "prefect")
    if running_server is None:
        raise SystemExit("the run started no Prefect server")
    return running_server


def measure_first_question(folder: Path, environment: dict[str, str]) -> float:
    """Return the seconds from the command to its first question."""
    ended, asked, _ = measure_run(folder, environment, PAGES)
    return asked - ended.began_at


def measure_run(folder: Path, environment: dict[str, str], cases: int) -> tuple[Ended, float, float]:
    """Measure a whole run, with the times at which its first question began and its last answer ended."""
    folder.mkdir()
    asked, answered = folder / "asked.jsonl", folder / "answered.jsonl"
    notes = ("--asked", str(asked), "--answered", str(answered))
    with serve_app("tests.soak.mortal_app", *notes, "--delay-s", BOT_S) as address:
        write_configuration(folder, address, cases, probe=PROBE)
        ended = run_verify(folder, environment)
    if len(read_noted(answered)) != cases or ended.code != 0:
        came = f"{len(read_noted(answered))} of {cases} answered, exit code {ended.code}"
        raise SystemExit(f"{came}: {(folder / 'lookout.log').read_text('utf-8')}")
    return ended, read_noted(asked)[0].at, read_noted(answered)[-1].at


def measure_overhead(folder: Path, environment: dict[str, str], cases: int, pairs: int) -> Iterator[bool]:
    """Measure P5 with a running Prefect server, in wall seconds and in CPU seconds."""
    ours: list[Spent] = []
    theirs: list[Spent] = []
    for number in range(pairs):
        sides = [
            lambda at=folder / f"run-{number}": ours.append(
                measure_spent(lambda: run_whole(at, environment, cases))
            ),
            lambda at=folder / f"bare-{number}": theirs.append(measure_spent(lambda: run_bare(at, cases))),
        ]
        for side in sides if number % 2 else reversed(sides):
            side()
    yield report(
        Figure(
            id="P5",
            what=f"{cases} cases, first question to the end of the command",
            unit="s",
            values=tuple(sample.wall_s for sample in ours),
            baseline="bare runner",
            baselines=tuple(sample.wall_s for sample in theirs),
            of="ratio",
            goal=ADDED_MOST,
            note=f"{pairs} pairs, as each takes minutes",
        )
    )
    yield report(
        Figure(
            id="P5",
            what="the same in CPU seconds of command, browser and app, start and imports included",
            unit="CPU s",
            values=tuple(sample.cpu_s for sample in ours),
            baseline="bare runner",
            baselines=tuple(sample.cpu_s for sample in theirs),
        )
    )


class Spent(NamedTuple):
    """Wall seconds that the questions of a run took, and CPU seconds of all processes that the run started."""

    wall_s: float
    cpu_s: float


def measure_spent(work: Callable[[], float]) -> Spent:
    """Call ``work``, which returns wall seconds. Return these seconds, and the CPU seconds that the call used."""
    before = _cpu_s()
    wall_s = work()
    return Spent(wall_s, _cpu_s() - before)


def _cpu_s() -> float:
    """Return the CPU seconds of this process and of its ended children."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def run_whole(folder: Path, environment: dict[str, str], cases: int) -> float:
    """Return the seconds from the first question of a run to the end of its command."""
    ended, first, last = measure_run(folder, environment, cases)
    print(
        f"{cases} cases: {last - first:.1f} s asking, {ended.ended_at - last:.1f} s from the last answer to the end"
    )
    return ended.ended_at - first


def run_bare(folder: Path, cases: int) -> float:
    """Return the seconds that the questions alone take, from the first question to the last answer."""
    folder.mkdir()
    asked, answered = folder / "asked.jsonl", folder / "answered.jsonl"
    notes = ("--asked", str(asked), "--answered", str(answered))
    with serve_app("tests.soak.mortal_app", *notes, "--delay-s", BOT_S) as address:
        write_suite(folder / "plans.jsonl", cases)
        asyncio.run(_run_bare(address, folder))
    return read_noted(answered)[-1].at - read_noted(asked)[0].at


async def _run_bare(address: str, folder: Path) -> None:
    async def keep(_case: GoldCase, result: ProbeResult) -> None:
        if not isinstance(result, Exchange):
            raise SystemExit(f"no answer: {result.detail}")

    async with BrowserDriver(address, SETTINGS, run_folder=folder) as driver:
        await probe_cases(
            driver,
            load_suite(folder / "plans.jsonl").cases,
            run_id="bare",
            settings=SETTINGS,
            clock=lambda: datetime.now(UTC),
            concurrency=PAGES,
            on_result=keep,
        )


def measure_alerts(folder: Path, environment: dict[str, str], cases: int, samples: int) -> bool:
    """Measure P2 ``samples`` times."""
    taken = tuple(measure_alert(folder / str(number), environment, cases) for number in range(samples))
    what = f"last word of a severe failure to Slack request, {cases:,} cases"
    return report(Figure(id="P2", what=what, unit="s", values=taken, goal=ALERT_MOST_S, worst=True))


def measure_alert(folder: Path, environment: dict[str, str], cases: int) -> float:
    """Return the seconds from the last word of the wrong answer to the Slack request that reports this answer."""
    folder.mkdir(parents=True)
    wrong = f"Plan-{min(WRONG_RANK * 12, cases // 20) * 10}"  # every tenth plan is of severity 3
    answered = folder / "answered.jsonl"
    notes = ("--asked", str(folder / "asked.jsonl"), "--answered", str(answered), "--wrong", wrong)
    with SlackServer() as slack, serve_app("tests.soak.mortal_app", *notes, "--delay-s", BOT_S) as address:
        to_slack = f'slack_api_url = "{slack.api_url}"\nslack_channel = "#alerts"'
        write_configuration(folder, address, cases, alerts=to_slack)
        process = start_verify(folder, {**environment, TOKEN_VARIABLE: TOKEN})
        heard = slack.wait_for("chat.postMessage", PATIENCE_S)
        at = time.time()
        _stop(process)
        if not heard:
            raise SystemExit(f"no alert was sent: {(folder / 'lookout.log').read_text('utf-8')}")
    return at - next(note.at for note in read_noted(answered) if note.question == question_on(wrong))


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    process.wait()


if __name__ == "__main__":
    sys.exit(main())

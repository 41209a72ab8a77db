"""P2 and P5: how soon a severe failure is told, and what a run costs beyond its probes.

    python -m tests.bench.bench_run [--cases 200] [--suite 1000] [--samples 3]

P2: `lookout verify` on a suite of 1,000 cases, of which one of severity 3 is answered wrong, some dozen questions
after the start. From the moment the app sends that answer's last word to the moment the local Slack server has the
request. The run is stopped then. Beside it, in the same run: how long the app takes from question to last word.

P5: a run of 200 cases on a page whose bot takes a second. From the first question to the end of the command, against
the same questions asked by the bare runner with the same driver and concurrency: no Prefect, no grading, no journal,
no reports. And from the command to its first question, once with a Prefect server to start and once with one up.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from flows.context import BROWSER_VARIABLE, TOKEN_VARIABLE, cores
from flows.server import prefect_server
from monitors.goldset.load import load_suite
from monitors.probes.browser.driver import BrowserDriver
from monitors.probes.settings import CapturePolicy, ProbeSettings, pages_at_once
from monitors.records.cases import GoldCase
from monitors.records.exchanges import Exchange, ProbeResult
from tests.bench.verified import Ended, app, configure, noted, start, told, verify
from tests.servers.slack import TOKEN, SlackServer
from tests.soak.plans import question_on, write_suite
from tests.tools.probe_cases import probe_cases

BOT_S = "1"
ALERT_MOST_S = 3.0
ADDED_MOST_PERCENT = 5.0
FIRST_QUESTION_MOST_S = 10.0
WITH_SERVER_START_MOST_S = 25.0
PATIENCE_S = 300.0
WRONG_RANK = 3
"""The failure comes after so many dozen others of severity 3, when all pages are busy."""


def main() -> int:
    """Print the figures; the exit code is the number of targets missed."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--cases", type=int, default=200, help="of P5's run")
    options.add_argument("--suite", type=int, default=1000, help="cases of P2's suite")
    options.add_argument("--samples", type=int, default=3, help="of P2")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
        cold = first_question(folder / "cold", environment)
        environment["PREFECT_API_URL"] = _server(folder / "cold").api_url
        try:
            held = [
                told("P5 command to first question, server to start", cold, WITH_SERVER_START_MOST_S, "s"),
                overhead(folder / "warm", environment, given.cases),
                alerts(folder / "alerts", environment, given.suite, given.samples),
            ]
        finally:
            prefect_server.stop_server(folder / "cold" / "data" / "prefect")
    return held.count(False)


def _server(folder: Path) -> prefect_server.LocalServer:
    found = prefect_server.running_server(folder / "data" / "prefect")
    if found is None:
        raise SystemExit("the run started no Prefect server")
    return found


def first_question(folder: Path, environment: dict[str, str]) -> float:
    """Seconds from the command to its first question, in a data folder where no server runs yet."""
    ended, asked, _ = run(folder, environment, 4)
    return asked - ended.began_at


def run(folder: Path, environment: dict[str, str], cases: int) -> tuple[Ended, float, float]:
    """A whole run, when its first question came and when its last answer ended."""
    folder.mkdir()
    asked, answered = folder / "asked.jsonl", folder / "answered.jsonl"
    notes = ("--asked", str(asked), "--answered", str(answered))
    with app("tests.soak.mortal_app", *notes, "--delay-s", BOT_S) as address:
        configure(folder, address, cases, probe='screenshots = "never"')
        ended = verify(folder, environment)
    if len(noted(answered)) != cases:
        raise SystemExit(
            f"{len(noted(answered))} of {cases} answered: {(folder / 'lookout.log').read_text('utf-8')}"
        )
    return ended, noted(asked)[0].at, noted(answered)[-1].at


def overhead(folder: Path, environment: dict[str, str], cases: int) -> bool:
    """P5 with a server up."""
    bare_s = bare(folder.with_name("bare"), cases)
    ended, first, last = run(folder, environment, cases)
    total_s = ended.ended_at - first
    print(
        f"{cases} cases: bare runner {bare_s:.1f} s; lookout verify {last - first:.1f} s asking and "
        f"{ended.ended_at - last:.1f} s from the last answer to the end of the command"
    )
    soon = told("P5 command to first question, server up", first - ended.began_at, FIRST_QUESTION_MOST_S, "s")
    added = 100 * (total_s - bare_s) / bare_s
    return told("P5 added to the probes", added, ADDED_MOST_PERCENT, "%") and soon


def bare(folder: Path, cases: int) -> float:
    """Seconds that the questions take by themselves, from the first to the last answer."""
    folder.mkdir()
    asked, answered = folder / "asked.jsonl", folder / "answered.jsonl"
    notes = ("--asked", str(asked), "--answered", str(answered))
    with app("tests.soak.mortal_app", *notes, "--delay-s", BOT_S) as address:
        write_suite(folder / "plans.jsonl", cases)
        asyncio.run(_bare(address, folder))
    return noted(answered)[-1].at - noted(asked)[0].at


async def _bare(address: str, folder: Path) -> None:
    settings = ProbeSettings(screenshots=CapturePolicy.NEVER, browser_path=os.environ.get(BROWSER_VARIABLE))

    async def keep(_case: GoldCase, result: ProbeResult) -> None:
        if not isinstance(result, Exchange):
            raise SystemExit(f"no answer: {result.detail}")

    async with BrowserDriver(address, settings, run_folder=folder) as driver:
        await probe_cases(
            driver,
            load_suite(folder / "plans.jsonl").cases,
            run_id="bare",
            settings=settings,
            clock=lambda: datetime.now(UTC),
            concurrency=pages_at_once(settings, cores()),
            on_result=keep,
        )


def alerts(folder: Path, environment: dict[str, str], cases: int, samples: int) -> bool:
    """P2, so many times."""
    taken = [alert(folder / str(number), environment, cases) for number in range(samples)]
    print(
        f"P2 samples: {', '.join(f'{seconds:.2f} s' for seconds in taken)}; median {statistics.median(taken):.2f} s"
    )
    return told(f"P2 last token to Slack request, worst of {samples}", max(taken), ALERT_MOST_S, "s")


def alert(folder: Path, environment: dict[str, str], cases: int) -> float:
    """Seconds from the last word of the wrong answer to the request that tells it."""
    folder.mkdir(parents=True)
    wrong = f"Plan-{min(WRONG_RANK * 12, cases // 20) * 10}"  # every tenth plan is of severity 3
    answered = folder / "answered.jsonl"
    notes = ("--asked", str(folder / "asked.jsonl"), "--answered", str(answered), "--wrong", wrong)
    with SlackServer() as slack, app("tests.soak.mortal_app", *notes, "--delay-s", BOT_S) as address:
        to_slack = f'slack_api_url = "{slack.api_url}"\nslack_channel = "#alerts"'
        configure(folder, address, cases, alerts=to_slack)
        process = start(folder, {**environment, TOKEN_VARIABLE: TOKEN})
        heard = slack.wait_for("chat.postMessage", PATIENCE_S)
        at = time.time()
        _stop(process)
        if not heard:
            raise SystemExit(f"nothing was told: {(folder / 'lookout.log').read_text('utf-8')}")
    return at - next(note.at for note in noted(answered) if note.question == question_on(wrong))


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    process.wait()


if __name__ == "__main__":
    sys.exit(main())

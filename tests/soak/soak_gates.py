"""Run gates on one repository in random order: each commit's status and comment show its newest run.

A sequence has good and bad heads, two targets, two runners with a data folder each, and events: pull request, push,
merge queue, a comment, a fork. Gates are stopped with Ctrl-C and run again. Two gates of one commit overlap, and
the older one ends last. The answers of an application depend only on its build, and only some applications state
their build. The gate's own command runs against local servers: one with GitHub's API, and one for each application.
Prefect is omitted, so that a gate takes a fraction of a second.

Run 300 sequences with ``python -m tests.soak.soak_gates``. ``--seed`` with ``--sequences 1`` repeats one sequence.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import random
import ssl
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

from deployments.cli.gate import gate
from flows.clock import utc_now
from flows.verify.asking import ask_until_deadline, prepare_run
from flows.verify.progress import NO_LISTENER
from flows.verify.run_folder import VerifyRequest
from monitors.gate.evaluate import evaluate_results
from monitors.records.runs import RunReport, Verdict
from monitors.reports.results_json import format_results_json
from tests.deployments.cli.gate.jobs import (
    comment_event,
    job_variables,
    merge_group_event,
    pull_event,
    push_event,
)
from tests.flows.chat import RIGHT, Chat
from tests.servers.github import BOT, PULL, READING_TOKEN, WORKFLOW_TOKEN, GitHub

CASES = 4
RUNNERS = ("first", "second")
TARGETS = ("shop", "help")
GOLD = {"gold": "24 months", "severity": 3, "language": "en", "type": "waiting_period"}
WRONG = "The waiting period is 36 months. [Source: Gold, clause 4.2]"
STATES = {Verdict.PASS: "success", Verdict.FAIL: "failure"}
HEADS = ("1" * 40, "2" * 40)
MAIN, QUEUED, FORKED = "a" * 40, "b" * 40, "c" * 40


READ_AUTHORITIES = cache(ssl.create_default_context)
"""A cached function that creates an SSL context, to save time.

Without the cache, each HTTP client would read 140 certificate authorities in 0.1 s. All clients connect only to the
loopback interface.
"""


@dataclass
class Step:
    """One run of the gate: its runner, the commit and target to check, and when the run is stopped.

    ``stop_after`` is the number of answers after which the run is stopped, or ``None`` if it is not stopped.
    """

    runner: str
    target: str
    kind: str
    head: str
    build: int
    stop_after: int | None = None
    held: threading.Event | None = None
    begun: threading.Event = field(default_factory=threading.Event)


@dataclass
class Finished:
    """A run of the gate that was not stopped before its end."""

    step: Step
    report: RunReport


class Repository:
    """The repository on the local GitHub server, its two runners, and the applications that each runner reaches."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.chance = random.Random(seed)
        self.folder = folder
        self.github = GitHub()
        self.chats = {(runner, target): Chat() for runner in RUNNERS for target in TARGETS}
        self.has_source_of_commit = self.chance.random() < 0.7
        self.wrong = {
            (head, build): self.chance.sample(range(CASES), self.chance.choice([0, 0, 1, 2]))
            for head in (*HEADS, MAIN, QUEUED, FORKED)
            for build in (0, 1)
        }
        self.finished: list[Finished] = []
        self.counts: Counter[str] = Counter()
        self._here = threading.local()
        self._guard = threading.Lock()

    @contextmanager
    def open(self) -> Iterator[None]:
        """Start the servers, write the configurations, and run the gate's flow in this process."""
        with ExitStack() as stack:
            stack.enter_context(self.github)
            for chat in self.chats.values():
                stack.enter_context(chat)
            for runner in RUNNERS:
                self._write_configuration(runner)
            stack.enter_context(patch.object(gate, "run_verification", self._verify))
            stack.enter_context(patch.object(gate, "get_environment", lambda: self._here.variables))
            stack.enter_context(patch.object(ssl, "create_default_context", READ_AUTHORITIES))
            stack.enter_context(redirect_stdout(io.StringIO()))
            stack.enter_context(redirect_stderr(io.StringIO()))
            yield

    def _write_configuration(self, runner: str) -> None:
        folder = self.folder / runner
        folder.mkdir()
        lines = ['data_folder = "data"\n[recheck]\ntimes = 0\n[gate]\nmin_severity_3_cases = 0\n']
        for target in TARGETS:
            url = self.chats[runner, target].url
            readiness = (
                f'readiness = {{ version_url = "{url}/version", poll_s = 0.1 }}\n'
                if self.has_source_of_commit
                else ""
            )
            lines.append(
                f'[targets.{target}]\nurl = "{url}/chat"\nsuite = "suite.jsonl"\n[targets.{target}.probe]\n'
                f'driver = "json"\nconcurrency = 1\nattempts = 1\n{readiness}'
            )
        (folder / "lookout.toml").write_text("".join(lines), encoding="utf-8")
        suite = [
            GOLD | {"id": f"case-{number}", "question": _question(number), "provenance": {"pipeline": "template"}}
            for number in range(CASES)
        ]
        (folder / "suite.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in suite), encoding="utf-8")

    def run_gate(self, step: Step) -> None:
        """Deploy the step's build to the app of its runner, and run the gate's command there."""
        chat = self.chats[step.runner, step.target]
        wrong = self.wrong[step.head, step.build]
        chat.by_question = {_question(number): WRONG if number in wrong else RIGHT for number in range(CASES)}
        chat.version = f"{step.head[:39]}{step.build}"
        self._here.variables = self._variables(step)
        self._here.step = step
        gate.gate_command(
            target=step.target,
            config=self.folder / step.runner / "lookout.toml",
            commit=None,
            baseline="none",
            github=True,
            as_json=True,
        )

    def _variables(self, step: Step) -> dict[str, str]:
        folder = self.folder / step.runner
        pull_ref = f"refs/pull/{PULL}/merge"
        events: dict[str, tuple[dict[str, Any], str, str]] = {
            "pull": (pull_event(step.head), pull_ref, "d" * 40),
            "fork": (pull_event(step.head), pull_ref, "d" * 40),
            "push": (push_event(step.head), "refs/heads/main", step.head),
            "queue": (merge_group_event(step.head), "refs/heads/gh-readonly-queue/main/pr-12", step.head),
            "comment": (comment_event(), "refs/heads/main", MAIN),
        }
        event, ref, sha = events[step.kind]
        token = READING_TOKEN if step.kind == "fork" else WORKFLOW_TOKEN
        return job_variables(folder, self.github, event, ref=ref, sha=sha, token=token)

    def _verify(self, request: VerifyRequest) -> RunReport | None:
        """Verify as the flow does, without Prefect: prepare or resume, ask, evaluate, write the results."""
        return asyncio.run(self._ask_and_evaluate(request, self._here.step))

    async def _ask_and_evaluate(self, request: VerifyRequest, step: Step) -> RunReport | None:
        run = await prepare_run(request, NO_LISTENER, unreported=(Exception,))
        with run.context.run_folder as run_folder:
            asking = asyncio.create_task(ask_until_deadline(run))
            new = 0

            async def stop_in_time(_done: int, _planned: int) -> None:
                nonlocal new
                new += 1
                step.begun.set()
                if step.held is not None and new == 1:
                    await asyncio.to_thread(step.held.wait)
                if step.stop_after is not None and new >= step.stop_after:
                    asking.cancel()

            run.on_step = stop_in_time
            await asyncio.wait({asking})
            if asking.cancelled():
                self.counts["stopped"] += 1
                return None
            asking.result()
            report = evaluate_results(
                run.build_facts(utc_now(), request.pull_request), run.results, run.context.config.gate
            )
            text = "".join(format_results_json(report, tuple(run.results)))
            (run_folder.folder / "results.json").write_text(text, encoding="utf-8")
            run_folder.mark_finished()
        with self._guard:
            self.counts["resumed"] += report.resumed_cases > 0
            self.finished.append(Finished(step, report))
        return report

    def live(self) -> None:
        """Run one random sequence of gates."""
        for _ in range(self.chance.randint(3, 7)):
            step = self._choose_step()
            self.counts[step.kind] += 1
            if step.kind == "comment":
                self.github.pull_head = step.head
            if self.chance.random() < 0.25 and step.kind != "fork":
                self._overlap(step)
                continue
            if self.chance.random() < 0.35:
                step.stop_after = self.chance.randint(1, CASES - 1)
            self.run_gate(step)
            if step.stop_after is not None:
                self._go_on_after_stop(step)

    def _go_on_after_stop(self, stopped: Step) -> None:
        """After a stopped gate, continue at random.

        Run the same gate again, run a gate of another head on the same runner, or do nothing.
        """
        choice = self.chance.random()
        build = self.chance.randrange(2) if self.has_source_of_commit else stopped.build
        if choice < 0.4:
            self.counts["run again"] += 1
            self.run_gate(replace(stopped, stop_after=None, build=build, begun=threading.Event()))
        elif choice < 0.7:
            self.counts["of another head after a stop"] += 1
            head = self.chance.choice([head for head in HEADS if head != stopped.head])
            self.run_gate(Step(stopped.runner, stopped.target, "pull", head, build))

    def _choose_step(self) -> Step:
        kind = self.chance.choice(["pull", "pull", "pull", "comment", "push", "queue", "fork"])
        head = {"push": MAIN, "queue": QUEUED, "fork": FORKED}.get(kind) or self.chance.choice(HEADS)
        build = self.chance.randrange(2) if self.has_source_of_commit else 0
        return Step(self.chance.choice(RUNNERS), self.chance.choice(TARGETS), kind, head, build)

    def _overlap(self, older: Step) -> None:
        """Check one commit of one target on two runners at the same time. The gate that began first ends last."""
        self.counts["overlapping"] += 1
        older.runner, older.held = RUNNERS[0], threading.Event()
        newer = Step(RUNNERS[1], older.target, older.kind, older.head, older.build)
        newer.build = 1 - older.build if self.has_source_of_commit else older.build
        thread = threading.Thread(target=self.run_gate, args=(older,))
        thread.start()
        older.begun.wait(60)
        second = int(time.time())
        while int(time.time()) == second:  # ids of runs sort by their second
            time.sleep(0.05)
        self.run_gate(newer)
        older.held.set()
        thread.join()

    def check(self) -> None:
        """Raise `AssertionError` if a status or comment does not match the newest run of its commit."""
        newest: dict[tuple[str, str], Finished] = {}
        commented: dict[str, Finished] = {}
        for finished in sorted(self.finished, key=lambda end: end.report.run_id):
            step, report = finished.step, finished.report
            assert report.verdict is (Verdict.FAIL if self.wrong[step.head, step.build] else Verdict.PASS), step
            if step.kind != "fork":
                newest[step.head, f"lookout/{step.target}/suite"] = finished
            if step.kind in {"pull", "comment"}:
                commented[f"{step.target}/suite"] = finished
        for (head, context), finished in newest.items():
            assert self.github.current(head)[context] == STATES[finished.report.verdict], (finished.step, context)
        for head in (*HEADS, MAIN, QUEUED, FORKED, "d" * 40):
            for context, state in self.github.current(head).items():
                assert (head, context) in newest or state == "error", (head, context, state)
        comments = {comment.body.splitlines()[0]: comment.body for comment in self.github.by(BOT)}
        assert len(comments) == len(self.github.by(BOT)) == len(commented)
        for name, finished in commented.items():
            (body,) = [body for mark, body in comments.items() if name in mark]
            assert f"{finished.report.verdict}: {name}" in body, finished.step
            assert finished.step.head[:39] in body or self.has_source_of_commit, finished.step
            assert finished.report.run_id in body, finished.step


def _question(number: int) -> str:
    return f"What is the waiting period of plan {number}?"


def live_through(seed: int) -> Counter[str]:
    """Run the sequence of one seed and check it. Return how often each event occurred."""
    with tempfile.TemporaryDirectory(prefix="lookout-gates-") as folder:
        repository = Repository(Path(folder), seed)
        with repository.open():
            repository.live()
        repository.check()
    repository.counts["gates finished"] = len(repository.finished)
    return repository.counts


def main() -> int:
    """Run the sequences; return 1 if one fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sequences", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    failed: list[int] = []
    for seed in range(options.seed, options.seed + options.sequences):
        try:
            counts += live_through(seed)
        except AssertionError as error:
            failed.append(seed)
            print(f"seed {seed}: {error}", flush=True)
    happened = ", ".join(f"{number} {name}" for name, number in sorted(counts.items()))
    print(f"{options.sequences} sequences from seed {options.seed}: {happened}; {len(failed)} do not hold {failed}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

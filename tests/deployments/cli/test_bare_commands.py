"""Every command as a new user runs it: no variables of Prefect or Lookout are set, and the home is empty.

These tests do not use the shared Prefect server. A command that needs a server starts it, or uses the server that
an earlier command of the same data folder started.
"""

from __future__ import annotations

import fcntl
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from aiohttp import web

from deployments.demo.configuration import find_free_port
from flows.server import prefect_server
from monitors.alerts.wording import KIND_WORDS
from monitors.records.incidents import IncidentKind
from tests import fork_server
from tests.conftest import ROOT
from tests.deployments.gold_process import DOCUMENT
from tests.deployments.triggers.senders import GITHUB_SECRET
from tests.in_process import run_in_process
from tests.lookout_commands import every_command
from tests.monitors.goldset.fact_examples import SHEET
from tests.polling import wait_until
from tests.prefect_home import with_tables
from tests.servers import anthropic
from tests.servers.anthropic import AnthropicServer
from tests.servers.drafter import RuleDrafter
from tests.servers.threaded_server import ThreadedServer

COMMAND_S = 600
"""Timeout of a command in seconds. On a busy machine, a server takes minutes to start."""
ENDED = datetime(2026, 3, 1, 2, 0, tzinfo=UTC)
UNTIL = ("--until", "2026-03-01T02:00")

CASES = (
    ("wait", "How long is the waiting period for existing illness?", "36 months", 3),
    ("grace", "How long is the grace period for a late premium?", "30 days", 2),
    ("room", "What is the limit for room rent per day?", "Rs 5,000 per day", 1),
)
DEMO_OF = """
import sys
from pathlib import Path
from deployments.demo import configuration
configuration.SUITE = Path(sys.argv.pop(1))
from deployments.cli.app import main
sys.exit(main())
"""
"""A Python program that runs ``lookout`` with another suite in place of the demo's own.

Its first argument is the suite.
"""
LATE = ("deployments.receivers.deploys", "deployments.receivers.readiness")
"""Modules that import Prefect. `lookout receive` imports them only after it has set up Prefect's client."""


@dataclass(frozen=True)
class Installation:
    """A data folder with a configuration, an application on loopback, and its own Prefect server."""

    folder: Path

    def run(self, *arguments: str, stdin: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
        """Run the command to its end.

        Check that nothing was written into the home, which is Prefect's default location.
        """
        environment = fork_server.bare(**variables)
        done = fork_server.run(*arguments, cwd=self.folder, env=environment, given=stdin, timeout_s=COMMAND_S)
        assert list(fork_server.bare_home().glob(".prefect*")) == []
        return done


class Bot(ThreadedServer):
    """A chat API that knows the answers of the suite, and gives a wrong answer to one question."""

    def application(self) -> web.Application:
        made = web.Application()
        made.router.add_post("/ask", self._answer)
        made.router.add_get("/ask", self._answer)
        return made

    async def _answer(self, request: web.Request) -> web.Response:
        asked = (await request.json())["question"] if request.can_read_body else ""
        gold = next((gold for _, question, gold, _ in CASES if question == asked), "I do not know.")
        return web.json_response({"answer": gold.replace("5,000", "9,000")})


def line(case_id: str, question: str, gold: str, severity: int) -> dict[str, object]:
    return {
        "id": case_id,
        "question": question,
        "gold": gold,
        "severity": severity,
        "language": "en",
        "type": "limits",
        "provenance": {"pipeline": "template"},
    }


def written(folder: Path, address: str, judge: str) -> None:
    """Write all files that the commands in this file use."""
    suite = [line(*case) for case in CASES]
    (folder / "suite.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in suite), encoding="utf-8")
    talk = [
        {"id": f"c{number}", "timestamp": (ENDED - timedelta(minutes=number + 1)).isoformat()}
        | {"question": question, "answer": gold}
        for number, (_, question, gold, _) in enumerate(CASES * 4)
    ]
    (folder / "talks.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in talk), encoding="utf-8")
    (folder / "held.jsonl").write_text("", encoding="utf-8")
    (folder / "drafted.jsonl").write_text("", encoding="utf-8")
    (folder / "facts.json").write_text(json.dumps(SHEET), encoding="utf-8")
    array = [{"id": "a", "question": "How long is it?", "expected_answer": "30 days", "question_type": "limits"}]
    (folder / "array.json").write_text(json.dumps(array), encoding="utf-8")
    (folder / "policy.md").write_text(DOCUMENT, encoding="utf-8")
    (folder / "lookout.toml").write_text(
        f"""data_folder = "data"
[targets.bot]
url = "{address}/ask"
suite = "suite.jsonl"
model_family = "llama"
probe = {{ driver = "json" }}
graders = {{ citation_required = false }}
hallucination_log = {{ at = "held.jsonl" }}
[targets.bot.traffic.sources.talks]
kind = "file"
at = "talks.jsonl"
[gate]
min_severity_3_cases = 0
[[deploys.triggers]]
provider = "github"
repository = "acme/helpdesk"
target = "bot"
[[judge.models]]
model = "claude-sonnet-5-5"
base_url = "{judge}"
""",
        encoding="utf-8",
    )


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """Run `lookout verify` in a bare environment.

    Return the installation with its results, warehouse and server.
    """
    folder = tmp_path_factory.mktemp("bare")
    with Bot() as bot, AnthropicServer(judge=RuleDrafter()) as judge:
        written(folder, bot.url, judge.url)
        (folder / "drilled").mkdir()
        written(folder / "drilled", bot.url, judge.url)
        with_tables(folder / "data" / "prefect")
        made = Installation(folder)
        try:
            done = made.run("verify", "bot", "--json")
            assert done.returncode == 1, done.stderr
            assert "local Prefect server" in done.stderr
            yield made
        finally:
            prefect_server.stop_server(folder / "data" / "prefect")


AWAY = ("--url-of", "http://127.0.0.1:9/{commit}")
ONCE: dict[str, tuple[tuple[str, ...], int, str]] = {
    "verify": (("bot", "--fresh"), 1, "FAIL"),
    "gate": (("--target", "bot"), 1, "FAIL"),
    "report": ((), 0, "FAIL"),
    "sql": (("select verdict from runs",), 0, "FAIL"),
    "nightly": (UNTIL, 0, "bot: nightly run, conversations until 2026-03-01 02:00 UTC"),
    "repeatability": (("bot",), 0, "bot: 3 of 3 cases asked twice"),
    "reconcile": ((), 0, "bot, "),
    "bisect": (
        (*("bot", "--commit", "a", "--commit", "b", "--good", "a", "--bad", "b", "--case", "room"), *AWAY),
        3,
        "The first bad build is not known: no build gave an answer that Lookout can grade",
    ),
    "shrink": (("room",), 0, "Lookout could not remove any word of the question"),
    "watch": (("bot", "--once"), 0, "bot"),
    "review": (("--figures",), 0, "(facts) on bot"),
    "doctor": (("--no-alert", "--no-judge"), 0, "lookout.toml: bot"),
    "init": (("--target", "https://example.com/", "--yes", "--config", "new/lookout.toml"), 0, "suite.jsonl"),
    "prefect-yaml": ((), 0, "verify-deploy"),
    "automations": ((), 0, "sends no message"),
    "drill": (("--config", "drilled/lookout.toml"), 4, "The drill failed at the "),
    "browser": ((), 0, "It starts and opens a page"),
    "browser install": ((), 0, "It starts and opens a page"),
    "warehouse load": ((), 0, "Loaded "),
    "warehouse check": ((), 0, "No problem found"),
    "warehouse rebuild": ((), 0, "Rebuilt"),
    "warehouse compact": ((), 0, "archives"),
    "warehouse pictures": ((), 0, "Deleted 0 screenshots"),
    "warehouse export": (("out", "--since", "2026-03-01", "--until", "2026-03-02"), 0, "files"),
    "backup": (("saved.tar.gz",), 0, "saved.tar.gz"),
    "restore": (("saved.tar.gz",), 2, "is not an empty folder"),
    "alerts list": (("--all",), 0, KIND_WORDS[IncidentKind.GATE_FAIL]),
    "alerts silences": ((), 0, ""),
    "gold build": (("--facts", "facts.json", "--out", "built.jsonl"), 0, "built.jsonl"),
    "gold mutants": (("suite.jsonl",), 0, "mutants"),
    "gold check": (("suite.jsonl",), 0, "suite.jsonl"),
    "gold freeze": (("suite.jsonl", "--unchecked"), 0, "suite-v1"),
    "gold diff": (("suite.jsonl", "suite.jsonl"), 0, ""),
    "gold import": (("array.json", "--out", "imported.jsonl", "--severity", "2"), 0, "imported.jsonl"),
    "gold vary": (("suite.jsonl",), 0, "variants"),
    "gold review": (("drafted.jsonl", "--suite", "suite.jsonl", "--as", "asha"), 0, "Added to suite.jsonl: 0"),
    "gold grow": ((), 0, ""),
    "gold push": (("langsmith:gold",), 2, "the environment variable LANGSMITH_API_KEY is missing or empty"),
    "gold pull": (("langfuse:gold",), 2, "add the table [langfuse]"),
    "gold starter": (("adversarial",), 0, "adversarial"),
}
"""Commands that end on their own. Each has its arguments, exit code and output."""
PIPES = {
    "facts": ({"id": "a", "text": "It is 36 months."}, '"facts"'),
    "redact": ({"id": "a", "text": "Mail asha.rao@example.com."}, "[e-mail]"),
    "grade": (
        {"id": "a", "question": "How long?", "gold": "36 months", "answer": "36 months", "expected_refusal": False},
        '"a"',
    ),
    "localise": ({"id": "a", "named": ["./x.py:3"], "gold": ["x.py"]}, '"f1": 1.0'),
    "efficiency": ({"id": "a", "calls": [{"name": "read"}, {"name": "read"}], "reference": []}, '"repeats": 1'),
    "conversations": ({"question": "Is it?", "answer": "Yes.", "at": "2026-01-01T00:00:00Z"}, '"usable": true'),
    "first-look": ({"id": "a", "cases": [{"page": "chat", "failed": False}]}, '"causes": []'),
}
DECISIONS = {
    f"alerts {name}" for name in ("show", "ack", "draft", "false-alarm", "resolve", "silence", "unsilence")
}
WITH_A_KEY = {"gold draft", "gold translate", "warehouse age"}
ENDS_A_SERVER = {"down"}
UNTIL_STOPPED = {"receive", "slack-actions"}
ON_THEIR_OWN = {
    "demo",
    "login",
    "up",
    *(f"site{name}" for name in ("", " export", " token add", " token list", " token revoke")),
}
"""Commands that other test files test in the same bare environment.

The files are test_login.py, test_up_command.py and site/test_site_command.py.
"""


@pytest.mark.whole_only
@pytest.mark.prefect
@pytest.mark.parametrize("command", ONCE)
@pytest.mark.a_slice(12)
def test_a_command_does_its_work(installation, command):
    arguments, code, said = ONCE[command]
    done = installation.run(*command.split(), *arguments)
    assert done.returncode == code, done.stdout + done.stderr
    assert said in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", PIPES)
def test_a_pipe_does_its_work(tmp_path, command):
    given, said = PIPES[command]
    done = Installation(tmp_path).run(command, stdin=f"{json.dumps(given)}\n")
    assert done.returncode == 0, done.stderr
    assert said in done.stdout


@pytest.mark.whole_only
@pytest.mark.prefect
def test_people_decide_about_what_is_broken(installation):
    """A user can make each decision about an incident, and then create and end a silence."""

    def decide(name: str, *arguments: str, code: int = 0) -> str:
        done = installation.run("alerts", name, *arguments)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    rows = json.loads(decide("list", "--all", "--json"))
    incident = next(row["fingerprint"][:12] for row in rows if KIND_WORDS[IncidentKind.GATE_FAIL] in row["title"])
    assert KIND_WORDS[IncidentKind.GATE_FAIL] in decide("show", incident)
    decide("ack", incident, "--as", "asha")
    decide("draft", incident, "--as", "asha")
    decide("false-alarm", incident, "--as", "asha")
    decide("resolve", incident, "--as", "asha")
    silence = json.loads(
        decide("silence", "--as", "asha", "--reason", "a test", "--for", "1h", "--case", "wait", "--json")
    )
    decide("unsilence", silence["id"], "--as", "asha")


@pytest.mark.whole_only
@pytest.mark.prefect
@pytest.mark.parametrize(
    ("command", "variable", "value", "said"),
    [
        (("warehouse", "age", "--days", "400"), "LOOKOUT_AGE_KEY", "k" * 32, "Removed personal data"),
        (("gold", "draft", "--document", "policy.md"), "ANTHROPIC_API_KEY", anthropic.KEY, "gold-drafts.jsonl"),
        (("gold", "translate", "suite.jsonl", "--to", "hi"), "ANTHROPIC_API_KEY", anthropic.KEY, ""),
    ],
    ids=["warehouse age", "gold draft", "gold translate"],
)
def test_a_command_names_the_key_that_it_needs_and_works_with_it(installation, command, variable, value, said):
    without = installation.run(*command)
    assert without.returncode == 2, without.stdout + without.stderr
    assert variable in without.stderr
    done = installation.run(*command, **{variable: value})
    assert done.returncode in {0, 3}, done.stdout + done.stderr
    assert said in done.stdout


@pytest.mark.prefect
@pytest.mark.parametrize(
    ("command", "path", "secret"),
    [
        ("receive", "/healthz", {"LOOKOUT_GITHUB_WEBHOOK_SECRET": GITHUB_SECRET}),
        ("slack-actions", "/health", {"SLACK_SIGNING_SECRET": "0" * 32}),
    ],
)
@pytest.mark.whole_only
def test_a_receiver_answers_until_it_is_stopped(installation, command, path, secret):
    port = find_free_port("127.0.0.1", 0)
    with started(installation, command, "--port", str(port), **secret) as (process, said):
        until(process, said, lambda: answers(f"http://127.0.0.1:{port}{path}"))
        process.terminate()
        process.wait(COMMAND_S)
    assert "Traceback" not in said()


WRONG_FAMILY = ('model_family = "llama"', 'model_family = "claude"')
REFUSED: dict[str, tuple[tuple[str, ...], tuple[str, str], str]] = {
    "verify with a judge of the bot's family": (("verify", "bot"), WRONG_FAMILY, "claude-sonnet-5-5"),
    "gate with a judge of the bot's family": (("gate", "--target", "bot"), WRONG_FAMILY, "claude-sonnet-5-5"),
    "nightly with a judge of the bot's family": (("nightly",), WRONG_FAMILY, "claude-sonnet-5-5"),
    "verify with a bad suite": (("verify", "bot"), ("suite.jsonl", "held.jsonl"), "held.jsonl has no cases"),
    "nightly with a bad suite": (("nightly",), ("suite.jsonl", "held.jsonl"), "held.jsonl has no cases"),
    "a rating without the judge's key": (
        ("gate", "--target", "bot", "--min-score", "4"),
        ("", ""),
        "ANTHROPIC_API_KEY is not set",
    ),
    "nightly without the key of pseudonyms": (
        ("nightly",),
        ("[gate]", '[targets.bot.traffic]\nprivacy = "pseudonymise"\n[gate]'),
        "LOOKOUT_AGE_KEY",
    ),
    "nightly without a source's token": (
        ("nightly",),
        ('at = "talks.jsonl"', 'at = "talks.jsonl"\ntoken_env = "TALKS_TOKEN"'),
        "TALKS_TOKEN",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_wrong_configuration_is_an_error_before_a_server_is_started(tmp_path, case):
    command, (before, after), said = REFUSED[case]
    written(tmp_path, "http://127.0.0.1:9", "http://127.0.0.1:9")
    file = tmp_path / "lookout.toml"
    file.write_text(file.read_text(encoding="utf-8").replace(before, after), encoding="utf-8")
    done = run_in_process(*command, cwd=tmp_path, env=fork_server.bare())
    assert done.returncode == 2, done.stdout + done.stderr
    assert said in done.stderr
    assert "Starting" not in done.stderr
    assert not (tmp_path / "data" / "prefect").exists()


@pytest.mark.prefect
def test_a_nightly_report_can_be_queried_at_once(installation):
    """A nightly report is loaded without a manual step, so `lookout sql` returns it at once."""
    night = installation.run("nightly", "--until", "2026-03-02", "--json")
    assert night.returncode == 0, night.stderr
    report = json.loads(night.stdout)
    run_id = report["run_id"]
    assert run_id.startswith("20260302T0000Z")
    assert report["read"] + report["known"] == 12, "what an earlier night took is not taken again"
    asked = installation.run("sql", "--json", f"select run_id from nightly_runs where run_id = '{run_id}'")
    assert json.loads(asked.stdout) == {"run_id": run_id}, asked.stdout + asked.stderr


@pytest.mark.prefect
@pytest.mark.whole_only
def test_down_ends_the_server_and_says_what_else_runs(installation, prefect_environment):
    """`lookout down` ends the Prefect server of the data folder, unless `lookout up` or a run uses the server.

    Servers of other data folders are only listed.
    """
    data = installation.folder / "data"
    assert installation.run("nightly", *UNTIL).returncode == 0
    server = prefect_server.find_running_server(data / "prefect")
    assert server is not None
    run = next((data / "runs").glob("*/run.lock"))
    for lock, said in ((data / "up.lock", "`lookout up` uses"), (run, f"{run.parent.name} is running")):
        with lock.open("a", encoding="utf-8") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            refused = installation.run("down")
        assert refused.returncode == 2
        assert said in refused.stderr
        assert prefect_server.find_running_server(data / "prefect") == server
    done = installation.run("down")
    assert done.returncode == 0, done.stderr
    ended, *_others = done.stdout.splitlines()
    assert re.search(rf"{data} \({server.ui_url}, [1-9]\d+ MB\)", ended)
    assert prefect_server.find_running_server(data / "prefect") is None
    assert re.search(rf"{prefect_environment['PREFECT_API_URL'][:-4]}  [1-9]\d+ MB  /", done.stdout)
    again = installation.run("down", "--json")
    assert json.loads(again.stdout)["ended"] is None


def test_every_command_has_its_test_here():
    tested = {*ONCE, *PIPES, *DECISIONS, *WITH_A_KEY, *UNTIL_STOPPED, *ENDS_A_SERVER, *ON_THEIR_OWN}
    assert tested == set(every_command())


@pytest.mark.whole_only
def test_no_module_of_a_command_brings_prefect_with_it(tmp_path):
    """No module of a command imports Prefect, because Prefect reads its server's address when it is imported."""
    names = [
        ".".join(file.relative_to(ROOT).with_suffix("").parts)
        for file in sorted((ROOT / "deployments").rglob("*.py"))
        if file.name != "__init__.py"
    ]
    program = (
        "import importlib, sys\n"
        "for name in sys.argv[1:]:\n"
        "    importlib.import_module(name)\n"
        "    if 'prefect' in sys.modules: sys.exit(name)\n"
    )
    command = [sys.executable, "-c", program, *(name for name in names if name not in LATE)]
    done = subprocess.run(
        command, env=fork_server.bare(), cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@contextmanager
def started(
    installation: Installation, *arguments: str, **variables: str
) -> Iterator[tuple[subprocess.Popen[bytes], Callable[[], str]]]:
    """Start a command that runs until it is stopped.

    Yield the process and the output that it has printed so far.
    """
    log = installation.folder / f"{arguments[0]}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "deployments.cli.app", *arguments],
            cwd=installation.folder,
            env=fork_server.bare(**variables),
            stdout=output,
            stderr=output,
        )
    try:
        yield process, lambda: log.read_text(encoding="utf-8")
    finally:
        process.terminate()
        process.wait(COMMAND_S)


def until(process: subprocess.Popen[bytes], said: Callable[[], str], holds: Callable[[], bool]) -> None:
    def holds_or_ended() -> bool:
        assert process.poll() is None, said()
        return holds()

    wait_until(holds_or_ended, timeout_s=COMMAND_S, what="what the command brings about")


def answers(address: str) -> bool:
    try:
        return httpx.get(address, timeout=5, trust_env=False).is_success
    except httpx.HTTPError:
        return False

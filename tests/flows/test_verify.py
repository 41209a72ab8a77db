"""Test a verification with the `lookout` command: its results, stopped runs, and pages without a chat."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest

from monitors.alerts.wording import FAILURE_TITLES, KIND_WORDS
from monitors.records.grades import FailureKind
from monitors.records.incidents import IncidentKind
from tests import fork_server
from tests.flows.few_cases import BY_API, LEAK, configured, few_cases
from tests.flows.messages import load_alerts_in
from tests.polling import wait_until

pytestmark = [pytest.mark.browser, pytest.mark.prefect]


@pytest.fixture
def page():
    """Return a function that starts a server with one response for all requests, and returns its address."""
    servers = []

    def serve(status: int, body: str) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(status)
                self.send_header("Content-Type", "text/html")
                self.end_headers()
                self.wfile.write(body.encode())

            def log_message(self, *_: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}"

    yield serve
    for server in servers:
        server.shutdown()
        server.server_close()


def test_a_faulty_page_fails_and_everything_is_left_behind(tmp_path, lookout, faulty_space):
    configured(tmp_path, faulty_space, few_cases(tmp_path, severe=2, others=4))
    done = lookout("verify", "demo", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert "FAIL" in done.stdout
    assert FAILURE_TITLES[FailureKind.PII_DISCLOSURE] in done.stderr
    run = next(tmp_path.glob("data/runs/*"))
    assert {"report.html", "results.md", "results.json", "hallucinations.jsonl", "junit.xml"} <= {
        p.name for p in run.iterdir()
    }
    assert str(run / "report.html") in done.stdout
    results = json.loads((run / "results.json").read_text(encoding="utf-8"))
    leak = next(case for case in results["cases"] if case["case"]["id"] == LEAK)
    assert leak["assessment"]["policy_row"] == "pii_disclosure>=3"
    assert (run / leak["result"]["evidence"]["screenshot"]).stat().st_size > 1000
    asked = sorted(results["cases"], key=lambda c: c["result"]["asked_at"])
    severities = [c["case"]["severity"] for c in asked]
    assert severities[0] == 3
    assert severities.index(min(severities)) > 0

    query = lookout("sql", "select verdict, weighted from run_summary", "--json", cwd=tmp_path)
    assert json.loads(query.stdout)["verdict"] == "FAIL", query.stderr
    again = lookout("gate", str(run / "results.json"), cwd=tmp_path)
    assert again.returncode == 1
    assert lookout("report", cwd=tmp_path).returncode == 0


@pytest.mark.whole_only
def test_a_clean_page_passes_and_prefect_shows_the_run(tmp_path, lookout, prefect_environment, clean_space):
    configured(tmp_path, clean_space, few_cases(tmp_path, severe=2, others=4))
    done = lookout("verify", "demo", "--json", "--commit", "abc1234", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert report["verdict"] == "PASS"
    assert report["scores"]["flat"] == {"earned": "6", "total": "6"}

    with httpx.Client(base_url=prefect_environment["PREFECT_API_URL"], trust_env=False) as server:
        runs = server.post("/flow_runs/filter", json={"sort": "START_TIME_DESC"}).json()
        mine = next(r for r in runs if r["parameters"].get("request", {}).get("commit") == "abc1234")
        about = {"artifacts": {"flow_run_id": {"any_": [mine["id"]]}}}
        found = server.post("/artifacts/filter", json=about).json()
    assert (mine["state_type"], mine["state_name"]) == ("COMPLETED", "Pass")
    kinds = {artifact["key"]: artifact["type"] for artifact in found}
    assert kinds["verify-demo"] == "markdown"
    assert kinds["verify-demo-progress"] == "progress"
    (link,) = (artifact["data"] for artifact in found if artifact["key"] == "verify-demo-report")
    assert f"(http://127.0.0.1:8068/runs/{report['run_id']}/report)" in link
    progress = next(a for a in found if a["type"] == "progress")
    assert float(progress["data"]) == 100


@pytest.mark.parametrize(
    ("status", "body", "reason"),
    [
        (404, "<h1>Not found</h1>", "unreachable"),
        (500, "<h1>Internal Server Error</h1>", "unreachable"),
        (200, "<h1>Our company</h1><p>We sell umbrellas.</p>", "page_not_understood"),
        (
            200,
            "<form><input type=email name=u><input type=password name=p><button>Sign in</button></form>",
            "access_denied",
        ),
    ],
)
@pytest.mark.a_slice(2)
@pytest.mark.whole_only
def test_a_page_that_cannot_be_asked_is_no_answer_and_never_wrong(tmp_path, lookout, page, status, body, reason):  # noqa: PLR0917 - a table's columns
    configured(tmp_path, page(status, body), few_cases(tmp_path, severe=2, others=1))
    done = lookout("verify", "demo", "--json", cwd=tmp_path)
    assert done.returncode in (3, 4), done.stdout + done.stderr
    results = json.loads(next(tmp_path.glob("data/runs/*/results.json")).read_text(encoding="utf-8"))
    outcomes = {case["assessment"]["outcome"] for case in results["cases"]}
    assert outcomes <= {"no_answer", "ungraded"}
    first = results["cases"][0]["result"]
    assert first["reason"] == reason
    assert first["blame"] == ("app" if reason == "unreachable" else "monitor")
    if reason != "unreachable":
        assert next(tmp_path.glob(f"data/runs/*/{first['evidence']['screenshot']}")).stat().st_size > 500


@pytest.mark.whole_only
def test_an_address_where_nobody_listens_is_inconclusive_with_the_reason(tmp_path, lookout):
    suite = few_cases(tmp_path, severe=1, others=1)
    done = lookout("verify", "http://127.0.0.1:9", "--suite", str(suite), cwd=tmp_path)
    assert done.returncode == 3, done.stdout + done.stderr
    assert "INCONCLUSIVE" in done.stdout
    results = json.loads(next(tmp_path.glob("**/runs/*/results.json")).read_text(encoding="utf-8"))
    assert {case["assessment"]["outcome"] for case in results["cases"]} <= {"no_answer", "ungraded"}


@pytest.mark.whole_only
def test_a_stopped_run_keeps_its_answers_and_the_next_one_goes_on(
    tmp_path, lookout, prefect_environment, clean_space
):
    """After Ctrl-C, the next run resumes the stopped run, and asks only the remaining cases."""
    configured(tmp_path, clean_space, few_cases(tmp_path, severe=3, others=5))
    journal = tmp_path / "data" / "journal"
    environment, pipe = prefect_environment | fork_server.WARM, subprocess.PIPE
    process = fork_server.start("verify", "demo", cwd=tmp_path, env=environment, stdout=pipe, stderr=pipe)
    wait_until(
        lambda: process.poll() is not None or len(list(journal.glob("2*/*"))) >= 3, what="three answers are stored"
    )
    os.kill(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 3, said
    assert "Lookout stored" in said

    done = lookout("verify", "demo", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Lookout continues run" in done.stderr
    report = json.loads(done.stdout)
    assert report["resumed_cases"] >= 3
    assert report["coverage"] == {"asked": 8, "graded": 8, "floor": 0.95}
    counted = lookout("sql", "select count(*) n, count(distinct case_id) d from results", "--json", cwd=tmp_path)
    assert json.loads(counted.stdout) == {"n": 8, "d": 8}


@pytest.mark.whole_only
def test_f58_an_older_commit_is_waited_for_and_never_graded(tmp_path, lookout, clean_space):
    """If the Space still serves an older commit at the deadline, the run asks no question and sends one alert."""
    path = configured(tmp_path, clean_space, few_cases(tmp_path, severe=1, others=1))
    readiness = (
        f'[targets.demo.probe.readiness]\nversion_url = "{clean_space}/version"\ndeadline_s = 2\npoll_s = 0.5\n'
    )
    path.write_text(path.read_text(encoding="utf-8") + readiness, encoding="utf-8")
    done = lookout("verify", "demo", "--commit", "abcdef1", "--json", cwd=tmp_path)
    assert done.returncode == 3, done.stderr
    report = json.loads(done.stdout)
    assert report["coverage"]["graded"] == 0
    assert report["reasons"][0]["kind"] == "deploy"
    assert done.stderr.count(KIND_WORDS[IncidentKind.DEPLOY_FAILURE]) == 1
    counted = lookout("sql", "select count(*) n from results", "--json", cwd=tmp_path)
    assert json.loads(counted.stdout) == {"n": 0}


@pytest.mark.whole_only
def test_f78_a_damaged_warehouse_is_rebuilt_and_its_owners_are_notified(tmp_path, lookout, clean_space):
    configured(tmp_path, clean_space, few_cases(tmp_path, severe=1, others=1), BY_API)
    assert lookout("verify", "demo", cwd=tmp_path).returncode == 0
    (tmp_path / "data" / "warehouse.duckdb").write_bytes(b"torn by a disk that lies")
    done = lookout("verify", "demo", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [alert.kind for alert in load_alerts_in(tmp_path)] == [IncidentKind.MONITOR_FAULT]
    assert lookout("warehouse", "check", cwd=tmp_path).returncode == 0
    counted = lookout("sql", "select count(distinct run_id) n from results", "--json", cwd=tmp_path)
    assert json.loads(counted.stdout) == {"n": 2}


def test_the_same_questions_can_be_asked_through_the_api(tmp_path, lookout, clean_space):
    configured(tmp_path, clean_space, few_cases(tmp_path), BY_API)
    done = lookout("verify", "demo", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["scores"]["flat"] == {"earned": "12", "total": "12"}

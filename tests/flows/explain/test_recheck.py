"""Test the recheck of a run's failed cases with the command, real pages or APIs, and a local Slack server."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from contextlib import contextmanager

import pytest

from monitors.alerts.wording import KIND_WORDS
from monitors.records.explanations import Recheck
from monitors.records.incidents import IncidentKind
from monitors.reports.rechecks import format_recheck, format_recheck_briefly
from tests.conftest import COMMAND_S, ROOT
from tests.flows.chat import Chat, watched
from tests.flows.explain.two_builds import BEFORE, NOW
from tests.flows.judged_run import TEETH, TEETH_RIGHT, TEETH_WRONG
from tests.flows.messages import format_stable_messages
from tests.servers.anthropic import KEY, AnthropicServer
from tests.servers.slack import TOKEN, SlackServer
from warehouse.folder_identity import IDENTITY_FILE

pytestmark = [pytest.mark.browser, pytest.mark.prefect]

RIGHT, WRONG = (f"The waiting period is {months} months. [Source: Gold, clause 4.2]" for months in (24, 36))
LOOSE = "Maybe 24 months? [Source: Gold, clause 4.2]"
"""An answer that no rule grades as right or wrong."""
PATIENT = "[recheck]\nmax_s = 600\n"
"""Settings with a time limit that is long enough for a recheck to complete even on a busy machine."""
FAULT = {"error": "overloaded"}
WAYS = {"always": [WRONG], "sometimes": [WRONG, WRONG, RIGHT, WRONG, RIGHT, RIGHT]}


def question(way):
    return f"What is the waiting period of the plan {way}?"


def suite(folder, ways, *, severity=3):
    """Write a suite with one case for each word in ``ways``. The word is the case id and a part of the question."""
    lines = [
        {
            "id": way,
            "question": question(way),
            "gold": "24 months",
            "expected_refusal": False,
            "severity": severity,
            "language": "en",
            "type": "waiting_period",
            "provenance": {"pipeline": "template"},
        }
        for way in ways
    ]
    (folder / "suite.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def configuration(folder, address, slack, *, previous="", more=""):
    """Write a lookout.toml, with ``previous`` as further lines of the target's table and ``more`` at the end."""
    (folder / "lookout.toml").write_text(
        f'data_folder = "data"\n[targets.demo]\nurl = "{address}"\nsuite = "suite.jsonl"\n{previous}'
        f'[targets.demo.probe.readiness]\nversion_url = "{address}/version"\n'
        f'[gate]\nmin_severity_3_cases = 0\n{PATIENT}[alerts]\nslack_channel = "#alerts"\n'
        f'slack_api_url = "{slack.api_url}"\n{more}',
        encoding="utf-8",
    )


@contextmanager
def two_builds(folder, answers, **versions):
    """Serve two builds of a page with the program two_builds.py, and yield the address of its server."""
    script = folder / "script.json"
    script.write_text(json.dumps({"answers": answers, "versions": versions}), encoding="utf-8")
    command = [sys.executable, "-m", "tests.flows.explain.two_builds", str(script)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


@pytest.fixture
def slack():
    with SlackServer() as server:
        yield server


def stable_messages(folder, slack):
    """Return all messages as users see them, without the parts that differ from run to run."""
    run_id = results(folder)["report"]["run_id"]
    return format_stable_messages(slack.messages, folder, run_id=run_id)


def shown(slack):
    """Return everything that Slack shows, as one text."""
    return json.dumps([message.blocks for message in slack.messages], ensure_ascii=False)


def results(folder):
    """Return the content of the newest run's results.json."""
    newest = max(folder.glob("data/runs/*/results.json"))
    return json.loads(newest.read_text(encoding="utf-8"))


def read_report(folder, name):
    """Return the text of the report ``name`` of the newest run."""
    return max(folder.glob(f"data/runs/*/{name}")).read_text(encoding="utf-8")


def rows(lookout, folder, query):
    """Return the rows of a warehouse query."""
    done = lookout("sql", query, "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.whole_only
def test_constant_and_occasional_failures_are_distinguished_on_both_builds(tmp_path, lookout, slack):
    """A case that always fails (5 of 5) and a case that sometimes fails (2 of 5) are distinguished.

    All outputs show the results of the current and the previous build.
    """
    before = {question("always"): [RIGHT], question("sometimes"): [RIGHT, WRONG]}
    answers = {NOW: {question(way): turns for way, turns in WAYS.items()}, BEFORE: before}
    suite(tmp_path, WAYS)
    with two_builds(tmp_path, answers) as page:
        previous = f'previous_url = "{page}/builds/{{commit}}"\n'
        configuration(tmp_path, f"{page}/builds/{BEFORE}", slack)
        assert lookout("verify", "demo", "--commit", BEFORE, cwd=tmp_path, SLACK_BOT_TOKEN=TOKEN).returncode == 0
        configuration(tmp_path, f"{page}/now", slack, previous=previous)
        done = lookout("verify", "demo", "--commit", NOW, cwd=tmp_path, SLACK_BOT_TOKEN=TOKEN)
    assert done.returncode == 1, done.stderr
    report = results(tmp_path)["report"]
    recheck = Recheck.model_validate(report["recheck"])
    lines = format_recheck(recheck)
    assert [case["here"]["failed"] for case in report["recheck"]["cases"]] == [5, 2]
    assert report["recheck"]["previous"] == {"commit": BEFORE, "proof": "proved", "names": None, "problem": ""}
    assert f"Again     {lines[0]}\n          {lines[1]}\n" in done.stdout, done.stdout
    for line in lines:
        assert f"- {line}" in read_report(tmp_path, "results.md")
        assert line in read_report(tmp_path, "report.html")
    brief = format_recheck_briefly(recheck)
    assert shown(slack).count(brief) == 2, shown(slack)  # the cases' message and the gate's
    assert all(message.thread_ts is None for message in slack.messages)

    found = rows(lookout, tmp_path, 'select case_id, place, asked, failed, "right" from asked_again order by 1, 2')
    assert [tuple(row.values()) for row in found] == [
        ("always", "previous", 5, 0, 5),
        ("always", "target", 5, 5, 0),
        ("sometimes", "previous", 5, 5, 0),
        ("sometimes", "target", 5, 2, 3),
    ]
    (counted,) = rows(
        lookout, tmp_path, "select count(*) as n from results where run_id = (select max(run_id) from runs)"
    )
    assert counted["n"] == 2
    assert lookout("warehouse", "check", cwd=tmp_path).returncode == 0


class WatchedChat(Chat):
    """A chat API that records, for each question, how many messages Slack had received before."""

    def __init__(self, slack, *answers):
        super().__init__(*answers)
        self.slack = slack
        self.taken = []

    async def _chat(self, request):
        self.taken.append(len(self.slack.messages))
        return await super()._chat(request)


def asked_through_api(folder, chat, slack, *, cases=1, more=PATIENT, url="", gold="24 months"):
    """Write the configuration of a target with the API ``chat``, a suite of severity-3 cases, and Slack."""
    path = watched(folder, chat, cases=cases, more=more, gold=gold)
    text = path.read_text(encoding="utf-8").replace("[targets.demo.probe]", f"{url}[targets.demo.probe]")
    path.write_text(
        text + f'[alerts]\nslack_channel = "#alerts"\nslack_api_url = "{slack.api_url}"\n', encoding="utf-8"
    )


def judged_at(judge):
    """Return the lines of lookout.toml that configure a judge at the server ``judge``."""
    return f'[[judge.models]]\nbase_url = "{judge.url}"\n'


@pytest.mark.whole_only
def test_nothing_is_asked_again_before_people_were_notified(tmp_path, lookout, slack, snapshot):
    """All messages of a run are sent before the first question of the recheck."""
    with WatchedChat(slack, WRONG) as chat:
        asked_through_api(tmp_path, chat, slack, cases=3)
        assert lookout("verify", "demo", cwd=tmp_path, SLACK_BOT_TOKEN=TOKEN).returncode == 1
    assert len(chat.taken) == 3 + 15
    assert chat.taken[3:] == [len(slack.messages)] * 15
    assert "all 3 cases" not in shown(slack)
    assert "fails 5 of 5" in shown(slack)
    counts = [case["here"] for case in results(tmp_path)["report"]["recheck"]["cases"]]
    assert [(count["asked"], count["failed"]) for count in counts] == [(5, 5)] * 3
    assert stable_messages(tmp_path, slack) == snapshot


@pytest.mark.whole_only
def test_a_run_killed_while_it_asks_again_asks_nothing_twice(tmp_path, lookout, slack, prefect_environment):
    """If a run is killed during its recheck, the next run asks only the remaining questions of the recheck.

    No message is sent twice.
    """
    with Chat(WRONG, WRONG, WRONG, None, WRONG, WRONG, WRONG) as chat:
        asked_through_api(tmp_path, chat, slack)
        environment = prefect_environment | {"SLACK_BOT_TOKEN": TOKEN, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-m", "deployments.cli.app", "verify", "demo"]
        with subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL) as first:
            assert chat.wait_for(4, COMMAND_S)
            first.kill()
        messages = len(slack.messages)
        assert messages
        assert lookout("verify", "demo", cwd=tmp_path, SLACK_BOT_TOKEN=TOKEN).returncode == 1
        assert chat.asked == 1 + 2 + 1 + 3  # the run's, two that came, the one that was killed, what was left
    (case,) = results(tmp_path)["report"]["recheck"]["cases"]
    assert (case["here"]["asked"], case["here"]["failed"]) == (5, 5)
    assert len(slack.messages) == messages
    assert "fails 5 of 5" in shown(slack)
    (found,) = rows(lookout, tmp_path, "select count(*) as n, count(distinct run_id) as runs from rechecks")
    assert found == {"n": 5, "runs": 1}


ENDINGS = [
    ([WRONG, WRONG, FAULT], "", "fails 1 of 4, 3 without an answer", "3 questions in a row had no"),
    ([WRONG], "times = 0\n", "", ""),
    ([WRONG, WRONG, RIGHT, WRONG], "max_questions = 3\n", "fails 2 of 3", ""),
    ([WRONG, RIGHT], "", "right 5 of 5", ""),
    ([WRONG, WRONG, LOOSE], "", "fails 1 of 5, 4 could not be graded", ""),
    ([WRONG, WRONG, "I am sorry, I cannot answer that."], "", "fails 5 of 5, 4 with another failure kind", ""),
    ([WRONG, FAULT], "", "asked 3 times, 3 without an answer", "The other cases were not asked again"),
]


@pytest.mark.whole_only
@pytest.mark.parametrize(("answers", "more", "count", "remark"), ENDINGS)
@pytest.mark.a_slice(1)
def test_no_more_is_said_than_came_back(tmp_path, lookout, slack, answers, more, count, remark):  # noqa: PLR0917 - a table's columns
    """The recheck counts failed, missing and ungraded answers separately, and says why it ended early.

    With `times = 0`, nothing is rechecked.
    """
    with Chat(*answers, *answers[-1:] * 9) as chat:
        asked_through_api(tmp_path, chat, slack, more=PATIENT + more)
        done = lookout("verify", "demo", cwd=tmp_path, SLACK_BOT_TOKEN=TOKEN)
    assert done.returncode == 1, done.stderr
    if not count:
        assert (chat.asked, results(tmp_path)["report"]["recheck"]) == (1, None)
        assert "Again " not in done.stdout
        return
    assert f"waiting-0 (severity 3): {count}" in done.stdout
    assert remark in done.stdout
    assert f"Asked again: {count}." in shown(slack)


OF_A_FAMILY = 'model_family = "gpt"\n'


@pytest.mark.whole_only
def test_a_recheck_ends_at_its_time_limit(tmp_path, lookout, slack, snapshot):
    """If the application stops answering, the recheck ends at its time limit, as the report and the alert say."""
    with Chat(WRONG, None) as chat:
        asked_through_api(tmp_path, chat, slack, more="[recheck]\nmax_s = 0.5\n")
        done = lookout("verify", "demo", cwd=tmp_path, SLACK_BOT_TOKEN=TOKEN)
    assert done.returncode == 1
    assert "(recheck.max_s)" in done.stdout
    recheck = results(tmp_path)["report"]["recheck"]
    assert (recheck["cases"], "recheck.max_s" in recheck["problem"]) == ([], True)
    assert recheck["problem"] in shown(slack)
    assert stable_messages(tmp_path, slack) == snapshot


@pytest.mark.whole_only
def test_partial_answers_are_counted(tmp_path, lookout, slack):
    """If the application stops answering after two of five questions, the recheck counts these two answers.

    The terminal, the alert and the reports state why the other answers are missing.
    """
    with Chat(WRONG, WRONG, RIGHT, None) as chat:
        asked_through_api(tmp_path, chat, slack, more="[recheck]\nmax_s = 20\n")
        done = lookout("verify", "demo", cwd=tmp_path, SLACK_BOT_TOKEN=TOKEN)
        assert chat.asked == 1 + 2 + 1
    assert done.returncode == 1, done.stderr
    recheck = results(tmp_path)["report"]["recheck"]
    (case,) = recheck["cases"]
    assert (case["here"]["asked"], case["here"]["failed"]) == (2, 1)
    why = recheck["problem"]
    assert "recheck.max_s" in why
    places = done.stdout, shown(slack), read_report(tmp_path, "report.html"), read_report(tmp_path, "results.md")
    for text in places:
        assert "fails 1 of 2" in text
        assert why in text.replace("\\_", "_")
    (found,) = rows(lookout, tmp_path, "select asked, failed from asked_again")
    assert found == {"asked": 2, "failed": 1}


@pytest.mark.whole_only
def test_a_case_that_only_a_judge_can_grade_is_judged_again(tmp_path, lookout, slack):
    """In a recheck, the judge grades each answer that the rules leave open. The cost is stored."""
    answers = [TEETH_WRONG, TEETH_WRONG, TEETH_RIGHT, TEETH_WRONG, TEETH_RIGHT, TEETH_WRONG]
    with Chat(*answers) as chat, AnthropicServer() as judge:
        asked_through_api(tmp_path, chat, slack, gold=TEETH, url=OF_A_FAMILY, more=PATIENT + judged_at(judge))
        done = lookout("verify", "demo", cwd=tmp_path, SLACK_BOT_TOKEN=TOKEN, ANTHROPIC_API_KEY=KEY)
        assert chat.asked == 1 + 5
    assert done.returncode == 1, done.stdout + done.stderr
    assert "fails 3 of 5" in done.stdout
    assert "fails 3 of 5" in shown(slack)
    (found,) = rows(lookout, tmp_path, "select count(*) as n, min(cost_usd) > 0 as paid from rechecks")
    assert found == {"n": 5, "paid": True}


@pytest.mark.whole_only
def test_a_webhook_shows_what_is_in_common_and_the_report_has_what_was_asked_again(tmp_path, lookout, slack):
    """With a Slack webhook, messages show what failed cases have in common, but only the report has the recheck.

    A webhook cannot edit a message later.
    """
    with Chat(RIGHT) as chat:
        chat.by_question = {f"What is the waiting period of plan {number}?": WRONG for number in range(6)}
        asked_through_api(tmp_path, chat, slack, cases=18)
        suite = [json.loads(line) for line in (tmp_path / "suite.jsonl").read_text().splitlines()]
        for at, case in enumerate(suite):
            case["cluster"] = "gold" if at < 6 else "silver"
        (tmp_path / "suite.jsonl").write_text("".join(json.dumps(case) + "\n" for case in suite))
        done = lookout("verify", "demo", cwd=tmp_path, SLACK_WEBHOOK_URL=slack.webhook_url)
        sent = len(slack.messages)
        assert chat.asked == 18 + 30
    assert done.returncode == 1, done.stderr
    line = "group is gold in all 6 failures: 6 of 6 such cases failed, 0 of 12 other cases"
    gate = next(message for message in slack.messages if KIND_WORDS[IncidentKind.GATE_FAIL] in message.text)
    assert f"In common: {line}" in json.dumps(gate.blocks), shown(slack)
    assert all(message.edits == 0 for message in slack.messages)
    assert "Asked again" not in shown(slack)
    assert sent == len(slack.messages)
    assert f"- {line}" in read_report(tmp_path, "results.md")
    assert read_report(tmp_path, "results.md").count("fails 5 of 5") == 6


@pytest.fixture(scope="module")
def passed(tmp_path_factory, lookout):
    """Return a data folder with a run in which the previous build passed."""
    folder = tmp_path_factory.mktemp("passed")
    with Chat(RIGHT) as chat, SlackServer() as slack:
        asked_through_api(folder, chat, slack)
        assert lookout("verify", "demo", "--commit", BEFORE, cwd=folder).returncode == 0
    return folder / "data"


VERSIONED = '[targets.demo.probe.api]\napp_version = "version"\n'
BUILDS = [
    ([{"answer": WRONG, "version": BEFORE}], {"asked": 5, "failed": 5}, "proved"),
    ([RIGHT], {"asked": 5, "right": 5}, "unproved"),
    ([{"answer": RIGHT, "version": "0123abc"}], {"asked": 5, "right": 5}, "another"),
    ([{"error": "gone"}], {"asked": 3, "no_answer": 3}, "unproved"),
]


@pytest.mark.whole_only
@pytest.mark.parametrize(("answers", "counted", "proof"), BUILDS)
@pytest.mark.a_slice(1)
def test_which_build_answered_is_stated_only_as_far_as_it_is_proved(  # noqa: PLR0917 - a table's columns
    tmp_path, lookout, slack, passed, answers, counted, proof, snapshot
):
    """The recheck says that the previous build answered only if the answers contain the commit of this build.

    Otherwise, it names only the address, or the other build that the answers report.
    """
    shutil.copytree(passed, tmp_path / "data", ignore=shutil.ignore_patterns(IDENTITY_FILE))
    with Chat(WRONG) as here, Chat(*answers) as there:
        url = f'previous_url = "{there.url}/chat"\n'
        asked_through_api(tmp_path, here, slack, url=url, more=VERSIONED + PATIENT)
        done = lookout("verify", "demo", "--commit", NOW, cwd=tmp_path, SLACK_BOT_TOKEN=TOKEN)
        assert (here.asked, there.asked) == (6, 3 if "error" in answers[0] else 5), done.stderr
    recheck = results(tmp_path)["report"]["recheck"]
    (case,) = recheck["cases"]
    assert (case["here"]["asked"], case["here"]["failed"]) == (5, 5)
    assert {name: count for name, count in case["previous"].items() if count} == counted
    assert (recheck["previous"]["commit"], recheck["previous"]["proof"]) == (BEFORE, proof)
    assert "fails 5 of 5" in done.stdout
    assert stable_messages(tmp_path, slack) == snapshot

"""`lookout init` as a user runs it: in a process, in a terminal, for a page.

The written files work unchanged.
"""

from __future__ import annotations

import json
import os
import pty
import resource
import shlex
import subprocess
from functools import partial

import pytest

from monitors.config.file import load_config
from tests import fork_server
from tests.flows.chat import Chat
from tests.flows.few_cases import BY_API
from tests.in_process import run_in_process
from tests.servers.api_key_check import Keyed

WRITTEN = ("lookout.toml", "suite.jsonl", "webhooks.md")
END_S = 60


def init(folder, *options, stdin=""):
    return run_in_process("init", *options, cwd=folder, env=fork_server.bare(), given=stdin)


def without_paths(text, folder):
    """Join a text into one line, and replace the path of ``folder``.

    The length of this path decides where the text wraps.
    """
    return " ".join(text.replace(str(folder), "FOLDER").split())


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def in_a_terminal(folder, *answers):
    """Run the command in a terminal. Return the exit code and the complete output.

    Each of ``answers`` is typed as soon as its prompt appears.
    """
    terminal, other_end = pty.openpty()
    streams = {"stdin": other_end, "stdout": other_end, "stderr": other_end}
    process = fork_server.start("init", cwd=folder, env=os.environ | fork_server.WARM, **streams)
    os.close(other_end)
    shown, left = b"", list(answers)
    with os.fdopen(terminal, "r+b", buffering=0) as screen:
        while chunk := _read(screen):
            shown += chunk
            while left and shown.count(b"   > ") > len(answers) - len(left):
                screen.write(left.pop(0).encode() + b"\n")
        return process.wait(END_S), shown.decode().replace("\r\n", "\n")


def _read(screen):
    """Read the output of the terminal. Return an empty text at the end, which Linux reports as an error."""
    try:
        return screen.read(4096)
    except OSError:
        return b""


def test_in_a_terminal_five_answers_make_a_beginning_and_a_bad_one_is_asked_again(tmp_path, snapshot):
    code, shown = in_a_terminal(
        tmp_path, "example.com/chat", "https://example.com/chat", "", "llama", "", "#alerts"
    )
    assert code == 0, shown
    assert without_paths(shown, tmp_path) == snapshot
    assert names(tmp_path) == sorted(WRITTEN)
    config = load_config(tmp_path / "lookout.toml")
    assert config.alerts.slack_channel == "#alerts"
    assert config.require_target("example-com").model_family == "llama"


def test_answers_come_from_a_pipe_too_and_json_stands_alone_on_standard_output(tmp_path):
    done = init(tmp_path, "--json", stdin="acme/bot\n\n\n\n\n")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["target"], report["moved_aside"]) == ("bot", [])
    assert report["questions"] == len((tmp_path / "suite.jsonl").read_text(encoding="utf-8").splitlines())
    assert "1. " in done.stderr


@pytest.mark.parametrize(
    ("answer", "domains"),
    [("", ("general",)), ("health_insurance, general", ("health_insurance", "general")), ("none", ())],
)
def test_what_the_application_talks_about_is_asked_and_written(tmp_path, answer, domains):
    done = init(tmp_path, stdin=f"acme/bot\n\n\nparcels\n{answer}\n\n")
    assert done.returncode == 0, done.stderr
    assert "'parcels' is not a domain pack. Accepted: general, health_insurance" in done.stderr
    assert load_config(tmp_path / "lookout.toml").require_target("bot").domains == domains


@pytest.mark.whole_only
@pytest.mark.prefect
def test_a_parcel_service_is_not_read_as_a_health_insurer(tmp_path, lookout):
    """The replies of a parcel service are not graded with the word meanings of a health insurer.

    For a question about delivery, "three days" for a return are no answer, so the case is ungraded. "We do not
    deliver on Sundays" is a correct no.
    """
    asked = {
        "How long does delivery take?": ("3 days", "You can return items within 3 days."),
        "Do you deliver on Sundays?": ("No", "We do not deliver on Sundays."),
    }
    with Chat() as chat:
        assert lookout("init", "--yes", "--target", f"{chat.url}/chat", cwd=tmp_path).returncode == 0
        rows = [
            {"id": question[-5:-1], "question": question, "gold": gold, "severity": 2}
            for question, (gold, _) in asked.items()
        ]
        (tmp_path / "suite.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        chat.by_question = {question: answer for question, (_, answer) in asked.items()}
        done = lookout("verify", "bot", cwd=tmp_path)
    (path,) = tmp_path.glob(".lookout/**/results.json")
    cases = json.loads(path.read_text(encoding="utf-8"))["cases"]
    outcomes = {result["case"]["id"]: result["assessment"]["outcome"] for result in cases}
    assert outcomes == {"take": "ungraded", "days": "correct"}, done.stdout


def test_when_the_input_ends_nothing_is_written(tmp_path, snapshot):
    done = init(tmp_path, stdin="acme/bot\n")
    assert done.returncode == 2
    assert done.stderr == snapshot
    assert names(tmp_path) == []


@pytest.mark.parametrize("there", WRITTEN)
def test_a_file_that_exists_is_an_error_before_anything_is_asked(tmp_path, there):
    (tmp_path / there).write_text("mine", encoding="utf-8")
    done = init(tmp_path, stdin="acme/bot\n\n\n\n\n")
    assert (done.returncode, done.stdout) == (2, "")
    assert there in done.stderr
    assert "1. What" not in done.stderr
    assert names(tmp_path) == [there]
    assert (tmp_path / there).read_text(encoding="utf-8") == "mine"


def test_with_force_what_is_there_gets_another_name(tmp_path):
    flags = ("--yes", "--force", "--target", "acme/bot")
    for mine in ("first", "second"):
        (tmp_path / "lookout.toml").write_text(mine, encoding="utf-8")
        assert init(tmp_path, *flags).returncode == 0
    assert (tmp_path / "lookout.toml.old").read_text(encoding="utf-8") == "first"
    assert (tmp_path / "lookout.toml.old-2").read_text(encoding="utf-8") == "second"
    assert names(tmp_path) == sorted(
        [*WRITTEN, "lookout.toml.old", "lookout.toml.old-2", "suite.jsonl.old", "webhooks.md.old"]
    )


def test_if_one_file_cannot_be_written_all_are_restored(tmp_path):
    """If one of the files cannot be written, the former state of all files is restored.

    In this test, the system refuses files of more than 2,000 bytes.
    """
    (tmp_path / "lookout.toml").write_text("mine", encoding="utf-8")
    done = subprocess.run(
        [fork_server.SCRIPT, "init", "--yes", "--force", "--target", "acme/bot"],
        cwd=tmp_path,
        env=os.environ | fork_server.WARM,
        preexec_fn=partial(resource.setrlimit, resource.RLIMIT_FSIZE, (2_000, 2_000)),
        capture_output=True,
        text=True,
        timeout=END_S,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert "File too large" in done.stderr
    assert names(tmp_path) == ["lookout.toml"]
    assert (tmp_path / "lookout.toml").read_text(encoding="utf-8") == "mine"


@pytest.mark.whole_only
@pytest.mark.prefect
@pytest.mark.browser
def test_doctor_and_verify_work_with_what_it_wrote(tmp_path, lookout, clean_space):
    """With the written files, the doctor checks a real page, and every question is graded without a judge."""
    begun = lookout("init", "--yes", "--target", clean_space, "--model-family", "llama", cwd=tmp_path)
    assert begun.returncode == 0, begun.stderr
    assert "lookout verify bot" in begun.stdout

    checked = lookout("doctor", "--json", cwd=tmp_path)
    health = {check["name"]: check["health"] for check in json.loads(checked.stdout)["checks"]}
    assert checked.returncode == 0, checked.stdout
    assert health["page of bot"] == health["configuration"] == 0

    seen = lookout("doctor", "bot", "--no-ask", "--json", cwd=tmp_path)
    assert seen.returncode == 0, seen.stdout

    with (tmp_path / "lookout.toml").open("a", encoding="utf-8") as config:
        config.write(f"\n[targets.bot.probe]\n{BY_API}\n")
    verified = lookout("verify", "bot", "--json", cwd=tmp_path)
    assert verified.returncode in {0, 1}, verified.stderr
    report = json.loads(verified.stdout)
    assert report["verdict"] in {"PASS", "FAIL"}
    lines = (tmp_path / "suite.jsonl").read_text(encoding="utf-8").splitlines()
    assert report["coverage"]["graded"] == report["coverage"]["asked"] == len(lines)


def test_given_options_are_not_counted_and_a_webhook_is_an_answer(tmp_path, snapshot):
    done = init(tmp_path, "--target", "acme/bot", stdin="\n\n\nwebhook\n")
    assert done.returncode == 0, done.stderr
    assert without_paths(done.stderr + done.stdout, tmp_path) == snapshot
    assert "SLACK_WEBHOOK_URL" in (tmp_path / "lookout.toml").read_text(encoding="utf-8")


def test_a_key_comes_first_the_judge_last_and_again_asks_nothing_that_is_known(tmp_path):
    """If an API needs a key, the first of the printed steps sets this key, and the last sets the judge's key.

    The printed command works as typed. A second call takes the known values from lookout.toml and does not ask for
    them.
    """
    with Keyed("Authorization", "Bearer 1234567890abcdef") as server:
        options = ("--target", f"{server.url}/json", "--environment", "production", "--model-family", "llama")
        options += ("--domains", "general")
        done = init(tmp_path, *options, "--slack-channel", "none", "--json")
        assert done.returncode == 0, done.stderr
        steps = [step["command"] for step in json.loads(done.stdout)["next"]]
        assert (steps[0], steps[-1]) == ("export LOOKOUT_API_TOKEN=…", "export ANTHROPIC_API_KEY=…")
        assert shlex.split(steps[1]) == ["lookout", "init", "--force", *options, "--slack-channel", "none"]
        again = init(tmp_path, "--force", *options[:2])
    assert again.returncode == 0, again.stderr
    assert "--environment production" in again.stderr
    assert "--model-family llama" in again.stderr
    assert "1. " not in again.stderr
    assert load_config(tmp_path / "lookout.toml").require_target("bot").model_family == "llama"

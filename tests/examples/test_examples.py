"""The single command of each example does what its page describes, against the example's own bot."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from examples.__main__ import EXAMPLES, MEMBER, ROOT, serve_example
from monitors.config.file import load_config
from monitors.goldset.load import load_suite
from tests import fork_server
from tests.monitors.sources.traffic.test_langsmith_traffic import run
from tests.servers.langsmith import LangSmithServer

KEY = "lsv2_pt_of_nobody"
DAY = "2026-11-23"
PASSED = " PASS   weighted 1.000"
SHOWN = {
    "gradio_page": (0, PASSED, "flat 1.000 (7/7)"),
    "streamlit_page": (0, PASSED, "flat 1.000 (5/5)"),
    "json_api": (0, PASSED, "flat 1.000 (5/5)"),
    "sse_api": (0, PASSED, "flat 1.000 (5/5)"),
    "login_page": (0, PASSED, "flat 1.000 (4/4)"),
    "triage_agent": (0, PASSED, "flat 1.000 (4/4)"),
    "traffic_files": (0, "5 new conversations; 5 sampled", ": 1 of 5"),
    "traffic_export": (0, "5 new conversations; 5 sampled", ": 1 of 5"),
}
"""The exit code and the output of each example.

The example for LangSmith has its own test, because it needs a key.
"""
WITH_BROWSER = ("gradio_page", "streamlit_page", "login_page")


def rows() -> list[pytest.param]:
    return [pytest.param(name, marks=[pytest.mark.browser] if name in WITH_BROWSER else []) for name in SHOWN]


@pytest.mark.whole_only
@pytest.mark.prefect
@pytest.mark.parametrize("name", rows())
@pytest.mark.a_slice(2)
def test_an_example_does_what_its_page_says(name: str, tmp_path: Path, prefect_environment: dict[str, str]) -> None:
    example = EXAMPLES[name]
    variables = prefect_environment | fork_server.WARM | dict(example.variables)
    with serve_example(name, tmp_path / name, variables) as config:
        done = fork_server.run(*example.command, "--config", str(config), cwd=tmp_path, env=variables)
    code, *texts = SHOWN[name]
    assert done.returncode == code, done.stdout + done.stderr
    assert [text for text in texts if text not in done.stdout] == [], done.stdout


@pytest.mark.prefect
@pytest.mark.whole_only
def test_the_one_command_starts_the_bot_and_ends_it(tmp_path: Path, prefect_environment: dict[str, str]) -> None:
    """The one command of an example starts the bot and ends it.

    Afterwards, nothing listens on the port in the configuration that the command wrote.
    """
    environment = prefect_environment | fork_server.WARM
    done = fork_server.run("json_api", module="examples", cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    command = ("verify", "bot", "--config", ".lookout-examples/json_api/lookout.toml")
    assert done.stdout.splitlines()[0] == f"$ lookout {' '.join(command)}"
    assert PASSED in done.stdout
    again = fork_server.run(*command, cwd=tmp_path, env=environment)
    assert again.returncode == 3, again.stdout + again.stderr
    assert not (ROOT / "json_api" / ".lookout").exists()


@pytest.mark.prefect
@pytest.mark.whole_only
def test_runs_of_langsmith_are_a_night_of_traffic(tmp_path: Path, prefect_environment: dict[str, str]) -> None:
    """Runs that were recorded in LangSmith are graded as a night of traffic.

    A local server with LangSmith's API is used, because the tests have no real key.
    """
    talks = (("How long is the city tour?", "The city tour takes 3 hours."), ("Is there a guide?", "Yes, Tom."))
    runs = [
        run(number, start_time=f"{DAY}T10:00:00+00:00", end_time=f"{DAY}T10:00:02+00:00")
        | {"inputs": {"question": question}, "outputs": {"answer": answer}}
        for number, (question, answer) in enumerate(talks)
    ]
    variables = prefect_environment | fork_server.WARM | {"LANGSMITH_API_KEY": KEY}
    with (
        LangSmithServer(runs, key=KEY) as server,
        serve_example("traffic_langsmith", tmp_path / "example", variables) as config,
    ):
        text = config.read_text(encoding="utf-8").replace("project =", f'api_url = "{server.url}"\nproject =')
        config.write_text(text, encoding="utf-8")
        until = ("--until", "2026-11-24")
        done = fork_server.run(
            *(*EXAMPLES["traffic_langsmith"].command, *until, "--config", str(config), "--json"),
            cwd=tmp_path,
            env=variables,
        )
        assert server.feedback == {}
    assert done.returncode == 0, done.stdout + done.stderr
    night = json.loads(done.stdout)
    assert (night["read"], night["sampled"]) == (2, 2)
    assert night["known_questions"] == {"conversations": 1, "failed": 1}


def test_an_example_that_needs_a_key_says_so(tmp_path: Path) -> None:
    done = fork_server.run("traffic_langsmith", module="examples", cwd=tmp_path, env=fork_server.bare())
    assert done.returncode == 2
    assert "LANGSMITH_API_KEY" in done.stderr
    assert [*tmp_path.iterdir()] == []


def test_every_folder_is_an_example_and_its_page_has_its_command() -> None:
    folders = {path.name for path in ROOT.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert folders == set(EXAMPLES) == {*SHOWN, "traffic_langsmith"}
    listed = (ROOT / "README.md").read_text(encoding="utf-8")
    for name, example in EXAMPLES.items():
        page = (ROOT / name / "README.md").read_text(encoding="utf-8")
        assert re.findall(r"^```console\n(.*?)\n```", page, re.MULTILINE)[0] == f"$ python -m examples {name}"
        assert f"`lookout {' '.join(example.command)}`" in page
        assert (
            f"| [{name}]({name}/README.md) | {example.about} | `lookout {' '.join(example.command[:2])}` |"
            in listed
        )


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_has_four_to_eight_questions_and_one_that_must_never_be_answered(name: str) -> None:
    config = load_config(ROOT / name / "lookout.toml")
    cases = load_suite(config.require_target("bot").suite).cases
    assert 4 <= len(cases) <= 8
    assert name == "triage_agent" or any(case.expected_refusal for case in cases)


def test_a_bot_stands_alone() -> None:
    """A copied folder of an example works alone: its bot imports neither Lookout nor other examples."""
    ours = re.compile(
        r"^\s*(?:from|import) (?:flows|monitors|warehouse|deployments|tests|examples)\b", re.MULTILINE
    )
    bots = {path: path.read_text(encoding="utf-8") for path in ROOT.glob("*/*.py")}
    assert [path for path, text in bots.items() if ours.search(text)] == []
    assert len(bots) == sum(bool(example.bot) for example in EXAMPLES.values())


def test_secrets_of_examples_stand_in_no_configuration() -> None:
    texts = [path.read_text(encoding="utf-8") for path in ROOT.glob("*/lookout.toml")]
    given = {value for example in EXAMPLES.values() for value in example.variables.values()}
    assert [text for text in texts for value in given if re.search(rf'"{re.escape(value)}"', text)] == []
    assert not set(MEMBER) & set(os.environ)

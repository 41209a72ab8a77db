"""`lookout doctor`: printed lines that can be pasted, faults with advice, exit codes."""

from __future__ import annotations

import io
import json
import os
import socket
import tomllib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from syrupy.assertion import SnapshotAssertion

from deployments.cli.doctor.checks import check_rights, run_checks
from deployments.cli.doctor.command import exit_code_from_inspection
from deployments.cli.doctor.format import format_selectors_toml, format_wire_toml, print_inspection
from deployments.cli.doctor.services import DoctorContext, Health, HealthCheck
from deployments.cli.exit_codes import ExitCode
from monitors.config.file import load_config
from monitors.errors import AccessDenied, AnswerTimeout, PageNotUnderstood
from monitors.graders.base import GraderSettings
from monitors.probes.inspect.findings import Overview, PageElement, PageInspection, Trial, WireCandidate
from monitors.probes.inspect.page import ADVICE, build_page_problem
from monitors.probes.settings import ProbeSettings, Selectors
from monitors.probes.wire import WireRule
from monitors.records.exchanges import NoAnswerReason
from tests import fork_server
from tests.zoo.server import Zoo

BOX = PageElement(role="textbox", name="Your message", selector="#box", how_sure="sure (score 7)")
FOUND = PageInspection(
    address="http://host/chat",
    http_status=200,
    loaded_s=0.1,
    usable_s=0.2,
    profile="generic",
    box=BOX,
    answer_text="[bold]24 months[/] ",
    asked="Hello!",
    why_asked="the page does not mark where answers appear",
    selectors=Selectors(message_box="#box"),
)
STRANGE = st.text(st.characters(blacklist_categories=["Cs"]), min_size=1, max_size=30)


def printed(look: PageInspection) -> str:
    console = Console(record=True, width=160, file=io.StringIO())
    print_inspection(console, look, "page", ProbeSettings(), GraderSettings())
    return "\n".join(map(str.rstrip, console.export_text().splitlines()))


@given(box=STRANGE, name=STRANGE)
def test_the_lines_to_paste_are_toml_whatever_the_page_calls_things(box: str, name: str) -> None:
    look = FOUND.model_copy(update={"selectors": Selectors(message_box=box), "profile": "gradio"})
    probe = tomllib.loads(format_selectors_toml(look, name))["targets"][name]["probe"]
    assert probe == {"profile": "gradio", "selectors": {"message_box": box}}


@pytest.mark.parametrize(
    ("answers", "required", "proposed"),
    [
        (["24 months [Source: Gold]", "30 days [Source: Gold]", "no"], False, True),
        (["24 months [Source: Gold]", "30 days", "no"], False, False),
        (["24 months [Source: Gold]"], True, False),
        ([], False, False),
    ],
)
def test_sources_are_proposed_as_required_where_most_answers_name_one(
    answers: list[str], required: bool, proposed: bool
) -> None:
    trials = tuple(Trial(question="?", text=answer) for answer in answers)
    console = Console(record=True, width=160, file=io.StringIO())
    look = FOUND.model_copy(update={"trials": trials})
    print_inspection(console, look, "page", ProbeSettings(), GraderSettings(citation_required=required))
    assert ("[targets.page.graders]\ncitation_required = true" in console.export_text()) is proposed


@given(text=STRANGE)
def test_a_wire_rule_survives_being_printed(text: str) -> None:
    rule = WireRule(url=r"/api/[^/]+'\?", text=text, joins=False, citations="sources.*")
    table = tomllib.loads(format_wire_toml(rule, "page"))["targets"]["page"]["probe"]["wire"]
    assert WireRule.model_validate(table) == rule


def test_findings_are_shown_with_confidence_and_escaped(snapshot: SnapshotAssertion) -> None:
    candidate = WireCandidate(
        kind="web socket", rule=WireRule(url="/ws", text="t", joins=True), likeness=0.8, more="[P-7]"
    )
    text = printed(FOUND.model_copy(update={"wire": (candidate,)}))
    assert "[bold]24 months[/]" in text
    assert text == snapshot


def test_a_page_without_a_chat_is_described_with_what_to_do(snapshot: SnapshotAssertion) -> None:
    seen = Overview(title="Company", headings=("About us",), boxes=('input "Search"',), dialogs=("Cookies?",))
    problem = build_page_problem(PageNotUnderstood("no usable message box"))
    text = printed(PageInspection(address="http://host/", overview=seen, problem=problem, picture="look.png"))
    assert text == snapshot


def test_every_reason_has_its_advice() -> None:
    assert set(ADVICE) == set(NoAnswerReason)


ERRORS = [(None, ExitCode.PASS), (AnswerTimeout("x"), ExitCode.FAIL), (AccessDenied("x"), ExitCode.INCONCLUSIVE)]


@pytest.mark.parametrize(("error", "code"), ERRORS, ids=["found", "the app's", "ours"])
def test_the_exit_code_says_whose_fault_it_is(error: AnswerTimeout | None, code: ExitCode) -> None:
    assert (
        exit_code_from_inspection(PageInspection(address="x", problem=build_page_problem(error) if error else None))
        is code
    )


@pytest.fixture(scope="module")
def pages() -> Iterator[str]:
    """Serve web pages that the doctor checks."""
    with Zoo() as server:
        yield server.address
        server.shutdown()


def config(folder: Path, url: str, **tables: str) -> Path:
    """Write a configuration with one target and a data folder next to it."""
    (folder / "suite.jsonl").touch()
    path = folder / "lookout.toml"
    rest = "\n".join(f"[{name}]\n{line}" for name, line in tables.items())
    path.write_text(f'data_folder = "data"\n[targets.bot]\nurl = "{url}"\nsuite = "suite.jsonl"\n{rest}\n')
    return path


def checked(path: Path, *, now: datetime | None = None, **environment: str) -> dict[str, HealthCheck]:
    """Return all checks of the doctor, keyed by name. The browser is not started."""
    missing = {"CHROMIUM_PATH": "/nowhere/chromium"}
    found = run_checks(path, environment=missing | environment, now=now or datetime.now(UTC), send_alerts=False)
    return {check.name: check for check in found}


def test_a_machine_that_is_well(pages: str, tmp_path: Path) -> None:
    found = checked(config(tmp_path, f"{pages}/form"))
    well = {name for name, check in found.items() if check.health is Health.GOOD}
    assert {"configuration", "page of bot", "clock", "warehouse", "Prefect", "alerts"} <= well
    assert found["browser"].health is Health.BROKEN
    assert "does not exist" in found["browser"].found
    assert not (tmp_path / "data").exists()  # a check changes nothing


def test_an_error_says_what_to_do(pages: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        dead = f"http://127.0.0.1:{free.getsockname()[1]}/api"
    path = config(tmp_path, f"{pages}/status/401", prefect=f'api_url = "{dead}"')
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "warehouse.duckdb").write_text("a letter")
    found = checked(path, now=datetime.now(UTC) + timedelta(hours=1))
    for name in ("page of bot", "clock", "Prefect", "warehouse"):
        assert found[name].health is Health.BROKEN, found[name]
        assert found[name].to_do


def test_a_data_folder_that_others_can_read_is_said(tmp_path: Path) -> None:
    path = config(tmp_path, "http://127.0.0.1:9")
    around = DoctorContext(path, load_config(path), {}, datetime.now(UTC))
    assert check_rights(around) == []
    around.data_folder.mkdir(mode=0o700)
    (own,) = check_rights(around)
    around.data_folder.chmod(0o750)
    (opened,) = check_rights(around)
    assert (own.health, opened.health) == (Health.GOOD, Health.DOUBTFUL)
    assert "(mode 750)" in opened.found
    assert opened.to_do is not None
    assert "chmod 700" in opened.to_do


def test_without_a_configuration_the_rest_is_checked(tmp_path: Path) -> None:
    found = checked(tmp_path / "lookout.toml")
    assert found["configuration"].health is Health.DOUBTFUL
    assert "disk" in found


def test_a_broken_configuration_is_named(tmp_path: Path) -> None:
    path = tmp_path / "lookout.toml"
    path.write_text("[targets.bot]\nurk = 1\n")
    found = checked(path)["configuration"]
    assert (found.health, "urk" in found.found) == (Health.BROKEN, True)


@pytest.mark.browser
@pytest.mark.parametrize(("page", "code"), [("contenteditable.html", 0), ("login.html", 3)])
def test_the_command_looks_at_a_page(pages: str, tmp_path: Path, page: str, code: int) -> None:
    words = ("doctor", f"{pages}/{page}", "--json", "--no-ask")
    done = fork_server.run(*words, cwd=tmp_path, env=os.environ | fork_server.WARM)
    assert done.returncode == code, done.stderr
    look = json.loads(done.stdout)
    assert (tmp_path / look["picture"]).read_bytes().startswith(b"\x89PNG")
    assert look["asked"] is None
    assert bool(look["problem"]) is bool(code)


@pytest.mark.browser
@pytest.mark.whole_only
def test_a_bot_without_small_talk_is_asked_what_its_page_suggests(pages: str, tmp_path: Path) -> None:
    """If a bot rejects small talk, the doctor asks the questions that the bot's page suggests.

    The output lists these questions with their answers.
    """
    words = ("doctor", f"{pages}/fallback.html", "--json")
    done = fork_server.run(*words, cwd=tmp_path, env=os.environ | fork_server.WARM)
    look = json.loads(done.stdout)
    assert done.returncode == ExitCode.PASS, done.stderr
    assert look["fallback_answer"] == "I can only speak about surgery."
    asked = [trial["question"] for trial in look["trials"]]
    assert asked == look["starters"] == [
        "Is knee surgery covered?", "How long do I wait for eye surgery?", "Is a second surgery paid for?",
    ]  # fmt: skip
    assert {text for trial in look["trials"] for text in trial["stripped"]} == {"tool: search_policies: 3 hits"}
    assert "mat-input" not in look["selectors"]["message_box"]
    assert (look["selectors"]["answer"], look["pins_note"]) == (None, "answer = 'div.unknown-text'")

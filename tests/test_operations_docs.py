"""Test that the commands in docs/operations.md work as written: backup, moving, upgrade, keys and deletion."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from flows.data_folder import open_store_in
from flows.folder_identity import claim_or_separate_data_folder
from tests import fork_server
from tests.conftest import ROOT
from tests.flows.chat import Chat, watched
from tests.servers.slack import TOKEN, SlackServer
from tests.warehouse.crash_worker import longer_schema
from tests.warehouse.database.test_retention import talk
from tests.warehouse.decisions import OutboxDecision, decide
from tests.warehouse.sample_nights import night_report, seen
from tests.warehouse.sample_rows import NOON, alert, assessment, incident
from tests.warehouse.temporary_stores import bare_store_in
from warehouse.journal.rows import AssessmentRow, ConversationRow, NightlyRunRow, ResultRow

PAGE = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
CONFIGURATION = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
CONSOLE = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
SECRET = "Asha Rao, 42 Hill Road"
KEYS = {"LOOKOUT_AGE_KEY": "sixteen-or-more-characters"}
INCIDENTS = "select title, state, occurrences from incidents order by all"


def read_blocks(heading: str) -> Iterator[str]:
    """Return an iterator over the command blocks in the section with this heading, without prompts."""
    section = PAGE.split(f"# {heading}\n")[1]
    section = re.split(r"^##", section, maxsplit=1, flags=re.MULTILINE)[0]
    return iter([block.replace("$ ", "") for block in CONSOLE.findall(section)])


@pytest.fixture
def machine(tmp_path) -> Path:
    """Return the folder of an installation that graded one night of two users, and has an open incident."""
    folder = tmp_path / "machine"
    folder.mkdir()
    claim_or_separate_data_folder(folder / ".lookout", None, new_id="original", at=NOON)
    store = open_store_in(folder / ".lookout")
    for name, text in (("talk-17", SECRET), ("talk-18", "Bela Sen")):
        answer = ResultRow(row=talk(f"{name}:1", text=text))
        graded = AssessmentRow(row=assessment("night-1", f"{name}:1"))
        conversation = ConversationRow(row=seen(name, sampled_in=text))
        store.journal.append([answer, graded, conversation], run_id="night-1")
    store.journal.append([NightlyRunRow(row=night_report())], run_id="night-1")
    decided = OutboxDecision(incidents=(incident(),), alerts=(alert(),))
    decide(store, store.journal, "helpdesk", lambda _: decided, wait_s=5)
    (folder / ".lookout" / "runs" / "night-1").mkdir(parents=True)
    (folder / ".lookout" / "runs" / "night-1" / "report.html").write_text(SECRET, encoding="utf-8")
    (folder / "lookout.toml").write_text(
        '[targets.helpdesk]\nurl = "http://127.0.0.1:9"\nsuite = "suite.jsonl"\n', encoding="utf-8"
    )
    shutil.copy(ROOT / "examples" / "gradio_page" / "suite.jsonl", folder)
    (folder / "secrets.env").write_text("LOOKOUT_AGE_KEY=x\n", encoding="utf-8")
    return folder


def type_lines(block: str, folder: Path, **variables: str) -> str:
    """Run a block of commands in a shell, and return the output. Raises `AssertionError` if a command fails."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-ec", block],
        cwd=folder,
        env=fork_server.bare(PATH=path, HOME=str(folder.parent), **KEYS, **variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, f"{block}\n{done.stdout}"
    return done.stdout


def read_incidents(folder: Path) -> object:
    return open_store_in(folder / ".lookout").query(INCIDENTS).rows


@pytest.mark.whole_only
def test_a_backup_is_restored_beside_its_original(machine):
    backup, restoring = read_blocks("Backup and restore")
    type_lines(backup, machine)
    before = sorted(path.name for path in machine.iterdir())
    assert "Next: `lookout doctor`" in type_lines(restoring, machine)
    assert sorted(path.name for path in machine.iterdir()) == sorted([*before, "restored"])
    assert open_store_in(machine / "restored").query(INCIDENTS).rows == (("leak", "acknowledged", 1),)


@pytest.mark.whole_only
def test_the_old_machine_s_data_arrives_at_the_new_one(machine, tmp_path):
    on_old, on_new = read_blocks("Moving to another machine")
    type_lines(on_old, machine)
    (tmp_path / "new").mkdir()
    for name in ("lookout-move.tar.gz", "lookout-files.tar.gz"):
        shutil.move(machine / name, tmp_path / "new")
    shown = type_lines(on_new, tmp_path / "new")
    assert "No problem found" in shown
    assert "leak" in shown
    assert read_incidents(tmp_path / "new") == read_incidents(machine) == (("leak", "open", 1),)


@pytest.mark.whole_only
def test_an_upgrade_can_be_taken_back(machine):
    """An upgrade can be undone: the older version rejects the newer schema until the backup is restored."""
    before, upgraded, back = read_blocks("Upgrading, with a way back")
    type_lines(before, machine)
    type_lines(upgraded, machine)
    newer = bare_store_in(machine / ".lookout", schema=longer_schema(1))
    newer.journal.append([ResultRow(row=talk("talk-19:1", "night-2"))], run_id="night-2")
    newer.load_pending(5)
    with pytest.raises(AssertionError, match="update Lookout"):
        type_lines("lookout warehouse check", machine)
    assert "No problem found" in type_lines(back, machine)
    assert read_incidents(machine) == (("leak", "open", 1),)


@pytest.mark.whole_only
def test_the_keys_of_the_site_are_rotated(machine):
    _, block = read_blocks("Rotating each key")
    tokens = machine / ".lookout" / "site" / "tokens.json"
    type_lines("lookout site token add asha --role operate", machine)
    (tokens.parent / "key").write_text("00" * 32, encoding="ascii")
    before = tokens.read_text(encoding="utf-8")
    type_lines(block, machine)
    assert "asha" in tokens.read_text(encoding="utf-8") != before
    assert not (tokens.parent / "key").exists()


@pytest.mark.browser
def test_a_new_token_is_tested_before_the_old_one_is_revoked(machine):
    """The command that tests a new token sends one message, and fails with `invalid_auth` for an invalid token."""
    testing, _ = read_blocks("Rotating each key")
    with Chat() as chat, SlackServer() as slack:
        alerts = f'[alerts]\nslack_channel = "C0ALERTS"\nslack_api_url = "{slack.api_url}"\n'
        watched(machine, chat, cases=2, more=alerts)
        type_lines(testing, machine, SLACK_BOT_TOKEN=TOKEN)
        assert len(slack.messages) == 1
        with pytest.raises(AssertionError, match="invalid_auth"):
            type_lines(testing, machine, SLACK_BOT_TOKEN=f"{TOKEN}-of-last-year")


def test_every_key_of_the_environment_has_a_row():
    section = PAGE.split("### Rotating each key\n")[1].split("\n### ")[0]
    rows = [line.split(" | ")[0] for line in CONFIGURATION.splitlines() if line.startswith("| `")]
    variables = {name for row in rows for name in re.findall(r"`([A-Z]+(?:_[A-Z]+)+)`", row)}
    keys = {name for name in variables if name.endswith(("TOKEN", "KEY", "SECRET", "STRING"))}
    keys |= {name for name in variables if "WEBHOOK" in name or "HEARTBEAT" in name}
    assert len(keys) > 12
    assert {name for name in keys if f"`{name}`" not in section} == set()


@pytest.mark.whole_only
def test_one_user_s_data_is_gone_from_every_file(machine):
    type_lines(next(read_blocks("Backup and restore")), machine)
    assert SECRET in read_all_texts(machine)
    found, *deleting = read_blocks("Deleting one user's data")
    found = found.replace("'session-17'", f"'{SECRET} talk-17'")
    assert type_lines(found, machine).count("talk-17") == 2
    shown = "".join(type_lines(block, machine) for block in deleting)
    assert "runs/night-1 has reports that may quote the conversation" in shown
    text = read_all_texts(machine)
    assert (SECRET in text, "Bela Sen" in text) == (False, True)
    assert [path.name for path in machine.glob("*.tar.gz")] == ["after-deletion.tar.gz"]


def read_all_texts(folder: Path) -> str:
    """Return the content of all files in a folder and of the warehouse. Backups (``.gz``) are skipped."""
    text = ""
    for path in sorted(folder.rglob("*")):
        if path.suffix == ".parquet":
            text += str(duckdb.read_parquet(str(path)).fetchall())
        elif path.is_file() and path.suffix != ".gz":
            text += path.read_bytes().decode("latin-1")
    store = open_store_in(folder / ".lookout")
    return text + str(store.query("from results").rows) + str(store.query("from conversations").rows)


@pytest.mark.whole_only
def test_nothing_but_the_backup_remains_after_an_uninstallation(machine):
    for block in read_blocks("Uninstalling"):
        type_lines(block, machine)
    assert [path.name for path in machine.iterdir()] == ["lookout-last.tar.gz"]

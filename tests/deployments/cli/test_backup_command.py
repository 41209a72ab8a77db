"""`lookout backup` and `restore` as a user runs them: their output, their refusals, and unchanged data."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from flows.data_folder import open_store_in
from flows.folder_identity import claim_or_separate_data_folder
from flows.server import prefect_server
from tests import fork_server
from tests.flows.chat import Chat, watched
from tests.in_process import run_in_process
from tests.prefect_home import with_tables
from tests.stable_text import replace_volatile
from tests.warehouse.decisions import OutboxDecision, decide
from tests.warehouse.sample_nights import night_report, seen
from tests.warehouse.sample_rows import NOON, alert, assessment, exchange, incident, run_report
from warehouse.folder_identity import read_identity
from warehouse.journal.rows import AssessmentRow, ConversationRow, NightlyRunRow, ResultRow, RunRow

CONFIG = '[targets.helpdesk]\nurl = "http://127.0.0.1:9"\nsuite = "suite.jsonl"\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a configuration, and a data folder with a run, a night and an incident."""
    claim_or_separate_data_folder(tmp_path / ".lookout", None, new_id="original", at=NOON)
    store = open_store_in(tmp_path / ".lookout")
    rows = [ResultRow(row=exchange()), AssessmentRow(row=assessment()), RunRow(row=run_report())]
    store.journal.append(rows, run_id="run-1")
    night = [ConversationRow(row=seen(sampled_in="a text")), NightlyRunRow(row=night_report())]
    store.journal.append(night, run_id="night-1")
    decided = OutboxDecision(incidents=(incident(),), alerts=(alert(),))
    decide(store, store.journal, "helpdesk", lambda _: decided, wait_s=5)
    (tmp_path / "lookout.toml").write_text(CONFIG, encoding="utf-8")
    return tmp_path


def lookout(*arguments: str, cwd: Path, run=run_in_process, **variables: str) -> subprocess.CompletedProcess[str]:
    return run(*arguments, cwd=cwd, env=fork_server.bare(COLUMNS="400", **variables))


def make_stable(text: str, folder: Path) -> str:
    text = re.sub(r"made \S+ \S+ UTC", "made TIME UTC", replace_volatile(text, folder))
    return re.sub(r"\d\.\d MB", "N MB", text)


def test_a_restored_installation_answers_as_the_original(folder, snapshot):
    made = lookout("backup", "saved.tar.gz", cwd=folder, run=fork_server.run)
    assert made.returncode == 0, made.stderr
    shown = {}
    questions = [("alerts", "list", "--json"), ("sql", "from run_summary", "--json"), ("sql", "from nightly_trend")]
    for question in questions:
        shown[question] = lookout(*question, cwd=folder).stdout
    shutil.move(folder / ".lookout", folder / "lost")
    restored = lookout("restore", "saved.tar.gz", "--moved", cwd=folder, run=fork_server.run)
    assert restored.returncode == 0, restored.stderr
    assert {question: lookout(*question, cwd=folder).stdout for question in questions} == shown
    assert all("helpdesk" in text for text in shown.values())
    identity = read_identity(folder / ".lookout")
    assert identity is not None
    assert identity.id == "original"
    assert [make_stable(done.stdout, folder) for done in (made, restored)] == snapshot


def test_a_restored_copy_leaves_messages_to_its_original(folder):
    assert lookout("backup", "saved.tar.gz", cwd=folder).returncode == 0
    done = lookout("restore", "saved.tar.gz", "--copy", "--data-folder", "copy", "--json", cwd=folder)
    assert (done.returncode, json.loads(done.stdout)["whole"]) == (0, True)
    identity = read_identity(folder / "copy")
    assert identity is not None
    assert identity.id != "original"
    waiting = [open_store_in(folder / name).query("from unsent_alerts").rows for name in (".lookout", "copy")]
    assert [len(rows) for rows in waiting] == [1, 0]


REFUSED = {
    "not said whether moved or copied": ("restore", "saved.tar.gz", "--data-folder", "new"),
    "moved and copied": ("restore", "saved.tar.gz", "--data-folder", "new", "--moved", "--copy"),
    "a data folder with data": ("restore", "saved.tar.gz", "--moved"),
    "a file as data folder": ("restore", "saved.tar.gz", "--moved", "--data-folder", "lookout.toml"),
    "no such backup": ("restore", "none.tar.gz", "--moved", "--data-folder", "new"),
    "not a backup": ("restore", "lookout.toml", "--moved", "--data-folder", "new"),
    "a journal elsewhere": (
        "restore",
        "saved.tar.gz",
        "--moved",
        "--data-folder",
        "new",
        "--config",
        "bucket.toml",
    ),
    "no data folder": ("backup", "more.tar.gz", "--data-folder", "new"),
    "the file exists": ("backup", "saved.tar.gz"),
    "inside the data folder": ("backup", ".lookout/saved.tar.gz"),
    "neither days nor conversation": ("warehouse", "age"),
    "days and conversation": ("warehouse", "age", "--days", "1", "--conversation", "talk-1"),
}


def test_each_refusal_says_what_to_do_and_changes_nothing(folder, snapshot):
    (folder / "bucket.toml").write_text(f'{CONFIG}\n[warehouse]\njournal = "memory://j"\n', encoding="utf-8")
    assert lookout("backup", "saved.tar.gz", cwd=folder).returncode == 0
    before = sorted(path.name for path in folder.iterdir())
    refusals = {name: lookout(*arguments, cwd=folder) for name, arguments in REFUSED.items()}
    assert {name: done.returncode for name, done in refusals.items()} == dict.fromkeys(REFUSED, 2)
    assert sorted(path.name for path in folder.iterdir()) == before
    assert {name: make_stable(done.stderr, folder) for name, done in refusals.items()} == snapshot


def test_a_journal_in_a_bucket_is_not_in_the_backup(folder):
    bucket = "memory://journal-of-a-backup"
    (folder / "lookout.toml").write_text(f'{CONFIG}\n[warehouse]\njournal = "{bucket}"\n', encoding="utf-8")
    store = open_store_in(folder / ".lookout", bucket)
    store.journal.append([ResultRow(row=exchange("run-9"))], run_id="run-9")
    made = lookout("backup", "saved.tar.gz", cwd=folder)
    assert "Back up that store as well" in made.stdout
    shared = lookout("restore", "saved.tar.gz", "--copy", "--data-folder", "new", cwd=folder)
    assert (shared.returncode, "would share this journal" in shared.stderr) == (2, True)
    shutil.move(folder / ".lookout", folder / "lost")
    assert lookout("restore", "saved.tar.gz", "--moved", cwd=folder).returncode == 0
    counted = lookout("sql", "select count(*) as n from results", "--json", cwd=folder)
    assert json.loads(counted.stdout)["n"] == 1


def test_what_the_journal_had_lost_before_is_named_after_the_restore(folder):
    (folder / ".lookout" / "journal" / "_damaged").mkdir()
    (folder / ".lookout" / "journal" / "_damaged" / "run-1__x.jsonl").write_text("half", encoding="utf-8")
    assert lookout("backup", "saved.tar.gz", cwd=folder).returncode == 0
    done = lookout("restore", "saved.tar.gz", "--moved", "--data-folder", "new", cwd=folder)
    assert (done.returncode, "_damaged/run-1__x.jsonl is damaged, so Lookout moved it" in done.stdout) == (
        4,
        True,
    )
    assert (folder / "new" / "journal" / "_damaged" / "run-1__x.jsonl").exists()


@pytest.mark.prefect
@pytest.mark.whole_only
def test_a_verified_target_goes_on_after_a_restore(tmp_path):
    """After a run, a backup, a lost data folder and a restore, the run's report is the same.

    The next run is stored in addition to the restored run.
    """

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return fork_server.run(*arguments, cwd=tmp_path, env=fork_server.bare(), timeout_s=600)

    home = tmp_path / "data" / "prefect"
    with Chat() as chat:
        with_tables(home)
        watched(tmp_path, chat, cases=2)
        try:
            assert run("verify", "demo").returncode == 0
            shown = run("report", "--json").stdout
            made = run("backup", "saved.tar.gz", "--json")
            assert made.returncode == 0, made.stderr
            assert run("down").returncode == 0
            shutil.rmtree(tmp_path / "data")
            restored = run("restore", "saved.tar.gz", "--moved")
            assert restored.returncode == 0, restored.stderr
            with_tables(home)
            assert json.loads(run("report", "--json").stdout) == json.loads(shown)
            assert run("verify", "demo", "--fresh").returncode == 0
            runs = run("sql", "select count(*) as n from runs where target = 'demo'", "--json")
            assert json.loads(runs.stdout)["n"] == 2
        finally:
            prefect_server.stop_server(home)

"""`lookout login` as a new user runs it, and how runs and the doctor use the stored session."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from flows.server import prefect_server
from tests import fork_server
from tests.deployments.cli.test_bare_commands import Installation
from tests.in_process import run_in_process
from tests.prefect_home import with_tables
from tests.servers.login_site import COOKIE, PASSWORD, USER, LoginSite

pytestmark = pytest.mark.browser

SECRETS = {"BOT_USER": USER, "BOT_PASSWORD": PASSWORD}
BY_FORM = 'user = { env = "BOT_USER" }\npassword = { env = "BOT_PASSWORD" }\n'
BY_PERSON = ""


@pytest.fixture
def site() -> Iterator[LoginSite]:
    with LoginSite() as server:
        yield server


def configured(folder: Path, site: LoginSite, login: str, *, form: str = "/login") -> Installation:
    cases = [
        {
            "id": f"case-{number}",
            "question": f"What is the waiting period of plan {number}?",
            "gold": "24 months",
            "severity": 2,
            "language": "en",
            "type": "limits",
            "provenance": {"pipeline": "template"},
        }
        for number in range(3)
    ]
    (folder / "suite.jsonl").write_text("".join(f"{json.dumps(case)}\n" for case in cases), encoding="utf-8")
    (folder / "lookout.toml").write_text(
        f'data_folder = "data"\n[targets.bot]\nurl = "{site.url}/chat"\nsuite = "suite.jsonl"\n'
        f'[targets.bot.login]\nurl = "{site.url}{form}"\n{login}'
        '[targets.bot.probe]\ntraces = "always"\n[gate]\nmin_severity_3_cases = 0\n',
        encoding="utf-8",
    )
    return Installation(folder)


def everything(folder: Path) -> dict[str, bytes]:
    """Return the content of every file in the data folder except the session, by file path."""
    return {
        str(file): file.read_bytes()
        for file in (folder / "data").rglob("*")
        if file.is_file() and file.parent.name != "sessions"
    }


@pytest.mark.whole_only
def test_a_form_signs_in_and_the_session_is_stored_for_its_owner(tmp_path: Path, site: LoginSite) -> None:
    installation = configured(tmp_path, site, BY_FORM)
    done = installation.run("login", "bot", **SECRETS)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "data" / "sessions" / "bot.json").stat().st_mode & 0o777 == 0o600
    assert site.logins == 1
    looked = installation.run("doctor", "bot", "--json", "--ask", **SECRETS)
    assert looked.returncode == 0, looked.stdout + looked.stderr
    assert json.loads(looked.stdout)["answer_text"]
    site.end_sessions()
    assert installation.run("doctor", "bot", "--json", "--ask", **SECRETS).returncode == 0
    assert site.logins == 2


def test_a_missing_secret_is_named(tmp_path: Path, site: LoginSite) -> None:
    folder = configured(tmp_path, site, BY_FORM).folder
    done = run_in_process("login", "bot", cwd=folder, env=fork_server.bare(BOT_USER=USER))
    assert done.returncode == 2
    assert "BOT_PASSWORD" in done.stderr


def test_a_form_that_lets_nobody_in_is_an_error_without_the_password(tmp_path: Path, site: LoginSite) -> None:
    secrets = SECRETS | {"BOT_PASSWORD": "not-the-password"}
    done = configured(tmp_path, site, BY_FORM).run("login", "bot", **secrets, LOOKOUT_DEBUG="1")
    assert done.returncode == 4, done.stdout
    assert "BOT_USER" in done.stderr
    assert "not-the-password" not in done.stderr
    assert not (tmp_path / "data" / "sessions" / "bot.json").exists()


def test_a_machine_without_a_screen_says_what_to_do_instead(tmp_path: Path, site: LoginSite) -> None:
    folder = configured(tmp_path, site, BY_PERSON).folder
    done = run_in_process("login", "bot", cwd=folder, env=fork_server.bare())
    assert done.returncode == 2
    assert "--from FILE" in done.stderr


def test_a_session_from_another_machine_is_proved_before_it_is_stored(tmp_path: Path, site: LoginSite) -> None:
    installation = configured(tmp_path, site, BY_PERSON)
    cookie = {"name": COOKIE, "value": "b" * 32, "domain": "127.0.0.1", "path": "/", "expires": -1}
    cookie |= {"httpOnly": True, "secure": False, "sameSite": "Lax"}
    (tmp_path / "state.json").write_text(json.dumps({"cookies": [cookie], "origins": []}), encoding="utf-8")
    done = installation.run("login", "bot", "--from", "state.json")
    assert done.returncode == 4, done.stderr
    assert not (tmp_path / "data" / "sessions").exists()
    site.sessions["b" * 32] = 0
    done = installation.run("login", "bot", "--from", "state.json")
    assert done.returncode == 0, done.stderr
    assert "`lookout login bot`" in done.stdout


@pytest.mark.whole_only
def test_after_signing_in_in_the_window_no_key_is_needed(tmp_path: Path, site: LoginSite) -> None:
    """After the user signs in in a browser window, the session is stored without a key press.

    The site's single sign-on signs in for the user. The browser in this test is headless.
    """
    installation = configured(tmp_path, site, BY_PERSON, form="/sso")
    done = installation.run("login", "bot", DISPLAY=":99")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "data" / "sessions" / "bot.json").exists()
    assert site.logins == 1


@pytest.mark.prefect
def test_a_run_signs_in_and_stores_no_secret_and_its_end_is_a_fault_of_the_monitor(
    tmp_path: Path, site: LoginSite
) -> None:
    """A run signs in by itself, and neither its output nor its files contain a secret, even with all traces stored.

    If a user's session has ended, the run exits with 3 and names the command for a new login.
    """
    installation = configured(tmp_path, site, BY_FORM)
    with_tables(tmp_path / "data" / "prefect")
    try:
        done = installation.run("verify", "bot", "--json", **SECRETS)
        assert done.returncode == 0, done.stdout + done.stderr
        assert sorted(site.asked) == [f"What is the waiting period of plan {number}?" for number in range(3)]
        files = everything(tmp_path)
        shown = (done.stdout + done.stderr).encode()
        for secret in (PASSWORD, USER, *site.sessions):
            assert not [name for name, data in files.items() if secret.encode() in data]
            assert secret.encode() not in shown
        path = tmp_path / "lookout.toml"
        path.write_text(path.read_text(encoding="utf-8").replace(BY_FORM, BY_PERSON), encoding="utf-8")
        site.end_sessions()
        done = installation.run("verify", "bot", "--fresh")
        assert done.returncode == 3, done.stdout + done.stderr
        assert "`lookout login bot`" in done.stderr
        assert "is down" not in done.stderr
    finally:
        prefect_server.stop_server(tmp_path / "data" / "prefect")

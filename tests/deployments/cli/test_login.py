"""`lookout login` as a user runs it first, and what runs and the doctor make of the session that it stores."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from flows.server import prefect_server
from tests.deployments.cli.test_bare_commands import Installation
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
    """Every file of the data folder but the session itself."""
    return {
        str(file): file.read_bytes()
        for file in (folder / "data").rglob("*")
        if file.is_file() and file.parent.name != "sessions"
    }


def test_a_form_signs_in_and_the_session_is_stored_for_its_owner(tmp_path: Path, site: LoginSite) -> None:
    installation = configured(tmp_path, site, BY_FORM)
    done = installation.run("login", "bot", **SECRETS)
    assert done.returncode == 0, done.stderr
    assert "Signed in to bot: a chat stands at" in done.stdout
    assert (tmp_path / "data" / "sessions" / "bot.json").stat().st_mode & 0o777 == 0o600
    assert site.logins == 1
    looked = installation.run("doctor", "bot", "--json", "--ask", **SECRETS)
    assert looked.returncode == 0, looked.stdout + looked.stderr
    assert json.loads(looked.stdout)["answer_text"]
    site.end_sessions()
    assert installation.run("doctor", "bot", "--json", "--ask", **SECRETS).returncode == 0
    assert site.logins == 2


def test_a_missing_secret_is_named(tmp_path: Path, site: LoginSite) -> None:
    done = configured(tmp_path, site, BY_FORM).run("login", "bot", BOT_USER=USER)
    assert (done.returncode, "targets.bot.login.password: BOT_PASSWORD is not set" in done.stderr) == (2, True)


def test_a_form_that_lets_nobody_in_is_told_without_the_password(tmp_path: Path, site: LoginSite) -> None:
    secrets = SECRETS | {"BOT_PASSWORD": "not-the-password"}
    done = configured(tmp_path, site, BY_FORM).run("login", "bot", **secrets, LOOKOUT_DEBUG="1")
    assert done.returncode == 4, done.stdout
    assert "the user in BOT_USER" in done.stderr
    assert "not-the-password" not in done.stderr
    assert not (tmp_path / "data" / "sessions" / "bot.json").exists()


def test_a_machine_without_a_screen_says_what_to_do_instead(tmp_path: Path, site: LoginSite) -> None:
    done = configured(tmp_path, site, BY_PERSON).run("login", "bot")
    assert done.returncode == 2
    assert "--from FILE" in done.stderr


def test_a_session_from_another_machine_is_proved_before_it_is_stored(tmp_path: Path, site: LoginSite) -> None:
    installation = configured(tmp_path, site, BY_PERSON)
    kept = {"name": COOKIE, "value": "b" * 32, "domain": "127.0.0.1", "path": "/", "expires": -1}
    kept |= {"httpOnly": True, "secure": False, "sameSite": "Lax"}
    (tmp_path / "state.json").write_text(json.dumps({"cookies": [kept], "origins": []}), encoding="utf-8")
    done = installation.run("login", "bot", "--from", "state.json")
    assert (done.returncode, "still asks to sign in" in done.stderr) == (4, True), done.stderr
    assert not (tmp_path / "data" / "sessions").exists()
    site.sessions["b" * 32] = 0
    done = installation.run("login", "bot", "--from", "state.json")
    assert done.returncode == 0, done.stderr
    assert "`lookout login bot` mends it" in done.stdout


def test_who_signs_in_in_the_window_needs_to_press_nothing(tmp_path: Path, site: LoginSite) -> None:
    """The site's single sign-on takes the person's part; the browser here draws its window nowhere."""
    installation = configured(tmp_path, site, BY_PERSON, form="/sso")
    done = installation.run("login", "bot", DISPLAY=":99")
    assert done.returncode == 0, done.stderr
    assert "The session is in" in done.stdout
    assert site.logins == 1


@pytest.mark.prefect
def test_a_run_signs_in_and_keeps_no_secret_and_its_end_is_a_fault_of_the_monitor(
    tmp_path: Path, site: LoginSite
) -> None:
    """The whole run in a bare environment, every trace kept; then a person's session that has ended."""
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
        assert "Lookout cannot ask" in done.stderr
        assert "run `lookout login bot`" in done.stderr
        assert "is down" not in done.stderr
    finally:
        prefect_server.stop_server(tmp_path / "data" / "prefect")

"""Test pages behind a login (form, stored session, header, cookie or HTTP authentication). No credential leaks."""

from __future__ import annotations

import asyncio
import json
import stat
import zipfile
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from monitors.errors import ConfigError, LoginFailed, ProbeError, SessionEnded
from monitors.probes.browser.driver import BrowserDriver
from monitors.probes.browser.login import Login
from monitors.probes.driver import Answer, EvidenceFilter
from monitors.probes.settings import LoginSettings, ProbeSettings
from monitors.records.base import Blame
from tests.servers.login_site import COOKIE, KEY, PASSWORD, USER, LoginSite
from tests.zoo.server import reply

pytestmark = pytest.mark.browser

SECRETS = {"BOT_USER": USER, "BOT_PASSWORD": PASSWORD, "BOT_KEY": KEY}
FORM = {"user": {"env": "BOT_USER"}, "password": {"env": "BOT_PASSWORD"}}


@pytest.fixture
def site() -> Iterator[LoginSite]:
    with LoginSite() as server:
        yield server


def login_to(
    address: str, folder: Path, settings: Mapping[str, Any], environment: Mapping[str, str] = SECRETS
) -> Login:
    return Login(
        LoginSettings.model_validate(settings),
        target="bot",
        address=address,
        data_folder=folder,
        environment=environment,
        now=lambda: datetime.now(UTC),
    )


def driver_to(
    address: str, settings: ProbeSettings, folder: Path, login: Login, **changes: object
) -> BrowserDriver:
    changed = ProbeSettings.model_validate({**settings.model_dump(), **changes})
    return BrowserDriver(address, changed, run_folder=folder, login=login)


def stored(folder: Path) -> Path:
    return folder / "sessions" / "bot.json"


@pytest.mark.parametrize("form", ["/login", "/login/steps"])
async def test_a_form_signs_in_once_for_all_and_again_when_the_session_ended(
    site: LoginSite, settings: ProbeSettings, tmp_path: Path, form: str
) -> None:
    """A login form is used once per session, and the stored session is readable by its owner only."""
    address = f"{site.url}/chat"
    ways = {"url": f"{site.url}{form}", **FORM}
    async with driver_to(address, settings, tmp_path, login_to(address, tmp_path, ways)) as driver:
        answers = await asyncio.gather(driver.ask(("one",)), driver.ask(("two",)))
        assert [answer.visible_text for answer in answers] == [reply("one"), reply("two")]
        assert site.logins == 1
        assert stat.S_IMODE(stored(tmp_path).stat().st_mode) == 0o600
        assert stat.S_IMODE(stored(tmp_path).parent.stat().st_mode) == 0o700
    async with driver_to(address, settings, tmp_path, login_to(address, tmp_path, ways)) as driver:
        await driver.ask(("three",))
        assert site.logins == 1
        site.end_sessions()
        answers = await asyncio.gather(driver.ask(("four",)), driver.ask(("five",)))
        assert [answer.visible_text for answer in answers] == [reply("four"), reply("five")]
        assert site.logins == 2
    assert sorted(site.asked) == ["five", "four", "one", "three", "two"]


async def test_a_session_that_ends_while_a_question_is_asked_is_no_answer_of_the_apps(
    settings: ProbeSettings, tmp_path: Path
) -> None:
    """If the session ends during a question, the login page is not graded as an answer.

    The retry signs in again.
    """
    with LoginSite(asks_per_session=1) as site:
        address = f"{site.url}/chat"
        login = login_to(address, tmp_path, {"url": f"{site.url}/login", **FORM})
        async with driver_to(address, settings, tmp_path, login) as driver:
            assert (await driver.ask(("one",))).visible_text == reply("one")
            with pytest.raises(SessionEnded) as raised:
                await driver.ask(("two",))
            assert raised.value.blame is Blame.MONITOR
            assert raised.value.retryable
            assert (await driver.ask(("two",))).visible_text == reply("two")


async def test_a_wrong_password_is_tried_once_and_not_printed(
    site: LoginSite, settings: ProbeSettings, tmp_path: Path
) -> None:
    """A wrong password is tried once, because accounts can be locked.

    The password is not printed, even if the page repeats it.
    """
    address = f"{site.url}/chat"
    wrong = SECRETS | {"BOT_PASSWORD": "not-the-password"}
    login = login_to(address, tmp_path, {"url": f"{site.url}/login", **FORM}, wrong)
    async with driver_to(address, settings, tmp_path, login) as driver:
        for question in ("one", "two"):
            with pytest.raises(LoginFailed, match=r"the user in BOT_USER.*Wrong password for \[secret\]") as raised:
                await driver.ask((question,))
            assert "not-the-password" not in str(raised.value)
            assert raised.value.blame is Blame.MONITOR
    assert site.tries == 1
    assert not stored(tmp_path).exists()


async def test_an_expired_user_session_names_the_command_that_renews_it(
    site: LoginSite, settings: ProbeSettings, tmp_path: Path
) -> None:
    address = f"{site.url}/chat"
    async with driver_to(address, settings, tmp_path, login_to(address, tmp_path, {})) as driver:
        with pytest.raises(LoginFailed, match=r"not signed in to bot\. Run `lookout login bot`"):
            await driver.ask(("one",))
    made = login_to(address, tmp_path, {})
    site.sessions["a" * 32] = 0
    made.use_storage_state({"cookies": [cookie(site.url, "a" * 32)], "origins": []}, by="window")
    made.store_session()
    async with driver_to(address, settings, tmp_path, login_to(address, tmp_path, {})) as driver:
        assert (await driver.ask(("one",))).visible_text == reply("one")
        site.end_sessions()
        with pytest.raises(LoginFailed, match=r"no longer accepts the session of \d{4}-.*Run `lookout login bot`"):
            await driver.ask(("two",))


def cookie(address: str, value: str) -> dict[str, Any]:
    return {
        "name": COOKIE, "value": value, "domain": "127.0.0.1", "path": "/", "expires": -1,
        "httpOnly": True, "secure": False, "sameSite": "Lax",
    }  # fmt: skip


WAYS = {
    "basic": ("/basic/chat", {"basic": {"user": {"env": "BOT_USER"}, "password": {"env": "BOT_PASSWORD"}}}),
    "header": ("/header/chat", {"headers": {"X-Key": {"env": "BOT_KEY"}}}),
    "cookie": ("/chat", {"cookies": {COOKIE: {"env": "BOT_KEY"}}}),
}


@pytest.mark.parametrize("way", WAYS)
async def test_extra_headers_open_a_page_and_their_rejection_is_reported(
    site: LoginSite, settings: ProbeSettings, tmp_path: Path, way: str
) -> None:
    path, ways = WAYS[way]
    site.sessions[KEY] = 0
    address = f"{site.url}{path}"
    async with driver_to(address, settings, tmp_path, login_to(address, tmp_path, ways)) as driver:
        assert (await driver.ask(("one",))).visible_text == reply("one")
    old = dict.fromkeys(SECRETS, "an-older-value")
    async with driver_to(address, settings, tmp_path, login_to(address, tmp_path, ways, old)) as driver:
        with pytest.raises(LoginFailed, match=r"rejected the values of \[login\]") as raised:
            await driver.ask(("two",))
    assert "an-older-value" not in str(raised.value)
    assert not stored(tmp_path).exists()


async def test_headers_go_to_the_targets_own_origin_alone(
    site: LoginSite, settings: ProbeSettings, tmp_path: Path
) -> None:
    """Headers are sent to the target's own origin only, not to the host of a redirect."""
    ways = {"headers": {"X-Key": {"env": "BOT_KEY"}}}
    with LoginSite() as other:
        address = f"{site.url}/header/moved?to={other.url}/elsewhere"
        login, allowed = login_to(address, tmp_path, ways), (other.url,)
        async with driver_to(address, settings, tmp_path, login, allowed_origins=allowed) as driver:
            with pytest.raises(ProbeError):
                await driver.ask(("one",))
        assert set(other.keys_elsewhere) == {"none"}


async def test_credentials_of_the_target_are_in_no_answer_and_no_evidence(
    site: LoginSite, settings: ProbeSettings, tmp_path: Path
) -> None:
    """The target's credentials are in no answer and no trace, although the app repeats password and session."""
    address = f"{site.url}/chat"
    login = login_to(address, tmp_path, {"url": f"{site.url}/login", **FORM})
    seen: list[Answer] = []

    async def keep(answer: Answer) -> EvidenceFilter:
        seen.append(answer)
        return EvidenceFilter(screenshot=True, trace=True)

    async with driver_to(address, settings, tmp_path, login, traces="always") as driver:
        for question in ("say my password", "say my session"):
            answer = await driver.ask((question,), name=question.replace(" ", "-"), select_evidence=keep)
            assert "[secret]" in answer.visible_text
            seen.append(answer)
    (session,) = site.sessions
    texts = [answer.model_dump_json().encode() for answer in seen]
    for trace in (tmp_path / "evidence").glob("*.zip"):
        with zipfile.ZipFile(trace) as archive:
            texts += [archive.read(name) for name in archive.namelist()]
    assert len(texts) > 10
    for secret in (PASSWORD, json.dumps(PASSWORD)[1:-1], session):
        assert not any(secret.encode() in text for text in texts)


def test_a_secret_that_the_environment_has_not_is_named_with_its_key(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError,
        match=r"targets\.bot\.login\.password needs the environment variable BOT_PASSWORD, which is not set",
    ):
        login_to("http://127.0.0.1/", tmp_path, FORM, {"BOT_USER": USER})


def test_a_broken_session_file_is_named(tmp_path: Path) -> None:
    stored(tmp_path).parent.mkdir()
    stored(tmp_path).write_text("{")
    with pytest.raises(ConfigError, match=r"bot\.json is not a valid session file"):
        login_to("http://127.0.0.1/", tmp_path, {})

"""Sign in to one target with a stored session, a form, headers, cookies or HTTP authentication.

If a session has ended, Lookout signs in again with the form. If a person had signed in, Lookout raises an error,
which contains the command to sign in again. A failed form login is not tried again in the same run, because some
apps lock an account after a few failures. A session is stored in a file that only its owner can read.
"""

from __future__ import annotations

import asyncio
import html
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import quote, urlsplit

from pydantic import ValidationError

from monitors.errors import ConfigError, LoginFailed, LoginWall
from monitors.probes.settings import FromEnvironment, LoginSettings
from monitors.records.base import Record, UtcTime
from monitors.storage import OWNER_ONLY_MODE, write_atomically

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Locator, Page, Request, Route, StorageState


FOLDER: Final = "sessions"
"""The name of the folder in the data folder that contains the sessions, one file for each target."""
HIDDEN: Final = "[secret]"
MIN_SECRET_CHARACTERS: Final = 6
"""A secret is redacted only if it has at least this many characters.

A shorter value may be an ordinary word in an answer.
"""
MIN_SESSION_SECRET_CHARACTERS: Final = 16
"""A value in cookies or browser storage is redacted only if it has at least this many characters.

A short value, such as `accepted`, is not a secret.
"""
_TOKEN: Final = re.compile(rf"[A-Za-z0-9._~+/=|:%-]{{{MIN_SESSION_SECRET_CHARACTERS},}}")


class Session(Record):
    """The stored cookies and browser storage of a signed-in browser.

    ``by`` is the way in which the session was created: form, window or file.
    """

    made_at: UtcTime
    by: str
    state: dict[str, Any]

    def iterate_secrets(self) -> Iterator[str]:
        """Yield the values in the session that give access to the target."""
        for cookie in _list_objects(self.state.get("cookies")):
            yield from _TOKEN.findall(str(cookie.get("value", "")))
        for origin in _list_objects(self.state.get("origins")):
            stored = json.dumps([origin.get("localStorage"), origin.get("indexedDB")])
            yield from _TOKEN.findall(stored)


class SessionFile:
    """The file that contains the session of one target."""

    def __init__(self, data_folder: Path, target: str) -> None:
        self.path = data_folder / FOLDER / f"{target}.json"

    def read(self) -> Session | None:
        """Return the stored session, or ``None`` if there is none. Raises `ConfigError` for an invalid file."""
        try:
            return Session.model_validate_json(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError, ValidationError) as error:
            raise ConfigError(
                f"{self.path} is not a valid session file ({type(error).__name__}). "
                "Run `lookout login` to create a new one"
            ) from None

    def write(self, session: Session) -> None:
        """Write the file, which only its owner can read."""
        write_atomically(self.path, session.model_dump_json(), mode=OWNER_ONLY_MODE)


def read_storage_state(path: Path) -> dict[str, Any]:
    """Return the cookies and browser storage in a file. Raises `ConfigError` if there are none.

    The file is a Playwright storage state, or a session file of Lookout from another machine.
    """
    try:
        document: Any = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"Lookout cannot read {path} as a JSON file ({type(error).__name__})") from None
    state = cast("dict[str, Any]", document) if isinstance(document, dict) else {}
    state = cast("dict[str, Any]", state.get("state", state))  # a session file of Lookout, from another machine
    if not (_list_objects(state.get("cookies")) or _list_objects(state.get("origins"))):
        raise ConfigError(
            f"{path} contains no cookies and no browser storage. Use a file with a Playwright storage state"
        )
    return {"cookies": state.get("cookies", []), "origins": state.get("origins", [])}


class SecretFilter:
    """Redact secrets in texts."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._hidden: set[str] = set()
        self.add_secrets(secrets, min_characters=MIN_SECRET_CHARACTERS)

    def add_secrets(self, secrets: Iterable[str], *, min_characters: int = MIN_SESSION_SECRET_CHARACTERS) -> None:
        """Add ``secrets`` to redact, including their encoded forms in HTML, URLs and JSON.

        Secrets with fewer than ``min_characters`` are ignored.
        """
        for secret in secrets:
            if len(secret) >= min_characters:
                self._hidden |= {secret, quote(secret, safe=""), html.escape(secret), json.dumps(secret)[1:-1]}

    def redact(self, text: str) -> str:
        """Return the text with all secrets redacted."""
        secrets = [secret for secret in self._hidden if secret in text]
        for secret in sorted(secrets, key=len, reverse=True):
            text = text.replace(secret, HIDDEN)
        return text

    def redact_in(self, value: Any) -> Any:
        """Return a copy of JSON data in which the secrets in all texts are redacted."""
        match value:
            case str():
                return self.redact(value)
            case list() | tuple():
                return [self.redact_in(inner) for inner in cast("list[Any]", value)]
            case dict():
                return {key: self.redact_in(inner) for key, inner in cast("dict[str, Any]", value).items()}
            case _:
                return value

    def redact_bytes(self, data: bytes) -> bytes:
        """Return the content of a file with all secrets redacted."""
        for secret in sorted(self._hidden, key=len, reverse=True):
            data = data.replace(secret.encode(), HIDDEN.encode())
        return data


def _list_objects(value: Any) -> list[Mapping[str, Any]]:
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return [cast("Mapping[str, Any]", item) for item in items if isinstance(item, dict)]


Clock = Callable[[], datetime]
BlankPage = Callable[[], AbstractAsyncContextManager["Page"]]
"""A function that opens an empty page without a session, as a context manager."""

USER_FIELDS = (
    "input[autocomplete~=username]",
    "input[type=email]",
    "input[name*=user i], input[id*=user i], input[name*=email i], input[id*=email i], input[name*=login i]",
    "input[type=text], input[type=tel], input:not([type])",
    "textarea",
)
"""Selectors of the field for the user name. The likeliest selector comes first."""
PASSWORD_FIELDS = ("input[type=password]",)
SUBMITS = (
    "button[type=submit], input[type=submit]",
    "button:text-matches('log ?in|sign ?in|continue|next', 'i')",
    "button:not(:text-matches('show|hide|forgot|reset|cancel|back|with ', 'i'))",
)
COMPLAINT = re.compile(
    r"\b(wrong|invalid|incorrect|failed|denied|not recogni[sz]ed|does not match|locked)\b", re.IGNORECASE
)
POLL_INTERVAL_S = 0.2
UNSENT_S = 2.0
"""Seconds to wait after Enter is pressed.

If the form has sent nothing by then, Lookout clicks the button of the form.
"""
STILL_POLLS = 3
"""The login counts as done when this many checks in a row did not find the form.

Some apps hide the form for a short time while they check the password.
"""
STORED_MS = 5000
"""Milliseconds to wait for the app to store its session after the form has disappeared."""


class Login:
    """The login of one target. Use it in one event loop only.

    ``generation`` is the number of the current session. A page that was opened with an older session is opened
    again. ``secret_filter`` redacts all secrets of the login.
    """

    def __init__(
        self,
        settings: LoginSettings,
        *,
        target: str,
        address: str,
        data_folder: Path,
        environment: Mapping[str, str],
        now: Clock,
    ) -> None:
        """Read the secrets and the stored session. Raises `ConfigError` for a missing secret or an invalid file."""
        self.settings = settings
        self._target = target
        self._address = address
        self._values = {
            key: read_login_secret(f"targets.{target}.login.{key}", named, environment)
            for key, named in settings.secrets()
        }
        self.secret_filter = SecretFilter(self._values.values())
        self.file = SessionFile(data_folder, target)
        self._now = now
        self._renewing = asyncio.Lock()
        self._refused = ""
        self._proved = False
        self._own = False
        self.generation = 0
        self.session: Session | None = None
        stored = self.file.read()
        if stored is not None:
            self._adopt_session_and_hide_secrets(stored)

    @property
    def login_command_text(self) -> str:
        """Return the command, in backticks, with which a person signs in."""
        return f"`lookout login {self._target}`"

    def _adopt_session_and_hide_secrets(self, session: Session) -> None:
        self.secret_filter.add_secrets(session.iterate_secrets())
        self.session = session
        self.generation += 1
        self._proved = self._own = False

    def use_storage_state(self, state: Mapping[str, Any], *, by: str) -> None:
        """Use ``state``, the cookies and storage of a browser, as the session.

        ``by`` is the way in which the session was created. `store_session` writes the session to its file.
        """
        self._adopt_session_and_hide_secrets(Session(made_at=self._now(), by=by, state=dict(state)))
        self._own = True

    def store_session(self) -> None:
        """Store the session for later runs."""
        if self.session is not None:
            self.file.write(self.session)

    async def sign_in_if_needed(self, blank: BlankPage) -> None:
        """Sign in by the form if there is no session.

        Raises `LoginFailed` if this fails or only a person can sign in.
        """
        if self.session is None and self.settings.has_form_login:
            await self.renew_session(0, blank)
        if self.session is None and self.settings.needs_person_to_sign_in:
            raise LoginFailed(f"Lookout is not signed in to {self._target}. Run {self.login_command_text}")

    async def renew_session(self, used: int, blank: BlankPage) -> bool:
        """Replace a session that has ended. Raises `LoginFailed`.

        ``used`` is the generation (number) of the ended session. Return whether a newer session exists now.
        """
        async with self._renewing:
            if self.generation > used:
                return True
            stored = self.file.read()
            if stored is not None and (self.session is None or stored.made_at > self.session.made_at):
                self._adopt_session_and_hide_secrets(stored)  # a person or another run signed in meanwhile
                return True
            if not self.settings.has_form_login:
                return False
            if not self._refused and self._own and not self._proved:
                self._refused = (
                    f"{self._address} still asks for a login after Lookout signed in at {self._form_url}"
                )
            if self._refused:
                raise LoginFailed(self._refused)
            try:
                self.use_storage_state(await self.sign_in_by_form(blank), by="form")
            except LoginFailed as error:
                self._refused = str(error)
                raise
            self.store_session()
            return True

    def mark_session_as_working(self) -> None:
        """Record that the session works, because it opened a page with a chat."""
        self._proved = True

    def build_session_ended_error(self, wall: LoginWall) -> LoginFailed:
        """Return the error for a page that requires a login although Lookout used its session or credentials."""
        if self.session is None:
            return LoginFailed(
                f"{self._target} rejected the values of [login] ({wall}). Check the environment variables that "
                "[login] names"
            )
        made = f"{self.session.made_at:%Y-%m-%d %H:%M} UTC"
        return LoginFailed(
            f"{self._target} no longer accepts the session of {made} ({wall}). Run {self.login_command_text}"
        )

    def build_context_options(self) -> dict[str, Any]:
        """Return the options of a browser context: the session and the credentials for HTTP authentication."""
        options: dict[str, Any] = {}
        if self.settings.basic is not None:
            user, password = self._values["basic.user"], self._values["basic.password"]
            origin = _extract_origin(self._address)
            options["http_credentials"] = {"username": user, "password": password, "origin": origin}
        if self.session is not None:
            options["storage_state"] = cast("StorageState", self.session.state)
        return options

    async def add_cookies_and_headers(self, context: BrowserContext) -> None:
        """Add the configured cookies and headers to a new browser context."""
        names = {name: self._values[f"cookies.{name}"] for name in self.settings.cookies}
        if names:
            await context.add_cookies(
                [{"name": name, "value": value, "url": self._address} for name, value in names.items()]
            )
        if self.settings.headers:
            home = _extract_origin(self._address)
            await context.route(lambda url: _extract_origin(url) == home, self._continue_request_with_headers)

    async def _continue_request_with_headers(self, route: Route) -> None:
        own = {name.lower(): self._values[f"headers.{name}"] for name in self.settings.headers}
        headers = {**route.request.headers, **own}
        if route.request.is_navigation_request():  # a redirect would send them to any host in its address
            await route.fulfill(response=await route.fetch(headers=headers, max_redirects=0))
        else:
            await route.fallback(headers=headers)

    @property
    def _form_url(self) -> str:
        return self.settings.url or self._address

    async def sign_in_by_form(self, blank: BlankPage) -> dict[str, Any]:
        """Sign in by the form and return the cookies and data of the browser. Raises `LoginFailed`."""
        from playwright.async_api import Error  # Playwright is already imported

        try:
            async with blank() as page, asyncio.timeout(self.settings.deadline_s):
                form = Form(page, self.settings, self._values, self.secret_filter)
                return dict(await form.sign_in(self._form_url))
        except TimeoutError:
            raise LoginFailed(
                f"the login at {self._form_url} did not end within {self.settings.deadline_s:g} s"
            ) from None
        except Error as error:
            raise LoginFailed(
                f"{self._form_url}: {self.secret_filter.redact(error.message.splitlines()[0][:200])}"
            ) from None


class Form:
    """Fill in one login form like a person: user name, password, Enter. The password may be on a second page."""

    def __init__(
        self, page: Page, settings: LoginSettings, values: Mapping[str, str], secret_filter: SecretFilter
    ) -> None:
        self._page = page
        self._settings = settings
        self._values = values
        self._discretion = secret_filter
        self._requests = 0
        page.on("request", self._count_request)

    async def sign_in(self, url: str) -> StorageState:
        """Sign in and return the cookies and data of the browser. Raises `LoginFailed` or Playwright's `Error`."""
        response = await self._page.goto(url, wait_until="domcontentloaded", timeout=0)
        if response is not None and response.status >= 500:  # noqa: PLR2004 - where a server's own errors begin
            raise LoginFailed(f"the login page {url} answered HTTP {response.status}")
        first = await self._wait_for_visible((*self._list_password_selectors(), *self._list_user_selectors()))
        user = self._values.get("user")
        if user is not None:
            field = await self._find_visible(self._list_user_selectors())
            if field is None:
                raise LoginFailed(f"{url} has no field for the user name. Set login.user_field to its selector")
            await field.fill(user)
            first = field
        password = await self._find_visible(self._list_password_selectors())
        if password is None:
            await self._submit_login_form(first)
            password = await self._wait_for_visible(self._list_password_selectors())
        await password.fill(self._values["password"])
        before = await self._read_error_lines()
        await self._submit_login_form(password)
        await self._wait_until_signed_in(url, before)
        return await self._page.context.storage_state(indexed_db=True)

    def _list_user_selectors(self) -> tuple[str, ...]:
        return (self._settings.user_field,) if self._settings.user_field else USER_FIELDS

    def _list_password_selectors(self) -> tuple[str, ...]:
        return (self._settings.password_field,) if self._settings.password_field else PASSWORD_FIELDS

    async def _wait_for_visible(self, selectors: Iterable[str]) -> Locator:
        wanted = tuple(selectors)
        while True:
            locator = await self._find_visible(wanted)
            if locator is not None:
                return locator
            # The element may be in any frame, but Playwright waits in one frame only.
            await asyncio.sleep(POLL_INTERVAL_S)

    async def _find_visible(self, selectors: Iterable[str]) -> Locator | None:
        """Return the first visible element that one of ``selectors`` matches in any frame, or ``None``."""
        from playwright.async_api import Error  # Playwright is already imported

        for selector in selectors:
            for frame in self._page.frames:
                locator = frame.locator(selector).locator("visible=true").first
                try:
                    if await locator.count():
                        return locator
                except Error:  # the page is being replaced
                    return None
        return None

    async def _submit_login_form(self, field: Locator) -> None:
        if self._settings.submit is not None:
            await self._page.locator(self._settings.submit).first.click(timeout=UNSENT_S * 1000)
            return
        asked = self._requests
        await field.press("Enter", no_wait_after=True)
        for _ in range(round(UNSENT_S / POLL_INTERVAL_S)):
            # Enter may submit the form. Only if it does not, the button is clicked.
            await asyncio.sleep(POLL_INTERVAL_S)
            if self._requests > asked:
                return
        if await field.is_visible():
            button = await self._find_visible(SUBMITS)
            if button is not None:
                await button.click(timeout=UNSENT_S * 1000, no_wait_after=True)

    async def _wait_until_signed_in(self, url: str, before: frozenset[str]) -> None:
        from playwright.async_api import TimeoutError as Late  # Playwright is already imported

        polls_without_form = 0
        while polls_without_form < STILL_POLLS:
            # The fields must be absent for several polls: a page hides them briefly while it loads.
            await asyncio.sleep(POLL_INTERVAL_S)
            polls_without_form = (
                0 if await self._find_visible(self._list_password_selectors()) else polls_without_form + 1
            )
            complaints = await self._read_error_lines() - before
            if complaints and not polls_without_form:
                notice_text = self._discretion.redact(min(complaints, key=len))[:200]
                user = self._settings.user
                credentials = f"the user in {user.env}" if user is not None else "the password"
                raise LoginFailed(f"{url} rejected {credentials}. The page shows: {notice_text}")
        try:
            await self._page.wait_for_load_state("networkidle", timeout=STORED_MS)
        except Late:
            return  # a page that listens to its server is never idle

    async def _read_error_lines(self) -> frozenset[str]:
        """Return the lines on the page that may be an error message of the login."""
        from playwright.async_api import Error  # Playwright is already imported

        try:
            text = await self._page.evaluate("() => document.body?.innerText ?? ''")
        except Error:
            return frozenset()
        return frozenset(line.strip() for line in str(text).splitlines() if COMPLAINT.search(line))

    def _count_request(self, _request: Request) -> None:
        self._requests += 1


def read_login_secret(key: str, named: FromEnvironment, environment: Mapping[str, str]) -> str:
    """Return the secret for the login setting ``key``, from the environment variable that ``named`` specifies.

    Raises `ConfigError` if the variable is missing or empty.
    """
    value = environment.get(named.env)
    if not value:
        state = "is not set" if value is None else "is set but empty"
        raise ConfigError(f"{key} needs the environment variable {named.env}, which {state}. Set {named.env}")
    return named.prefix + value


def _extract_origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"

"""Who may see the pages: a token per person, stored as its hash, with a role. And the sessions that it opens.

A token is 256 bits of chance, so that a plain SHA-256 of it stands for it safely: there is nothing to guess. A
session is a signed cookie and is stored nowhere: it ends by its time, or at once when its token is revoked or when
its owner logs out. What was ended before its time is remembered until then, as a hash.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

from pydantic import Field, ValidationError

from monitors.errors import ConfigError
from monitors.records.base import Record, Sha256, UtcTime
from monitors.storage import private_folder, write_atomically, write_once

FOLDER: Final = "site"
"""Inside the data folder: tokens, the key of sessions, and who looked at what."""
PREFIX: Final = "lookout_"
"""How every token begins, so that scanners for secrets know one."""
_TOKENS: Final = "tokens.json"
_KEY: Final = "key"
_ENDED: Final = "ended-sessions"


class Role(StrEnum):
    """What a person may do. The pages are the same for both."""

    READ = "read"
    OPERATE = "operate"
    """Decide too: acknowledge, silence, review, draft."""


PersonName = Annotated[str, Field(min_length=1, max_length=80, pattern=r"^[\w.@+-]+(?: [\w.@+-]+)*$")]


class AccessToken(Record):
    """A person's token as it is stored."""

    name: PersonName
    role: Role
    sees_personal_data: bool = False
    sha256: Sha256
    made_at: UtcTime


class _TokenFile(Record):
    tokens: tuple[AccessToken, ...] = ()


@dataclass(frozen=True, slots=True)
class TokenStore:
    """The tokens of one data folder. Read anew each time: what is revoked is so at once."""

    data_folder: Path
    entropy: Callable[[], bytes]
    """32 bytes that nobody can guess."""

    @property
    def folder(self) -> Path:
        """Where they lie."""
        return self.data_folder / FOLDER

    def all(self) -> tuple[AccessToken, ...]:
        """Every token, by name. Raises `ConfigError` for a file that is none of ours."""
        file = self.folder / _TOKENS
        try:
            return _TokenFile.model_validate_json(file.read_bytes()).tokens
        except FileNotFoundError:
            return ()
        except (OSError, ValidationError) as error:
            raise ConfigError(
                f"{file}: cannot be read ({type(error).__name__}); restore it, or remove it and add each token anew"
            ) from None

    def add(self, name: str, role: Role, *, sees_personal_data: bool, at: datetime) -> str:
        """Make a token and give it, this once: only its hash is stored. Raises `ConfigError` for a known name."""
        known = self.all()
        if any(one.name == name for one in known):
            raise ConfigError(f"{name} has a token already: revoke it first (`lookout site token revoke {name}`)")
        token = PREFIX + _text_of(self.entropy())
        made = _checked(name, role, sees_personal_data, _sha256(token), at)
        self._write((*known, made))
        return token

    def revoke(self, name: str) -> None:
        """Take a person's token back; their sessions end with it. Raises `ConfigError` for an unknown name."""
        known = self.all()
        if all(one.name != name for one in known):
            there_are = ", ".join(one.name for one in known) or "none"
            raise ConfigError(f"{name} has no token; there are: {there_are}")
        self._write(tuple(one for one in known if one.name != name))

    def owner(self, token: str) -> AccessToken | None:
        """Whose token it is."""
        digest = _sha256(token)
        return next((one for one in self.all() if hmac.compare_digest(one.sha256, digest)), None)

    def key(self) -> bytes:
        """What sessions and forms are signed with, made at the first use."""
        private_folder(self.folder)
        file = self.folder / _KEY
        if write_once(file, self.entropy().hex()):
            file.chmod(0o600)
        return bytes.fromhex(file.read_text(encoding="ascii"))

    def _write(self, tokens: tuple[AccessToken, ...]) -> None:
        private_folder(self.folder)
        ordered = tuple(sorted(tokens, key=lambda one: one.name))
        write_atomically(self.folder / _TOKENS, _TokenFile(tokens=ordered).model_dump_json(indent=2), mode=0o600)


def _checked(name: str, role: Role, personal: bool, digest: str, at: datetime) -> AccessToken:
    try:
        return AccessToken(name=name, role=role, sees_personal_data=personal, sha256=digest, made_at=at)
    except ValidationError:
        raise ConfigError(f"{name!r} is no name: letters, digits, dots, @, + and -, with single spaces") from None


@dataclass(frozen=True, slots=True)
class SessionSigner:
    """Makes and reads the cookies of sessions, and the tokens that forms carry against forgery."""

    tokens: TokenStore
    key: bytes
    lasts: timedelta

    def issue(self, owner: AccessToken, now: datetime) -> str:
        """A session's cookie."""
        ends = int((now + self.lasts).timestamp())
        name = _text_of(owner.name.encode())
        claims = f"{name}.{ends}.{_text_of(self.tokens.entropy())}"
        return f"{claims}.{self._signed('session', claims, owner.sha256)}"

    def owner(self, cookie: str, now: datetime) -> AccessToken | None:
        """Whose session it is; ``None`` for one that is forged, over, or whose token was revoked."""
        claims, _, signature = cookie.rpartition(".")
        parts = claims.split(".")
        if len(parts) != 3 or not parts[1].isdecimal() or int(parts[1][:12]) < now.timestamp():  # noqa: PLR2004 - name, end, chance
            return None
        for owner in self.tokens.all():
            name = _text_of(owner.name.encode())
            if hmac.compare_digest(name.encode(), parts[0].encode()):
                good = self._signed("session", claims, owner.sha256)
                is_good = hmac.compare_digest(good.encode(), signature.encode())
                return owner if is_good and not self._ended(cookie).exists() else None
        return None

    def end(self, cookie: str, now: datetime) -> None:
        """End a session wherever its cookie was copied to. Raises `WarehouseUnwritable`."""
        if self.owner(cookie, now) is None:
            return
        ended = self._ended(cookie)
        private_folder(ended.parent)
        for old in ended.parent.iterdir():
            if not old.name.startswith(".") and int(old.read_text(encoding="ascii")) < now.timestamp():
                old.unlink(missing_ok=True)
        write_once(ended, cookie.split(".")[1])

    def _ended(self, cookie: str) -> Path:
        return self.tokens.folder / _ENDED / _sha256(cookie)

    def form_token(self, session: str) -> str:
        """What a form of this session carries: no other site can know it."""
        return self._signed("form", session)

    def is_form_token(self, given: str, session: str) -> bool:
        """Whether a form came from a page of this session."""
        return hmac.compare_digest(given.encode(), self.form_token(session).encode())

    def seal(self, text: str) -> str:
        """Proves that this site said ``text``."""
        return self._signed("said", text)

    def is_seal(self, given: str, text: str) -> bool:
        """Whether this site said ``text``."""
        return hmac.compare_digest(given.encode(), self.seal(text).encode())

    def _signed(self, *parts: str) -> str:
        return _text_of(hmac.digest(self.key, "\n".join(parts).encode(), "sha256"))


def _text_of(chance: bytes) -> str:
    return base64.urlsafe_b64encode(chance).decode("ascii").rstrip("=")


def _sha256(token: str) -> str:
    return hashlib.sha256(token.strip().encode("utf-8", "replace")).hexdigest()

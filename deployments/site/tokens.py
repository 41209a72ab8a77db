"""Access tokens of people, and the sessions that start when a person logs in with a token.

Each person has one token with a role. Only its hash is stored. A token has 256 random bits, so SHA-256 is a safe
hash. A session is a signed cookie, which is not stored. It ends after some hours, or when the token is revoked or
the person logs out. The hash of a session that ended early is stored until the session would have expired.
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
from monitors.storage import make_private_folder, write_atomically, write_once

FOLDER: Final = "site"
"""Name of the folder inside the data folder for tokens, the session key and the log of page views."""
BEGINNING_OF_TOKENS: Final = "lookout_"
"""The prefix of every token. Secret scanners recognise tokens by this prefix."""
_TOKENS: Final = "tokens.json"
_KEY: Final = "key"
_ENDED: Final = "ended-sessions"


class Role(StrEnum):
    """What a person may do. Both roles see the same pages."""

    READ = "read"
    OPERATE = "operate"
    """The person may also make decisions: acknowledge, silence, review and draft."""


PersonName = Annotated[str, Field(min_length=1, max_length=80, pattern=r"^[\w.@+-]+(?: [\w.@+-]+)*$")]


class AccessToken(Record):
    """The stored data about a person's token."""

    name: PersonName
    role: Role
    sees_personal_data: bool = False
    sha256: Sha256
    made_at: UtcTime


class _TokenFile(Record):
    tokens: tuple[AccessToken, ...] = ()


@dataclass(frozen=True, slots=True)
class TokenStore:
    """The tokens of one data folder. The file is read each time, so a revoked token stops working immediately."""

    data_folder: Path
    entropy: Callable[[], bytes]
    """A function that returns 32 random bytes."""

    @property
    def folder(self) -> Path:
        """The folder with the file of tokens."""
        return self.data_folder / FOLDER

    def load_tokens(self) -> tuple[AccessToken, ...]:
        """Return all tokens, sorted by name. Raises `ConfigError` for an invalid file."""
        file = self.folder / _TOKENS
        try:
            return _TokenFile.model_validate_json(file.read_bytes()).tokens
        except FileNotFoundError:
            return ()
        except (OSError, ValidationError) as error:
            raise ConfigError(
                f"{file} cannot be read ({type(error).__name__}). "
                "Restore it from a backup, or remove it and add each token again"
            ) from None

    def create_token(self, name: str, role: Role, *, sees_personal_data: bool, at: datetime) -> str:
        """Create a token and return it; only its hash is stored. Raises `ConfigError` for an existing name."""
        tokens = self.load_tokens()
        if any(existing.name == name for existing in tokens):
            raise ConfigError(f"{name} already has a token. Revoke it first: `lookout site token revoke {name}`")
        token = BEGINNING_OF_TOKENS + _encode_base64(self.entropy())
        access_token = _build_token(name, role, sees_personal_data, _hash_token(token), at)
        self._write_tokens((*tokens, access_token))
        return token

    def revoke_token(self, name: str) -> None:
        """Revoke a person's token, which also ends the person's sessions.

        Raises `ConfigError` for an unknown name.
        """
        tokens = self.load_tokens()
        if all(token.name != name for token in tokens):
            names = ", ".join(token.name for token in tokens) or "none"
            raise ConfigError(f"{name} has no token. People with a token: {names}")
        self._write_tokens(tuple(token for token in tokens if token.name != name))

    def find_owner(self, token: str) -> AccessToken | None:
        """Return the owner of a token, or ``None`` if the token is unknown."""
        digest = _hash_token(token)
        return next((stored for stored in self.load_tokens() if hmac.compare_digest(stored.sha256, digest)), None)

    def load_or_create_key(self) -> bytes:
        """Return the key that signs sessions and forms. The key is created at its first use."""
        make_private_folder(self.folder)
        file = self.folder / _KEY
        if write_once(file, self.entropy().hex()):
            file.chmod(0o600)
        return bytes.fromhex(file.read_text(encoding="ascii"))

    def _write_tokens(self, tokens: tuple[AccessToken, ...]) -> None:
        make_private_folder(self.folder)
        ordered = tuple(sorted(tokens, key=lambda token: token.name))
        write_atomically(self.folder / _TOKENS, _TokenFile(tokens=ordered).model_dump_json(indent=2), mode=0o600)


def _build_token(name: str, role: Role, personal: bool, digest: str, at: datetime) -> AccessToken:
    try:
        return AccessToken(name=name, role=role, sees_personal_data=personal, sha256=digest, made_at=at)
    except ValidationError:
        raise ConfigError(
            f"{name!r} is not a valid name. Accepted: letters, digits, single spaces and the characters . _ @ + -"
        ) from None


@dataclass(frozen=True, slots=True)
class SessionSigner:
    """Creates and verifies session cookies, and form tokens, which prove that a form is from this site."""

    tokens: TokenStore
    key: bytes
    lasts: timedelta

    def create_session_cookie(self, owner: AccessToken, now: datetime) -> str:
        """Create the cookie of a new session."""
        ends = int((now + self.lasts).timestamp())
        name = _encode_base64(owner.name.encode())
        claims = f"{name}.{ends}.{_encode_base64(self.tokens.entropy())}"
        return f"{claims}.{self._sign('session', claims, owner.sha256)}"

    def find_owner(self, cookie: str, now: datetime) -> AccessToken | None:
        """Return the owner of a session, or ``None`` if the session is invalid.

        A session is invalid if it is forged or has ended, or if its token was revoked.
        """
        claims, _, signature = cookie.rpartition(".")
        parts = claims.split(".")
        if len(parts) != 3 or not parts[1].isdecimal() or int(parts[1][:12]) < now.timestamp():  # noqa: PLR2004 - name, end, random part
            return None
        for owner in self.tokens.load_tokens():
            name = _encode_base64(owner.name.encode())
            if hmac.compare_digest(name.encode(), parts[0].encode()):
                expected = self._sign("session", claims, owner.sha256)
                is_good = hmac.compare_digest(expected.encode(), signature.encode())
                return owner if is_good and not self._build_ended_session_path(cookie).exists() else None
        return None

    def end_session(self, cookie: str, now: datetime) -> None:
        """End a session, including copies of its cookie. Raises `WarehouseUnwritable`."""
        if self.find_owner(cookie, now) is None:
            return
        ended_path = self._build_ended_session_path(cookie)
        make_private_folder(ended_path.parent)
        for old_path in ended_path.parent.iterdir():
            if not old_path.name.startswith(".") and int(old_path.read_text(encoding="ascii")) < now.timestamp():
                old_path.unlink(missing_ok=True)
        write_once(ended_path, cookie.split(".")[1])

    def _build_ended_session_path(self, cookie: str) -> Path:
        return self.tokens.folder / _ENDED / _hash_token(cookie)

    def create_form_token(self, session: str) -> str:
        """Create the token for the forms of a session. Another site cannot learn this token."""
        return self._sign("form", session)

    def is_form_token(self, token: str, session: str) -> bool:
        """Return whether ``token`` is the form token of this session. If so, the form is from this site."""
        return hmac.compare_digest(token.encode(), self.create_form_token(session).encode())

    def sign_text(self, text: str) -> str:
        """Return a signature that proves that ``text`` is from this site."""
        return self._sign("said", text)

    def is_signature_of(self, signature: str, text: str) -> bool:
        """Return whether ``signature`` is this site's signature of ``text``."""
        return hmac.compare_digest(signature.encode(), self.sign_text(text).encode())

    def _sign(self, *parts: str) -> str:
        return _encode_base64(hmac.digest(self.key, "\n".join(parts).encode(), "sha256"))


def _encode_base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode("ascii").rstrip("=")


def _hash_token(token: str) -> str:
    return hashlib.sha256(token.strip().encode("utf-8", "replace")).hexdigest()

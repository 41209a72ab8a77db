"""Build the headers for requests to the API of an app. Secrets come from the environment.

A `HeaderTable` in the configuration contains the header names. `RequestHeaders` contains the values, and is the
only class with the secrets. The secrets are sent only to the configured hosts, and no message shows them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Final, Self

import httpx
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from monitors.errors import ConfigError

API_TOKEN_VARIABLE: Final = "LOOKOUT_API_TOKEN"  # noqa: S105 - the variable's name
"""The environment variable with the token for the API of a target."""

_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
"""Matches a valid header name (RFC 9110, section 5.6.2)."""
_SENT_BY_HTTP: Final = frozenset({"host", "content-length", "transfer-encoding", "connection"})
_CREDENTIALS: Final = frozenset({"authorization", "proxy-authorization", "cookie"})
"""Names of headers that are used only for authentication (RFC 9110, section 11, and RFC 6265)."""
_SECRET_WORDS: Final = frozenset({"key", "apikey", "token", "secret", "password"})
"""A header counts as secret if its name ends with one of these words, such as X-Api-Key."""
_MIN_HIDDEN_CHARACTERS: Final = 8
"""Only secrets with at least this many characters are hidden.

A shorter one may be an ordinary word in an answer.
"""
HIDDEN: Final = "[secret]"


class HeaderValue(BaseModel):
    """The value of one header: `"acme"`, or `{ env = "BOT_KEY" }` for a secret in an environment variable."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    env: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z_][A-Za-z0-9_]*$",
        description="name of the environment variable with the value. Required for a secret",
    )
    prefix: str = Field(
        default="", description='text that Lookout writes before the value of `env`, such as "Bearer "'
    )
    value: str | None = Field(
        default=None, description='a value that is not secret. The short form is `X-Tenant = "acme"`'
    )

    @model_validator(mode="before")
    @classmethod
    def _expand_short_form(cls, given: object) -> object:
        return {"value": given} if isinstance(given, str) else given

    @model_validator(mode="after")
    def _check_source_and_characters(self) -> Self:
        if (self.env is None) == (self.value is None):
            raise ValueError('write either a string, or { env = "VARIABLE" } for a secret')
        if not is_sendable(self.value or "") or not is_sendable(self.prefix):
            raise ValueError("only characters that HTTP can send: printable ASCII characters, and no line breaks")
        return self


def _check_table(table: dict[str, HeaderValue]) -> dict[str, HeaderValue]:
    for name, header in table.items():
        if not _NAME.fullmatch(name) or name.lower() in _SENT_BY_HTTP:
            raise ValueError(f"{name[:60]!r} is not a header name that a client can set")
        if header.value is not None and _is_secret_name(name):
            raise ValueError(f'write {name} = {{ env = "VARIABLE" }}: store credentials only in the environment')
    if len({name.lower() for name in table}) < len(table):
        raise ValueError("the same header is set twice (header names are case-insensitive); remove one")
    return table


def _is_secret_name(name: str) -> bool:
    words = re.split(r"[^a-z0-9]+", name.lower())
    return name.lower() in _CREDENTIALS or words[-1] in _SECRET_WORDS


HeaderTable = Annotated[dict[str, HeaderValue], AfterValidator(_check_table)]
"""Headers by name, such as `headers = { "X-Tenant" = "acme", "X-Api-Key" = { env = "BOT_KEY" } }`."""


def is_sendable(value: str) -> bool:
    """Return whether a header may contain ``value``: it is empty, or has only printable ASCII characters."""
    return value.isascii() and (value.isprintable() or not value)


_REFUSED_VARIABLE: Final = re.compile(
    r"(?: from|the bearer token in|, because) ([A-Za-z_][A-Za-z0-9_]*)(?= and |\. Check| is )"
)
_REFUSAL: Final = re.compile(r"HTTP \d+: (it does not accept|Lookout sent no token)")


def find_variables_in_refusal(text: str) -> tuple[str, ...]:
    """Return the environment variables that ``text`` names, if it is a message of `RequestHeaders.explain_refusal`.

    The result is empty for any other text.
    """
    return tuple(_REFUSED_VARIABLE.findall(text)) if _REFUSAL.search(text) else ()


@dataclass(frozen=True)
class RequestHeaders:
    """The headers of all requests to one app. No method and no ``repr`` shows a value.

    ``key`` is the name of the setting with the headers. For each secret, ``named`` contains a text that states
    where the secret comes from. If no secret is sent, ``missing`` is the reason.
    """

    key: str
    values: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)
    named: tuple[str, ...] = ()
    missing: str = ""

    def explain_refusal(self, status: int) -> str:
        """Explain HTTP 401 or 403.

        The returned text names the setting and the variable that the reader must check.
        """
        if self.named:
            sent = " and ".join(self.named)
            return (
                f"HTTP {status}: it does not accept {sent}. Check that the value is valid here, or set another "
                f"header in {self.key}"
            )
        return f"HTTP {status}: Lookout sent no token, because {self.missing}"

    def hide_secrets(self, text: str) -> str:
        """Return the text with the secrets replaced, because a server may repeat them in its response."""
        for secret in self.secrets:
            for form in (secret, json.dumps(secret)[1:-1]):
                text = text.replace(form, HIDDEN)
        return text

    def build_header_removal_hook(self, addresses: Iterable[str]) -> Callable[[httpx.Request], Awaitable[None]]:
        """Return an httpx event hook that removes the headers from requests to hosts that are not in ``addresses``.

        After a redirect to another host, httpx itself removes only the header Authorization.
        """
        origins = {_get_origin(httpx.URL(address)) for address in addresses}

        async def remove_headers(request: httpx.Request) -> None:
            if _get_origin(request.url) not in origins:
                for name in self.values:
                    request.headers.pop(name, None)

        return remove_headers


NO_HEADERS: Final = RequestHeaders(key="headers", missing="no header is configured")


def build_request_headers(
    table: Mapping[str, HeaderValue],
    environment: Mapping[str, str],
    *,
    key: str,
    token_variable: str | None = None,
    bearer_key: str = "",
) -> RequestHeaders:
    """Build the headers with their values.

    - ``key`` is the name of the table in lookout.toml.
    - ``token_variable`` is the variable with a bearer token. The token is sent if the table has no Authorization
      header.
    - ``bearer_key`` is the setting that contains the name of this variable, if there is such a setting. The
      variable must then be set.

    Raises `ConfigError`, which names the setting and the variable that is missing or not usable.
    """
    values: dict[str, str] = {}
    secrets: list[str] = []
    named: list[str] = []
    own = any(name.lower() == "authorization" for name in table)
    if token_variable is not None and not own and (bearer_key or environment.get(token_variable)):
        secrets.append(_read_secret(token_variable, environment, bearer_key or key))
        values["Authorization"] = f"Bearer {secrets[-1]}"
        named.append(f"the bearer token in {token_variable}")
    for name, header in table.items():
        values[name] = header.value or ""
        if header.env is not None:
            secrets.append(_read_secret(header.env, environment, f"{key}.{name}"))
            values[name] = header.prefix + secrets[-1]
            named.append(f"{name} from {header.env}")
    return RequestHeaders(
        key=key,
        values=values,
        secrets=tuple(sorted(filter(_is_long_enough_to_hide, secrets), key=len, reverse=True)),
        named=tuple(named),
        missing=_format_missing_token(token_variable, environment, key)
        if token_variable
        else (
            f"{bearer_key} does not name an environment variable with a token: set it, or set the required header "
            f"in {key}, such as {_EXAMPLE}"
        ),
    )


_EXAMPLE: Final = '{ "X-Api-Key" = { env = "VARIABLE" } }'


def _format_missing_token(variable: str, environment: Mapping[str, str], key: str) -> str:
    state = "is set but empty" if variable in environment else "is not set"
    return f"{variable} {state}: set it to the token, or set the required header in {key}: {_EXAMPLE}"


def _read_secret(variable: str, environment: Mapping[str, str], key: str) -> str:
    value = environment.get(variable)
    if not value:
        state = "is set but empty" if value is not None else "is not set"
        raise ConfigError(f"{key}: the environment variable {variable} {state}; set it to the value of the header")
    if not is_sendable(value):
        raise ConfigError(
            f"{key}: {variable} contains a line break or another character that HTTP headers do not allow. If the "
            "value comes from a file, remove the line break at the end of the file"
        )
    return value


def _is_long_enough_to_hide(secret: str) -> bool:
    return len(secret) >= _MIN_HIDDEN_CHARACTERS


def _get_origin(url: httpx.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port

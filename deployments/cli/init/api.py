"""Detects whether an address is a page or a chat API, and how to ask the API."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from monitors.errors import ConfigError
from monitors.facts.language import LanguageEvidence, classify_language_evidence
from monitors.github.actions import is_ci
from monitors.probes.inspect.api import ApiDiscovery, EndpointKind, discover_api, identify_endpoint
from monitors.probes.inspect.findings import HARMLESS, PageProblem
from monitors.probes.settings import ApiSettings, ProbeSettings
from monitors.records.base import Blame
from monitors.records.exchanges import NoAnswerReason
from monitors.records.targets import Environment, Target
from monitors.request_headers import API_TOKEN_VARIABLE, RequestHeaders, build_request_headers

DRIVERS: Final = ("browser", "json", "sse")
KEY_VARIABLE: Final = "BOT_KEY"
"""The environment variable with the value of the header that an API requires."""
MAX_SHOWN_CHARACTERS: Final = 120
FILL_IN: Final = (
    "Complete the commented lines of the probe table in the new configuration (docs/configuration.md lists all "
    "settings). Then run `lookout doctor` with the name of the target. It asks the API one question.\n"
)
ANOTHER_LANGUAGE: Final = (
    "Your application answers in a language that is not English, Hindi or Hinglish. Without a judge, Lookout "
    "grades only amounts, and answers that repeat a gold answer of at least three words exactly. Refusals and "
    "yes/no answers stay ungraded."
)
"""The text printed if an application answers in another language.

Without a judge, most answers in another language stay ungraded.
"""
_DEFAULT_SETTINGS: Final = ProbeSettings()
Say = Callable[[str], None]


class Probe(NamedTuple):
    """The `probe` table of a target as TOML. The table is empty for a page.

    ``is_known`` is false if Lookout could not detect the API's format. The table then contains defaults. ``export``
    is the name of an environment variable that the user must still set.
    """

    table: str = ""
    is_api: bool = False
    is_known: bool = True
    export: str = ""


def require_supported_driver(driver: str | None) -> None:
    """Raise `ConfigError` for a driver that `lookout init` does not support."""
    if driver not in {None, *DRIVERS}:
        raise ConfigError(f"--driver {driver!r} is not valid. Accepted: {', '.join(DRIVERS)}")


def detect_probe_table(
    target: Target, environment: Mapping[str, str], *, driver: str | None, may_ask: bool, say: Say
) -> Probe:
    """Detect the probe table of a target. Raises `ConfigError` if the address is neither a page nor an API."""
    if driver == "browser" or (driver is None and target.space):
        return Probe()
    if target.space:
        raise ConfigError(
            f"Lookout asks a Space through its page. For --driver {driver}, give the address of the API instead"
        )
    if driver is None and not _detect_and_print_whether_api(target.address, say):
        return Probe()
    if target.environment is Environment.PRODUCTION and is_ci(environment):
        may_ask = False
    if not may_ask:
        say(
            "Lookout asked no question, because of --no-ask or because a CI run must not ask production. The probe "
            "table contains the defaults.\n"
        )
        return Probe(
            _format_incomplete_probe_table(driver or "json", "", "Lookout asked no question"),
            is_api=True,
            is_known=False,
        )
    return _ask_api_and_build_probe(target.address, environment, driver or "json", say)


def find_problem_if_address_is_api(
    address: str, environment: Mapping[str, str], *, ask: bool
) -> PageProblem | None:
    """If the address is not a page, return this problem with what to do.

    Returns ``None`` for a page, and for an address that is not reachable.

    If ``ask`` is true, the API is asked a harmless question to find out which key it requires.
    """
    endpoint = asyncio.run(identify_endpoint(address, _DEFAULT_SETTINGS))
    if endpoint.kind in {EndpointKind.PAGE, EndpointKind.UNKNOWN}:
        return None
    is_api = endpoint.kind is EndpointKind.API
    description = "answers JSON, not a page" if "json" in endpoint.said else "is an API, not a page"
    description = description if is_api else "is neither a page nor a chat API"
    to_do = f"run `lookout init --target {address}`, which detects how to ask the API"
    to_do = to_do if is_api else "give the address of the chat page, or the address that receives the questions"
    if ask and is_api:
        headers = _build_api_headers(_DEFAULT_SETTINGS, environment)
        discovery = asyncio.run(discover_api(address, _DEFAULT_SETTINGS, headers))
        if discovery.refused:
            variable = KEY_VARIABLE if discovery.header else API_TOKEN_VARIABLE
            wants = f"the header {discovery.header}" if discovery.header else "a bearer token"
            to_do = f"the API requires {wants} (HTTP {discovery.refused}). Run `export {variable}=…`. Then {to_do}"
    return PageProblem(
        reason=NoAnswerReason.PAGE_NOT_UNDERSTOOD,
        blame=Blame.MONITOR,
        detail=f"This address {description} ({endpoint.said}).",
        to_do=to_do,
    )


def _build_api_headers(settings: ProbeSettings, environment: Mapping[str, str]) -> RequestHeaders:
    return build_request_headers(
        settings.headers, environment, key="probe.headers", token_variable=API_TOKEN_VARIABLE
    )


def _detect_and_print_whether_api(address: str, say: Say) -> bool:
    """Return whether the address is an API. If it is not a page, print what was found. No secret is sent.

    Raises `ConfigError` if the address is neither a page nor an API.
    """
    endpoint = asyncio.run(identify_endpoint(address, _DEFAULT_SETTINGS))
    match endpoint.kind:
        case EndpointKind.API:
            say(f"{address} is an API, not a page ({endpoint.said}).\n")
        case EndpointKind.UNKNOWN:
            say(
                f"Lookout cannot open {address} ({endpoint.said}), so it assumes a page. If the address is an API, "
                "use --driver json or --driver sse.\n"
            )
        case EndpointKind.NEITHER:
            raise ConfigError(
                f"nothing was written, because {address} is neither a chat page nor a chat API ({endpoint.said}). "
                "To set the kind yourself, use --driver browser, --driver json or --driver sse"
            )
        case EndpointKind.PAGE:
            pass
    return endpoint.kind is EndpointKind.API


def ask_and_detect_probe_settings(address: str, environment: Mapping[str, str], say: Say) -> ProbeSettings:
    """Return the settings with which Lookout can ask the page or API at an address.

    To detect the settings of an API, the API is asked a question. Raises `ConfigError` if the API needs more
    settings.
    """
    if asyncio.run(identify_endpoint(address, _DEFAULT_SETTINGS)).kind is not EndpointKind.API:
        return _DEFAULT_SETTINGS
    discovery, _ = _ask_in_several_api_formats(address, environment, say)
    if discovery.probe is not None:
        return discovery.probe
    problem = find_problem_if_address_is_api(address, environment, ask=bool(discovery.refused))
    why = discovery.refused or "; ".join(discovery.tried)
    to_do = problem.to_do if problem else f"run `lookout init --target {address}`, which detects how to ask the API"
    raise ConfigError(f"{address} is an API, but Lookout does not know its format ({why}). What to do: {to_do}")


def _ask_in_several_api_formats(
    address: str, environment: Mapping[str, str], say: Say
) -> tuple[ApiDiscovery, RequestHeaders]:
    """Ask a question in several formats until the API accepts one. Return the result and the headers sent."""
    settings = _DEFAULT_SETTINGS
    headers = _build_api_headers(settings, environment)
    say(f"Asking {address} “{HARMLESS}” in several formats until the API accepts one, and then once more …\n")
    discovery = asyncio.run(discover_api(address, settings, headers))
    if discovery.refused and discovery.header and environment.get(KEY_VARIABLE):
        settings = ProbeSettings.model_validate({"headers": {discovery.header: {"env": KEY_VARIABLE}}})
        headers = _build_api_headers(settings, environment)
        discovery = asyncio.run(discover_api(address, settings, headers))
    return discovery, headers


def _ask_api_and_build_probe(address: str, environment: Mapping[str, str], driver: str, say: Say) -> Probe:
    """Ask the API a question to detect its format, print the result, and build the probe table.

    Raises `ConfigError` if the address does not behave like a chat API.
    """
    discovery, headers = _ask_in_several_api_formats(address, environment, say)
    if discovery.refused:
        return _print_refusal_and_build_probe(address, discovery, headers, driver, say)
    if discovery.probe is None:
        tried = "".join(f"\n  {line}" for line in discovery.tried)
        tried = f" Tried:{tried}\n" if tried else "\n"
        if discovery.asks_for_other_body:
            say(f"{address}: {discovery.problem}.{tried}{FILL_IN}")
            return Probe(_format_incomplete_probe_table(driver, "", discovery.problem), is_api=True, is_known=False)
        raise ConfigError(
            f"nothing was written. {address}: {discovery.problem}.{tried}Write the table probe.api yourself "
            "(docs/configuration.md), or use --no-ask to get a table that you can complete"
        )
    reply = " ".join(discovery.answer.split())
    say(f"The API answered: “{reply[:MAX_SHOWN_CHARACTERS]}{'…' if reply[MAX_SHOWN_CHARACTERS:] else ''}”\n")
    say(
        f"{ANOTHER_LANGUAGE}\n\n"
        if classify_language_evidence(discovery.answer) is LanguageEvidence.UNREAD
        else "\n"
    )
    return Probe("\n".join(_iterate_nondefault_probe_lines(discovery.probe)) + "\n", is_api=True)


def _print_refusal_and_build_probe(
    address: str, discovery: ApiDiscovery, headers: RequestHeaders, driver: str, say: Say
) -> Probe:
    """Print that the API refused the question, and build a table with the header that the API requires.

    The remaining settings can be detected after the key is set.
    """
    assert discovery.refused is not None
    variable = KEY_VARIABLE if discovery.header else API_TOKEN_VARIABLE
    if discovery.header:
        wants = f"HTTP {discovery.refused}: the API requires the header {discovery.header}"
        say(f"{address}: {wants}. probe.headers reads the value from {variable}.\n")
    else:
        say(f"{address}: {headers.explain_refusal(discovery.refused)}.\n")
    line = (
        f"headers = {{ {_quote_toml(discovery.header)} = {{ env = {_quote_toml(variable)} }} }}\n"
        if discovery.header
        else ""
    )
    why = f"the API requires the value of {variable} (HTTP {discovery.refused})"
    return Probe(_format_incomplete_probe_table(driver, line, why), is_api=True, is_known=False, export=variable)


def _format_incomplete_probe_table(driver: str, headers: str, why: str) -> str:
    """Format a table with commented lines that the user must complete."""
    done = '# api.done = "[DONE]"  # the name or the data of the event that ends each stream\n'
    return (
        f"driver = {_quote_toml(driver)}\n{headers}# The format is not known yet: {' '.join(why.split())}. "
        "`lookout init --force` detects the format. Or write:\n"
        '# api.request = \'{"question": "{question}"}\'  # the JSON to post\n'
        '# api.text = "answer"  # the path to the answer: "part.text" leads to it in {"part": {"text": "…"}}\n'
        f"{done if driver == 'sse' else ''}"
    )


def _iterate_nondefault_probe_lines(probe: ProbeSettings) -> Iterator[str]:
    """Yield the lines of the table ``[targets.NAME.probe]`` that differ from the defaults."""
    yield f"driver = {_quote_toml(probe.driver)}"
    for name, header in probe.headers.items():
        yield f"headers = {{ {_quote_toml(name)} = {{ env = {_quote_toml(header.env or '')} }} }}"
    default = ApiSettings()
    for key in ("request", "text", "citations", "app_path", "latency_ms", "joins", "done"):
        value = getattr(probe.api, key)
        if key in {"request", "text"} or value != getattr(default, key):
            yield f"api.{key} = {_format_literal(value)}"


def _format_literal(value: object) -> str:
    if isinstance(value, str) and '"' in value and "'" not in value and value.isprintable():
        return f"'{value}'"
    return json.dumps(value, ensure_ascii=False)


def _quote_toml(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)

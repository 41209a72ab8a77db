"""Find out for `lookout init` whether an address is a page or a chat API, and the API's `probe` table."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from monitors.errors import ConfigError
from monitors.facts.language import LanguageEvidence, find_language_evidence
from monitors.github.actions import is_ci
from monitors.probes.inspect.api import ApiDiscovery, EndpointKind, discover_api, inspect_api
from monitors.probes.inspect.findings import HARMLESS, PageProblem
from monitors.probes.settings import ApiSettings, ProbeSettings
from monitors.records.base import Blame
from monitors.records.exchanges import NoAnswerReason
from monitors.records.targets import Environment, Target
from monitors.request_headers import API_TOKEN_VARIABLE, RequestHeaders, build_request_headers

DRIVERS: Final = ("browser", "json", "sse")
KEY_VARIABLE: Final = "BOT_KEY"
"""The variable with the value of the header that an API asks for."""
MAX_SHOWN_CHARACTERS: Final = 120
FILL_IN: Final = (
    "The configuration was written anyway. Complete the commented lines of its probe table (docs/configuration.md "
    "has all keys). Then run `lookout doctor` with the target's name: it asks one question.\n"
)
ANOTHER_LANGUAGE: Final = (
    "Your bot answers in another language than English, Hindi or Hinglish. Without a judge, Lookout grades only "
    "amounts, and golds of three words or more that the bot repeats word for word. It does not grade refusals, "
    "yes or no."
)
"""Printed at once for such bots: most of their suite stays ungraded without a judge."""
_DEFAULT_SETTINGS: Final = ProbeSettings()
Say = Callable[[str], None]


class Probe(NamedTuple):
    """How a target is asked: the table as TOML, empty for a page; ``export`` is a variable that is still to be set.

    ``is_known`` is false where nobody was asked, so that the table holds defaults.
    """

    table: str = ""
    is_api: bool = False
    is_known: bool = True
    export: str = ""


def check_driver(driver: str | None) -> None:
    """Raise `ConfigError` for a driver that `lookout init` does not support."""
    if driver not in {None, *DRIVERS}:
        raise ConfigError(f"--driver {driver!r} is not valid; accepted: {', '.join(DRIVERS)}")


def find_probe(
    target: Target, environment: Mapping[str, str], *, driver: str | None, may_ask: bool, say: Say
) -> Probe:
    """Return the probe table for an address. Raises `ConfigError` for neither page nor API, or no answer."""
    if driver == "browser" or (driver is None and target.space):
        return Probe()
    if target.space:
        raise ConfigError(f"--driver {driver} needs the address of the API; Lookout asks a Space through its page")
    if driver is None and not _is_api(target.address, say):
        return Probe()
    if target.environment is Environment.PRODUCTION and is_ci(environment):
        may_ask = False
    if not may_ask:
        say("Lookout asked nothing (--no-ask, or a CI run against production). The probe table has defaults.\n")
        return Probe(_format_unknown_table(driver or "json", "", "nobody was asked"), is_api=True, is_known=False)
    return _ask_api(target.address, environment, driver or "json", say)


def find_api_problem(address: str, environment: Mapping[str, str], *, ask: bool) -> PageProblem | None:
    """Return what to do at an address that is an API, not a page; ``None`` for anything else.

    One that wants a key is asked a harmless question, where ``ask`` allows, to learn which.
    """
    endpoint = asyncio.run(inspect_api(address, _DEFAULT_SETTINGS))
    if endpoint.kind in {EndpointKind.PAGE, EndpointKind.UNKNOWN}:
        return None
    is_api = endpoint.kind is EndpointKind.API
    description = "answers JSON, not a page" if "json" in endpoint.said else "is an API, not a page"
    description = description if is_api else "is neither a page nor a chat API"
    to_do = f"`lookout init --target {address}` detects how to ask it"
    to_do = to_do if is_api else "give the address of the chat page, or the address that receives the questions"
    if ask and is_api:
        headers = _build_headers(_DEFAULT_SETTINGS, environment)
        discovery = asyncio.run(discover_api(address, _DEFAULT_SETTINGS, headers))
        if discovery.refused:
            variable = KEY_VARIABLE if discovery.header else API_TOKEN_VARIABLE
            wants = f"the header {discovery.header}" if discovery.header else "a bearer token"
            to_do = f"it requires {wants} (HTTP {discovery.refused}): `export {variable}=…`, then {to_do}"
    return PageProblem(
        reason=NoAnswerReason.PAGE_NOT_UNDERSTOOD,
        blame=Blame.MONITOR,
        detail=f"This address {description} ({endpoint.said}).",
        to_do=to_do,
    )


def _build_headers(settings: ProbeSettings, environment: Mapping[str, str]) -> RequestHeaders:
    return build_request_headers(
        settings.headers, environment, key="probe.headers", token_variable=API_TOKEN_VARIABLE
    )


def _is_api(address: str, say: Say) -> bool:
    """Whether the address is an API. No secret is sent before that is known."""
    endpoint = asyncio.run(inspect_api(address, _DEFAULT_SETTINGS))
    match endpoint.kind:
        case EndpointKind.API:
            say(f"{address} is an API, not a page ({endpoint.said}).\n")
        case EndpointKind.UNKNOWN:
            say(
                f"Lookout cannot open {address} ({endpoint.said}), so it assumes a page. For an API, use --driver "
                "json or sse.\n"
            )
        case EndpointKind.NEITHER:
            raise ConfigError(
                f"{address} is neither a chat page nor a chat API ({endpoint.said}), so nothing was written. Set "
                "the kind with --driver json, --driver sse or --driver browser"
            )
        case EndpointKind.PAGE:
            pass
    return endpoint.kind is EndpointKind.API


def find_address_settings(address: str, environment: Mapping[str, str], say: Say) -> ProbeSettings:
    """Return how an address is asked: as a page, or as the API that it is. One question finds out which API.

    Raises `ConfigError` for an API that cannot be asked without more settings.
    """
    if asyncio.run(inspect_api(address, _DEFAULT_SETTINGS)).kind is not EndpointKind.API:
        return _DEFAULT_SETTINGS
    discovery, _ = _discover(address, environment, say)
    if discovery.probe is not None:
        return discovery.probe
    problem = find_api_problem(address, environment, ask=bool(discovery.refused))
    why = discovery.refused or "; ".join(discovery.tried)
    to_do = problem.to_do if problem else f"`lookout init --target {address}` detects how to ask it"
    raise ConfigError(f"{address} is an API with an unknown format ({why}): {to_do}")


def _discover(address: str, environment: Mapping[str, str], say: Say) -> tuple[ApiDiscovery, RequestHeaders]:
    """Ask until a request body is understood; return what was found, and the headers that were sent."""
    settings = _DEFAULT_SETTINGS
    headers = _build_headers(settings, environment)
    say(f"Asking {address} one question (“{HARMLESS}”) until it accepts a request body, then once more …\n")
    discovery = asyncio.run(discover_api(address, settings, headers))
    if discovery.refused and discovery.header and environment.get(KEY_VARIABLE):
        settings = ProbeSettings.model_validate({"headers": {discovery.header: {"env": KEY_VARIABLE}}})
        headers = _build_headers(settings, environment)
        discovery = asyncio.run(discover_api(address, settings, headers))
    return discovery, headers


def _ask_api(address: str, environment: Mapping[str, str], driver: str, say: Say) -> Probe:
    discovery, headers = _discover(address, environment, say)
    if discovery.refused:
        return _build_refused_probe(address, discovery, headers, driver, say)
    if discovery.probe is None:
        tried = "".join(f"\n  {line}" for line in discovery.tried)
        tried = f" Tried:{tried}\n" if tried else "\n"
        if discovery.asks_for_other_body:
            say(f"{address}: {discovery.problem}.{tried}{FILL_IN}")
            return Probe(_format_unknown_table(driver, "", discovery.problem), is_api=True, is_known=False)
        raise ConfigError(
            f"{address}: {discovery.problem}; nothing was written.{tried}write probe.api by hand "
            "(docs/configuration.md), or use --no-ask to get a table to complete"
        )
    reply = " ".join(discovery.answer.split())
    say(f"It answered: “{reply[:MAX_SHOWN_CHARACTERS]}{'…' if reply[MAX_SHOWN_CHARACTERS:] else ''}”\n")
    say(f"{ANOTHER_LANGUAGE}\n\n" if find_language_evidence(discovery.answer) is LanguageEvidence.UNREAD else "\n")
    return Probe("\n".join(_list_table_lines(discovery.probe)) + "\n", is_api=True)


def _build_refused_probe(
    address: str, discovery: ApiDiscovery, headers: RequestHeaders, driver: str, say: Say
) -> Probe:
    """Build a table with the headers that the API asks for; the rest follows once the token is set."""
    assert discovery.refused is not None
    variable = KEY_VARIABLE if discovery.header else API_TOKEN_VARIABLE
    if discovery.header:
        wants = f"HTTP {discovery.refused}: the API requires the header {discovery.header}"
        say(f"{address}: {wants}. probe.headers reads its value from {variable}.\n")
    else:
        say(f"{address}: {headers.explain_refusal(discovery.refused)}.\n")
    line = (
        f"headers = {{ {_quote(discovery.header)} = {{ env = {_quote(variable)} }} }}\n" if discovery.header else ""
    )
    why = f"the API requires the value of {variable} (HTTP {discovery.refused})"
    return Probe(_format_unknown_table(driver, line, why), is_api=True, is_known=False, export=variable)


def _format_unknown_table(driver: str, headers: str, why: str) -> str:
    """Format a table to fill in, with the defaults commented out."""
    done = '# api.done = "[DONE]"  # the name or the data of the event that ends each stream\n'
    return (
        f"driver = {_quote(driver)}\n{headers}# Not known yet: {' '.join(why.split())}. `lookout init --force` "
        'detects it. Or write:\n# api.request = \'{"question": "{question}"}\'  # the JSON to post\n# api.text '
        '= "answer"  # the path to the answer: "part.text" leads to it in {"part": {"text": "…"}}\n'
        f"{done if driver == 'sse' else ''}"
    )


def _list_table_lines(probe: ProbeSettings) -> Iterator[str]:
    """Yield the lines of ``[targets.NAME.probe]`` that differ from the defaults."""
    yield f"driver = {_quote(probe.driver)}"
    for name, header in probe.headers.items():
        yield f"headers = {{ {_quote(name)} = {{ env = {_quote(header.env or '')} }} }}"
    default = ApiSettings()
    for key in ("request", "text", "citations", "app_path", "latency_ms", "joins", "done"):
        value = getattr(probe.api, key)
        if key in {"request", "text"} or value != getattr(default, key):
            yield f"api.{key} = {_format_literal(value)}"


def _format_literal(value: object) -> str:
    if isinstance(value, str) and '"' in value and "'" not in value and value.isprintable():
        return f"'{value}'"
    return json.dumps(value, ensure_ascii=False)


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)

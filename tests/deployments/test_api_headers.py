"""Authentication headers for an application's API.

They are read from the environment, reported if they are wrong, and never shown.
"""

from __future__ import annotations

import json
import re

import pytest

from tests import fork_server
from tests.servers.api_key_check import Keyed

TOKEN = "t0ken-of-the-app-1234567890"
KEY = 'key/of"the\\app-0987654321'
DRIVERS = ("json", "sse", "job", "gradio")
PLACES = {"json": "/json", "sse": "/sse", "job": "/jobs", "gradio": ""}
BEARER = ("Authorization", f"Bearer {TOKEN}")
STATES = {
    "set": ({"LOOKOUT_API_TOKEN": "an-old-token"}, "it does not accept the bearer token in LOOKOUT_API_TOKEN"),
    "unset": ({}, "Lookout sent no token, because LOOKOUT_API_TOKEN is not set"),
    "empty": ({"LOOKOUT_API_TOKEN": ""}, "Lookout sent no token, because LOOKOUT_API_TOKEN is set but empty"),
}
TABLE = 'headers = { "X-Api-Key" = { env = "BOT_KEY" }, "X-Tenant" = "acme" }\n'


def written(folder, server, headers="", *, drivers=DRIVERS, traffic=""):
    """Write a configuration with one target and one case for each driver."""
    case = {"id": "wait", "question": "How long is it?", "gold": "24 months", "severity": 2, "language": "en"}
    line = json.dumps(case | {"type": "limits", "provenance": {"pipeline": "template"}})
    (folder / "suite.jsonl").write_text(f"{line}\n", encoding="utf-8")
    text = 'data_folder = "data"\n[gate]\nmin_severity_3_cases = 0\n'
    for driver in drivers:
        text += f'[targets.{driver}]\nurl = "{server.url}{PLACES[driver]}"\nsuite = "suite.jsonl"\n{traffic}'
        text += (
            f'graders = {{ citation_required = false }}\n[targets.{driver}.probe]\ndriver = "{driver}"\n{headers}'
        )
        text += f'[targets.{driver}.probe.job]\npoll_s = 0.01\nsteps = "steps.*"\n'
    (folder / "lookout.toml").write_text(text, encoding="utf-8")


def doctor(folder, *arguments, **variables):
    """Run `lookout doctor` in an environment that contains only these variables."""
    environment = fork_server.bare(CHROMIUM_PATH="/nowhere", **variables)
    return fork_server.run("doctor", *arguments, "--json", cwd=folder, env=environment)


def checked(folder, *arguments, **variables):
    """Return all checks of the doctor, keyed by name."""
    done = doctor(folder, *arguments, **variables)
    assert "Traceback" not in done.stderr, done.stderr
    return {check["name"]: check for check in json.loads(done.stdout)["checks"]}


@pytest.mark.parametrize(("state", "status"), [("set", 403), ("unset", 401), ("empty", 401)])
def test_the_doctor_names_the_variable_of_every_api_that_refuses(tmp_path, state, status):
    """The doctor calls the API as a run does, and reports the variable that is missing, empty or not accepted."""
    variables, said = STATES[state]
    with Keyed(*BEARER, status=status) as server:
        written(tmp_path, server)
        found = checked(tmp_path, **variables)
    for driver in DRIVERS:
        check = found[f"API of {driver}"]
        assert check["health"] == 2
        assert f"HTTP {status}: {said}" in check["found"], check
        assert "probe.headers" in check["found"]
        assert "an-old-token" not in json.dumps(check)
    assert "page of json" not in found


@pytest.mark.whole_only
@pytest.mark.prefect
@pytest.mark.parametrize("state", STATES)
def test_a_verification_says_which_variable_to_look_at_and_blames_the_monitor(tmp_path, lookout, state):
    """For a missing or refused token, the run is inconclusive and names the variable to check.

    This is a configuration error of the monitor, not a fault of the application.
    """
    variables, said = STATES[state]
    with Keyed(*BEARER) as server:
        written(tmp_path, server, drivers=("json",))
        done = lookout("verify", "json", cwd=tmp_path, **variables)
    assert done.returncode == 3, done.stdout + done.stderr
    (results,) = (tmp_path / "data").glob("runs/*/results.json")
    (case,) = json.loads(results.read_text(encoding="utf-8"))["cases"]
    assert case["result"]["blame"] == "monitor"
    assert f"HTTP 401: {said}" in case["result"]["detail"]
    assert said in re.sub(r"\s+", " ", done.stdout)
    assert_nowhere(tmp_path, done, "an-old-token")


@pytest.mark.whole_only
@pytest.mark.prefect
@pytest.mark.parametrize("driver", DRIVERS)
def test_configured_headers_open_the_api_and_are_seen_nowhere(tmp_path, lookout, driver):
    """Configured headers open the API, and no output contains the key.

    The application repeats the key in its answer, its model name and its steps, and a stream splits the key
    into parts.
    """
    with Keyed("X-Api-Key", KEY, repeats=True) as server:
        written(tmp_path, server, TABLE, drivers=(driver,))
        done = lookout("verify", driver, cwd=tmp_path, BOT_KEY=KEY, PREFECT_LOGGING_LEVEL="DEBUG")
    assert done.returncode == 0, done.stdout + done.stderr
    assert all((sent["X-Api-Key"], sent["X-Tenant"]) == (KEY, "acme") for _, sent in server.seen)
    (results,) = (tmp_path / "data").glob("runs/*/results.json")
    assert "24 months. [secret]" in results.read_text(encoding="utf-8")
    assert_nowhere(tmp_path, done, KEY)


def assert_nowhere(folder, done, secret):
    """Check that no output and no file of the folder contains the secret, as plain text or as JSON."""
    for form in (secret, json.dumps(secret)[1:-1]):
        assert form not in done.stdout + done.stderr
        files = [file for file in folder.rglob("*") if file.is_file()]
        assert [file for file in files if form.encode() in file.read_bytes()] == []


def test_a_redirect_to_another_host_gets_none_of_the_headers(tmp_path):
    with Keyed("X-Api-Key", KEY) as server, Keyed("X-Api-Key", KEY) as other:
        server.leads_to = f"{other.url}/json"
        written(tmp_path, server, TABLE, drivers=("json",))
        path = tmp_path / "lookout.toml"
        text = path.read_text(encoding="utf-8").replace("/json", "/away")
        allowed = f'driver = "json"\nallowed_origins = ["{other.url}"]\n'
        path.write_text(text.replace('driver = "json"\n', allowed), encoding="utf-8")
        found = checked(tmp_path, BOT_KEY=KEY, LOOKOUT_API_TOKEN=TOKEN)
    assert found["API of json"]["health"] == 2
    ((place, sent),) = other.seen
    assert place == "/json"
    assert not {"X-Api-Key", "X-Tenant", "Authorization"} & set(sent)


def test_one_api_that_works_is_shown_with_its_answer(tmp_path):
    """`lookout doctor NAME` calls a working API once, and shows its answer."""
    with Keyed("X-Api-Key", KEY) as server:
        written(tmp_path, server, TABLE, drivers=("json",))
        found = checked(tmp_path, "json", BOT_KEY=KEY)
        asked = len(server.seen)
        unasked = checked(tmp_path, "json", "--no-ask", BOT_KEY=KEY)
    assert "answered in" in found["API of json"]["found"]
    assert "is 24 months.”" in found["API of json"]["found"]
    assert unasked["API of json"]["found"].endswith("not asked (--no-ask)")
    assert len(server.seen) == asked == 1


@pytest.mark.parametrize(
    ("headers", "variables", "said"),
    [
        (
            '{ "X-Api-Key" = { env = "BOT_KEY" } }',
            {},
            "probe.headers.X-Api-Key: the environment variable BOT_KEY is not set",
        ),
        ('{ "X-Api-Key" = { env = "BOT_KEY" } }', {"BOT_KEY": ""}, "BOT_KEY is set but empty"),
        ('{ "X-Api-Key" = { env = "BOT_KEY" } }', {"BOT_KEY": f"{TOKEN}\n"}, "BOT_KEY contains a line break"),
        ("{}", {"LOOKOUT_API_TOKEN": f"{TOKEN}\r\nX: y"}, "LOOKOUT_API_TOKEN contains a line break"),
        (f'{{ "X-Api-Key" = "{TOKEN}" }}', {}, "only in the environment"),
        (f'{{ Cookie = "session={TOKEN}" }}', {}, "only in the environment"),
        (f'{{ "X-Api-Key" = {{ env = "BOT_KEY", value = "{TOKEN}" }} }}', {}, 'or { env = "VARIABLE" }'),
        (f'{{ "X-Tenant" = "{TOKEN}\\n" }}', {}, "no line breaks"),
        (f'{{ "X Tenant" = "{TOKEN}" }}', {}, "not a header name"),
        ('{ "X-Tenant" = "a", "x-tenant" = "b" }', {}, "set twice"),
    ],
)
def test_headers_that_cannot_be_sent_are_refused_in_a_second_without_their_value(
    tmp_path, headers, variables, said
):
    """Headers that cannot be sent are refused, and the message does not contain their value.

    The check takes place before any request and before Prefect is started, so the error appears within a second.
    """
    with Keyed("X-Api-Key", KEY) as server:
        written(tmp_path, server, f"headers = {headers}\n", drivers=("json",))
        done = fork_server.run("verify", "json", cwd=tmp_path, env=fork_server.bare(**variables))
        assert server.seen == []
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert TOKEN not in done.stderr + done.stdout
    assert not list(tmp_path.glob("data/prefect*"))


@pytest.mark.prefect
@pytest.mark.parametrize(
    ("access", "variables", "said"),
    [
        ("", {}, "traffic.token_env"),
        ('token_env = "BOT_TOKEN"', {"BOT_TOKEN": "an-old-token"}, "the bearer token in BOT_TOKEN"),
        ('headers = { "X-Api-Key" = { env = "BOT_KEY" } }', {"BOT_KEY": "an-old-token"}, "X-Api-Key from BOT_KEY"),
    ],
)
def test_an_export_that_refuses_names_what_opens_it(tmp_path, lookout, access, variables, said):
    with Keyed("X-Api-Key", KEY) as server:
        written(tmp_path, server, drivers=("json",))
        with (tmp_path / "lookout.toml").open("a", encoding="utf-8") as file:
            file.write(
                f'[targets.json.traffic.sources.export]\nkind = "http"\nurl = "{server.url}/export"\n{access}\n'
            )
        done = lookout("nightly", "json", "--plan", cwd=tmp_path, **variables)
        printed = re.sub(r"\s+", " ", done.stdout + done.stderr)
        assert said in printed
        assert "HTTP 401" in printed
        opened = lookout("nightly", "json", "--plan", cwd=tmp_path, **dict.fromkeys(variables, KEY))
    assert ("HTTP 401" in opened.stdout + opened.stderr) is ("X-Api-Key" not in access)
    assert_nowhere(tmp_path, done, "an-old-token")


@pytest.mark.parametrize("value", [None, ""])
def test_an_export_whose_variable_is_missing_says_whether_it_is_unset_or_empty(tmp_path, value):
    with Keyed("X-Api-Key", KEY) as server:
        written(tmp_path, server, drivers=("json",))
        with (tmp_path / "lookout.toml").open("a", encoding="utf-8") as file:
            file.write(
                f'[targets.json.traffic.sources.export]\nkind = "http"\nurl = "{server.url}/export"\n'
                'token_env = "BOT_TOKEN"\n'
            )
        found = checked(tmp_path, "--no-ask", **({} if value is None else {"BOT_TOKEN": value}))
    state = "is not set" if value is None else "is set but empty"
    assert f"variable BOT_TOKEN {state}" in found["traffic of json"]["found"]

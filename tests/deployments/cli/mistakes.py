"""A table of the most common mistakes: the user's command, its output, and how to fix it.

docs/troubleshooting.md is generated from this table, and the tests make every mistake with the real command.
Update the page with: `python -m tests.deployments.cli.mistakes`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

DOCUMENT: Final = Path("docs/troubleshooting.md")
PAGE: Final = "localhost:7860"
"""Placeholder for the local page server."""
NOBODY: Final = "localhost:7863"
"""Placeholder for a port on which nothing listens."""
HUB: Final = "localhost:7861"
SLACK: Final = "localhost:7862"

WAIT = {"id": "wait", "question": "How long is the waiting period?", "gold": "36 months", "severity": 3}
GRACE = {"id": "grace", "question": "How long is the grace period?", "gold": "30 days", "severity": 2}
SUITE: Final = f"{json.dumps(WAIT)}\n{json.dumps(GRACE)}\n"
TOML: Final = f"""[targets.bot]
url = "http://{PAGE}/docs"
suite = "suite.jsonl"
"""
SPACE: Final = f"""[targets.bot]
space = "acme/bot"
url = "http://{HUB}/"
suite = "suite.jsonl"
[targets.bot.probe.readiness]
hub_url = "http://{HUB}"
"""
ON_SLACK: Final = f"""{TOML}[alerts]
slack_channel = "#oncal"
slack_api_url = "http://{SLACK}/api/"
"""
BOT_TOKEN: Final = {"SLACK_BOT_TOKEN": "xoxb-1111-2222-a-token-for-tests"}


@dataclass(frozen=True)
class Mistake:
    """A row of the table. ``seen`` is the complete output or, if ``part`` is true, its relevant lines.

    ``files`` are the files in the folder, in addition to a valid suite. ``set_up`` is the environment that the
    tests prepare (see `tests.deployments.cli.test_mistakes`).
    """

    title: str
    typed: str
    seen: str
    code: int
    to_do: str
    files: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    part: bool = False
    set_up: str = ""


GROUPS: Final[Mapping[str, tuple[Mistake, ...]]] = {
    "The address": (
        Mistake(
            title="The host has a typo",
            typed="lookout doctor https://bot.example.invalid",
            seen="""\
https://bot.example.invalid: the host name cannot be resolved
What to do: open the address on this machine. Check its spelling, the network
  and the proxy, and whether the app runs""",
            code=1,
            to_do="Copy the address from a browser that shows the chat.",
            part=True,
        ),
        Mistake(
            title="The port is closed",
            typed=f"lookout doctor http://{NOBODY}",
            seen=f"""\
http://{NOBODY}: the port is closed (ERR_CONNECTION_REFUSED). Check that the
  app is running and uses this port""",
            code=1,
            to_do="Start the application. When it starts, it prints the port that it uses.",
            part=True,
        ),
        Mistake(
            title="The path is wrong",
            typed=f"lookout verify http://{PAGE}/chat --suite suite.jsonl",
            seen=f"""\
 INCONCLUSIVE   nothing was graded
Why       the app was not available: unreachable: http://{PAGE}/chat answered
          HTTP 404""",
            code=3,
            to_do="Copy the address from a browser that shows the chat. The line `Next` has a command for details.",
            part=True,
            set_up="prefect",
        ),
        Mistake(
            title="https instead of http",
            typed=f"lookout doctor https://{PAGE}/docs",
            seen=f"""\
https://{PAGE}/docs: the server does not use https (ERR_SSL_PROTOCOL_ERROR).
  Try http://…""",
            code=1,
            to_do="Begin the address with `http://`: most local applications do not use https.",
            part=True,
        ),
        Mistake(
            title="The scheme is missing",
            typed=f"lookout verify {PAGE} --suite suite.jsonl",
            seen=f"lookout: target {PAGE!r} does not exist. For an address, write http://{PAGE}",
            code=2,
            to_do="Write `http://` before the address. Without it, Lookout looks for a target with this name.",
            files={"lookout.toml": TOML},
        ),
        Mistake(
            title="The page is not a chat",
            typed=f"lookout doctor http://{PAGE}/docs",
            seen="""\
the page has no usable message box: title 'API docs', no text box, text 'Nothing to
  ask here.'
What to do: check that the chat is at this address. If the address is right, open
  the screenshot and set the missing selectors (message_box, send, answer) under
  [targets.NAME.probe.selectors]""",
            code=3,
            to_do="Many applications show their chat on another page. Give the address of that page.",
            part=True,
        ),
        Mistake(
            title="The page asks to sign in",
            typed=f"lookout doctor http://{PAGE}/login",
            seen="""\
the page shows a login form instead of the chat: title 'Sign in', no text box, text 'Go'
What to do: if the page asks for a login, configure [targets.NAME.login] in
  lookout.toml (docs/login.md)""",
            code=3,
            to_do="Configure the login: [pages behind a login](login.md) has the lines to copy.",
            part=True,
        ),
        Mistake(
            title="The Space is asleep",
            typed="lookout doctor --no-alert",
            seen="Space of bot  acme/bot: SLEEPING",
            code=0,
            to_do="You do not have to do anything: `lookout verify` opens the page, which wakes the Space, and waits for it.",
            files={"lookout.toml": SPACE},
            part=True,
            set_up="SLEEPING",
        ),
        Mistake(
            title="The Space is private, or its name is wrong",
            typed="lookout doctor --no-alert",
            seen="""\
broken  Space of bot  the Hub answered HTTP 401 for acme/bot. Check the name of
  the Space, and that the token in HF_TOKEN may read the Space
→ correct targets.bot.space, or set HF_TOKEN to a token that may read this Space""",
            code=4,
            to_do="Run `export HF_TOKEN=…` with a Hugging Face token that may read the Space.",
            files={"lookout.toml": SPACE},
            part=True,
            set_up="hidden",
        ),
        Mistake(
            title="The Space is still building",
            typed="lookout doctor --no-alert",
            seen="""\
Space of bot  acme/bot: RUNNING_BUILDING
→ wait until the Space runs. A run waits up to""",
            code=0,
            to_do="Wait until the Space runs. A run waits for at most `probe.readiness.deadline_s` seconds.",
            files={"lookout.toml": SPACE},
            part=True,
            set_up="RUNNING_BUILDING",
        ),
    ),
    "The suite": (
        Mistake(
            title="No suite is given",
            typed=f"lookout verify http://{PAGE}/docs",
            seen="""\
lookout: to verify an address, also give --suite FILE, a file with questions
  and right answers. `lookout init` creates a first suite. docs/suite.md
  explains the format""",
            code=2,
            to_do="Give the path of a suite. A good first suite has ten questions whose right answers you know.",
        ),
        Mistake(
            title="The path of the suite is wrong",
            typed=f"lookout verify http://{PAGE}/docs --suite sute.jsonl",
            seen="lookout: {folder}/sute.jsonl cannot be read: file not found (did you mean 'suite.jsonl'?)",
            code=2,
            to_do="Correct the path. It is relative to the current folder or, in `lookout.toml`, to the folder of that file.",
        ),
        Mistake(
            title="A case has no severity",
            typed=f"lookout verify http://{PAGE}/docs --suite mine.jsonl",
            seen="""\
lookout: {folder}/mine.jsonl cannot be used because of 1 bad line:
  line 2: "severity" is missing; accepted: 1 (minor), 2 (major) or 3 (critical: alerts at once)""",
            code=2,
            to_do="Add a severity, which states how bad a wrong answer is. Severity 3 sends an alert at once.",
            files={"mine.jsonl": SUITE.replace(', "severity": 2', "")},
        ),
        Mistake(
            title="A line is broken JSON",
            typed=f"lookout verify http://{PAGE}/docs --suite mine.jsonl",
            seen="""\
lookout: {folder}/mine.jsonl cannot be used because of 1 bad line:
  line 2: broken JSON at column 94: Expecting ',' delimiter""",
            code=2,
            to_do="Write one complete JSON object on each line. `lookout gold check mine.jsonl` lists all faults at once.",
            files={"mine.jsonl": SUITE.replace('"severity": 2}', '"severity": 2')},
        ),
        Mistake(
            title="Two cases have the same id",
            typed=f"lookout verify http://{PAGE}/docs --suite mine.jsonl",
            seen="""\
lookout: {folder}/mine.jsonl cannot be used because of 1 bad line:
  line 2: line 1 already has the id "wait"; use each id once""",
            code=2,
            to_do="Give one of the cases another id. Lookout uses the id to link the results of a case across runs.",
            files={"mine.jsonl": SUITE.replace('"grace"', '"wait"')},
        ),
        Mistake(
            title="The suite is a table",
            typed=f"lookout verify http://{PAGE}/docs --suite mine.csv",
            seen="""\
lookout: {folder}/mine.csv is a table, but a suite must be JSON lines. To convert the
  columns question, gold, id and severity: `lookout gold import {folder}/mine.csv
  --out mine.jsonl`""",
            code=2,
            to_do="Run the `lookout gold import` command from the message. If rows have no severity, add `--severity 2`.",
            files={"mine.csv": "question,gold\nHow long is it?,30 days\n"},
        ),
        Mistake(
            title="The suite is a JSON array",
            typed=f"lookout verify http://{PAGE}/docs --suite mine.json",
            seen="""\
lookout: {folder}/mine.json is a JSON array, but a suite must be JSON lines (one
  object on each line). Convert it with `jq -c '.[]'`. For an array of another
  project, use `lookout gold import`""",
            code=2,
            to_do="If the objects have the keys of a suite, run `jq -c '.[]' mine.json > mine.jsonl`.",
            files={"mine.json": json.dumps([WAIT, GRACE])},
        ),
        Mistake(
            title="The suite is empty",
            typed=f"lookout verify http://{PAGE}/docs --suite mine.jsonl",
            seen="""\
lookout: {folder}/mine.jsonl has no cases; write one JSON object on each line, or
  choose another suite""",
            code=2,
            to_do="Add at least one case. [The keys of a suite](suite.md) shows examples.",
            files={"mine.jsonl": "\n"},
        ),
    ),
    "lookout.toml": (
        Mistake(
            title="The file does not exist",
            typed="lookout nightly",
            seen="lookout: lookout.toml does not exist. Run `lookout init`, or use --config for another file",
            code=2,
            to_do="Run `lookout init` to create the file. `lookout demo` and `lookout doctor URL` work without it.",
        ),
        Mistake(
            title="A key is misspelt",
            typed="lookout verify bot",
            seen="lookout: lookout.toml: targets.bot.siute: unknown key (did you mean 'suite'?)",
            code=2,
            to_do="Correct the key. [Configuration](configuration.md) lists all keys.",
            files={"lookout.toml": TOML.replace("suite =", "siute =")},
        ),
        Mistake(
            title="A target is misspelt",
            typed="lookout verify bto",
            seen="lookout: target 'bto' does not exist (did you mean 'bot'?); accepted: bot",
            code=2,
            to_do="Use the name in the header of the target's table: it is `bot` in `[targets.bot]`.",
            files={"lookout.toml": TOML},
        ),
        Mistake(
            title="It is not TOML",
            typed="lookout verify bot",
            seen="""\
lookout: lookout.toml: not valid TOML: Invalid value (at line 2, column 7); fix
  this line (see docs/configuration.md)""",
            code=2,
            to_do="In a TOML file, strings must be in quotes, and names of tables in brackets.",
            files={"lookout.toml": TOML.replace('"', "")},
        ),
    ),
    "Keys and Slack": (
        Mistake(
            title="The judge has no key",
            typed="lookout doctor --no-alert",
            seen="""\
optional  judge  claude-sonnet-5-5: off, because ANTHROPIC_API_KEY is not set
→ set the key in the environment of runs. Until then, answers that rules cannot
  grade stay ungraded""",
            code=0,
            to_do="To use the judge, set `ANTHROPIC_API_KEY` in the shell, the service or the workflow that starts runs.",
            files={
                "lookout.toml": TOML.replace("[targets.bot]", '[targets.bot]\nmodel_family = "llama"')
                + '[[judge.models]]\nmodel = "claude-sonnet-5-5"\n'
            },
            part=True,
        ),
        Mistake(
            title="The Slack token is not there",
            typed="lookout up",
            seen="""\
lookout: SLACK_SIGNING_SECRET is not set. Lookout needs it to check that a request
  comes from Slack. Find it in the Slack app's settings: Basic Information,
  Signing Secret
SLACK_BOT_TOKEN is not set: alerts.slack_buttons needs a bot token, because
  buttons do not work with a webhook""",
            code=2,
            to_do="Set both variables. [Slack's buttons](operations.md#slacks-buttons) describes where to find their values.",
            files={"lookout.toml": f'{TOML}[alerts]\nslack_channel = "#oncall"\nslack_buttons = true\n'},
        ),
        Mistake(
            title="The Slack channel does not exist",
            typed="lookout doctor --no-judge",
            seen="""\
broken  alerts, bot  the test message did not arrive
→ Slack refuses the message (HTTP 200, channel_not_found): check `slack_channel`
  in lookout.toml (the bot can find a private channel only if it is a member)""",
            code=4,
            to_do="Correct `alerts.slack_channel`. If the channel is private, type `/invite @lookout` in it.",
            files={"lookout.toml": ON_SLACK},
            variables=BOT_TOKEN,
            part=True,
        ),
        Mistake(
            title="The Slack token is of another kind",
            typed="lookout doctor --no-judge",
            seen="""\
broken  alerts, bot  the test message did not arrive
→ Slack refuses the message (HTTP 200, not_allowed_token_type): use a bot token
  (it begins with xoxb)""",
            code=4,
            to_do="Set `SLACK_BOT_TOKEN` to the bot token. The Slack app's settings show it under OAuth & Permissions.",
            files={"lookout.toml": ON_SLACK},
            variables={"SLACK_BOT_TOKEN": "xapp-1-a-token-for-tests"},
            part=True,
            set_up="not_allowed_token_type",
        ),
        Mistake(
            title="The Slack token was revoked",
            typed="lookout doctor --no-judge",
            seen="""\
broken  alerts, bot  the test message did not arrive
→ Slack refuses the message (HTTP 200, token_revoked): create a new bot token in
  the Slack app's settings and set SLACK_BOT_TOKEN""",
            code=4,
            to_do="Install the app again under OAuth & Permissions, and set `SLACK_BOT_TOKEN` to the new token.",
            files={"lookout.toml": ON_SLACK},
            variables=BOT_TOKEN,
            part=True,
            set_up="token_revoked",
        ),
    ),
    "This machine": (
        Mistake(
            title="There is no browser",
            typed="lookout doctor --no-alert",
            seen="""\
broken  browser  Chromium was not found. Run `lookout browser install`. Or install
  the package chromium-headless-shell or chromium. Or set CHROMIUM_PATH
  (probe.browser_path) to the path of Chromium
→ lookout browser install""",
            code=4,
            to_do="Run `lookout browser install`, or `lookout doctor --fix`, which also applies the other safe fixes.",
            files={"lookout.toml": TOML},
            part=True,
            set_up="no browser",
        ),
        Mistake(
            title="The browser does not start, or is of another version",
            typed="lookout doctor --no-alert",
            seen="""\
The browser may be damaged or have the wrong version. Run `lookout browser install`,
  or set CHROMIUM_PATH (probe.browser_path) to another browser""",
            code=4,
            to_do="If `CHROMIUM_PATH` is set, Lookout uses that browser. To use the installed browser, unset the variable.",
            files={"lookout.toml": TOML},
            part=True,
            set_up="old browser",
        ),
        Mistake(
            title="Two installations share a data folder",
            typed="lookout up",
            seen="""\
lookout: another `lookout up` or `lookout receive` already uses {folder}/data.
  Stop it first, or set another data_folder""",
            code=2,
            to_do="Set another `data_folder` for the second installation: two installations cannot share one.",
            files={"lookout.toml": f'data_folder = "data"\n{TOML}'},
            set_up="lock",
        ),
        Mistake(
            title="The port is taken",
            typed="lookout site --port 7860",
            seen="""\
lookout: the site cannot listen on port 7860 (address already in use). Stop the
  program that uses this port, or choose another port with --port""",
            code=2,
            to_do="`ss -ltnp` lists programs with their ports. `lookout up` uses `--port` and the next two ports.",
            files={"lookout.toml": TOML},
        ),
        Mistake(
            title="The data folder cannot be written",
            typed="lookout verify bot",
            seen="Read-only file system; the file system is read-only: choose another data folder",
            code=4,
            to_do="Set `data_folder` in `lookout.toml` to a folder in which the user who runs Lookout can write.",
            files={"lookout.toml": f'data_folder = "data"\n{TOML}'},
            part=True,
            set_up="read-only",
        ),
        Mistake(
            title="The disk is full",
            typed="lookout verify bot",
            seen="No space left on device; the disk is full: free some space",
            code=4,
            to_do="`lookout warehouse pictures` deletes old pictures. The table `[evidence]` sets their maximum age.",
            files={"lookout.toml": f'data_folder = "data"\n{TOML}'},
            part=True,
            set_up="full",
        ),
        Mistake(
            title="The clock is wrong",
            typed="lookout doctor --no-alert",
            seen="→ set the clock with NTP. If the clock is wrong by more than 300 s, signatures of\n  Slack and webhooks are refused",
            code=4,
            to_do="On most systems, `timedatectl set-ntp true` turns NTP on.",
            files={"lookout.toml": TOML.replace("/docs", "/late")},
            part=True,
        ),
        Mistake(
            title="A Python library is missing or damaged",
            typed="lookout sql 'from runs'",
            seen="""\
lookout: the library duckdb cannot be imported (No module named 'duckdb') from
  {prefix}. To install the right version:""",
            code=2,
            to_do="Run the command in the next line of the output. It installs the library for the Python of `lookout`.",
            part=True,
            files={"lookout.toml": TOML, "data.txt": ""},
            set_up="no duckdb",
        ),
        Mistake(
            title="PREFECT_API_URL names a server that is gone",
            typed="lookout verify bot",
            seen="""\
lookout: no Prefect server answers at http://localhost:9/api (from PREFECT_API_URL or
  prefect.api_url). Start that server, or remove the address, so that Lookout
  starts a local server""",
            code=4,
            to_do="Start that server. To use a local server instead, run `unset PREFECT_API_URL`.",
            files={"lookout.toml": TOML},
            variables={"PREFECT_API_URL": "http://localhost:9/api"},
            part=True,
        ),
        Mistake(
            title="Nothing has run yet",
            typed="lookout report",
            seen="""\
lookout: this folder has no lookout.toml and no data folder .lookout. Create a data
  folder with `lookout verify` or `lookout demo`, or give another path with
  --config or --data-folder""",
            code=2,
            to_do="First run `lookout doctor` on your page, then `lookout verify`, then `lookout report`.",
        ),
    ),
}
"""All rows, in the order of the page."""

INTRODUCTION: Final = """\
# When something does not work

For each problem, this page shows the command, its output, the exit code and the fix. Lookout's error messages name
the fault, its cause and the next step. Reports and the output of `lookout doctor` end with the next step. To see the
traceback of an error, set `LOOKOUT_DEBUG=1` before the command.

| exit code | meaning |
| --- | --- |
| 2 | the command or the configuration is wrong. Lookout asked no question |
| 3 | there is no verdict, because the application was down or too few answers could be graded |
| 4 | Lookout itself, or a program that it needs on this machine, does not work |
"""


def page() -> str:
    """Build docs/troubleshooting.md."""
    return "\n".join([INTRODUCTION, *(_group(name, rows) for name, rows in GROUPS.items())])


def _group(name: str, rows: tuple[Mistake, ...]) -> str:
    return "\n".join([f"## {name}\n", *map(_row, rows)])


def _row(row: Mistake) -> str:
    shown = row.seen.replace("{folder}", "/srv/bot").replace("{prefix}", "/srv/bot/.venv")
    set_before = "".join(f"{name}={_shown(name, value)} " for name, value in row.variables.items())
    return (
        f"### {row.title}\n\n```console\n$ {set_before}{row.typed}\n```\n\n```text\n{shown}\n```\n\n"
        f"The exit code is {row.code}. {row.to_do}\n"
    )


def _shown(name: str, value: str) -> str:
    return f"{value[:5]}…" if name == "SLACK_BOT_TOKEN" else value


if __name__ == "__main__":
    DOCUMENT.write_text(page(), encoding="utf-8")

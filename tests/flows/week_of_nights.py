"""Simulate a week of nightly runs for the assistant of an invented lamp shop, with all Slack messages.

Scheduled deployments run with a simulated clock. Slack and the judge's provider are local servers.
`docs/traffic.md` shows the result. To update it, run `python -m tests.flows.week_of_nights`.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

from flows.server import prefect_server
from tests.servers.anthropic import KEY, AnthropicServer
from tests.servers.slack import CHANNELS, TOKEN, SlackServer

ROOT: Final = Path(__file__).parents[2]
DOCS: Final = ROOT / "docs" / "traffic.md"
BEGIN: Final = "<!-- made by python -m tests.flows.week_of_nights -->"
END: Final = "<!-- end of what was made -->"

MONDAY: Final = datetime(2026, 3, 2, 2, 0, tzinfo=UTC)
"""The time of the first nightly run, at the default hour of the schedule."""
DIGEST: Final = timedelta(hours=5)
"""The time from a nightly run to its digest in the default schedules."""
PER_DAY: Final = 300

TOPICS: Final = (
    (
        "How long do I have to send a lamp back?",
        "A lamp goes back to the shop within thirty days, in its own box.",
        "Returns: customers send a lamp back to the shop within thirty days, packed in its own box.",
        "Send it whenever suits you; our courier collects old furniture free of charge too.",
    ),
    (
        "Is the dimmer covered by the guarantee?",
        "Yes, the guarantee covers the dimmer along with switches and cables.",
        "Guarantee: it covers the dimmer, the switches and the cables along with the frame.",
        "Dimmers are fragile, so the garage next door repairs them against payment.",
    ),
    (
        "Where do you deliver?",
        "We deliver to every address on the mainland, and to islands by ferry.",
        "Delivery: the shop delivers to every address on the mainland; islands get their parcels by ferry.",
        "Our lamps are handmade by artists, and each colour is a mood of its own.",
    ),
    (
        "Can I change the shade afterwards?",
        "The shade may be changed at any time, since its ring fits all frames.",
        "Shades: a shade may be changed at any time, since the ring of each fits all frames.",
        "Changing it breaks the seal and voids whatever the factory promised before.",
    ),
)
"""For each topic: a question, the right answer, the passage that supports it, and an unsupported answer."""
GOLD: Final = (
    ("repair", "Who repairs a broken lamp?", "The workshop repairs a broken lamp and sends it back insured."),
    ("bulb", "Which bulb fits?", "Any bulb with a small screw fits, provided that its glass is clear."),
)
ERROR: Final = "Error code: 529 - {'type': 'error', 'error': {'type': 'overloaded_error', 'message': 'Overloaded'}}"

CONFIG: Final = """data_folder = "data"

[targets.shop]
url = "http://127.0.0.1:9"
suite = "suite.jsonl"
model_family = "gpt"

[targets.shop.traffic.sources.turns]
kind = "file"
at = "turns-*.jsonl"

[targets.shop.traffic.sampling]
number = 100

[judge]
budget_usd = 2
try_s = 5
tries = 2
most_pause_s = 1
deadline_s = 60
batch_poll_s = 0.05
[[judge.models]]
model = "claude-sonnet-5-5"
base_url = "{judge}"

[alerts]
slack_channel = "C0ALERTS"
slack_monitor_channel = "C0MONITOR"
slack_api_url = "{slack}"
site_url = "https://lookout.example.com"

[schedules]
verify_cron = ""
"""


@dataclass(frozen=True)
class Day:
    """The events of one day. ``wrong`` is the percentage of answers that their source does not support.

    ``errors`` are the first and the last hour of a period in which all answers are provider errors.
    """

    title: str
    wrong: int = 2
    errors: tuple[float, float] | None = None
    conversations: int = PER_DAY
    judge: str = "well"


WEEK: Final = (
    Day("a quiet day"),
    Day("an error burst: from 14:00 to 16:00 every answer was its provider's error", errors=(14, 16)),
    Day("the judge's provider answers HTTP 500", judge="down"),
    Day("the judge passes its known wrong answers", judge="fooled"),
    Day("every third answer has nothing to do with its passage", wrong=33),
    Day("the answers are as before", wrong=2),
    Day("nobody asked, or nothing was logged", conversations=0),
)


class Sent(NamedTuple):
    """A message that Slack accepted.

    ``kind`` is a key of `_ARRIVALS`. ``threaded`` is true if the message is in a thread, and ``rings`` if the
    message mentions users.
    """

    channel: str
    kind: str
    text: str
    threaded: bool
    rings: bool


class Happened(NamedTuple):
    """The result of one scheduled run: the type, name and message of its state, and its Slack messages."""

    title: str
    flow: str
    at: datetime
    state: tuple[str, str]
    message: str
    sent: tuple[Sent, ...]


class Week:
    """A simulated week with its data in ``folder``, and the Prefect server in ``environment``."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self.folder = folder
        self._environment = dict(environment)

    def run(self, days: tuple[Day, ...] = WEEK) -> Iterator[Happened]:
        """Execute the nightly run and the digest of each day in order, and yield their results."""
        log = self.folder / "slack.jsonl"
        with SlackServer(log=log) as slack, AnthropicServer() as provider:
            self.write(slack, provider)
            with (
                (self.folder / "worker.log").open("w", encoding="utf-8") as worker_log,
                self._worker(worker_log) as worker,
            ):
                message_count = 0
                for number, day in enumerate(days):
                    self.live(day, MONDAY + timedelta(days=number))
                    _set(provider, day)
                    for name, after in (
                        ("grade-traffic/grade-traffic-shop", timedelta()),
                        ("digest/digest", DIGEST),
                    ):
                        at = MONDAY + timedelta(days=number) + after
                        state, named, message = _asked(worker, name, at)
                        taken = _lines(log)[message_count:]
                        message_count += len(taken)
                        sent = tuple(map(_sent, taken))
                        yield Happened(day.title, name.partition("/")[0], at, (state, named), message, sent)

    def write(self, slack: SlackServer, provider: AnthropicServer) -> None:
        """Write the configuration and the gold set."""
        suite = [
            {"id": name, "question": question, "gold": gold, "severity": 2, "language": "en", "type": "care"}
            | {"provenance": {"pipeline": "manual"}}
            for name, question, gold in GOLD
        ]
        (self.folder / "suite.jsonl").write_text(
            "".join(f"{json.dumps(case)}\n" for case in suite), encoding="utf-8"
        )
        config = CONFIG.format(judge=provider.url, slack=slack.api_url)
        (self.folder / "lookout.toml").write_text(config, encoding="utf-8")

    def live(self, day: Day, until: datetime) -> None:
        """Write the log of the day that ends at ``until``, as the shop's assistant does."""
        begin = until - timedelta(days=1)
        rows = [_row(number, begin, day) for number in range(day.conversations)]
        place = self.folder / f"turns-{begin:%Y-%m-%d}.jsonl"
        place.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")

    def _worker(self, log: IO[str]) -> subprocess.Popen[str]:
        variables = {"PYTHONPATH": str(ROOT), "SLACK_BOT_TOKEN": TOKEN, "ANTHROPIC_API_KEY": KEY}
        return subprocess.Popen(
            [sys.executable, "-m", "tests.flows.scheduled_worker", str(self.folder / "lookout.toml")],
            cwd=self.folder,
            env=self._environment | variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )


def _row(number: int, begin: datetime, day: Day) -> dict[str, Any]:
    at = begin + timedelta(days=1) * (number + 0.5) / day.conversations
    question, right, passage, wrong = TOPICS[number % len(TOPICS)]
    is_wrong = (number * 37) % 100 < day.wrong
    from_h, to_h = day.errors or (0, 0)
    failed = from_h <= at.hour < to_h
    answer = ERROR if failed else wrong if is_wrong else right
    return {
        "id": f"{begin:%m%d}-{number}",
        "completed_at": at.isoformat(timespec="seconds"),
        "question": f"{question} Order {number}.",
        "answer": answer,
        "context": [passage],
    }


def _set(provider: AnthropicServer, day: Day) -> None:
    provider.behave()
    provider.judge.passes_all = day.judge == "fooled"
    provider.always = "500" if day.judge == "down" else None


def _asked(worker: subprocess.Popen[str], name: str, at: datetime) -> list[str]:
    assert worker.stdin is not None
    assert worker.stdout is not None
    worker.stdin.write(json.dumps([name, at.isoformat()]) + "\n")
    worker.stdin.flush()
    line = worker.stdout.readline()
    if not line:
        raise AssertionError(f"the worker ended with {worker.wait()}: see worker.log")
    return json.loads(line)


def _lines(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()] if log.exists() else []


def _sent(taken: dict[str, Any]) -> Sent:
    kind = "edit" if taken["edits"] else "reply in its thread" if taken["thread_ts"] else "message"
    return Sent(
        channel=f"#{CHANNELS[taken['channel']]}",
        kind=kind,
        text="\n".join(filter(None, map(_block, taken["blocks"]))) or taken["text"],
        threaded=bool(taken["thread_ts"]),
        rings=bool(taken["rings"]),
    )


def _block(block: dict[str, Any]) -> str:
    """Return the visible text of a block of Slack's Block Kit."""
    match block["type"]:
        case "header" | "section":
            parts = [block.get("text"), *block.get("fields", [])]
            return "\n".join(_plain(part["text"]) for part in parts if part)
        case "context":
            return "  ".join(_plain(part["text"]) for part in block["elements"])
        case "actions":
            return "  ".join(f"[{part['text']['text']}]" for part in block["elements"] if "text" in part)
        case _:
            return ""


def _plain(text: str) -> str:
    """Return a text with Slack's markup as Slack displays it, for example a link as its label."""
    text = re.sub(r"<!date\^[^|>]*\|([^>]*)>", r"\1", text)
    text = re.sub(r"<[^|<>]*\|([^<>]*)>", r"\1", text)
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def shown(happened: list[Happened]) -> str:
    """Format the week as docs/traffic.md shows it."""
    week = "\n".join(line for event in happened for line in _shown(event)).rstrip() + "\n"
    return re.sub(r"LK-[A-Z2-7]{8}", "LK-…", week)  # it follows from the moment, to the millisecond


_ARRIVALS = {
    "message": "this message arrives",
    "reply in its thread": "this reply arrives in the thread of the first message",
    "edit": "this edit replaces a message",
}
"""How docs/traffic.md describes the arrival of each kind of message."""


def _shown(event: Happened) -> Iterator[str]:
    if event.flow == "grade-traffic":
        yield f"### {event.at:%A}: {event.title}\n"
        if not event.sent:
            yield f"At {event.at:%H:%M}, the nightly run ends as *{event.state[1]}* and sends nothing.\n"
    for number, sent in enumerate(event.sent):
        is_end = not number and event.flow == "grade-traffic"
        ended = f"the nightly run ends as *{event.state[1]}*, and " if is_end else ""
        yield f"At {event.at:%H:%M}, {ended}{_ARRIVALS[sent.kind]} in {sent.channel}:\n"
        yield f"```text\n{sent.text}\n```\n"


def page(week: str) -> str:
    """Return the content of docs/traffic.md with the formatted week ``week`` in its section."""
    before, _, rest = DOCS.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{week}\n{END}{after}"


def main() -> None:
    """Simulate the week, and write docs/traffic.md."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        environment = dict(os.environ)
        prefect_server.connect_or_start(
            None, folder / "prefect", environment=environment, start_timeout_s=180, write_line=print
        )
        try:
            happened = []
            for event in Week(folder, environment).run():
                print(event.at, event.flow, event.state, event.message)
                happened.append(event)
        finally:
            prefect_server.stop_server(folder / "prefect")
            print((folder / "worker.log").read_text(encoding="utf-8")[-3000:])
    week = shown(happened)
    print(week)
    if BEGIN in DOCS.read_text(encoding="utf-8"):
        DOCS.write_text(page(week), encoding="utf-8")


if __name__ == "__main__":
    main()

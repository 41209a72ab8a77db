"""Write docs/alerts.md and its screenshots: ``python -m tests.monitors.alerts.make_docs``.

Lookout's own code builds every message. The screenshots are rendered from the Block Kit that Slack would get.
``make snapshots`` also updates the page, which contains the whole text of each message, but not the screenshots.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

from monitors.alerts.slack.render import SlackText, format_digest_as_plain_text, render_alert, render_digest
from monitors.alerts.terminal import format_plain_text
from tests.tools.alert_examples import SETTINGS, digest_example, examples
from tests.tools.alert_preview import preview_page

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs" / "alerts.md"
PICTURES = ROOT / "docs" / "alerts"
DIGEST = "nightly-digest"
DIGEST_WHEN = """Lookout sends the digest of a target once a day, even if nothing is wrong. The digest describes the verification runs of the day
and the last nightly run: how many conversations were read and sampled, the failure rates with their intervals, the kinds of
failure, and drift. It also says if a nightly run is missing.

The digest does not list faults of Lookout and its judge, because messages about them go to the channel of the monitor's owners. If
the two channels are the same, the digest gives the number of these faults."""
COLOURS = 64
"""The number of colours in a screenshot. It is enough for text on white, and makes a file five times smaller."""
WIDTHS = {"desktop": 600, "phone": 360}

INTRODUCTION = """# Alerts

This page shows every kind of message that Lookout sends. Each picture shows a message in Slack. The text below the
picture is the same message in a terminal, where Lookout prints it if Slack is not configured.

- The first line names the fault, its severity and the target. It also marks a target with `environment = "production"`.
- Severity 3 (SEV 3) is the highest severity. For a failure of severity 3, Lookout sends an alert during the run. The failure also
  fails the run, unless the case is flaky.
- The line `To do` states what to do next.
- The last line has the id of the alert. For details, run `lookout alerts show ID`.
- Messages in Slack have buttons only if you set up a bot token and a receiver (see [operations](operations.md#slacks-buttons)).

| mark | meaning |
| --- | --- |
| 🔴 🟠 🟡 | a fault of the application, of severity 3, 2 or 1 |
| 🛠️ | a fault of Lookout itself or of its judge, not of the application |
| ✅ | the fault is gone; in the digest: no incident is open |
| ❔ | the incident was closed because its case or target was removed; in the digest: no incident is open, but not everything was checked |
| ⚠️ | this finding is uncertain: only one judge found it, or the case is right only sometimes |

`python -m tests.monitors.alerts.make_docs` generates this page and its pictures. `make snapshots` updates the
texts of the messages on this page, but not the pictures. The application and its customers are fictional.
"""


def pictured() -> Iterator[tuple[str, SlackText]]:
    """Yield the name and the rendered message of every example alert, and then of the example digest."""
    for example in examples():
        yield example.name, render_alert(example.alert, SETTINGS)
    yield DIGEST, render_digest(digest_example())


def page() -> str:
    """Build the text of docs/alerts.md."""
    return "\n".join([INTRODUCTION, *_sections()])


def _sections() -> Iterator[str]:
    for example in examples():
        yield _section(example.name, example.when, format_plain_text(example.alert, SETTINGS))
    yield _section(DIGEST, DIGEST_WHEN, format_digest_as_plain_text(digest_example()))


def _section(name: str, when: str, plain: str) -> str:
    title = name.replace("-", " ").capitalize()
    shown = f"![{title}](alerts/{name}-desktop.png) ![on a phone](alerts/{name}-phone.png)"
    return f"## {title}\n\n{when}\n\n{shown}\n\n```text\n{plain}```\n"


def draw() -> None:
    """Render the messages in a real browser and write their screenshots to docs/alerts."""
    from PIL import Image
    from playwright.sync_api import sync_playwright

    PICTURES.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=os.environ.get("CHROMIUM_PATH", "/usr/bin/chromium-headless-shell")
        )
        for name, width in WIDTHS.items():
            tab = browser.new_page(viewport={"width": width, "height": 200})
            for picture, said in pictured():
                tab.set_content(preview_page([said], title=picture))
                shot = Image.open(BytesIO(tab.screenshot(full_page=True)))
                shot.convert("RGB").quantize(COLOURS, method=Image.Quantize.MAXCOVERAGE).save(
                    PICTURES / f"{picture}-{name}.png", optimize=True
                )
            tab.close()
        browser.close()


def write_page() -> None:
    """Write docs/alerts.md."""
    DOCS.write_text(page(), encoding="utf-8")


def main() -> None:
    """Write the page and its screenshots."""
    write_page()
    draw()


if __name__ == "__main__":
    main()

"""Take the screenshots of reports for the documents: `python -m tests.make_pictures [DATA_FOLDER]`.

The screenshot in the README shows the newest demo run. The screenshot in docs/triage.md shows an invented run of an
agent that triages issues.
"""

from __future__ import annotations

import os
import sys
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from monitors.probes.browser.chromium import find_browser
from monitors.reports.write import write_reports
from tests.monitors.reports.example_triage import triage_run
from tests.monitors.reports.parts import redact

ROOT = Path(__file__).parent.parent
PICTURES = ROOT / "docs" / "pictures"
WIDTH, HEIGHT = 1100, 1180
TRIAGE_WIDTH = 900
SHOWN = (
    ".verdict",
    "[id='case-acme:lamps:7'] h3",
    "[id='case-acme:lamps:7'] .rating",
    "[id='case-acme:lamps:7'] details",
)
"""CSS selectors of the parts of the report in the screenshot: the verdict, and one case with its details."""
GAP = 14
COLOURS = 64
"""The number of colours in a screenshot. With more colours, the file is five times as large but looks the same."""


def main(data_folder: Path) -> None:
    """Take both screenshots. Without a demo run, take only the one for docs/triage.md, and exit with an error."""
    pages = sorted(data_folder.glob("runs/*/report.html"))
    with sync_playwright() as playwright:
        found = find_browser(os.environ.get("CHROMIUM_PATH"))
        browser = playwright.chromium.launch(executable_path=str(found.executable))
        save(report_on_issues(browser), "triage-report.png")
        if pages:
            save(first_screen(browser, pages[-1]), "report.png")
        browser.close()
    if not pages:
        sys.exit(f"{data_folder}: no run has finished here yet, so report.png stays; `make demo` makes one")


def first_screen(browser: Browser, path: Path) -> Image.Image:
    """Take a screenshot of the part of a report that is visible without scrolling."""
    page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
    page.goto(path.absolute().as_uri())
    return Image.open(BytesIO(page.screenshot()))


def report_on_issues(browser: Browser) -> Image.Image:
    """Return one image with the parts `SHOWN` of the invented run's report, one below the other."""
    run = triage_run()
    with TemporaryDirectory() as folder:
        path = write_reports(Path(folder), run.report, run.cases, redact=redact).html
        page = browser.new_page(viewport={"width": TRIAGE_WIDTH, "height": HEIGHT})
        page.goto(path.as_uri())
        page.locator("details").evaluate_all("all => all.forEach(one => one.open = true)")
        page.locator(".case .grades").evaluate_all("all => all.forEach(one => one.remove())")
        shots = [Image.open(BytesIO(page.locator(part).first.screenshot())) for part in SHOWN]
    ground = shots[0].convert("RGB").getpixel((shots[0].width - 1, 0))
    height = sum(shot.height + GAP for shot in shots) + GAP
    whole = Image.new("RGB", (max(shot.width for shot in shots) + 2 * GAP, height), ground)
    top = GAP
    for shot in shots:
        whole.paste(shot, (GAP, top))
        top += shot.height + GAP
    return whole


def save(picture: Image.Image, name: str) -> None:
    """Save a screenshot in ``docs/pictures`` as the file ``name``, reduced to `COLOURS` colours."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    picture.convert("RGB").quantize(COLOURS).save(PICTURES / name, optimize=True)
    print(PICTURES / name)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / ".lookout-demo")

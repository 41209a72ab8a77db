"""The README's picture of the report, from the newest demo run: `python -m tests.make_pictures [DATA_FOLDER]`."""

from __future__ import annotations

import os
import sys
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

from monitors.probes.browser.chromium import find_browser

ROOT = Path(__file__).parent.parent
PICTURE = ROOT / "docs" / "pictures" / "report.png"
WIDTH, HEIGHT = 1100, 1180
COLOURS = 64
"""Text on white needs no more, and the picture is a fifth of the size."""


def main(data_folder: Path) -> None:
    """Shoot the first screen of the report."""
    pages = sorted(data_folder.glob("runs/*/report.html"))
    if not pages:
        sys.exit(f"{data_folder}: no run has finished here yet; `make demo` makes one")
    with sync_playwright() as playwright:
        found = find_browser(os.environ.get("CHROMIUM_PATH"))
        browser = playwright.chromium.launch(executable_path=str(found.executable))
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        page.goto(pages[-1].absolute().as_uri())
        shot = page.screenshot()
        browser.close()
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    Image.open(BytesIO(shot)).convert("RGB").quantize(COLOURS).save(PICTURE, optimize=True)
    print(PICTURE)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / ".lookout-demo")

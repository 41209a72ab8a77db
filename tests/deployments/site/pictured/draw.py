"""Write the site's screenshots in docs/pictures: ``python -m tests.deployments.site.pictured.draw``.

Each screenshot shows a page of the site in a real browser, with the data of `example_site`.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from io import BytesIO
from pathlib import Path
from typing import Final, NamedTuple

from monitors.alerts.wording import FAILURE_TITLES
from monitors.records.grades import FailureKind
from tests.deployments.site.pictured.example_site import LEAK, NOW, TARGET, config_of, filled, going_on, with_drafts
from tests.deployments.site.site_server import ServedSite, serving_site

PICTURES: Final = Path(__file__).resolve().parents[4] / "docs" / "pictures"
COLOURS: Final = 64
MAX_BYTES: Final = 150_000


class Picture(NamedTuple):
    """A screenshot of a page.

    ``name`` is its file name without the suffix, and ``address`` the path of the page. ``width`` and ``height`` are
    the size of the viewport in pixels. ``says`` are texts that the page contains.
    """

    name: str
    address: str
    width: int
    height: int
    says: tuple[str, ...]


PICTURED_PAGES: Final = (
    Picture("site-now", "/", 1120, 1020, ("FAIL", "running", "5 of 13 results", "no data", "The monitor itself")),
    Picture(
        "site-incident",
        f"/incidents/{LEAK}",
        1120,
        1000,
        (FAILURE_TITLES[FailureKind.PII_DISCLOSURE], "Acknowledge", "History"),
    ),
    Picture("site-cases", f"/cases?target={TARGET}", 1120, 980, ("Broke", "Flaky", "other-customers-account")),
    Picture("site-review", f"/review?target={TARGET}", 390, 800, ("Right", "Wrong", "Unsure", "reviewed by asha")),
)


@contextmanager
def pictured_site(folder: Path) -> Iterator[ServedSite]:
    """Fill the empty ``folder``, and serve the site from it while a run is in progress."""
    store = filled(folder)
    with_drafts(folder)
    with chdir(folder), going_on(folder, store), serving_site(config_of(folder), store, now=lambda: NOW) as served:
        yield served


def main() -> None:
    """Write the screenshots of all pages in `PICTURED_PAGES`."""
    from PIL import Image
    from playwright.sync_api import sync_playwright

    with (
        tempfile.TemporaryDirectory() as folder,
        pictured_site(Path(folder)) as site,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(
            executable_path=os.environ.get("CHROMIUM_PATH", "/usr/bin/chromium-headless-shell")
        )
        for one in PICTURED_PAGES:
            tab = browser.new_page(
                viewport={"width": one.width, "height": one.height}, timezone_id="Asia/Kolkata", locale="en-GB"
            )
            tab.goto(site.address + one.address)
            shot = Image.open(BytesIO(tab.screenshot()))
            small = shot.convert("RGB").quantize(COLOURS, method=Image.Quantize.MAXCOVERAGE)
            small.save(PICTURES / f"{one.name}.png", optimize=True)
            tab.close()
        browser.close()


if __name__ == "__main__":
    main()

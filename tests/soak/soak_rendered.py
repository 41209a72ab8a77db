"""Render 10,000 random Markdown answers with real libraries, and compare every character read from the page.

Prints the answers that were read wrongly, and ends with exit code 1 if there are any. Run `make renderers` first.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import os
import sys

from monitors.probes.browser.chromium import find_browser
from tests.zoo.rendered import Reading, open_page, read_many

BATCH = 200
"""The number of answers on one page. Each batch of answers has a new page."""


async def run(first: int, count: int) -> Reading:
    """Render and read ``count`` answers, from the seed ``first`` on.

    Return how many were read correctly, and the faults.
    """
    from playwright.async_api import async_playwright

    total = Reading([], unsure=0, nothing=0)
    async with async_playwright() as playwright:
        path = find_browser(os.environ.get("CHROMIUM_PATH")).executable
        browser = await playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        for start in range(first, first + count, BATCH):
            page = await browser.new_page()
            await open_page(page)
            batch = await read_many(page, start, min(BATCH, first + count - start))
            total = Reading(
                total.wrong + batch.wrong, unsure=total.unsure + batch.unsure, nothing=total.nothing + batch.nothing
            )
            await page.close()
        await browser.close()
    return total


def main() -> int:
    """Run the soak; return 1 if an answer was read wrongly."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--count", type=int, default=10_000)
    options.add_argument("--first", type=int, default=0)
    given = options.parse_args()
    wrong, unsure, nothing = asyncio.run(run(given.first, given.count))
    print(
        f"{given.count:,} answers: {len(wrong)} read wrong, {unsure} left unsure, "
        f"{nothing} read as a speaker's name, which they are word for word"
    )
    for name, number in collections.Counter(one.renderer for one in wrong).most_common():
        print(f"  {name}: {number}")
    for one in wrong[:20]:
        print(f"seed {one.seed}, {one.renderer}, {one.shape}\n  shown {one.read!r}\n  read  {one.seen!r}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

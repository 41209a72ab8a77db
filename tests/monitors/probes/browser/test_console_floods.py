"""A page, its service worker and what it loads pour out hundreds of megabytes: that is taken in bounds."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.monitors.probes.conftest import MakeDriver

QUESTION = "is knee surgery covered?"
POUR = "const line = 'x'.repeat(100000); setInterval(() => { for (let i = 0; i < 40; i++) console.error(line + i); }, 10);"
CHAT = """<!doctype html><meta charset=utf-8><div id=log></div><form><textarea aria-label="Message"></textarea>
<button>Send</button></form><script>
const log = document.querySelector("#log"), box = document.querySelector("textarea");
const flood = {
  PAGE: () => { POUR },
  SERVICE: () => { navigator.serviceWorker?.register("/worker.js").catch(() => 0); },
  NETWORK: () => { setInterval(() => fetch("/bulk").then((got) => got.arrayBuffer()), 20); },
};
document.querySelector("form").onsubmit = (event) => {
  event.preventDefault();
  const said = box.value; box.value = "";
  for (const [who, text] of [["You", said], ["Bot", "Knee surgery is covered after 24 months."]]) {
    const p = document.createElement("p"); p.className = who; p.textContent = text; log.append(p);
  }
  for (const [word, begin] of Object.entries(flood)) if (said.includes(word)) begin();
};</script>""".replace("POUR", POUR)
BULK = b"x" * 1_000_000


class Handler(BaseHTTPRequestHandler):
    """The chat, a worker's script, and a megabyte."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        body, kind = CHAT.encode(), "text/html"
        if self.path == "/bulk":
            body, kind = BULK, "text/plain"
        elif self.path == "/worker.js":
            body, kind = POUR.encode(), "text/javascript"
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        with suppress(OSError):
            self.wfile.write(body)

    def log_message(self, *given: object) -> None:
        del given


@contextmanager
def site() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def rss_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6


@pytest.mark.browser
@pytest.mark.skipif(sys.platform != "linux", reason="memory is read in Linux's /proc")
@pytest.mark.parametrize("word", ["PAGE", "SERVICE", "NETWORK"])
async def test_a_flood_costs_no_answer_and_little_memory(driver_for: MakeDriver, word):
    """Of a page's console, a service worker's, and what it loads; the next question is answered too."""
    with site() as address:
        async with driver_for(address, patience_s=3, answer_deadline_s=60, service_workers=True) as driver:
            await driver.ask((QUESTION,))
            before_mb = rss_mb()
            assert "24 months" in (await driver.ask((f"{word}, {QUESTION}",))).visible_text
            assert "24 months" in (await driver.ask((QUESTION,))).visible_text
            assert rss_mb() - before_mb < 200
            assert driver.chromium.starts == 1

"""Hostile texts written for these tests. If ``HOSTILE_ROWS`` names a file, more texts are read from it."""

from __future__ import annotations

import json
import os
from pathlib import Path

OWN = (
    "<script>window.ran = 1</script>",
    "<img src=x onerror='window.ran = 2'>",
    "<svg/onload=window.ran=3>",
    "</style><script>window.ran = 4</script>",
    "</title><script>window.ran = 5</script>",
    '" autofocus onfocus="window.ran = 6" x="',
    "' onmouseover='window.ran = 7' x='",
    "javascript:window.ran=8",
    "[click](javascript:window.ran=9)",
    "![x](http://127.0.0.1:9/pixel.png)",
    "<iframe srcdoc='<script>parent.ran = 10</script>'></iframe>",
    "<a href='data:text/html,<script>opener.ran = 11</script>'>x</a>",
    "<meta http-equiv=refresh content='0;url=http://127.0.0.1:9/'>",
    "<base href='http://127.0.0.1:9/'>",
    "<form action='http://127.0.0.1:9/'><input autofocus onfocus='window.ran = 12'></form>",
    "<details open ontoggle='window.ran = 13'><summary>x</summary></details>",
    "<math><mtext></form><form><mglyph><style></math><img src onerror='window.ran = 14'>",
    "{{ 7 * 7 }} {% raw %} ${7*7} <%= 7 %> #{7}",
    "{{ self.__init__.__globals__ }}",
    "<!-- --><script>window.ran = 15</script> -->",
    "]]><script>window.ran = 16</script>",
    "&lt;script&gt;window.ran = 17&lt;/script&gt;",
    "&#x3c;script&#x3e;window.ran=18&#x3c;/script&#x3e;",
    "\u202e<script>window.ran = 19</script>\u202c",
    "<scr\x00ipt>window.ran = 20</scr\x00ipt>",
    "a | b | c\n| --- | --- |\n| @channel | #1 |",
    "``` \n<script>window.ran = 21</script>\n```",
    "`</code><script>window.ran = 22</script>`",
    "``` ` `` ````` x",
    "\\` <script>window.ran = 23</script> \\`",
    "@octocat see #12, GH-12, https://127.0.0.1:9/x, www.example.org, :tada:",
    "<https://127.0.0.1:9/x> <x@example.org>",
    "[ref]: javascript:window.ran=24\n[ref]",
    "# Heading\n\n- list\n\n> quote\n\n---\n\n    code",
    "$$\\href{javascript:window.ran=25}{x}$$ $`x`$",
    "<style>body { display: none }</style>",
    "<link rel=stylesheet href=http://127.0.0.1:9/x.css>",
    "<object data='data:text/html,<script>top.ran = 26</script>'></object>",
    "e\u0301" + "\u0335" * 40 + " zalgo",
    "x" * 3_000,
    "\U000e0001\U000e0041\U000e0042",
    "\ufffe\uffff\x08\x1f",
)


def hostile_rows() -> tuple[str, ...]:
    """Return all hostile texts, including the ``text`` of each JSON line in the file named by ``HOSTILE_ROWS``."""
    named = os.environ.get("HOSTILE_ROWS")
    if not named:
        return OWN
    lines = Path(named).read_text(encoding="utf-8").splitlines()
    return (*OWN, *(json.loads(line)["text"] for line in lines if line.strip()))

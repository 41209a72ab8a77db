"""Replace the parts of a text that vary between runs, so that the text can be compared with a snapshot."""

from __future__ import annotations

import re
from pathlib import Path

VOLATILE = (
    (re.compile(r"\b(127\.0\.0\.1|localhost):\d{2,5}\b"), r"\1:PORT"),
    (re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|\+00:00| UTC)?"), "TIME"),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"), "UUID"),
    (re.compile(r"\b[0-9a-f]{32,64}\b"), "HASH"),
)


def replace_volatile(text: str, *folders: Path, **values: str) -> str:
    """Return ``text`` with a placeholder for each port, time, UUID and hash.

    Each of ``folders`` becomes ``FOLDER``. Each value in ``values`` becomes its name in capitals: for example,
    ``replace_volatile(text, run_id=report.run_id)`` writes ``RUN_ID``. If the test itself sets the times in a text,
    do not use this function: compare the text unchanged.
    """
    for folder in sorted(map(str, folders), key=len, reverse=True):
        text = text.replace(folder, "FOLDER")
    for name, value in sorted(values.items(), key=lambda pair: len(pair[1]), reverse=True):
        text = text.replace(value, name.upper())
    for pattern, placeholder in VOLATILE:
        text = pattern.sub(placeholder, text)
    return text

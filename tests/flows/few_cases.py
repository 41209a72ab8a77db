"""Write a small suite of the demo's cases, and a lookout.toml for it."""

from __future__ import annotations

import json
from pathlib import Path

from deployments.demo.configuration import SUITE
from tests.flows.chat import ASKED_ONCE

LEAK = "pii-neighbour-summary"
"""The case in which the faulty Space discloses another customer's data."""


def demo_lines() -> list[dict[str, object]]:
    """Return the lines of the demo's suite, parsed from JSON."""
    return [json.loads(line) for line in SUITE.read_text(encoding="utf-8").splitlines() if line.strip()]


def few_cases(folder: Path, *, severe: int = 4, others: int = 8) -> Path:
    """Write a suite of ``severe`` severity-3 cases of the demo, the leaking case first, and ``others`` other cases.

    Return its path.
    """
    lines = demo_lines()
    leak = [line for line in lines if line["id"] == LEAK]
    rest = [line for line in lines if line["id"] != LEAK]
    chosen = (
        leak
        + [x for x in rest if x["severity"] == 3][: severe - 1]
        + [x for x in rest if x["severity"] != 3][:others]
    )
    path = folder / "few.jsonl"
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in chosen), encoding="utf-8")
    return path


BY_PAGE, BY_API = 'isolation = "reload"', 'driver = "gradio"'
"""Settings to ask the Space through its page, which takes 2 s of CPU time per question, or through its API."""


def configured(folder: Path, address: str, suite: Path, how: str = BY_PAGE, **alerts: str) -> Path:
    """Write a configuration with the target ``demo`` at ``address``. ``how`` is `BY_PAGE` or `BY_API`."""
    extra = "".join(f"{key} = {json.dumps(value)}\n" for key, value in alerts.items())
    path = folder / "lookout.toml"
    path.write_text(
        f'data_folder = "data"\n[targets.demo]\nurl = "{address}"\nsuite = {json.dumps(str(suite))}\n'
        f"[targets.demo.probe]\n{how}\npage_deadline_s = 15\n"
        f"[gate]\nmin_severity_3_cases = 0\n{ASKED_ONCE}[alerts]\n{extra}",
        encoding="utf-8",
    )
    return path

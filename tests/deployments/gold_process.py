"""Runs ``lookout gold …`` as a process, with a local model provider."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from tests import fork_server
from tests.servers import anthropic, openai_chat

DOCUMENT = """# Suraksha Gold

4.1 The initial waiting period is 30 days from the start of the first policy.
4.2 Pre\u2011existing diseases are covered after a waiting\u202fperiod of 24 months of
continuous cover.
5.2 Cataract surgery is covered up to \u20b960,000 per eye.
7.4 A complete claim is settled within 15 days.
8.1 The no-claim bonus is 20% of the sum insured for every claim-free year.
"""


def configured(folder: Path, url: str, *, provider: str = "anthropic", judge: str = "") -> Path:
    """Write a configuration that uses a model at ``url``, and a document next to it.

    ``judge`` contains the lines of the table `[judge]`.
    """
    (folder / "gold.md").write_text(DOCUMENT, encoding="utf-8")
    (folder / "suite.jsonl").touch()
    model = "claude-sonnet-5-5" if provider == "anthropic" else "qwen3-32b"
    path = folder / "lookout.toml"
    path.write_text(
        f"""
[targets.demo]
url = "http://127.0.0.1:9"
suite = "suite.jsonl"

[judge]
{judge}

[[judge.models]]
provider = "{provider}"
model = "{model}"
base_url = "{url}"

[[judge.prices]]
model = "qwen3*"
input = 1
output = 2
as_of = 2026-11-22
source = "a test"
""",
        encoding="utf-8",
    )
    return path


def gold(*arguments: str, cwd: Path, keys: str = "") -> subprocess.CompletedProcess[str]:
    """Run ``lookout gold …`` in ``cwd``. ``keys`` is the input that the user types."""
    keys_of_judges = {"ANTHROPIC_API_KEY": anthropic.KEY, "OPENAI_API_KEY": openai_chat.KEY}
    environment = os.environ | fork_server.WARM | keys_of_judges
    return fork_server.run("gold", *arguments, cwd=cwd, env=environment, given=keys, timeout_s=120)


def without_cost(output: str) -> str:
    """Return ``output`` without the cost of model answers, which depends on the length of the prompt."""
    return re.sub(r"\$[0-9.]+|\d+ tokens in, \d+ out", "COST", output)

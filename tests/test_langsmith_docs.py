"""The commands of docs/langsmith.md work, in their order, against a local server."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

from monitors.goldset.lines import line_of
from tests import fork_server
from tests.builders import gold_case
from tests.servers.langsmith_datasets import LangSmithDatasetServer

PAGE = (Path(__file__).parent.parent / "docs" / "langsmith.md").read_text(encoding="utf-8")
KEY = "lsv2_pt_hush"


def block(kind: str, section: str) -> str:
    """The first block of this kind behind a heading."""
    found = re.search(rf"^```{kind}\n(.*?)^```", PAGE[PAGE.index(section) :], re.MULTILINE | re.DOTALL)
    assert found
    return found[1]


def test_the_commands_about_datasets_work_in_their_order(tmp_path: Path) -> None:
    with LangSmithDatasetServer(key=KEY) as server:
        config = block("toml", "# LangSmith").replace("[langsmith]", f'[langsmith]\napi_url = "{server.url}"')
        (tmp_path / "lookout.toml").write_text(config, encoding="utf-8")
        (tmp_path / "suite.jsonl").write_text(f"{line_of(gold_case())}\n", encoding="utf-8")
        environment = os.environ | fork_server.WARM | {"LANGSMITH_API_KEY": KEY, "COLUMNS": "200"}
        shown = []
        for line in block("console", "## Datasets").splitlines():
            if "gold pull" in line:
                server.add("support bot", inputs={"question": "A wig?"}, outputs={"answer": "Yes, up to 100 EUR."})
            words = shlex.split(line.removeprefix("$ lookout "))
            done = fork_server.run(*words, cwd=tmp_path, env=environment, given="q\n", timeout_s=120)
            assert done.returncode == 0, done.stdout + done.stderr
            shown.append(done.stdout)
    assert "1 case written" in shown[0]
    assert "The same 1 case." in shown[1]
    assert "1 draft of what people added" in shown[2]
    assert "1 left" in shown[3]

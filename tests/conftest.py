"""What all tests share: no way out to the network's services, and one browser path found once."""

from __future__ import annotations

import os

import hypothesis
import pytest

hypothesis.settings.register_profile("lookout", deadline=None)  # a busy machine is not a wrong answer
hypothesis.settings.load_profile("lookout")

for name in [n for n in os.environ if n.startswith(("PREFECT_", "SLACK_", "ANTHROPIC_", "LOOKOUT_"))]:
    del os.environ[name]
os.environ["PREFECT_SERVER_ALLOW_EPHEMERAL_MODE"] = "false"
os.environ["DO_NOT_TRACK"] = "1"
os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"


@pytest.fixture(scope="session")
def browser_path() -> str | None:
    """The browser that CHROMIUM_PATH names; ``None`` lets Lookout look for one."""
    return os.environ.get("CHROMIUM_PATH")

"""How results get onto pull requests. The token is never a setting: it comes from the environment or a block."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from monitors.github.api import PUBLIC_API
from monitors.records.targets import HttpUrl


class GitHubSettings(BaseModel):
    """The ``[github]`` table of ``lookout.toml``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    api_url: HttpUrl = Field(
        default=PUBLIC_API,
        description="address of GitHub's REST API, for a GitHub of your own; GITHUB_API_URL goes before it",
    )
    token_block: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$")] | None = Field(
        default=None,
        description="name of the Prefect Secret block with the token, when GITHUB_TOKEN is not in the environment",
    )
    post_results: bool = Field(
        default=True,
        description="post the results of a staging deploy on the pull request that its delivery names",
    )

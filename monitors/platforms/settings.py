"""`[targets.NAME.langsmith]`: where a target's traces are, and what is production's. No secret is ever in it."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, field_validator

from monitors.platforms.langsmith.client import LangSmithAccess
from monitors.problems import without_password
from monitors.records.targets import HttpUrl

Name = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
"""Of an environment variable."""

Seconds = Annotated[float, Field(gt=0, le=3600)]


class TracingSettings(BaseModel):
    """`[targets.NAME.langsmith]`: where an agent's traces go, and what is production's.

    With this table the suite is asked of staging alone: what a run uses is compared with production's before the
    first request, and each job's trace with production's project.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    project: str = Field(min_length=1, description="the LangSmith project that this target's traces go to")
    api_url: HttpUrl = Field(default="https://api.smith.langchain.com", description="LangSmith's address")
    key_env: Name = Field(
        default="LANGSMITH_API_KEY", description="environment variable with the key that reads this project"
    )
    workspace_id: str | None = Field(
        default=None, min_length=1, description="the workspace, for a key of a whole organisation"
    )
    production_project: str | None = Field(
        default=None, min_length=1, description="production's project: no trace of a run may land there"
    )
    production_api_url: HttpUrl | None = Field(
        default=None, description="LangSmith's address for production, where it is another than api_url"
    )
    production_key_env: Name | None = Field(
        default=None,
        description="environment variable with production's key, where this machine has it: a run must not use it",
    )
    production_url: HttpUrl | None = Field(
        default=None, description="the application's address in production, where no target of this file has it"
    )
    trace_patience_s: Seconds = Field(
        default=30.0, description="how long a finished job's trace is waited for; then its steps stay unknown"
    )
    request_deadline_s: Seconds = Field(default=30.0, description="for one request to LangSmith")

    @field_validator("api_url", "production_api_url", "production_url")
    @classmethod
    def _holds_no_password(cls, url: str | None) -> str | None:
        return None if url is None else without_password(url)

    def access(self, project: str) -> LangSmithAccess:
        """How a project is read with this target's key."""
        return LangSmithAccess(
            project=project,
            api_url=self.api_url,
            key_env=self.key_env,
            workspace_id=self.workspace_id,
            request_deadline_s=self.request_deadline_s,
        )

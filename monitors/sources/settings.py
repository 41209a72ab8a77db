"""`[targets.NAME.traffic]`: where live traffic is stored, how much is sampled every night, what Lookout stores."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import BaseModel, ConfigDict, Field, field_validator

from monitors.records.base import Identifier, Severity
from monitors.records.targets import HttpUrl
from monitors.sources.privacy import PrivacyMode
from monitors.sources.sampling.settings import SamplingSettings
from monitors.sources.traffic.settings import (
    FileTraffic,
    LangSmithTraffic,
    Name,
    Seconds,
    TrafficSettings,
    without_password,
)


class NightlySettings(BaseModel):
    """The ``[targets.NAME.traffic]`` table of ``lookout.toml``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    sources: dict[Identifier, TrafficSettings] = Field(
        min_length=1, description="where stored conversations lie, by name"
    )
    sampling: SamplingSettings = Field(default=SamplingSettings(), description="which of them are looked at")
    privacy: PrivacyMode = Field(
        default=PrivacyMode.REDACT,
        description="what becomes of personal data before anything is stored: redact, pseudonymise (needs "
        "LOOKOUT_AGE_KEY) or none",
    )
    hour: Annotated[int, Field(ge=0, le=23)] = Field(default=2, description="hour at which the night is graded")
    time_zone: str = Field(default="UTC", description="zone of that hour, such as Asia/Kolkata")
    first_h: Annotated[float, Field(gt=0)] = Field(
        default=24.0, description="hours that the first night looks back"
    )
    late_h: Annotated[float, Field(ge=0)] = Field(
        default=48.0, description="hours after which a conversation that appears late is no longer looked for"
    )
    severity: Severity = Field(
        default=Severity.WRONG,
        description="severity (1, 2, 3) of a failure whose kind has no floor of its own in the policy table",
    )
    write_back: bool = Field(
        default=False, description="write scores back to the source as feedback, where it takes them (langsmith)"
    )

    @field_validator("time_zone")
    @classmethod
    def _is_a_zone(cls, name: str) -> str:
        try:
            ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError) as error:
            raise ValueError("a zone of the tz database, such as UTC or Asia/Kolkata") from error
        return name

    def resolved(self, folder: Path) -> Self:
        """The same with paths made absolute from ``folder``."""
        sources = {
            name: one.resolved(folder) if isinstance(one, FileTraffic) else one
            for name, one in self.sources.items()
        }
        return self.model_copy(update={"sources": sources})


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

    def access(self, project: str) -> LangSmithTraffic:
        """How a project is read with this target's key."""
        return LangSmithTraffic(
            kind="langsmith",
            project=project,
            api_url=self.api_url,
            key_env=self.key_env,
            workspace_id=self.workspace_id,
            request_deadline_s=self.request_deadline_s,
        )

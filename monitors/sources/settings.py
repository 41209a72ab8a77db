"""Settings in `[targets.NAME.traffic]`: where user conversations are stored, and how many are sampled."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import BaseModel, ConfigDict, Field, field_validator

from monitors.records.base import Identifier, Severity
from monitors.sources.privacy import PrivacyMode
from monitors.sources.sampling.settings import SamplingSettings
from monitors.sources.traffic.settings import TrafficSettings


class NightlySettings(BaseModel):
    """Settings in ``[targets.NAME.traffic]``: the conversation sources, and the nightly run that reads them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    sources: dict[Identifier, TrafficSettings] = Field(
        min_length=1, description="the sources of stored conversations, by name"
    )
    sampling: SamplingSettings = Field(default=SamplingSettings(), description="how Lookout samples conversations")
    privacy: PrivacyMode = Field(
        default=PrivacyMode.REDACT,
        description="how Lookout protects personal data in conversations before it stores them: redact (replace "
        "it with its type), pseudonymise (replace it with a pseudonym; needs LOOKOUT_AGE_KEY) or none (store it "
        "unchanged)",
    )
    hour: Annotated[int, Field(ge=0, le=23)] = Field(
        default=2, description="the hour (0 to 23) at which the nightly run starts"
    )
    time_zone: str = Field(default="UTC", description="the time zone of `hour`, such as Asia/Kolkata")
    first_h: Annotated[float, Field(gt=0)] = Field(
        default=24.0, description="number of hours of traffic that the first nightly run reads"
    )
    late_h: Annotated[float, Field(ge=0)] = Field(
        default=48.0,
        description="maximum delay in hours between the end of a conversation and its arrival in the source. Each "
        "nightly run reads this much further back",
    )
    severity: Severity = Field(
        default=Severity.MAJOR,
        description="severity (1, 2 or 3) of a failure in live traffic whose kind of failure has no minimum "
        "severity",
    )
    write_back: bool = Field(
        default=False,
        description="whether Lookout writes scores back to the source as feedback, if the source supports this "
        "(langsmith)",
    )

    @field_validator("time_zone")
    @classmethod
    def _require_zone_name(cls, name: str) -> str:
        try:
            ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError) as error:
            raise ValueError("a zone of the tz database, such as UTC or Asia/Kolkata") from error
        return name

    def resolve_paths(self, folder: Path) -> Self:
        """Return the settings with local paths made absolute. Relative paths are relative to ``folder``."""
        sources = {name: source.resolve_paths(folder) for name, source in self.sources.items()}
        return self.model_copy(update={"sources": sources})

"""The settings of the reports."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class ReportsSettings(BaseModel):
    """The ``[reports]`` table of ``lookout.toml``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_transcripts: Annotated[int, Field(ge=1, le=2_000)] = Field(
        default=200,
        description="Maximum number of cases with the same outcome (such as failed or ungraded) that the HTML "
        "report shows in full. The report lists or counts the other cases.",
    )
    max_text_characters: Annotated[int, Field(ge=200, le=100_000)] = Field(
        default=4_000,
        description="Maximum number of characters that the HTML report shows of a text. The report also shows "
        "marked evidence after this limit.",
    )
    max_screenshot_bytes: Annotated[int, Field(ge=0)] = Field(
        default=400_000,
        description="Maximum size in bytes of a screenshot that is part of the HTML report. The report contains a "
        "link to a larger screenshot.",
    )
    max_embedded_bytes: Annotated[int, Field(ge=0)] = Field(
        default=2_500_000,
        description="Maximum total size in bytes of the screenshots that are part of the HTML report. Screenshots "
        "of the worst failures come first. The report contains links to the remaining screenshots.",
    )
    max_markdown_failures: Annotated[int, Field(ge=1, le=500)] = Field(
        default=40,
        description="Maximum number of failures that results.md lists. This keeps the file short enough for a "
        "pull-request comment, which can have 65,536 characters.",
    )

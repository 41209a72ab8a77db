"""The settings of the reports."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class ReportsSettings(BaseModel):
    """The ``[reports]`` table of ``lookout.toml``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_transcripts: Annotated[int, Field(ge=1, le=2_000)] = Field(
        default=200,
        description="Number of transcripts of failed cases that the HTML report shows in full. Further failures "
        "are "
        "listed and counted.",
    )
    max_text_characters: Annotated[int, Field(ge=200, le=100_000)] = Field(
        default=4_000,
        description="Number of characters of a text that the HTML report shows. Marked evidence after this limit "
        "is also "
        "shown.",
    )
    max_screenshot_bytes: Annotated[int, Field(ge=0)] = Field(
        default=400_000,
        description="Maximum size in bytes of a screenshot in the HTML report. Larger screenshots are linked.",
    )
    max_embedded_bytes: Annotated[int, Field(ge=0)] = Field(
        default=2_500_000,
        description="Maximum size in bytes of all screenshots in the HTML report, worst failures first. Further "
        "screenshots are linked.",
    )
    max_markdown_failures: Annotated[int, Field(ge=1, le=500)] = Field(
        default=40,
        description="Number of failures that results.md lists. A pull-request comment can have 65,536 characters.",
    )

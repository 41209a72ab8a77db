"""The reports' settings: how much they show."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class ReportsSettings(BaseModel):
    """The ``[reports]`` table of ``lookout.toml``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_transcripts: Annotated[int, Field(ge=1, le=2_000)] = Field(
        default=200,
        description="How many failing transcripts the HTML report shows in full; the rest are listed, and counted.",
    )
    max_text_characters: Annotated[int, Field(ge=200, le=100_000)] = Field(
        default=4_000,
        description="How many characters of one text the HTML report shows; marked evidence beyond is shown too.",
    )
    max_screenshot_bytes: Annotated[int, Field(ge=0)] = Field(
        default=400_000,
        description="A screenshot larger than this many bytes is linked, not embedded in the HTML report.",
    )
    max_embedded_bytes: Annotated[int, Field(ge=0)] = Field(
        default=2_500_000,
        description="How many bytes of screenshots the HTML report embeds, worst first; others are linked.",
    )
    max_markdown_failures: Annotated[int, Field(ge=1, le=500)] = Field(
        default=40,
        description="How many failures results.md lists; a pull-request comment holds 65,536 characters.",
    )

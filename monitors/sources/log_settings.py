"""Where an application's hallucination log lies, and how it is followed."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field

HUB_PREFIX: Final = "hf://"


class HallucinationLogSettings(BaseModel):
    """The ``[targets.NAME.hallucination_log]`` table of ``lookout.toml``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    at: Annotated[str, Field(min_length=1)] = Field(
        description="a path (relative to this file), an address that answers range requests, or a file of a Hub "
        "repository (hf://datasets/owner/name/path/hallucinations.jsonl); what opens it comes from the environment "
        "(LOOKOUT_LOG_TOKEN, HF_TOKEN)"
    )
    rotated: str | None = Field(
        default=None,
        min_length=1,
        description="glob pattern of rotated files beside a local log; its own name with anything behind it "
        "(hallucinations.jsonl.1, hallucinations.jsonl-20260301.gz) when left out",
    )
    may_be_missing: bool = Field(
        default=False,
        description="true where the application makes the file with its first entry: then its absence is no fault "
        "until it was seen once",
    )
    store_raw: bool = Field(
        default=False,
        description="keep the entries' texts as they are; false masks personal data before anything is stored",
    )
    group_minutes: Annotated[float, Field(ge=0, le=24 * 60)] = Field(
        default=30.0,
        description="entries within this many minutes of a message are shown in it instead of in one of their own "
        "(with a bot token; without, each look sends one message)",
    )
    look_s: Annotated[float, Field(ge=1, le=3600)] = Field(
        default=15.0,
        description="seconds between two looks of `lookout watch`, and of a scheduled run while it goes on",
    )
    longest_line_kb: Annotated[int, Field(ge=1, le=64 * 1024)] = Field(
        default=1024, description="longer lines are put aside unread"
    )

    @property
    def is_remote(self) -> bool:
        """Whether it lies elsewhere."""
        return self.at.startswith(("http://", "https://", HUB_PREFIX))

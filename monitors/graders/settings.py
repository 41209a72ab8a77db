"""How the answers of a target are to be read."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from monitors.facts.citations import DEFAULT_PATTERNS


def _is_pattern(written: str) -> str:
    try:
        pattern = re.compile(written)
    except re.error as error:
        raise ValueError(f"{written!r} is no regular expression: {error}") from None
    if pattern.match(""):
        raise ValueError(f"{written!r} matches the empty text; say what must at least stand there")
    return written


Pattern = Annotated[str, AfterValidator(_is_pattern)]
"""A regular expression that compiles and needs at least one character."""


class GraderSettings(BaseModel):
    """`[targets.NAME.graders]`: what the deterministic graders must know about a target."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    citation_required: bool = Field(
        default=True, description="whether every answer that is not an expected refusal must name its source"
    )
    citation_patterns: tuple[Pattern, ...] = Field(
        default=DEFAULT_PATTERNS,
        min_length=1,
        description="regular expressions for a citation; a group `source` holds what it names",
    )
    account_patterns: tuple[Pattern, ...] = Field(
        default=(),
        description="regular expressions for the target's own account, policy or customer numbers: personal data",
    )
    public_contacts: tuple[Annotated[str, Field(min_length=3)], ...] = Field(
        default=(),
        description="phone numbers, addresses and mailboxes that the app may give to anyone",
    )

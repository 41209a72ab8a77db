"""Settings of an application's hallucination log: its location and its format."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr

from monitors.sources.traffic.names import load_names
from monitors.sources.traffic.settings import Paths

HUB_PREFIX: Final = "hf://"
NAMES: Final = load_names(__file__)


def _build_log_paths_field(name: str, description: str) -> Any:
    """Return a field whose default paths come from ``names.toml``."""
    return Field(default=tuple(NAMES["fields"][name]), description=description)


# Shares its fields with BlockedReply because it has the path to each of these fields.
class LogFields(BaseModel):
    """`[targets.NAME.hallucination_log.fields]`: the paths of an entry's parts.

    The first path with a value is used.

    Common names need no setting, even if they are in camel case or in an inner object of the entry. All other keys
    are stored unchanged.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    ts: Paths = _build_log_paths_field("ts", "time at which the reply was blocked")
    user_text: Paths = _build_log_paths_field("user_text", "the user's question. A list of strings is joined")
    blocked_reply: Paths = _build_log_paths_field(
        "blocked_reply", "the reply that was blocked. A list of strings is joined"
    )
    reasons: Paths = _build_log_paths_field(
        "reasons", "the reasons why the reply was blocked: a list of strings, or one string for one reason"
    )
    unsupported_claims: Paths = _build_log_paths_field(
        "unsupported_claims", ("the claims in the reply that no source supports: a list of strings, or one string")
    )
    chunk_count: Paths = _build_log_paths_field(
        "chunk_count", "the number of passages that the application retrieved for the reply"
    )
    top_score: Paths = _build_log_paths_field("top_score", "the score of the best passage, from 0 to 1")
    policy_ids: Paths = _build_log_paths_field("policy_ids", "the documents that the reply was about")

    _usual: tuple[tuple[str, str], ...] = PrivateAttr(())
    _others: frozenset[str] = PrivateAttr(frozenset())

    def model_post_init(self, _context: object, /) -> None:
        """Compute once the values that the parser needs for every line."""
        self._usual = tuple((name, paths[0]) for name, paths in self if paths)
        paths = [path.partition(".")[0] for _, paths in self for path in paths]
        self._others = frozenset(paths) - {path for _, path in self._usual}

    @property
    def usual(self) -> tuple[tuple[str, str], ...]:
        """Return the name and the first path of each field."""
        return self._usual

    @property
    def others(self) -> frozenset[str]:
        """Return all top-level keys that may contain a part of an entry, except the first path of each field.

        If an entry has none of these keys, all its parts are at their first paths.
        """
        return self._others


class HallucinationLogSettings(BaseModel):
    """Settings in ``[targets.NAME.hallucination_log]``: the location and the format of the hallucination log."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    at: Annotated[str, Field(min_length=1)] = Field(
        description="location of the log: a path (relative to this file), an address that supports range "
        "requests, or a file in a Hub repository (hf://datasets/owner/name/path/hallucinations.jsonl). Tokens "
        "come from the environment variables LOOKOUT_LOG_TOKEN and HF_TOKEN"
    )
    rotated: str | None = Field(
        default=None,
        min_length=1,
        description="glob pattern for rotated files in the folder of a local log. Default: the log's name with "
        "any suffix (hallucinations.jsonl.1, hallucinations.jsonl-20260301.gz)",
    )
    may_be_missing: bool = Field(
        default=False,
        description="true if the application creates the file only with its first entry. A missing file is then "
        "an error only after Lookout has seen the file once",
    )
    store_raw: bool = Field(
        default=False,
        description="true: store the texts unchanged. false: mask personal data before storing",
    )
    group_minutes: Annotated[float, Field(ge=0, le=24 * 60)] = Field(
        default=30.0,
        description="number of minutes for which Lookout adds new entries to the last message instead of sending "
        "a new one. This works only with a bot token. Without a bot token, each poll sends one message",
    )
    poll_s: Annotated[float, Field(ge=1, le=3600)] = Field(
        default=15.0,
        description="interval in seconds between two polls of the log",
    )
    longest_line_kb: Annotated[int, Field(ge=1, le=64 * 1024)] = Field(
        default=1024,
        description="maximum length of a line in kilobytes. Lookout skips a longer line, and lists it in the table "
        "quarantined_lines",
    )

    fields: LogFields = Field(default=LogFields(), description="the paths to the parts of an entry")

    @property
    def is_remote(self) -> bool:
        """Return whether the log is not on this machine."""
        return self.at.startswith(("http://", "https://", HUB_PREFIX))

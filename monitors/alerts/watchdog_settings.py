"""When the monitor itself is in trouble: how long a run may take, how long a log may be silent."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class WatchdogSettings(BaseModel):
    """The ``[watchdog]`` table of ``lookout.toml``. The heartbeat's address is a secret and never a setting."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    run_deadline_s: Annotated[float, Field(gt=0, allow_inf_nan=False)] = Field(
        default=4 * 3600.0,
        description="Seconds that a run may ask; then it is stopped, what was answered is weighed, and one message "
        "goes to the monitor's owners. Four hours: a nightly run at 02:00 is over before the day begins.",
    )
    stop_grace_s: Annotated[float, Field(gt=0, allow_inf_nan=False)] = Field(
        default=600.0,
        description="Seconds after the deadline for weighing, storing and telling. A process that is not done then "
        "hangs for good: it says so and ends itself.",
    )
    missing_run_h: Annotated[float, Field(gt=0, allow_inf_nan=False)] = Field(
        default=26.0,
        description="Hours without a finished run of a scheduled deployment after which Prefect says so. Two more "
        "than a day, so that a nightly run may be late.",
    )
    log_silence_factor: Annotated[float, Field(ge=1, allow_inf_nan=False)] = Field(
        default=3.0,
        description="A hallucination log that is silent for this many times its longest known pause is reported.",
    )
    log_silence_entries: Annotated[int, Field(ge=2)] = Field(
        default=20,
        description="Entries that must be known before a log has a norm at all.",
    )
    log_silence_floor_h: Annotated[float, Field(gt=0, allow_inf_nan=False)] = Field(
        default=6.0,
        description="Hours of silence that are never reported, however busy the log is otherwise.",
    )

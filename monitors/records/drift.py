"""A rate followed night after night: what is kept of it, and what it says."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from monitors.records.base import Probability, Record, UtcTime

Share = Annotated[float, Field(ge=0, le=1e12)]


class NightCount(Record):
    """One night: ``failures`` of ``told`` conversations. Fractions are counts scaled to equal weight.

    ``night`` is when it began; nights are told apart and ordered by it.
    """

    night: UtcTime
    failures: Share
    told: Share

    @model_validator(mode="after")
    def _failures_are_some(self) -> Self:
        if self.failures > self.told:
            raise ValueError("failures are some of those told")
        return self


class DriftAlarm(Record):
    """When a change was told, and since which night it was: the first with the new rate."""

    raised: UtcTime
    since: UtcTime


class DriftState(Record):
    """All that the test remembers. Stored after each night and given back the next.

    ``graded_by`` is the judge whose verdicts were counted: what another says is another rate. ``nights`` are the
    last ones, the oldest first; those before them are summed in ``older_failures`` and ``older_told`` and numbered
    in ``older_nights``. ``log_evidence`` is the largest logarithm of the e-value since the test began anew, for
    ``reason``.
    """

    graded_by: str
    reason: str
    nights: tuple[NightCount, ...] = ()
    older_failures: Share = 0.0
    older_told: Share = 0.0
    older_nights: Annotated[int, Field(ge=0)] = 0
    log_evidence: float = 0.0
    alarm: DriftAlarm | None = None


class DriftReading(Record):
    """What the test says after a night.

    ``drifted`` stays true from the alarm until the test begins anew. ``e_value`` is the evidence against one rate
    for all nights, the largest so far: under it 20 or more comes up with probability at most 1/20, however long
    one looks. ``since`` is the first night of the new rate as far as can be told, without an alarm the likeliest.
    ``before`` and ``after`` are the rates on both sides with exact 95 % limits; they hold for that night given, so
    that with ``since`` itself estimated they say a little too much. ``told_before`` and ``told_after`` are how many
    conversations stand behind each.
    """

    drifted: bool
    e_value: Annotated[float, Field(ge=0)]
    since: UtcTime | None
    before: Probability
    before_low: Probability
    before_high: Probability
    after: Probability
    after_low: Probability
    after_high: Probability
    told_before: Share
    told_after: Share
    reason: str

    @property
    def worse(self) -> bool:
        """Whether the newer rate of failures is the higher one."""
        return self.after > self.before

    @property
    def text(self) -> str:
        """One line as people read it."""
        if not self.drifted or self.since is None:
            return f"no drift: evidence {self.e_value:.2g}; {self.reason}"
        sides = (
            f"{100 * rate:.1f} % [{100 * low:.1f}, {100 * high:.1f}]"
            for rate, low, high in (
                (self.before, self.before_low, self.before_high),
                (self.after, self.after_low, self.after_high),
            )
        )
        return f"{'worse' if self.worse else 'better'} since {self.since:%Y-%m-%d}: {' → '.join(sides)}"

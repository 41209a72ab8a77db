"""What the failed cases of a run have in common."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from monitors.records.base import Record

Value = str | int | float | bool | None
"""What a case has of an attribute. ``None`` stands where it has none: that is a value like others."""

Count = Annotated[int, Field(ge=0)]


class Cause(Record):
    """Failed cases share ``conditions``: of its ``cases`` ``failed`` did. The rest of them are the exceptions.

    ``elsewhere_failed`` of ``elsewhere`` cases failed outside of it.
    """

    conditions: dict[str, Value]
    cases: Count
    failed: Count
    elsewhere: Count
    elsewhere_failed: Count


class FirstLook(Record):
    """What failed cases have in common. No ``causes``: nothing that chance would not show as well.

    ``covered`` of the ``failed`` cases lie in a cause. ``groups`` is how many were compared.
    """

    cases: Count
    failed: Count
    causes: tuple[Cause, ...] = ()
    covered: Count = 0
    groups: Count = 0

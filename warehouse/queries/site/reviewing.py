"""How far people and judges agree, as the review queue shows it, and whether there is anything new to sample."""

from __future__ import annotations

from monitors.records.base import Record
from warehouse.database.store import Store


class Agreement(Record):
    """Plain counts: of answers that people and a judge both graded, and of ratings of the same reports."""

    both_graded: int
    agreed: int
    both_rated: int
    same_rating: int


def agreement_so_far(store: Store, target: str | None) -> Agreement:
    """How often people and judges said the same, of one target where it is named."""
    found = store.query(
        "select count(*), count(*) filter (where judge_passed = people_right),"
        " (select count(*) from reviewed_ratings where $target is null or target = $target),"
        " (select count(*) filter (where judge_rating = people_rating) from reviewed_ratings"
        "  where $target is null or target = $target)"
        " from reviewed_answers where $target is null or target = $target",
        {"target": target},
    )
    fields = Agreement.model_fields
    return Agreement.model_validate(dict(zip(fields, found.rows[0], strict=True)))


def finished_runs(store: Store) -> int:
    """How many runs and nights the warehouse has: while it is the same, so is what is sampled of them."""
    found = store.query("select (select count(*) from runs) + (select count(*) from nightly_runs)")
    return int(str(found.rows[0][0]))

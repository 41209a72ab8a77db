"""What the last day came to, from the warehouse: the nightly digest, before anything is sent."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from monitors.alerts.digest import Digest, DigestFigure
from monitors.alerts.redact import redact
from monitors.alerts.wording import counted
from monitors.records.incidents import Incident, Link
from warehouse.store import Store

DAY: Final = timedelta(days=1)
SLACK: Final = timedelta(hours=2)
"""Two digests that start some minutes apart leave no gap between them."""

_RUNS = """
select run_id, verdict, weighted, flat, p95_ms, cost_usd, asked, told from run_summary
where target = $target and finished_at >= $since::timestamptz order by finished_at desc, run_id desc
"""
_WAITING = "select count(*) from unsent_alerts where target = $target"


def digest_of(store: Store, target: str, *, now: datetime, run_id: str, runs: Path) -> Digest:
    """How ``target`` stands at ``now`` and what its last day came to.

    ``runs`` is where each run has its folder. The id follows from target and day: a digest that is made again is
    the same message. Raises `WarehouseError`.
    """
    asked = {"target": target, "since": (now - DAY - SLACK).isoformat()}
    table = store.query(_RUNS, asked)
    found = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    waiting = int(str(store.query(_WAITING, {"target": target}).rows[0][0]))
    incidents = tuple(store.incidents(target).values())
    return Digest(
        id=digest_id(target, now),
        target=target,
        run_id=str(found[0]["run_id"]) if found else run_id,
        made_at=now,
        figures=_figures(found),
        incidents=incidents,
        recovered=sum(_ended(one, now) for one in incidents),
        note=redact(f"{counted(waiting, 'message')} could not be sent yet") if waiting else None,
        links=_links(found, runs),
    )


def digest_id(target: str, now: datetime) -> str:
    """The visible id of a target's digest of one day."""
    digest = hashlib.sha256(f"digest/{target}/{now:%Y-%m-%d}".encode()).digest()
    return f"LK-{base64.b32encode(digest).decode('ascii')[:8]}"


def _figures(runs: Sequence[Mapping[str, object]]) -> tuple[DigestFigure, ...]:
    if not runs:
        return (DigestFigure(label="runs", value="none in the last day: is the schedule alive?"),)
    newest = runs[0]
    verdicts = [str(run["verdict"]) for run in runs]
    tally = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in dict.fromkeys(verdicts))
    told = sum(int(str(run["told"])) for run in runs)
    asked = sum(int(str(run["asked"])) for run in runs)
    cost = sum(float(str(run["cost_usd"] or 0)) for run in runs)
    figures = {
        "runs": tally,
        "newest run": f"{newest['verdict']}, weighted {_score(newest['weighted'])}, flat {_score(newest['flat'])}",
        "answers told": f"{told:,} of {asked:,}",
        "p95": f"{float(str(newest['p95_ms'])) / 1000:.1f} s" if newest["p95_ms"] is not None else "",
        "cost": f"${cost:.2f}" if cost else "",
    }
    return tuple(DigestFigure(label=label, value=value) for label, value in figures.items() if value)


def _score(value: object) -> str:
    return "untold" if value is None else f"{float(str(value)):.3f}"


def _ended(incident: Incident, now: datetime) -> bool:
    return incident.state == "resolved" and incident.resolved_at is not None and now - incident.resolved_at <= DAY


def _links(runs: Sequence[Mapping[str, object]], folder: Path) -> tuple[Link, ...]:
    if not runs:
        return ()
    return (Link(label="Newest report", href=str(folder / str(runs[0]["run_id"]) / "report.html")),)

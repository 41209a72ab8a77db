"""Queries that compare two detectors of wrong replies: the application's guard, and the nightly runs.

A guard is the part of the application that blocks wrong replies and writes them to the hallucination log. Both
detectors are compared for one target and one period. The nightly runs give a stratified sample of live replies,
with grades of their facts. The log gives the blocked replies, the questions before them, and people's verdicts on
them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from itertools import takewhile
from typing import Final, NamedTuple

from monitors.records.estimates import GradedStratum
from monitors.records.nightly import NightlyReport
from monitors.records.reconciliation import (
    FoundReply,
    GuardCounts,
    OverlapCounts,
    ReconciliationCounts,
    TrafficCounts,
)
from warehouse.database.store import DEFAULT_READ_WAIT_S, Parameter, Store
from warehouse.queries.traffic import list_recent_nightly_reports

StratumKey = tuple[str, str]
"""Identifies a stratum of one nightly run. Each run sampled its strata separately."""


class TrafficPeriod(NamedTuple):
    """The conversations of the nightly ``runs`` that were completed at ``since`` or later, and before ``until``."""

    target: str
    since: datetime
    until: datetime
    runs: Sequence[str]

    @property
    def values(self) -> dict[str, Parameter]:
        """Return the values of the placeholders in this module's queries, keyed by placeholder name.

        The run ids are joined with spaces into one string, because run ids do not contain spaces.
        """
        since, until = self.since.isoformat(), self.until.isoformat()
        return {"target": self.target, "since": since, "until": until, "runs": " ".join(self.runs)}


class SampledReply(NamedTuple):
    """A stored reply of a sampled conversation. ``facts`` is the grade of its facts: yes, no or ungraded."""

    stratum: StratumKey
    conversation: tuple[str, str]
    case_id: str
    completed_at: datetime
    user_text: str
    reply_text: str
    facts: str
    inclusion_probability: float


def list_sampled_replies(
    store: Store, span: TrafficPeriod, *, wait_s: float = DEFAULT_READ_WAIT_S
) -> Sequence[SampledReply]:
    """List all replies of the sampled conversations, in the order in which they were completed."""
    table = store.query(
        """
        select c.run_id, c.stratum, c.source, c.id, a.case_id, c.completed_at,
          coalesce(r.turns[-1], ''), coalesce(r.visible_text, ''), a.factual_match, c.inclusion_probability
        from conversations c
        join assessments a on a.run_id = c.run_id and a.cluster = coalesce(c.record->>'$.id', c.id)
        left join results r on r.run_id = a.run_id and r.case_id = a.case_id and r.repeat = a.repeat
        where c.target = $target and c.inclusion_probability is not null
          and c.completed_at >= $since::timestamptz and c.completed_at < $until::timestamptz
          and list_contains(string_split($runs, ' '), c.run_id)
        order by c.completed_at, c.source, c.id, a.case_id
        """,
        span.values,
        wait_s=wait_s,
    )
    return tuple(_build_reply(row) for row in table.rows)


def _build_reply(row: Sequence[object]) -> SampledReply:
    run, stratum, source, key, case_id, completed_at, user_text, replied, facts, probability = row
    assert isinstance(completed_at, datetime)
    assert isinstance(probability, float)
    return SampledReply(
        stratum=(str(run), str(stratum)),
        conversation=(str(source), str(key)),
        case_id=str(case_id),
        completed_at=completed_at,
        user_text=str(user_text),
        reply_text=str(replied),
        facts=str(facts),
        inclusion_probability=probability,
    )


def count_conversations_by_stratum(
    store: Store, span: TrafficPeriod, *, wait_s: float = DEFAULT_READ_WAIT_S
) -> Mapping[StratumKey, tuple[int, int]]:
    """Count the conversations, and the sampled conversations, in each stratum of each run in the period."""
    table = store.query(
        """
        select run_id, stratum, count(*), count(inclusion_probability) from conversations
        where target = $target and completed_at >= $since::timestamptz and completed_at < $until::timestamptz
          and list_contains(string_split($runs, ' '), run_id)
        group by run_id, stratum order by run_id, stratum
        """,
        span.values,
        wait_s=wait_s,
    )
    return {
        (str(run), str(stratum)): (int(str(conversations)), int(str(sampled)))
        for run, stratum, conversations, sampled in table.rows
    }


MATCH_WINDOW: Final = timedelta(minutes=2)
"""Maximum time between a log entry and the end of its conversation.

A conversation usually ends with the blocked reply.
"""


class GuardEntry(NamedTuple):
    """An entry of the hallucination log, which the guard wrote when it blocked a reply.

    ``verdict`` is people's verdict on the guard's decision: right, wrong or ungraded.
    """

    log: str
    id: str
    at: datetime
    user_text: str | None
    blocked_reply: str | None
    verdict: str


def list_notified_guard_entries(
    store: Store, target: str, since: datetime, until: datetime, *, wait_s: float = DEFAULT_READ_WAIT_S
) -> tuple[GuardEntry, ...]:
    """List the entries from ``since`` to before ``until`` that people were notified of, oldest first.

    The time of an entry is the time that the entry states. If this time is missing or impossible, the time at which
    the entry was read is used. A person's verdict is a label with the incident's fingerprint, or a gold case that
    was drafted from the entry: a person who adds the reply to the gold set marks the reply as bad. An entry with
    contradicting verdicts has no verdict.
    """
    table = store.query(
        """
        with said as (
          select fingerprint, coalesce(finding_right, answer = 'wrong') as was_bad from labels
          where target = $target and (finding_right is not null or answer in ('right', 'wrong'))
          union all
          select fingerprint, true from case_drafts where target = $target and bad_reply is not null
        ), verdicts as (
          select fingerprint, bool_and(was_bad) as was_bad from said where fingerprint is not null
          group by fingerprint having bool_and(was_bad) = bool_or(was_bad)
        ), entries as (
          select log, id, user_text, blocked_reply, fingerprint,
            if(logged_at between read_at - interval 7 day and read_at, logged_at, read_at) as moment
          from hallucinations where target = $target and notify
        )
        select log, id, moment, user_text, blocked_reply,
          case when was_bad then 'right' when not was_bad then 'wrong' else 'ungraded' end
        from entries left join verdicts using (fingerprint)
        where moment >= $since::timestamptz and moment < $until::timestamptz
        order by moment, log, id
        """,
        {"target": target, "since": since.isoformat(), "until": until.isoformat()},
        wait_s=wait_s,
    )
    return tuple(_build_guard_entry(row) for row in table.rows)


def match_entries_to_questions(
    entries: Sequence[GuardEntry], questions: Sequence[tuple[datetime, str]]
) -> Sequence[tuple[GuardEntry, int]]:
    """Match log entries to sampled questions.

    Each result contains an entry, and the index of its question in ``questions``. An entry and a question match if
    they have the same text and are at most two minutes apart. Case and the amount of white space are ignored. Each
    entry matches at most one question, and each question at most one entry. If several pairs are possible, those
    that are nearest in time are matched first. An entry without a text matches no question.
    """
    places_by_text: dict[str, list[int]] = defaultdict(list)
    for place, (_, text) in enumerate(questions):
        places_by_text[_normalise_text(text)].append(place)
    candidates = sorted(
        (distance, number, place)
        for number, entry in enumerate(entries)
        for place in places_by_text.get(_normalise_text(entry.user_text or ""), ())
        if _normalise_text(entry.user_text or "")
        and (distance := abs(questions[place][0] - entry.at)) <= MATCH_WINDOW
    )
    taken, pairs = set[int](), dict[int, int]()
    for _, number, place in candidates:
        if number not in pairs and place not in taken:
            pairs[number] = place
            taken.add(place)
    return [(entries[number], place) for number, place in sorted(pairs.items())]


def _normalise_text(text: str) -> str:
    return " ".join(text.casefold().split())


def _build_guard_entry(row: Sequence[object]) -> GuardEntry:
    log, key, at, user_text, blocked_reply, verdict = row
    assert isinstance(at, datetime)
    question = None if user_text is None else str(user_text)
    blocked = None if blocked_reply is None else str(blocked_reply)
    return GuardEntry(str(log), str(key), at, question, blocked, str(verdict))


MAX_NIGHTS: Final = 400
"""Maximum number of nightly runs that are compared: a little more than a year."""
NO_NIGHT_TEXT: Final = "no nightly run graded live traffic in this period"
NO_JUDGE_TEXT: Final = "no judge graded these nights, and rules cannot detect invented replies"


def count_for_reconciliation(
    store: Store, target: str, since: datetime, until: datetime, *, wait_s: float = DEFAULT_READ_WAIT_S
) -> ReconciliationCounts:
    """Count the findings of the guard and of the nightly runs in the part of the period that these runs cover.

    - The period is ``since`` to ``until``. If it contains no nightly run, the guard's findings are counted for the
      whole period.
    - The graders and the judge of the newest run are used. Older runs are included back to the first run with other
      graders or another judge, which is not included.
    - Only log entries that people were notified of are counted. All other entries were already in the log when
      Lookout first read it, and their times are unknown.

    Raises `WarehouseDamaged` if the report of a nightly run has another format.
    """
    reports = list_recent_nightly_reports(store, target, MAX_NIGHTS, wait_s=wait_s)
    overlapping = [report for report in reports if report.since < until and since < report.until]
    nightly_runs = list(takewhile(lambda report: report.graded_by == overlapping[0].graded_by, overlapping))
    if nightly_runs:
        since = max(since, min(nightly.since for nightly in nightly_runs))
        until = min(until, max(nightly.until for nightly in nightly_runs))
    span = TrafficPeriod(target, since, until, [nightly.run_id for nightly in nightly_runs])
    entries = list_notified_guard_entries(store, target, since, until, wait_s=wait_s)
    sampled = list_sampled_replies(store, span, wait_s=wait_s)
    pairs = match_entries_to_questions(entries, [(nightly.completed_at, nightly.user_text) for nightly in sampled])
    held_back = {
        place: entry for entry, place in pairs if _is_same_reply(entry.blocked_reply, sampled[place].reply_text)
    }
    return ReconciliationCounts(
        target=target,
        since=since,
        until=until,
        guard=_count_guard(entries),
        nightly=_count_nightly(
            nightly_runs, count_conversations_by_stratum(store, span, wait_s=wait_s), sampled, held_back
        ),
        overlap=_count_overlap(len(pairs), sampled, held_back),
        runs_left_out=len(overlapping) - len(nightly_runs),
    )


def _count_guard(entries: Sequence[GuardEntry]) -> GuardCounts:
    verdicts = Counter(entry.verdict for entry in entries)
    return GuardCounts(entries=len(entries), right=verdicts["right"], wrong=verdicts["wrong"])


def _count_nightly(
    nightly_runs: Sequence[NightlyReport],
    counts_by_stratum: Mapping[StratumKey, tuple[int, int]],
    sampled: Sequence[SampledReply],
    held_back: Mapping[int, GuardEntry],
) -> TrafficCounts:
    """Count the nightly runs' findings in replies that users received.

    ``held_back`` contains the indices in ``sampled`` of the replies that the guard blocked. These replies are not
    counted.
    """
    if not nightly_runs:
        return TrafficCounts(why_none=NO_NIGHT_TEXT)
    served: dict[tuple[StratumKey, tuple[str, str]], list[str]] = defaultdict(list)
    for place, reply in enumerate(sampled):
        served[reply.stratum, reply.conversation] += [] if place in held_back else [reply.facts]
    graded, failures = Counter[StratumKey](), Counter[StratumKey]()
    for (stratum, _), facts in served.items():
        failures[stratum] += "no" in facts
        graded[stratum] += "no" in facts or all(fact == "yes" for fact in facts)
    lineages = {lineage.model_dump_json(): lineage for reply in nightly_runs for lineage in reply.judging.lineages}
    return TrafficCounts(
        nightly_runs=len(nightly_runs),
        strata=tuple(
            GradedStratum(
                stratum=key[1], conversations=there, sampled=taken, graded=graded[key], failures=failures[key]
            )
            for key, (there, taken) in counts_by_stratum.items()
        ),
        bad_replies=sum(facts.count("no") for facts in served.values()),
        lineages=tuple(lineages[key] for key in sorted(lineages)),
        why_none="" if lineages else NO_JUDGE_TEXT,
    )


def _count_overlap(
    matched_count: int, sampled: Sequence[SampledReply], same: Mapping[int, GuardEntry]
) -> OverlapCounts:
    """Return the numbers of matches, and the replies that the nightly runs graded as wrong.

    ``matched_count`` is the number of log entries that match a sampled question. The keys of ``same`` are the
    indices in ``sampled`` of the replies that the guard blocked. A blocked reply is not listed if people labelled
    it as a false alarm.
    """
    wrong_replies = (
        FoundReply(held_back=place in same, inclusion_probability=reply.inclusion_probability)
        for place, reply in enumerate(sampled)
        if reply.facts == "no" and not (place in same and same[place].verdict == "wrong")
    )
    return OverlapCounts(matched=matched_count, same_reply=len(same), found=tuple(wrong_replies))


def _is_same_reply(blocked: str | None, replied: str) -> bool:
    """Return whether the stored reply is the blocked reply, and not the text that replaced the blocked reply."""
    return blocked is not None and blocked.split() == replied.split() != []

"""An alert in words, before any rendering: Slack, terminal and preview show the same.

The first line says what broke, how bad it is and where: a lock screen shows no more. A line about what people did
with the message says what is left to do.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final
from urllib.parse import quote, urlencode

from monitors.alerts.operator_actions import is_wanted_as_gold
from monitors.alerts.redact import ELLIPSIS, inert, visible
from monitors.alerts.wording import (
    ABOUT_AN_ANSWER,
    ABOUT_THE_MONITOR,
    MONITOR_MARK,
    REASON_WORDS,
    RECOVERED_MARK,
    SEVERITY_MARKS,
    TRAFFIC_CASE,
    format_doubt,
    format_to_do,
    is_disputed,
    is_grave,
    some_of,
    what_broke,
)
from monitors.plural import plural
from monitors.records.base import Record
from monitors.records.grades import FailureKind, format_policy_row
from monitors.records.incidents import (
    ActionKind,
    ActionVia,
    Alert,
    AlertItem,
    Capability,
    FailedCase,
    IncidentKind,
    Link,
    NotifyReason,
    Observation,
    OperatorMark,
)
from monitors.records.self_checks import DRILL_TARGET, TEST_TARGET

TARGET_CHARACTERS: Final = 60
KINDS_NAMED: Final = 2

TEST_HEADLINE: Final = f"{RECOVERED_MARK} Test · Lookout can reach this channel · nothing is wrong"
_PREFIX: Final[dict[NotifyReason, str]] = {
    NotifyReason.FIRST_SEEN: "",
    NotifyReason.WORSE: "Worse: ",
    NotifyReason.REGRESSED: "Back again: ",
    NotifyReason.REMINDER: "Still failing: ",
    NotifyReason.RECOVERED: "",
    NotifyReason.OPEN_BEFORE: "",
}


def headline(alert: Alert) -> str:
    """``🔴 SEV 3 · Personal data disclosed · suraksha-demo``; whatever comes of a drill begins with Drill."""
    if alert.target == TEST_TARGET:
        return TEST_HEADLINE
    if alert.kind is IncidentKind.DRILL:
        return alert.items[0].observation.title
    what = _open_before(alert) if alert.reason is NotifyReason.OPEN_BEFORE else _what(alert.items)
    drill = "Drill: " if alert.target == DRILL_TARGET else ""
    case = f" · {only}" if (only := _only_case(alert)) else ""
    return f"{drill}{mark(alert)} {_how_bad(alert)} · {_PREFIX[alert.reason]}{what} · {short_target(alert)}{case}"


def _only_case(alert: Alert) -> str:
    """The case that a message is about alone: two messages about one leak must not look like one sent twice."""
    only, *others = alert.items
    named = only.incident.kind is IncidentKind.CASE_FAILURE and not others and not _is_traffic(only)
    return visible(only.incident.case_id or "") if named else ""


def mark(alert: Alert) -> str:
    """The colour of the trouble, or the sign that it is over."""
    if alert.reason is NotifyReason.RECOVERED:
        return RECOVERED_MARK
    return MONITOR_MARK if alert.kind in ABOUT_THE_MONITOR else SEVERITY_MARKS[alert.severity]


def short_target(alert: Alert) -> str:
    """The target's name, cut when it would push the rest off a phone, and that it is production."""
    name = alert.target
    shown = name if len(name) <= TARGET_CHARACTERS else name[: TARGET_CHARACTERS - 1] + ELLIPSIS
    return f"{shown} (production)" if alert.production and "prod" not in name.lower() else shown


def kinds_counted(items: Sequence[AlertItem], named: int | None = None) -> str:
    """``2 × Wrong fact stated, Source not cited``: the gravest first, then the most; ``…`` beyond ``named``."""
    tally = Counter(what_broke(item) for item in items)
    grave = {what_broke(item) for item in items if is_grave(item)}
    most = sorted(tally, key=lambda what: (what not in grave, -tally[what], what))
    text = [f"{tally[what]:,} × {what}" if tally[what] > 1 else what for what in most[:named]]
    return ", ".join(text) + (f", {ELLIPSIS}" if named is not None and len(most) > named else "")


def one_of_each_first(items: Sequence[AlertItem]) -> tuple[AlertItem, ...]:
    """Order for a message that cannot show all: the gravest, then one of every other kind, then the rest."""
    before: Counter[str] = Counter()
    places: list[tuple[bool, int, int]] = []
    for place, item in enumerate(items):
        what = what_broke(item)
        places.append((not (is_grave(item) and before[what] == 0), before[what], place))
        before[what] += 1
    return tuple(items[place] for _, _, place in sorted(places))


def _open_before(alert: Alert) -> str:
    count = plural(len(alert.items), "was", "were")
    return f"{count} open before Slack could be reached: {kinds_counted(alert.items, KINDS_NAMED)}"


def _how_bad(alert: Alert) -> str:
    return "Recovered" if alert.reason is NotifyReason.RECOVERED else f"SEV {int(alert.severity)}"


def _what(items: Sequence[AlertItem]) -> str:
    first = what_broke(items[0])
    if len(items) == 1:
        return first
    if all(what_broke(item) == first for item in items):
        return f"{len(items):,} × {first}"
    if all(item.reason is NotifyReason.RECOVERED for item in items):
        return kinds_counted(items, KINDS_NAMED)
    return f"{plural(len(items), 'failure')}: {kinds_counted(items, KINDS_NAMED)}"


DONE_WORDS: Final[dict[ActionKind, str]] = {
    ActionKind.ACKNOWLEDGE: "Acknowledged",
    ActionKind.FALSE_ALARM: "Called a false alarm",
    ActionKind.ADD_TO_GOLD: "Drafted as a gold case",
    ActionKind.RESOLVE: "Resolved",
}
CASES_NAMED: Final = 3
_CONTACT: Final = re.compile(r"gives away: .*(?:phone|e-mail)")
_SLACK_ID: Final = re.compile(r"[UW][A-Z0-9]{2,20}")


def mark_line(mark: OperatorMark, alert: Alert, *, slack: bool) -> str:
    """``Acknowledged by @asha · 02:14 UTC``; as ``mrkdwn`` that shows the person's name where ``slack``."""
    text = f"*{DONE_WORDS[mark.kind]}*" if slack else DONE_WORDS[mark.kind]
    about = _about(mark, alert.items)
    who = _who(mark, slack=slack)
    pieces = [f"{text} by {who}", inert(about) if slack else visible(about), _when(mark.at, alert.created_at)]
    return " · ".join(piece for piece in pieces if piece)


def is_left(kind: ActionKind, item: AlertItem, marks: Sequence[OperatorMark]) -> bool:
    """Whether ``kind`` still makes sense for ``item``: each thing once, and nothing after it was called false."""
    done = {mark.kind for mark in marks if item.incident.fingerprint in mark.fingerprints}
    if kind in done:
        return False
    match kind:
        case ActionKind.ACKNOWLEDGE:
            return not done & {ActionKind.FALSE_ALARM, ActionKind.RESOLVE}
        case ActionKind.FALSE_ALARM:
            return item.incident.kind in ABOUT_AN_ANSWER
        case ActionKind.ADD_TO_GOLD:
            return is_wanted_as_gold(item)
        case ActionKind.RESOLVE:
            return False


def _who(mark: OperatorMark, *, slack: bool) -> str:
    """A Slack user's id becomes their name in Slack; in an edited message it notifies nobody."""
    if mark.via is ActionVia.SLACK and _SLACK_ID.fullmatch(mark.by):
        return f"<@{mark.by}>" if slack else f"@{mark.by}"
    return inert(mark.by) if slack else visible(mark.by)


def _about(mark: OperatorMark, items: Sequence[AlertItem]) -> str:
    """Which of several it was about: by name while they are few."""
    meant = [item for item in items if item.incident.fingerprint in mark.fingerprints]
    if len(meant) == len(items):
        return ""
    named = [item.incident.case_id for item in meant if item.incident.case_id]
    if len(named) == len(meant) <= CASES_NAMED:
        return ", ".join(named)
    return f"{len(meant):,} of {len(items):,}"


def _when(at: datetime, sent: datetime) -> str:
    """The time alone on the day that the message was sent."""
    return at.strftime("%H:%M UTC" if at.date() == sent.date() else "%Y-%m-%d %H:%M UTC")


COMMIT_CHARACTERS: Final = 10
ONE_LINE_CHARACTERS: Final = 400
QUOTED_CHARACTERS: Final = 90
"""The most of the question and of the answer in the one-line text: both fit on a watch with the headline."""
BRIEF_CHARACTERS: Final = 50
"""The same where a gate's first failed case is named with the rest of them."""
GROUPED_CHARACTERS: Final = 140
"""The most of each excerpt when a message reports several failures: three of them fit on a phone."""
IN_COMMON: Final = "In common:"
"""What stands before what failed cases share."""
TO_DO: Final = "To do"
"""What stands before what helps."""
SCORED: Final = frozenset({IncidentKind.CASE_FAILURE, IncidentKind.GATE_FAIL, IncidentKind.DRIFT})

CASE_LABELS: Final = ("Asked", "Expected", "Got")
REPORT_LABELS: Final = ("Issue given", "Reference", "Agent's report")
LOG_LABELS: Final = ("Asked", "Unsupported", "Blocked")
"""An entry of the application's log expects nothing: it says what it held back, and why."""


class MessageSection(Record):
    """One failure in words. Empty texts were not there; ``excerpts`` are pairs of label and text."""

    heading: str
    case_id: str = ""
    excerpts: tuple[tuple[str, str], ...] = ()
    finding: str
    finding_label: str = ""
    severity: str
    row: str = ""
    history: str = ""
    doubt: str = ""
    flaky: str = ""
    examples: tuple[MessageSection, ...] = ()
    others: str = ""
    address: str = ""


class Message(Record):
    """What a person reads, top to bottom. ``one_line`` says it all for a lock screen or a watch."""

    id: str
    headline: str
    one_line: str
    why_sent: str
    since: str
    run_id: str
    at: str
    parts: tuple[MessageSection, ...]
    more: str = ""
    to_do: str = ""
    scores: str = ""
    dimensions: str = ""
    again: str = ""
    in_common: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    links: tuple[Link, ...] = ()
    marks: tuple[str, ...] = ()
    over: bool = False
    address: str = ""

    @property
    def alone(self) -> bool:
        """Whether it reports one failure only, whose name the headline has."""
        return len(self.parts) == 1 and not self.more


def message(alert: Alert, *, group_limit: int, site_url: str | None = None) -> Message:
    """Put ``alert`` into words; failures beyond ``group_limit`` are counted by kind, none is left out.

    ``site_url`` is where its readers reach the site; without it links lead to files of this machine.
    """
    items = one_of_each_first(alert.items)
    is_drill, is_test = alert.kind is IncidentKind.DRILL, alert.target == TEST_TARGET
    is_over = alert.reason is NotifyReason.RECOVERED or is_drill or is_test
    shown, rest = items[:group_limit], items[group_limit:]
    return Message(
        id=alert.id,
        headline=headline(alert),
        one_line=_one_line(alert),
        why_sent=_why_sent(alert),
        since="" if is_drill or is_test else _since(alert),
        run_id=alert.run_id,
        at=utc(alert.created_at),
        parts=tuple(_part(item, alert) for item in shown),
        more=f"and {plural(len(rest), 'more', 'more')}: {kinds_counted(rest)}" if rest else "",
        to_do="" if is_over else _to_do(items),
        scores=_scores(alert),
        dimensions=(alert.dimensions or "") if alert.kind in SCORED else "",
        again=alert.again if alert.kind in SCORED else "",
        in_common=alert.in_common if alert.kind in SCORED else (),
        changed=alert.changed if alert.kind in SCORED else (),
        links=_site_links(alert, site_url) if site_url and not (is_drill or is_test) else alert.links,
        marks=tuple(mark_line(mark, alert, slack=False) for mark in alert.marks),
        over=is_over,
        address=alert.items[0].observation.address,
    )


def _to_do(items: Sequence[AlertItem]) -> str:
    """What helps against the gravest failure, which stands first."""
    first, same = format_to_do(items[0]), len({format_to_do(item) for item in items}) == 1
    return first if same else f"{what_broke(items[0])} first: {first[:1].lower()}{first[1:]}"


def _why_sent(alert: Alert) -> str:
    """Why it was sent: of a gate that fails with more cases, which those are."""
    if alert.kind is IncidentKind.DRILL:
        return "a test by Lookout of itself: it counts in no score"
    if alert.target == TEST_TARGET:
        return "asked for by a person: nothing is to be done"
    more = [case for item in alert.items for case in item.new_cases]
    if not more:
        return _format_reason(alert.items[0]) if len(alert.items) == 1 else REASON_WORDS[alert.reason]
    return visible(f"{plural(len(more), 'more case fails', 'more cases fail')}: {some_of(more)}")


def _format_reason(item: AlertItem) -> str:
    before = item.severity_before
    return REASON_WORDS[item.reason] if before is None else f"severity {int(before)} until now"


def _site_links(alert: Alert, site_url: str) -> tuple[Link, ...]:
    """The incident (or the target's) and the run on the site; a file of this machine is of no use elsewhere."""
    base, first = site_url.rstrip("/"), alert.items[0].incident
    alone = len({item.incident.fingerprint for item in alert.items}) == 1
    incidents = f"/{first.fingerprint}" if alone else f"?{urlencode({'target': alert.target})}"
    pages = [Link(label="Incident" if alone else "Incidents", href=f"{base}/incidents{incidents}")]
    if alert.kind in SCORED and first.owner is Capability.VERIFY:
        pages.append(Link(label="Run", href=f"{base}/runs/{quote(alert.run_id, safe='')}"))
    return (*pages, *(link for link in alert.links if link.href.startswith(("http://", "https://"))))


def utc(at: datetime) -> str:
    """``2026-11-21 02:00 UTC``."""
    return at.strftime("%Y-%m-%d %H:%M UTC")


def span(lasted: timedelta) -> str:
    """``5 min``, ``3 h`` or ``2 days``: as a person would say it."""
    minutes = max(0, round(lasted.total_seconds() / 60))
    if minutes < 2 * 60:
        return f"{minutes} min"
    return f"{minutes // 60} h" if minutes < 48 * 60 else f"{minutes // (24 * 60)} days"


def short_commit(commit: str) -> str:
    """The first characters of a commit, enough to find it."""
    return commit[:COMMIT_CHARACTERS]


def _part(item: AlertItem, alert: Alert) -> MessageSection:
    seen = item.observation
    alone = len(alert.items) == 1
    return MessageSection(
        heading=what_broke(item),
        case_id=item.incident.case_id or "",
        excerpts=_excerpts(item, None if alone else GROUPED_CHARACTERS),
        finding=visible(f"{seen.reason}{_of_contacts(seen)}"),
        finding_label=_finding_label(item),
        severity=f"Severity {int(item.incident.severity)}",
        row=visible(format_policy_row(seen.policy_row or "")),
        history="" if alone else _history(item, alert),
        doubt=format_doubt(seen),
        flaky=seen.flaky,
        examples=tuple(map(_example, seen.examples)),
        others=visible(_others(seen, alert)),
        address=seen.address,
    )


def _of_contacts(seen: Observation) -> str:
    """How to say that a number or an address is the business's own: nothing but its owner can know."""
    if seen.failure_kind is not FailureKind.PII_DISCLOSURE or not _CONTACT.search(seen.reason):
        return ""
    return ". A contact of your own? List it in public_contacts"


def _others(seen: Observation, alert: Alert) -> str:
    """Which failed cases of a gate stand elsewhere: counted here, or in alerts of their own with these ids."""
    apart = seen.cases_with_alerts
    if not apart:
        return seen.others
    sent = {own.case_id: own.alert_id for own in alert.own_alerts}
    named = some_of([f"{case} ({sent[case]})" if case in sent else case for case in apart])
    have = "The worst has an alert of its own" if len(apart) == 1 else "The worst have alerts of their own"
    return f"{have}: {named}. {seen.others}".strip()


def _example(case: FailedCase) -> MessageSection:
    labels = REPORT_LABELS if case.is_report else CASE_LABELS
    texts = zip(labels, (case.asked, case.expected, case.answered), strict=True)
    return MessageSection(
        heading=visible(case.title),
        case_id=case.case_id,
        excerpts=tuple((label, _short(text, GROUPED_CHARACTERS)) for label, text in texts if text),
        finding="",
        severity=f"Severity {int(case.severity)}",
    )


def _finding_label(item: AlertItem) -> str:
    if item.observation.kind is not IncidentKind.CASE_FAILURE or item.reason is NotifyReason.RECOVERED:
        return ""
    if is_disputed(item.observation):
        return "Verdicts"
    return "Found" if _is_traffic(item) else "Failed check"


def _is_traffic(item: AlertItem) -> bool:
    """Whether it is about conversations of users, which have no case, no run's scores, and were over when found."""
    return (item.incident.case_id or "").startswith(TRAFFIC_CASE)


def _excerpts(item: AlertItem, limit: int | None) -> tuple[tuple[str, str], ...]:
    seen = item.observation
    labels = REPORT_LABELS if seen.is_report else CASE_LABELS
    labels = LOG_LABELS if seen.kind is IncidentKind.HALLUCINATION else labels
    texts = (seen.asked, seen.expected, seen.answered)
    return tuple((label, _short(text, limit)) for label, text in zip(labels, texts, strict=True) if text)


def _history(item: AlertItem, alert: Alert) -> str:
    """What the message's head leaves out of this one: another reason, an older deploy, more runs."""
    shared = len({other.incident.first_commit for other in alert.items}) == 1
    pieces = [
        _format_reason(item) if item.reason is not alert.reason or item.severity_before else "",
        "" if shared else f"since {_deploy(item.incident.first_commit)}",
        f"open since {utc(item.incident.opened_at)}" if item.reason is NotifyReason.OPEN_BEFORE else "",
        f"seen in {item.incident.occurrences:,} runs" if item.incident.occurrences > 1 else "",
    ]
    return " · ".join(piece for piece in pieces if piece)


def _as_of(alert: Alert) -> str:
    """When an earlier run saw what was open before Slack could be reached, where it is not this run that did."""
    seen = {item.observation.run_id: item.observation.seen_at for item in alert.items}
    if alert.reason is not NotifyReason.OPEN_BEFORE or alert.run_id in seen:
        return ""
    if len(seen) == 1:
        ((run_id, at),) = seen.items()
        return f"as of run {run_id} at {utc(at)}"
    return f"as of {plural(len(seen), 'run')} from {utc(min(seen.values()))} to {utc(max(seen.values()))}"


def _since(alert: Alert) -> str:
    """Since which deploy; for one incident alone also since when, how often, and how long it lasted."""
    deploy = _deploys(alert)
    only, *others = (item.incident for item in alert.items)
    if alert.reason is NotifyReason.RECOVERED:
        if not others and _is_traffic(alert.items[0]):
            return f"found {utc(only.opened_at)}"
        return _until(alert, deploy)
    if as_of := _as_of(alert):
        return as_of
    if others:
        return f"since {deploy}" if deploy else ""
    if _is_traffic(alert.items[0]):
        often = f", seen in {only.occurrences:,} nightly runs" if only.occurrences > 1 else ""
        return f"found {utc(only.opened_at)}{often}"
    since = f"since {deploy} ({utc(only.opened_at)})" if deploy else f"since {utc(only.opened_at)}"
    return f"{since}, seen in {only.occurrences:,} runs" if only.occurrences > 1 else since


def _deploys(alert: Alert) -> str:
    """The deploy that all began with; nothing where it is unknown or does not matter."""
    commits = {item.incident.first_commit for item in alert.items}
    if alert.kind in ABOUT_THE_MONITOR or commits == {None}:
        return ""
    return _deploy(commits.pop()) if len(commits) == 1 else "several deploys"


def _until(alert: Alert, deploy: str) -> str:
    lasts = sorted(i.resolved_at - i.opened_at for i in (item.incident for item in alert.items) if i.resolved_at)
    spans = list(dict.fromkeys(span(one) for one in lasts))
    lasted = f"after {_from_to(spans[0], spans[-1])}" if spans else ""
    pieces = [f"with {_deploy(alert.commit)}" if alert.commit else "", lasted]
    broken = f"broken since {deploy}" if deploy else ""
    return ", ".join(piece for piece in (" ".join(p for p in pieces if p), broken) if piece)


def _from_to(shortest: str, longest: str) -> str:
    """``5 min``, ``2 to 3 min`` or ``5 min to 3 h``."""
    if shortest == longest:
        return shortest
    count, _, unit = shortest.partition(" ")
    return f"{count if longest.endswith(f' {unit}') else shortest} to {longest}"


def _deploy(commit: str | None) -> str:
    return f"deploy {short_commit(commit)}" if commit else "an unknown deploy"


def _scores(alert: Alert) -> str:
    if alert.kind not in SCORED:
        return ""
    if alert.flat is not None and alert.weighted is not None:
        return f"score {alert.weighted} weighted by severity; {alert.flat} of all cases are right"
    return "the run is still going on: scores follow" if alert.under_way else ""


def _one_line(alert: Alert) -> str:
    seen = one_of_each_first(alert.items)[0].observation
    if alert.reason is NotifyReason.RECOVERED and len(alert.items) > 1:
        return _recovered_in_one_line(alert)
    named = f"case {seen.case_id}" if seen.case_id and not _only_case(alert) else ""
    said = [
        named,
        f"{'issue' if seen.is_report else 'asked'} “{_short(seen.asked)}”" if seen.asked else "",
        f"{'report' if seen.is_report else 'got'} “{_short(seen.answered)}”" if seen.answered else "",
        "" if seen.answered else _short(_failed_briefly(seen), QUOTED_CHARACTERS * 2).rstrip("."),
        f"{len(alert.items) - 1:,} more" if len(alert.items) > 1 else "",
    ]
    detail = ", ".join(piece for piece in said if piece)
    if alert.kind is IncidentKind.DRILL or alert.target == TEST_TARGET:
        return _short(f"{headline(alert)}: {detail}", ONE_LINE_CHARACTERS - len(alert.id) - 3) + f" · {alert.id}"
    why = "" if alert.reason is NotifyReason.RECOVERED else f" · {_why_sent(alert)}"
    since = _since(alert)
    tail = f"{why}{f' · {since}' if since else ''} · {alert.id}"
    return _short(f"{headline(alert)}: {detail}", ONE_LINE_CHARACTERS - len(tail)) + tail


def _recovered_in_one_line(alert: Alert) -> str:
    """What is over, and of which cases, where there are several."""
    cases = list(dict.fromkeys(case for item in alert.items if (case := item.incident.case_id)))
    about = f": {some_of(cases)}" if cases and not _is_traffic(alert.items[0]) else ""
    since = _since(alert)
    tail = f"{f' · {since}' if since else ''} · {alert.id}"
    return _short(f"{headline(alert)}{about}", ONE_LINE_CHARACTERS - len(tail)) + tail


def _failed_briefly(seen: Observation) -> str:
    """What is wrong, for a lock screen: of a gate that failed its cases, its scores only where no case failed."""
    if not seen.failed_cases or seen.kind is not IncidentKind.GATE_FAIL:
        return seen.reason
    briefly = [_case_briefly(case) for case in seen.examples[:1]]
    rest = [case for case in seen.failed_cases if case not in {one.case_id for one in seen.examples[:1]}]
    return "; ".join([*briefly, *([f"{'also failed' if briefly else 'failed'}: {some_of(rest)}"] if rest else [])])


def _case_briefly(case: FailedCase) -> str:
    """``wrong fact stated: price (expected “18 euros”, got “28 euros”)``."""
    quotes = [
        f"{label} “{_short(text, BRIEF_CHARACTERS)}”"
        for label, text in (("expected", case.expected), ("got", case.answered))
        if text and not case.is_report
    ]
    title = case.title[:1].lower() + case.title[1:]
    return f"{title}: {case.case_id}" + (f" ({', '.join(quotes)})" if quotes else "")


def _short(text: str, limit: int | None = QUOTED_CHARACTERS) -> str:
    flat = visible(text)
    return flat if limit is None or len(flat) <= limit else flat[: limit - 1].rstrip() + ELLIPSIS

"""Builds the text of an alert. The text is the same for Slack, the terminal and the preview.

The first line contains the fault, the severity and the target, because a lock screen shows only one line.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final
from urllib.parse import quote, urlencode

from monitors.alerts.operator_actions import can_become_gold_case
from monitors.alerts.redact import (
    ELLIPSIS,
    disable_slack_markup,
    disable_slack_markup_except,
    remove_invisible_characters,
)
from monitors.alerts.wording import (
    ABOUT_AN_ANSWER,
    ABOUT_THE_MONITOR,
    GRAVE_KINDS,
    MONITOR_MARK,
    REASON_WORDS,
    RECOVERED_MARK,
    SEVERITY_MARKS,
    TRAFFIC_CASE,
    UNKNOWN_MARK,
    format_doubt,
    format_fault,
    format_ids,
    format_to_do,
    is_disputed,
)
from monitors.plural import plural
from monitors.records.base import Record
from monitors.records.grades import FailureKind, format_policy_row
from monitors.records.incidents import (
    SUMMARY_REASONS,
    ActionKind,
    ActionVia,
    Alert,
    AlertItem,
    Capability,
    FailedCase,
    IncidentKind,
    Link,
    NotifyReason,
    OperatorMark,
)
from monitors.records.self_checks import DRILL_TARGET, TEST_TARGET

MAX_TARGET_CHARACTERS: Final = 60
MAX_KINDS_NAMED: Final = 2

TEST_HEADLINE: Final = f"{RECOVERED_MARK} Test · Lookout can reach this channel · no fault"
_PREFIX: Final[dict[NotifyReason, str]] = {
    NotifyReason.FIRST_SEEN: "",
    NotifyReason.WORSE: "Worse: ",
    NotifyReason.REGRESSED: "Back again: ",
    NotifyReason.REMINDER: "Still failing: ",
    NotifyReason.RECOVERED: "",
    NotifyReason.CLOSED: "",
    NotifyReason.OPEN_BEFORE: "",
    NotifyReason.MISSED: "While Slack refused messages: ",
    NotifyReason.SILENCED: "During a silence: ",
}


COMMIT_CHARACTERS: Final = 10
MAX_ONE_LINE_CHARACTERS: Final = 400
MAX_QUOTE_CHARACTERS: Final = 90
"""Maximum length of the question, and also of the answer, in the one-line text, in characters.

With this length, both together fit on a smartwatch.
"""
MAX_REASON_IN_LINE: Final = 2 * MAX_QUOTE_CHARACTERS
MAX_BRIEF_CHARACTERS: Final = 50
"""Maximum length of an answer in the one-line text about a failed gate, in characters.

The line also lists other failed cases.
"""
MAX_GROUPED_CHARACTERS: Final = 140
"""Maximum length of an excerpt in a message that reports several failures, in characters.

Three excerpts of this length fit on the screen of a phone.
"""
IN_COMMON_LABEL: Final = "In common:"
"""The label before the part of a message that lists the attributes which the failed cases share."""
TO_DO_LABEL: Final = "To do"
"""The label before the part of a message that says what to do."""
KINDS_WITH_SCORES: Final = frozenset({IncidentKind.CASE_FAILURE, IncidentKind.GATE_FAIL, IncidentKind.DRIFT})

CASE_LABELS: Final = ("Asked", "Expected", "Got")
REPORT_LABELS: Final = ("Issue given", "Reference", "Agent's report")
LOG_LABELS: Final = ("Asked", "Unsupported", "Blocked")
"""Labels in a message about an entry of the application's log, which has no expected answer."""


class MessageSection(Record):
    """The description of one failure. Empty texts are not shown. ``excerpts`` are pairs of a label and a text."""

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
    """The texts of a message from top to bottom.

    ``one_line`` is the whole alert as one line, for a lock screen. ``explanations`` are lines of the run's summary
    that may explain the failure.
    """

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
    explanations: tuple[str, ...] = ()
    links: tuple[Link, ...] = ()
    marks: tuple[str, ...] = ()
    is_over: bool = False
    address: str = ""
    case_ids: tuple[str, ...] = ()
    """The ids of all cases that the texts of the message may mention."""

    @property
    def has_one_failure(self) -> bool:
        """Return whether the message reports exactly one failure. If so, the headline names this failure."""
        return len(self.parts) == 1 and not self.more


def build_message(alert: Alert, *, group_limit: int, site_url: str | None = None) -> Message:
    """Build the message of ``alert``. Failures beyond ``group_limit`` are counted, but not described.

    ``site_url`` is the public address of the site. Without this address, links lead to files on this machine.
    """
    items = sort_one_of_each_kind_first(alert.items)
    shown, unshown = items[:group_limit], items[group_limit:]
    is_drill, is_test = alert.kind is IncidentKind.DRILL, alert.target == TEST_TARGET
    is_over = alert.is_over or is_drill or is_test
    title, since = format_headline(alert), _format_since_or_duration(alert)

    # The reason for sending. If more cases of a gate failed, they are named too.
    new_cases = [case for item in alert.items for case in item.new_cases]
    if is_drill:
        why_sent = "Lookout tests its own alerts. No score changes"
    elif is_test:
        why_sent = "a person requested this test: no action needed"
    elif new_cases:
        count = plural(len(new_cases), "more case fails", "more cases fail")
        why_sent = remove_invisible_characters(f"{count}: {format_ids(new_cases)}")
    elif len(alert.items) == 1 and (before := alert.items[0].severity_before) is not None:
        why_sent = f"more severe than before: it was severity {int(before)}"
    else:
        why_sent = REASON_WORDS[alert.items[0].reason if len(alert.items) == 1 else alert.reason]

    # Advice for the most severe open failure, which is the first item.
    to_do_items = [item for item in items if not item.incident.is_resolved] or items
    to_do = format_to_do(to_do_items[0])
    if len({format_to_do(item) for item in to_do_items}) > 1:
        to_do = f"{format_fault(to_do_items[0].incident)} first: {to_do[:1].lower()}{to_do[1:]}"

    # The figures of the run, if the alert is about this run only.
    scores, is_scored = "", alert.kind in KINDS_WITH_SCORES
    if is_scored and alert.flat is not None and alert.weighted is not None:
        scores = f"pass rate {alert.flat}, weighted score {alert.weighted} (severe cases count more)"
    elif is_scored and alert.under_way:
        scores = "the run is not finished, so it has no scores yet"
    in_common = (f"{IN_COMMON_LABEL} {cause}" for cause in alert.in_common)
    explanations = (alert.again, *in_common, *alert.changed)
    is_explained = is_scored or alert.reason is NotifyReason.SILENCED

    return Message(
        id=alert.id,
        headline=title,
        one_line=_format_alert_in_one_line(alert, title=title, why_sent=why_sent, since=since),
        why_sent=why_sent,
        since="" if is_drill or is_test else since,
        run_id=alert.run_id,
        at=format_utc(alert.created_at),
        parts=tuple(_build_failure_section(item, alert) for item in shown),
        more=f"and {plural(len(unshown), 'more', 'more')}: {_format_fault_counts(unshown)}" if unshown else "",
        to_do="" if is_over else to_do,
        scores=scores,
        dimensions=(alert.dimensions or "") if is_scored else "",
        explanations=tuple(filter(None, explanations)) if is_explained else (),
        links=_build_site_and_web_links(alert, site_url) if site_url and not (is_drill or is_test) else alert.links,
        marks=tuple(format_operator_mark(mark, alert, slack=False) for mark in alert.marks),
        is_over=is_over,
        case_ids=tuple(_list_case_ids(alert)),
        address=alert.items[0].observation.address,
    )


def _list_case_ids(alert: Alert) -> Iterator[str]:
    for item in alert.items:
        incident, observation = item.incident, item.observation
        yield from (case_id for case_id in (incident.case_id, observation.case_id) if case_id)
        yield from (*incident.notified_cases, *incident.failed_cases, *observation.failed_cases, *item.new_cases)


def format_headline(alert: Alert) -> str:
    """Format the first line: ``🔴 SEV 3 · Personal data disclosed · suraksha-demo``."""
    items, name = alert.items, alert.target
    if name == TEST_TARGET:
        return TEST_HEADLINE
    if alert.kind is IncidentKind.DRILL:
        return items[0].observation.title

    # The colour (or the mark of a recovery) and the severity.
    if alert.is_over:
        is_closed = alert.reason is NotifyReason.CLOSED
        mark, severity = (UNKNOWN_MARK, "Closed") if is_closed else (RECOVERED_MARK, "Recovered")
    else:
        mark = MONITOR_MARK if alert.kind in ABOUT_THE_MONITOR else SEVERITY_MARKS[alert.severity]
        severity = f"SEV {int(alert.severity)}"

    # The name of the fault.
    faults = {format_fault(item.incident) for item in items}
    if alert.reason is NotifyReason.OPEN_BEFORE:
        count = plural(len(items), "open incident")
        fault = f"{count} not reported until now: {_format_fault_counts(items, MAX_KINDS_NAMED)}"
    elif alert.reason in SUMMARY_REASONS:
        over = sum(item.incident.is_resolved for item in items)
        counts = (f"{len(items) - over:,} still open", f"{over:,} over")
        shown = [text for text in counts if not text.startswith("0 ")]
        fault = f"{', '.join(shown)}: {_format_fault_counts(items, MAX_KINDS_NAMED)}"
    elif len(faults) == 1:
        fault = faults.pop() if len(items) == 1 else f"{len(items):,} × {faults.pop()}"
    elif all(item.reason.is_ending for item in items):
        fault = _format_fault_counts(items, MAX_KINDS_NAMED)
    else:
        fault = f"{plural(len(items), 'failure')}: {_format_fault_counts(items, MAX_KINDS_NAMED)}"

    # The target's name, cut if the rest would not fit on a phone, and a mark for production.
    target = name if len(name) <= MAX_TARGET_CHARACTERS else name[: MAX_TARGET_CHARACTERS - 1] + ELLIPSIS
    production = " (production)" if alert.production and "prod" not in name.lower() else ""
    drill = "Drill: " if name == DRILL_TARGET else ""
    case = f" · {only}" if (only := _find_only_case_id(alert)) else ""
    return f"{drill}{mark} {severity} · {_PREFIX[alert.reason]}{fault} · {target}{production}{case}"


def _find_only_case_id(alert: Alert) -> str:
    """Return the id of the only failed case, or an empty string.

    The result is empty if the message is about several faults or about traffic.
    """
    only, *rest = alert.items
    is_named = only.incident.kind is IncidentKind.CASE_FAILURE and not rest and not _is_about_traffic(only)
    return remove_invisible_characters(only.incident.case_id or "") if is_named else ""


def _is_about_traffic(item: AlertItem) -> bool:
    """Return whether the item is about users' conversations, which belong to no case and have no scores."""
    return (item.incident.case_id or "").startswith(TRAFFIC_CASE)


def _format_fault_counts(items: Sequence[AlertItem], limit: int | None = None) -> str:
    """Format at most ``limit`` faults with their counts: ``2 × Wrong fact stated, Source not cited``.

    Grave faults come first, then the most frequent faults.
    """
    tally = Counter(format_fault(item.incident) for item in items)
    grave = {format_fault(item.incident) for item in items if item.incident.failure_kind in GRAVE_KINDS}
    faults = sorted(tally, key=lambda fault: (fault not in grave, -tally[fault], fault))
    text = [f"{tally[fault]:,} × {fault}" if tally[fault] > 1 else fault for fault in faults[:limit]]
    return ", ".join(text) + (f", {ELLIPSIS}" if limit is not None and len(faults) > limit else "")


def sort_one_of_each_kind_first(items: Sequence[AlertItem]) -> tuple[AlertItem, ...]:
    """Sort the items so that the first few items show as many kinds of faults as possible.

    Open incidents come before resolved incidents. Within each of these two groups, the first failure of each grave
    kind comes first, then the first failure of each other kind, then the second failures, and so on.
    """
    before: Counter[str] = Counter()
    places: list[tuple[bool, bool, int, int]] = []
    for place, item in enumerate(items):
        fault = format_fault(item.incident)
        is_first_grave = item.incident.failure_kind in GRAVE_KINDS and before[fault] == 0
        places.append((item.incident.is_resolved, not is_first_grave, before[fault], place))
        before[fault] += 1
    return tuple(items[place] for *_, place in sorted(places))


def _build_failure_section(item: AlertItem, alert: Alert) -> MessageSection:
    observation, incident = item.observation, item.incident
    is_alone = len(alert.items) == 1

    # The question, the expected answer and the answer.
    labels = REPORT_LABELS if observation.is_report else CASE_LABELS
    labels = LOG_LABELS if observation.kind is IncidentKind.HALLUCINATION else labels
    texts = zip(labels, (observation.asked, observation.expected, observation.answered), strict=True)
    limit = None if is_alone else MAX_GROUPED_CHARACTERS

    # The fault. Only the owner can decide whether a number or an address belongs to the business.
    finding, finding_label = str(observation.reason), ""
    if observation.failure_kind is FailureKind.PII_DISCLOSURE and _CONTACT.search(finding):
        finding += ". If this contact is public, add it to public_contacts in lookout.toml"
    has_check = not item.reason.is_ending and item.reason is not NotifyReason.SILENCED
    if observation.kind is IncidentKind.CASE_FAILURE and has_check:
        finding_label = "Found" if _is_about_traffic(item) else "Failed check"
        finding_label = "Verdicts" if is_disputed(observation) else finding_label

    # Facts that differ between several failures, so that the head of the message cannot show them.
    history: list[str] = []
    if not is_alone:
        if item.severity_before is not None:
            history.append(f"more severe than before: it was severity {int(item.severity_before)}")
        elif item.reason is not alert.reason:
            history.append(REASON_WORDS[item.reason])
        if len({sibling.incident.first_commit for sibling in alert.items}) > 1:
            history.append(f"since {_format_deploy(incident.first_commit)}")
        if item.reason is NotifyReason.OPEN_BEFORE:
            history.append(f"open since {format_utc(incident.opened_at)}")
        if incident.occurrences > 1:
            history.append(f"seen in {incident.occurrences:,} runs")

    # When the incidents in a summary began and ended.
    if item.reason in SUMMARY_REASONS:
        began, ended = format_utc(incident.opened_at), incident.resolved_at if incident.is_resolved else None
        history.append(f"open from {began} to {format_utc(ended)}" if ended else f"still open, since {began}")

    # Failed cases of a gate that this message only lists. If a case has its own alert, its alert's id is added.
    others = observation.others
    if cases_with_alerts := observation.cases_with_alerts:
        sent = {case_alert.case_id: case_alert.alert_id for case_alert in alert.own_alerts}
        named = format_ids([f"{case} ({sent[case]})" if case in sent else case for case in cases_with_alerts])
        have = (
            "The worst failure has its own alert"
            if len(cases_with_alerts) == 1
            else "The worst failures have their own alerts"
        )
        others = f"{have}: {named}. {others}".strip()

    return MessageSection(
        heading=format_fault(incident),
        case_id=incident.case_id or "",
        excerpts=tuple((label, _shorten(text, limit)) for label, text in texts if text),
        finding=remove_invisible_characters(finding),
        finding_label=finding_label,
        severity=f"Severity {int(incident.severity)}",
        row=remove_invisible_characters(format_policy_row(observation.policy_row or "")),
        history=" · ".join(history),
        doubt=format_doubt(observation),
        flaky=observation.flaky,
        examples=tuple(_build_example_section(case) for case in observation.examples),
        others=remove_invisible_characters(others),
        address=observation.address,
    )


def _build_example_section(case: FailedCase) -> MessageSection:
    labels = REPORT_LABELS if case.is_report else CASE_LABELS
    texts = zip(labels, (case.asked, case.expected, case.answered), strict=True)
    return MessageSection(
        heading=remove_invisible_characters(case.title),
        case_id=case.case_id,
        excerpts=tuple((label, _shorten(text, MAX_GROUPED_CHARACTERS)) for label, text in texts if text),
        finding="",
        severity=f"Severity {int(case.severity)}",
    )


def _format_since_or_duration(alert: Alert) -> str:
    """Format when the fault began, and the deploy with which it began.

    For a recovery, format how long the fault lasted.
    """
    first, incidents = alert.items[0], [item.incident for item in alert.items]
    only, is_alone = incidents[0], len(incidents) == 1

    if alert.reason in SUMMARY_REASONS:
        return ""  # each incident has different times

    # The deploy with which the incidents began. Empty if no deploy is known, or for a fault of the monitor.
    commits = {incident.first_commit for incident in incidents}
    deploy = "several deploys" if len(commits) > 1 else _format_deploy(only.first_commit)
    if alert.kind in ABOUT_THE_MONITOR or commits == {None}:
        deploy = ""

    if alert.reason.is_ending:
        if is_alone and _is_about_traffic(first):
            return f"found {format_utc(only.opened_at)}"
        durations = sorted(i.resolved_at - i.opened_at for i in incidents if i.resolved_at)
        spans = list(dict.fromkeys(format_duration(duration) for duration in durations))
        ending = [f"with {_format_deploy(alert.commit)}"] if alert.commit else []
        ending += [f"after {_format_duration_range(spans[0], spans[-1])}"] if spans else []
        broken = f"broken since {deploy}" if deploy else ""
        return ", ".join(piece for piece in (" ".join(ending), broken) if piece)

    # The incidents began before Slack worked. If this run did not see them, use the times of earlier runs.
    runs = {item.observation.run_id: item.observation.seen_at for item in alert.items}
    if alert.reason is NotifyReason.OPEN_BEFORE and alert.run_id not in runs:
        if len(runs) == 1:
            ((run_id, at),) = runs.items()
            return f"as of run {run_id} at {format_utc(at)}"
        first_at, last_at = format_utc(min(runs.values())), format_utc(max(runs.values()))
        return f"as of {plural(len(runs), 'run')} from {first_at} to {last_at}"

    if (
        not is_alone and alert.kind is IncidentKind.HALLUCINATION
    ):  # entries of a log have times, but mostly no deploy
        began = format_utc(min(incident.opened_at for incident in incidents))
        return f"since {deploy} ({began})" if deploy else f"since {began}"
    if not is_alone:
        return f"since {deploy}" if deploy else ""
    if _is_about_traffic(first):
        often = f", seen in {only.occurrences:,} nightly runs" if only.occurrences > 1 else ""
        return f"found {format_utc(only.opened_at)}{often}"
    since = f"since {deploy} ({format_utc(only.opened_at)})" if deploy else f"since {format_utc(only.opened_at)}"
    return f"{since}, seen in {only.occurrences:,} runs" if only.occurrences > 1 else since


def _format_duration_range(low: str, high: str) -> str:
    """Format a range of durations: ``5 min``, ``2 to 3 min`` or ``5 min to 3 h``."""
    if low == high:
        return low
    count, _, unit = low.partition(" ")
    return f"{count if high.endswith(f' {unit}') else low} to {high}"


def _format_deploy(commit: str | None) -> str:
    return f"deploy {shorten_commit(commit)}" if commit else "an unknown deploy"


def _format_alert_in_one_line(alert: Alert, *, title: str, why_sent: str, since: str) -> str:
    """Format the whole alert as one line, for a lock screen or a watch. The alert's id at the end is never cut."""
    is_over, ending = alert.is_over, f" · {alert.id}"
    observation = sort_one_of_each_kind_first(alert.items)[0].observation
    if is_over and len(alert.items) > 1:  # the incidents that have ended, and their cases
        cases = list(dict.fromkeys(case for item in alert.items if (case := item.incident.case_id)))
        ending = f"{f' · {since}' if since else ''}{ending}"
        room = MAX_ONE_LINE_CHARACTERS - len(title) - len(": ") - len(ending)
        named = format_ids(cases, max_characters=room) if cases and not _is_about_traffic(alert.items[0]) else ""
        text = f"{title}: {named}" if named else title
        return _shorten(text, MAX_ONE_LINE_CHARACTERS - len(ending)) + ending

    # For a gate: its failed cases. If no case failed: the reason with the scores.
    reason = str(observation.reason)
    if observation.failed_cases and observation.kind is IncidentKind.GATE_FAIL:
        examples = observation.examples[:1]
        brief = [_format_case_briefly(case) for case in examples]
        unnamed = [
            case for case in observation.failed_cases if case not in {example.case_id for example in examples}
        ]
        if unnamed:
            label = "also failed: " if examples else "failed: "
            room = MAX_REASON_IN_LINE - sum(len(part) + len("; ") for part in brief) - len(label)
            brief.append(f"{label}{format_ids(unnamed, max_characters=room)}")
        reason = "; ".join(brief)

    asked, answered = observation.asked, observation.answered
    pieces = [
        f"case {observation.case_id}" if observation.case_id and not _find_only_case_id(alert) else "",
        f"{'issue' if observation.is_report else 'asked'} “{_shorten(asked)}”" if asked else "",
        f"{'report' if observation.is_report else 'got'} “{_shorten(answered)}”" if answered else "",
        "" if answered else _shorten(reason, MAX_REASON_IN_LINE).rstrip("."),
        f"{len(alert.items) - 1:,} more" if len(alert.items) > 1 else "",
    ]
    text = f"{title}: {', '.join(piece for piece in pieces if piece)}"
    if alert.kind is not IncidentKind.DRILL and alert.target != TEST_TARGET:
        why = "" if is_over else f" · {why_sent}"
        ending = f"{why}{f' · {since}' if since else ''}{ending}"
    return _shorten(text, MAX_ONE_LINE_CHARACTERS - len(ending)) + ending


def _format_case_briefly(case: FailedCase) -> str:
    """Format a case briefly: ``wrong fact stated: price (expected “18 euros”, got “28 euros”)``."""
    quotes = [
        f"{label} “{_shorten(text, MAX_BRIEF_CHARACTERS)}”"
        for label, text in (("expected", case.expected), ("got", case.answered))
        if text and not case.is_report
    ]
    title = case.title[:1].lower() + case.title[1:]
    return f"{title}: {case.case_id}" + (f" ({', '.join(quotes)})" if quotes else "")


def _shorten(text: str, limit: int | None = MAX_QUOTE_CHARACTERS) -> str:
    flat = remove_invisible_characters(text)
    return flat if limit is None or len(flat) <= limit else flat[: limit - 1].rstrip() + ELLIPSIS


NIGHT_LABEL: Final = "Night"
"""Label of the link to a nightly run's report. This label identifies messages about a nightly run."""


def _build_site_and_web_links(alert: Alert, site_url: str) -> tuple[Link, ...]:
    """Build links to the site's pages about the incident and the run, followed by the alert's other web links."""
    base, first = site_url.rstrip("/"), alert.items[0].incident
    is_alone = len(set(alert.fingerprints)) == 1
    incidents = f"/{first.fingerprint}" if is_alone else f"?{urlencode({'target': alert.target})}"
    pages = [Link(label="Incident" if is_alone else "Incidents", href=f"{base}/incidents{incidents}")]
    run_page = f"{base}/runs/{quote(alert.run_id, safe='')}"
    if any(link.label == NIGHT_LABEL for link in alert.links):
        pages.append(Link(label=NIGHT_LABEL, href=f"{run_page}/report"))
    elif (
        alert.kind in KINDS_WITH_SCORES
        and first.owner is Capability.VERIFY
        and alert.reason is not NotifyReason.SILENCED  # its run id is not a run, but the period of a silence
    ):
        pages.append(Link(label="Run", href=run_page))
    return (*pages, *(link for link in alert.links if link.href.startswith(("http://", "https://"))))


DONE_WORDS: Final[dict[ActionKind, str]] = {
    ActionKind.ACKNOWLEDGE: "Acknowledged",
    ActionKind.FALSE_ALARM: "Marked as a false alarm",
    ActionKind.ADD_TO_GOLD: "Drafted as a gold case",
    ActionKind.RESOLVE: "Resolved",
}
MAX_CASES_NAMED: Final = 3
_CONTACT: Final = re.compile(r"(?:discloses|gives away): .*(?:phone|e-mail)")
_SLACK_ID: Final = re.compile(r"[UW][A-Z0-9]{2,20}")


def format_operator_mark(mark: OperatorMark, alert: Alert, *, slack: bool) -> str:
    """Format who did what, and when: ``Acknowledged by @asha · 02:14 UTC``.

    If ``slack`` is true, the text is ``mrkdwn`` with the person's Slack id. Slack shows the person's name instead
    of the id. Lookout adds this text to a message that was already sent, so Slack does not notify the person.
    """
    if mark.via is ActionVia.SLACK and _SLACK_ID.fullmatch(mark.by):
        by = f"<@{mark.by}>" if slack else f"@{mark.by}"
    else:
        by = disable_slack_markup(mark.by) if slack else remove_invisible_characters(mark.by)

    # The failures that the action was about. They are named only if they are few.
    about, cases = "", list[str]()
    items = [item for item in alert.items if item.incident.fingerprint in mark.fingerprints]
    if len(items) < len(alert.items):
        cases = [item.incident.case_id for item in items if item.incident.case_id]
        is_named = len(cases) == len(items) <= MAX_CASES_NAMED
        about = ", ".join(cases) if is_named else f"{len(items):,} of {len(alert.items):,}"

    # If the message was sent on the same day, only the time is shown.
    is_same_day = mark.at.date() == alert.created_at.date()
    at = mark.at.strftime("%H:%M UTC" if is_same_day else "%Y-%m-%d %H:%M UTC")
    done = f"*{DONE_WORDS[mark.kind]}*" if slack else DONE_WORDS[mark.kind]
    pieces = [
        f"{done} by {by}",
        disable_slack_markup_except(about, ids=cases) if slack else remove_invisible_characters(about),
        at,
    ]
    return " · ".join(piece for piece in pieces if piece)


def is_action_available(kind: ActionKind, item: AlertItem, marks: Sequence[OperatorMark]) -> bool:
    """Return whether a message offers this action about ``item``. Each action can be done only once.

    - Acknowledge: if the incident is not resolved, and no person has marked it as a false alarm or resolved it.
    - False alarm: if the incident is about an answer.
    - Add to gold: see `can_become_gold_case`.
    - Resolve: never, because messages have no button for this action.
    """
    done = {mark.kind for mark in marks if item.incident.fingerprint in mark.fingerprints}
    if kind in done:
        return False
    match kind:
        case ActionKind.ACKNOWLEDGE:
            return not item.incident.is_resolved and not done & {ActionKind.FALSE_ALARM, ActionKind.RESOLVE}
        case ActionKind.FALSE_ALARM:
            return item.incident.kind in ABOUT_AN_ANSWER
        case ActionKind.ADD_TO_GOLD:
            return can_become_gold_case(item)
        case ActionKind.RESOLVE:
            return False


def format_utc(at: datetime) -> str:
    """Format a time: ``2026-11-21 02:00 UTC``."""
    return at.strftime("%Y-%m-%d %H:%M UTC")


def format_duration(duration: timedelta) -> str:
    """Format a duration: ``5 min``, ``3 h`` or ``2 days``."""
    minutes = max(0, round(duration.total_seconds() / 60))
    if minutes < 2 * 60:
        return f"{minutes} min"
    return f"{minutes // 60} h" if minutes < 48 * 60 else f"{minutes // (24 * 60)} days"


def shorten_commit(commit: str) -> str:
    """Return the first characters of a commit hash, which are enough to find the commit."""
    return commit[:COMMIT_CHARACTERS]

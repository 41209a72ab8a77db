"""``results.json``: a whole run for machines, written here and read back by the gate.

One case per line, so that ``diff`` can compare two runs. The texts are raw: the file belongs to the run's folder,
which never leaves the machine. ``hallucinations.jsonl`` has one line per failed answer, in the fields that
applications log their own in.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, Literal

from pydantic import ConfigDict, ValidationError

from monitors.errors import ConfigError
from monitors.records.base import Record, Severity, UtcTime
from monitors.records.exchanges import Channel, Exchange
from monitors.records.grades import CaseOutcome, FailureKind, Judged
from monitors.records.runs import CaseResult, RunReport
from monitors.reports.case_view import answer_text, with_outcome
from monitors.reports.marked_text import Redact, masked_part, masks_of, redaction_of, secrets_of

_CLAIMS = frozenset({FailureKind.WRONG_FACT, FailureKind.UNSUPPORTED_CLAIM, FailureKind.SHOULD_HAVE_REFUSED})


class HallucinationLine(Record):
    """One line. The first six fields are the shared ones, the others say where it comes from.

    All texts are redacted. ``unsupported_claims`` are the stretches of the answer that a grade on its facts points
    at; ``policy_ids`` is the case's cluster. What a probe from outside cannot know (``chunk_count``,
    ``top_score``) is left out.
    """

    ts: UtcTime
    user_text: str
    blocked_reply: str
    reasons: tuple[str, ...]
    unsupported_claims: tuple[str, ...]
    policy_ids: tuple[str, ...]
    run_id: str
    case_id: str
    repeat: int
    target: str
    commit: str | None
    severity: Severity
    failure_kinds: tuple[FailureKind, ...]


def hallucination_lines(report: RunReport, cases: Sequence[CaseResult], *, redact: Redact) -> Iterator[str]:
    """The lines, worst first, each ending in a newline."""
    for result in with_outcome(cases, CaseOutcome.FAILED):
        yield _line(report, result, redact).model_dump_json() + "\n"


def _line(report: RunReport, result: CaseResult, redact: Redact) -> HallucinationLine:
    found, safe = result.assessment, redaction_of(result, redact)
    failing = [grade for grade in found.grades if isinstance(grade, Judged) and not grade.passed]
    reasons = tuple(f"{grade.failure_kind}: {safe(grade.reason)}" for grade in failing)
    return HallucinationLine(
        ts=result.result.asked_at,
        user_text=safe(result.case.question),
        blocked_reply=safe(answer_text(result)),
        reasons=reasons or (safe(found.reason),),
        unsupported_claims=_claims(result, failing, redact),
        policy_ids=(found.cluster,) if found.cluster else (),
        run_id=report.run_id,
        case_id=result.case.id,
        repeat=result.result.repeat,
        target=report.target.name,
        commit=report.commit,
        severity=found.severity,
        failure_kinds=found.failure_kinds,
    )


def _claims(result: CaseResult, failing: Sequence[Judged], redact: Redact) -> tuple[str, ...]:
    came = result.result
    if not isinstance(came, Exchange):
        return ()
    texts = {Channel.VISIBLE: came.visible_text, Channel.WIRE: came.wire.text if came.wire else ""}
    secrets = secrets_of(result)
    masks = {where: masks_of(text, secrets, redact) for where, text in texts.items()}
    claims = [
        masked_part(texts[span.where], masks[span.where], span.start, span.end)
        for grade in failing
        if grade.failure_kind in _CLAIMS
        for span in grade.evidence
        if span.where != "gold" and span.start < len(texts[span.where])
    ]
    return tuple(dict.fromkeys(claims))


FORMAT: Final = 1
"""Raised when a reader of the old format could no longer understand the file."""


class Results(Record):
    """The file's shape."""

    format: Literal[1]
    report: RunReport
    cases: tuple[CaseResult, ...]


class _Header(Record):
    """What distinguishes a results file of any format from another JSON file."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    format: int


def results_json(report: RunReport, cases: Sequence[CaseResult]) -> Iterator[str]:
    """The file in pieces, one case at a time: a long run is never held twice."""
    yield f'{{"format": {FORMAT},\n"report": {report.model_dump_json()},\n"cases": ['
    for place, case in enumerate(cases):
        yield f"{',' if place else ''}\n{case.model_dump_json()}"
    yield "\n]}\n"


def read_results(path: Path) -> tuple[RunReport, tuple[CaseResult, ...]]:
    """The run that ``results.json`` at ``path`` holds.

    Raises ``ConfigError`` naming file, key and what is accepted: when the file cannot be read, is no JSON, is of
    another format, lacks or misspells a field, or when its parts do not belong to one run.
    """
    content = _content(path)
    _check_format(path, content)
    try:
        results = Results.model_validate_json(content)
    except ValidationError as error:
        raise ConfigError(_first_fault(path, error)) from error
    _check_belongs_together(path, results)
    return results.report, results.cases


def read_not_correct(path: Path) -> Sequence[CaseResult]:
    """The cases of the file that did not come out correct, a line at a time: a long run is not held whole.

    For a file of this very version. Raises `OSError` and `ValidationError` for what is none.
    """
    with path.open("rb") as lines:
        cases = (
            CaseResult.model_validate_json(line.rstrip(b",\n")) for line in lines if line.startswith(b'{"case"')
        )
        return [one for one in cases if one.assessment.outcome is not CaseOutcome.CORRECT]


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        message = f"{path}: cannot be read ({error.strerror}); accepted is the results.json of a finished run"
        raise ConfigError(message) from error


def _check_format(path: Path, content: bytes) -> None:
    try:
        header = _Header.model_validate_json(content)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_context=False)[0]
        what = f"no JSON ({fault['msg']})" if fault["type"] == "json_invalid" else f"`format`: {fault['msg']}"
        message = f"{path}: {what}; accepted is the results.json of a run, with `format`, `report` and `cases`"
        raise ConfigError(message) from error
    if header.format != FORMAT:
        hint = "written by a newer Lookout: update this one" if header.format > FORMAT else "no such format exists"
        raise ConfigError(f"{path}: `format` is {header.format} ({hint}); accepted: {FORMAT}")


def _first_fault(path: Path, error: ValidationError) -> str:
    faults = error.errors(include_url=False, include_context=False)
    fault = faults[0]
    key = ".".join(str(part) for part in fault["loc"]) or "the file"
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    given = "" if fault["type"] in {"missing", "extra_forbidden"} else f", got {_brief(fault['input'])}"
    return f"{path}: `{key}`: {fault['msg']}{given}{more}; accepted is a file as `lookout verify` writes it"


def _brief(value: object) -> str:
    """Only the kind of a text is named: it may hold what the app answered a user."""
    return f"a text of {len(value)} characters" if isinstance(value, str) else type(value).__name__


def _check_belongs_together(path: Path, results: Results) -> None:
    seen: set[tuple[str, int]] = set()
    for place, case in enumerate(results.cases):
        key = f"cases.{place}"
        ids = {case.case.id, case.result.case_id, case.assessment.case_id}
        runs = {results.report.run_id, case.result.run_id, case.assessment.run_id}
        identity = (case.case.id, case.result.repeat)
        if len(ids) > 1:
            raise ConfigError(f"{path}: `{key}`: case, result and assessment name different cases: {sorted(ids)}")
        if len(runs) > 1:
            raise ConfigError(f"{path}: `{key}`: belongs to another run than the report: {sorted(runs)}")
        if identity in seen:
            message = f"{path}: `{key}`: case {case.case.id} is there twice; accepted is once per repeat"
            raise ConfigError(message)
        seen.add(identity)

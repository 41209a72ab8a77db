"""Writes and reads ``results.json``, which contains a complete run for programs. The gate also reads this file.

The file has one line for each case, so ``diff`` can compare runs. The texts in the file are not redacted.
Therefore, the file must not leave the run's folder. ``hallucinations.jsonl`` has one line for each failed
answer, in the format of applications' hallucination logs.
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
from monitors.reports.case_view import extract_answer_text, select_by_outcome_worst_first
from monitors.reports.marked_text import (
    Redact,
    apply_masks_to_part,
    build_case_redactor,
    collect_disclosed_personal_data,
    find_masks,
)

_CLAIM_KINDS = frozenset({FailureKind.WRONG_FACT, FailureKind.UNSUPPORTED_CLAIM, FailureKind.SHOULD_HAVE_REFUSED})


# The fields are not in a base class with BlockedReply and LogFields, because no field may be missing in Lookout's
# log.
class HallucinationLine(Record):
    """A line of ``hallucinations.jsonl``. Its texts are redacted.

    The first six fields are the same as in an application's log. ``unsupported_claims`` contains the parts of the
    answer that graders marked as wrong. ``policy_ids`` contains the case's cluster.
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


def format_failures_as_hallucination_log(
    report: RunReport, cases: Sequence[CaseResult], *, redact: Redact
) -> Iterator[str]:
    """Yield the lines of ``hallucinations.jsonl``, the worst failure first. Each line ends with a line break."""
    for result in select_by_outcome_worst_first(cases, CaseOutcome.FAILED):
        yield _build_hallucination_line(report, result, redact).model_dump_json() + "\n"


def _build_hallucination_line(report: RunReport, result: CaseResult, redact: Redact) -> HallucinationLine:
    assessment, safe = result.assessment, build_case_redactor(result, redact)
    failing = [grade for grade in assessment.grades if isinstance(grade, Judged) and not grade.passed]
    reasons = tuple(f"{grade.failure_kind}: {safe(grade.reason)}" for grade in failing)
    return HallucinationLine(
        ts=result.result.asked_at,
        user_text=safe(result.case.question),
        blocked_reply=safe(extract_answer_text(result)),
        reasons=reasons or (safe(assessment.reason),),
        unsupported_claims=_collect_unsupported_claims(result, failing, redact),
        policy_ids=(assessment.cluster,) if assessment.cluster else (),
        run_id=report.run_id,
        case_id=result.case.id,
        repeat=result.result.repeat,
        target=report.target.name,
        commit=report.commit,
        severity=assessment.severity,
        failure_kinds=assessment.failure_kinds,
    )


def _collect_unsupported_claims(result: CaseResult, failing: Sequence[Judged], redact: Redact) -> tuple[str, ...]:
    response = result.result
    if not isinstance(response, Exchange):
        return ()
    texts: dict[str, str] = {
        Channel.VISIBLE: response.visible_text,
        "beside": response.text_outside_answer,
        Channel.WIRE: response.wire.text if response.wire else "",
    }
    secrets = collect_disclosed_personal_data(result)
    masks = {where: find_masks(text, secrets, redact) for where, text in texts.items()}
    claims = [
        apply_masks_to_part(texts[span.where], masks[span.where], span.start, span.end)
        for grade in failing
        if grade.failure_kind in _CLAIM_KINDS
        for span in grade.evidence
        if span.where != "gold" and span.start < len(texts[span.where])
    ]
    return tuple(dict.fromkeys(claims))


FORMAT: Final = 1
"""The version of the file format. Increase this number if older versions of Lookout can no longer read the file."""


class Results(Record):
    """The content of a ``results.json`` file."""

    format: Literal[1]
    report: RunReport
    cases: tuple[CaseResult, ...]


class _Header(Record):
    """The format version of a results file, which shows whether this version of Lookout can read the file."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    format: int


def format_results_json(report: RunReport, cases: Sequence[CaseResult]) -> Iterator[str]:
    """Yield the text of the file case by case, so that a long run is not held in memory twice."""
    yield f'{{"format": {FORMAT},\n"report": {report.model_dump_json()},\n"cases": ['
    for place, case in enumerate(cases):
        yield f"{',' if place else ''}\n{case.model_dump_json()}"
    yield "\n]}\n"


def read_results(path: Path) -> tuple[RunReport, tuple[CaseResult, ...]]:
    """Read a run from the ``results.json`` at ``path``.

    Raises a ``ConfigError`` with the file, the key and the accepted value if the file cannot be read, has another
    format, or contains parts of different runs.
    """
    content = _read_file_content(path)
    _require_known_format(path, content)
    try:
        results = Results.model_validate_json(content)
    except ValidationError as error:
        raise ConfigError(_format_first_error(path, error)) from error
    _require_consistent_cases(path, results)
    return results.report, results.cases


def read_all_but_correct_cases(path: Path) -> Sequence[CaseResult]:
    """Read all cases without a correct answer, one line of the file at a time.

    The file must have been written by this version of Lookout. Raises `OSError` and `ValidationError` for other
    files.
    """
    with path.open("rb") as lines:
        cases = (
            CaseResult.model_validate_json(line.rstrip(b",\n")) for line in lines if line.startswith(b'{"case"')
        )
        return [case for case in cases if case.assessment.outcome is not CaseOutcome.CORRECT]


def _read_file_content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        message = f"{path}: cannot be read ({error.strerror}); accepted: the results.json of a finished run"
        raise ConfigError(message) from error


def _require_known_format(path: Path, content: bytes) -> None:
    try:
        header = _Header.model_validate_json(content)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_context=False)[0]
        is_json = fault["type"] != "json_invalid"
        problem = f"`format`: {fault['msg']}" if is_json else f"not valid JSON ({fault['msg']})"
        message = f"{path}: {problem}; accepted: the results.json of a run, with `format`, `report` and `cases`"
        raise ConfigError(message) from error
    if header.format != FORMAT:
        hint = (
            "the file was written by a newer version of Lookout; update Lookout"
            if header.format > FORMAT
            else ("this format does not exist")
        )
        raise ConfigError(f"{path}: `format` is {header.format} ({hint}); accepted: {FORMAT}")


def _format_first_error(path: Path, error: ValidationError) -> str:
    faults = error.errors(include_url=False, include_context=False)
    fault = faults[0]
    key = ".".join(str(part) for part in fault["loc"]) or "the file"
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    actual = "" if fault["type"] in {"missing", "extra_forbidden"} else f", got {_describe_type(fault['input'])}"
    return f"{path}: `{key}`: {fault['msg']}{actual}{more}; accepted: a file from `lookout verify`"


def _describe_type(value: object) -> str:
    """Return the name of a value's type. Errors do not quote the value, because it may be an answer to a user."""
    return f"a string of {len(value)} characters" if isinstance(value, str) else type(value).__name__


def _require_consistent_cases(path: Path, results: Results) -> None:
    identities: set[tuple[str, int]] = set()
    for place, case in enumerate(results.cases):
        key = f"cases.{place}"
        ids = {case.case.id, case.result.case_id, case.assessment.case_id}
        runs = {results.report.run_id, case.result.run_id, case.assessment.run_id}
        identity = (case.case.id, case.result.repeat)
        if len(ids) > 1:
            raise ConfigError(f"{path}: `{key}`: case, result and assessment name different cases: {sorted(ids)}")
        if len(runs) > 1:
            raise ConfigError(f"{path}: `{key}`: the case and the report belong to different runs: {sorted(runs)}")
        if identity in identities:
            message = f"{path}: `{key}`: case {case.case.id} occurs twice, but may occur only once per repeat"
            raise ConfigError(message)
        identities.add(identity)

"""Check the issues in a suite for problems that make the grading of reports wrong.

The checks find:

- two cases about the same issue
- files that are not paths from the root of the repository, or that the repository does not have
- functions that are not written as ``path::name``
- keywords that are in the issue itself, because a report can copy them without an investigation
- an issue that contains its own answer: its root cause, or all relevant files
- a ``shortest_path`` (the fewest steps that an agent needs) that is longer than ``max_steps`` allows
- a reference without files and keywords, because rules cannot pass a report without them
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from posixpath import basename
from typing import Final, NamedTuple

from monitors.facts.similarity import find_quote
from monitors.facts.source_files import SUFFIXES, compute_agreement, find_files_named_in_text, to_canonical_path
from monitors.facts.triage_report import has_keyword
from monitors.goldset.checks import GoldFinding, NumberedCase, SuiteCheck, Weight
from monitors.plural import plural
from monitors.records.triage import TriageTask

MAX_NAMES_SHOWN: Final = 5
"""Maximum number of keywords or files that one finding names."""


class _Fault(NamedTuple):
    """A problem in an issue, and the fix."""

    check: SuiteCheck
    weight: Weight
    what: str
    do: str


def find_issue_problems(cases: Sequence[NumberedCase]) -> Iterator[GoldFinding]:
    """Yield the findings about issues. Cases that are questions are skipped."""
    yield from _find_repeated_issues(cases)
    for numbered in cases:
        if numbered.case.triage is not None:
            for fault in _find_task_faults(numbered.case.triage):
                yield GoldFinding(**fault._asdict(), places=(numbered.place,))


def _find_task_faults(task: TriageTask) -> Iterator[_Fault]:
    yield from _find_wrong_reference_files(task)
    yield from _find_functions_without_file(task)
    yield from _find_keywords_already_in_issue(task)
    yield from _find_answers_in_issue(task)
    yield from _find_impossible_step_limits(task)
    yield from _find_ungradable_references(task)


def _find_repeated_issues(cases: Sequence[NumberedCase]) -> Iterator[GoldFinding]:
    first_by_address: dict[str, NumberedCase] = {}
    for numbered in cases:
        address = _normalise_address(numbered.case.triage.issue.url if numbered.case.triage else None)
        first = first_by_address.setdefault(address, numbered) if address else numbered
        if first is not numbered:
            yield GoldFinding(
                check=SuiteCheck.DUPLICATE,
                weight=Weight.MUST,
                places=(first.place, numbered.place),
                what="two cases have the same issue, so one failure would count twice",
                do="remove one of them",
            )


_DECORATION: Final = re.compile(r"^https?://(?:www\.)?|[?#].*$|/+$")


def _normalise_address(url: str | None) -> str:
    """Return an address in a form that can be compared: in lower case, without protocol, anchor and final slash."""
    plain = url.strip().lower() if url else ""
    for _ in range(3):  # "…/7/#issuecomment-1" loses its anchor and then its slash
        plain = _DECORATION.sub("", plain)
    return plain


def _find_wrong_reference_files(task: TriageTask) -> Iterator[_Fault]:
    files = {to_canonical_path(path) for path in task.issue.repository_files} - {""}
    for written in task.reference.relevant_files:
        path = to_canonical_path(written)
        if path in files:
            continue
        problem, suggestion = _describe_non_path(written, path), _suggest_file(written, path, files)
        advice = (
            f"write {suggestion}" if suggestion else "write a path from the repository's root, such as src/lock.py"
        )
        if problem:
            finding = f"{written!r} in `relevant_files` {problem}, so no report can match it"
            yield _Fault(SuiteCheck.REFERENCE, Weight.MUST, finding, advice)
        elif files:
            finding = (
                f"{written!r} is in `relevant_files` but not in `repository_files`, so Lookout would "
                "treat this file as invented"
            )
            file_advice = advice if suggestion else "add it to `repository_files`, or correct its path"
            yield _Fault(SuiteCheck.REFERENCE, Weight.MUST, finding, file_advice)


_MODULE: Final = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")


def _describe_non_path(written: str, path: str) -> str:
    """Return the reason why a string is not a path of a file.

    The result is empty if the string is a path, such as ``src/lock.py`` or ``LICENSE``.
    """
    if not path:
        return "names no file"
    if "://" in written and not find_files_named_in_text(written):
        return "is a link that does not lead to a file in a repository"
    if path.startswith(("/", "../")):
        return "is a path on a local machine"
    if any(sign.isspace() for sign in path):
        return "is not a path"
    if written.rstrip("`'\" ").endswith(("/", "\\")):
        return "is a folder"
    if _MODULE.fullmatch(path) and path.rpartition(".")[2].lower() not in SUFFIXES:
        return "is a module or a name in the code"
    return ""


def _suggest_file(written: str, path: str, files: set[str]) -> str:
    """Return the file of the repository that was probably meant. Return an empty string if no file is similar."""
    dotted = path.replace(".", "/")
    same_endings = [
        file for file in sorted(files) if path.endswith(f"/{file}") or file.rpartition(".")[0] == dotted
    ]
    written_files = (
        [] if _MODULE.fullmatch(path) else [to_canonical_path(file) for file in find_files_named_in_text(written)]
    )
    candidates = [
        *same_endings,
        *(file for file in written_files if not file.startswith(("/", "..")) and file != path),
    ]
    if candidates:
        return candidates[0]
    same_name = [file for file in sorted(files) if basename(file) == basename(path)]
    return next(iter([*same_name, *get_close_matches(path, sorted(files), n=1)]), "")


def _find_functions_without_file(task: TriageTask) -> Iterator[_Fault]:
    for written in task.reference.relevant_functions:
        path, sign, name = written.partition("::")
        if not (sign and path.strip() and name.strip("`() ")):
            finding = f"{written!r} in `relevant_functions` does not name the file of the function"
            files = [
                file
                for file in task.reference.relevant_files
                if not _describe_non_path(file, to_canonical_path(file))
            ]
            advice = f"write {next(iter(files), 'path')}::{written.strip('`:() ') or 'name'}"
            yield _Fault(SuiteCheck.REFERENCE, Weight.MUST, finding, advice)


def _find_keywords_already_in_issue(task: TriageTask) -> Iterator[_Fault]:
    keywords = task.reference.expected_keywords
    present = [word for word in keywords if has_keyword(word, task.issue.title_and_body)]
    if present:
        all_present = len(present) == len(keywords)
        effect = "so Lookout cannot grade this case by keywords" if all_present else "so they do not count"
        yield _Fault(
            SuiteCheck.REFERENCE,
            Weight.SHOULD,
            f"the issue already contains {_join_first_names(present)}, {effect}",
            "add words of the cause or the fix that are only in the code, such as a function's name",
        )


def _find_answers_in_issue(task: TriageTask) -> Iterator[_Fault]:
    cause, body = task.reference.root_cause, task.issue.title_and_body
    if cause and find_quote(cause.strip().rstrip(".").casefold(), body.casefold()):
        yield _Fault(
            SuiteCheck.LEAK,
            Weight.MUST,
            "the issue contains its root cause word for word, so a copy of the issue would pass",
            "remove the sentence from `issue_body`, or choose another issue",
        )
    files = task.reference.relevant_files
    named_files = compute_agreement(find_files_named_in_text(body), files)
    if named_files.found and not named_files.missed:
        yield _Fault(
            SuiteCheck.LEAK,
            Weight.SHOULD,
            f"the issue names {'its relevant file' if len(files) == 1 else 'all its relevant files'} "
            f"({_join_first_names(files)}), so a report can repeat them without an investigation",
            "grade by root cause and keywords, remove the list from `issue_body`, or choose another issue",
        )


def _find_impossible_step_limits(task: TriageTask) -> Iterator[_Fault]:
    shortest, max_steps = task.reference.shortest_path, task.reference.max_steps
    if shortest is not None and max_steps is not None and shortest > max_steps:
        yield _Fault(
            SuiteCheck.REFERENCE,
            Weight.MUST,
            f"the shortest path has {plural(shortest, 'step')}, but `max_steps` is {max_steps}, so every report "
            "takes too many steps",
            f"set `max_steps` to {shortest} or more, or remove it to use twice the shortest path",
        )


def _find_ungradable_references(task: TriageTask) -> Iterator[_Fault]:
    reference = task.reference
    if not (reference.relevant_files or reference.expected_keywords):
        known_part = (
            "the reference has only a root cause"
            if reference.root_cause
            else "the reference has no file, keyword or cause"
        )
        yield _Fault(
            SuiteCheck.REFERENCE,
            Weight.SHOULD,
            f"{known_part}. Without a file or a keyword, rules cannot pass a report, so the report stays ungraded",
            "add `relevant_files` or `expected_keywords` to the reference",
        )


def _join_first_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_NAMES_SHOWN} more" if len(names) > MAX_NAMES_SHOWN else ""
    return ", ".join(names[:MAX_NAMES_SHOWN]) + more

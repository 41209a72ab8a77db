"""``lookout gold check``: find wrong golds, personal data and cases that cannot be graded.

The graders must pass each gold as an answer, and fail wrong answers to cases of severity 3. The output groups the
findings by check.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from deployments.cli.exit_codes import ExitCode
from deployments.cli.gold.mutants import SEVERE_FLOOR, load_gate_settings, load_target_grader_settings
from deployments.cli.options import JsonOption
from flows.goldset.mutation_testing import (
    GradedMutant,
    RightReply,
    SuiteReach,
    count_cases_rules_can_grade,
    count_caught_mutants,
    grade_gold_as_reply,
    grade_mutants,
)
from flows.terminal import print_text, write_json, write_note
from flows.waiting import show_waiting
from monitors.config.file import load_config
from monitors.domains.pack import Domain
from monitors.gate.settings import GateSettings
from monitors.gate.suite_power import compute_suite_balance
from monitors.goldset.checks import (
    GoldFinding,
    NumberedCase,
    NumberedSuite,
    SuiteCheck,
    SuiteLocation,
    Weight,
    find_bad_lines,
    find_clauses_not_in_documents,
    find_contradictions,
    find_duplicates,
    find_personal_data,
    find_placeholders_and_broken_text,
    find_wrong_languages,
    read_documents,
    read_suite_with_bad_lines,
)
from monitors.goldset.issue_checks import find_issue_problems
from monitors.goldset.must_say import apply_must_say_drafts, propose_must_say, write_must_say_drafts
from monitors.graders.base import CONDITION, SAYS_MORE, UNCLEAR, Grader, GraderSettings
from monitors.graders.panel import build_rule_panel
from monitors.graders.statements import NO_WORDS, YES_WORDS
from monitors.mutations.mutants import LEFT_TO_JUDGE, MutationOperator
from monitors.plural import plural
from monitors.records.base import Severity
from monitors.records.cases import GoldCase
from monitors.records.grades import FailureKind

MAX_SHOWN = 10
"""Maximum number of findings that are printed in one group. ``--json`` prints all findings."""

TITLES = {
    SuiteCheck.UNREADABLE: "Lines that are not valid cases",
    SuiteCheck.SEVERITY: "Cases without a severity",
    SuiteCheck.PLACEHOLDER: "Placeholders and broken characters",
    SuiteCheck.REFERENCE: "References of issues",
    SuiteCheck.LEAK: "Issues that already contain their answer",
    SuiteCheck.DUPLICATE: "Questions that are asked twice",
    SuiteCheck.CONTRADICTION: "Contradictions",
    SuiteCheck.DISCLOSURE: "Personal data",
    SuiteCheck.LANGUAGE: "Language",
    SuiteCheck.SELF: "Golds that the rules cannot grade",
    SuiteCheck.QUOTE: "Clauses that are not in the document",
    SuiteCheck.MUTANTS: "Wrong answers that the graders miss",
    SuiteCheck.BALANCE: "Balance",
}


def format_findings(
    suite: Path, cases: Sequence[GoldCase], findings: Sequence[GoldFinding], reach: SuiteReach | None = None
) -> str:
    """Format all findings for a person. The last line is the conclusion."""
    lines = [f"{suite}: {plural(len(cases), 'case')}", *_iterate_case_counts(cases)]
    if reach is not None:
        lines += _iterate_rule_coverage_lines(reach)
    for check in SuiteCheck:
        group = sorted(
            (finding for finding in findings if finding.check is check),
            key=lambda finding: finding.weight is Weight.SHOULD,
        )
        lines += _iterate_group_lines(TITLES[check], group)
    must = sum(finding.weight is Weight.MUST for finding in findings)
    should = len(findings) - must
    lines += ["", _format_conclusion(must, should)]
    return "\n".join(lines)


def _iterate_case_counts(cases: Sequence[GoldCase]) -> Iterator[str]:
    severities = Counter(f"severity {int(case.severity)}" for case in cases)
    languages = Counter(case.language.value for case in cases)
    refusals = sum(case.expected_refusal for case in cases)
    for counts in (severities, languages):
        yield "  " + ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
    yield f"  {refusals} expected refusals"


MAX_LISTED_GOLDS = 6


def _iterate_rule_coverage_lines(reach: SuiteReach) -> Iterator[str]:
    """Yield lines that state how many golds the rules can grade, which golds they cannot grade, and what to do."""
    if not reach.golds:
        return
    golds = plural(reach.golds, "gold")
    yield f"  without a judge, rules can grade answers to {reach.by_rules} of {golds} ({reach.gradable_share:.0%})"
    if reach.left:
        more = (
            f" and {len(reach.left) - MAX_LISTED_GOLDS} more (--json lists all)"
            if len(reach.left) > MAX_LISTED_GOLDS
            else ""
        )
        yield f"  the rules cannot grade answers to {', '.join(reach.left[:MAX_LISTED_GOLDS])}{more}"
        yield f"  → {_HELP}"


_HELP = (
    "write golds that each state one thing. Or add `must_say`: --propose FILE drafts `must_say`, and --accept FILE "
    "adds the drafts to the suite. Or configure a [judge], for example a local model at an OpenAI-compatible "
    'address (provider = "openai", base_url)'
)


def _iterate_group_lines(title: str, group: Sequence[GoldFinding]) -> Iterator[str]:
    if not group:
        return
    yield f"\n{title} ({len(group)})"
    for finding in group[:MAX_SHOWN]:
        mark = "✕" if finding.weight is Weight.MUST else "·"
        yield f"  {mark} {', '.join(map(_format_suite_line, finding.places)) or 'the suite'}"
        yield f"      {finding.what}"
        yield f"      → {finding.do}"
    if len(group) > MAX_SHOWN:
        yield f"  … and {len(group) - MAX_SHOWN} more. --json lists all findings"


def _format_suite_line(place: SuiteLocation) -> str:
    return f"line {place.line} {place.case_id}" if place.case_id else f"line {place.line}"


def _format_conclusion(must: int, should: int) -> str:
    if not must and not should:
        return "No problems found."
    conclusion = f"{plural(should, 'finding')} to look at" if should else ""
    must_fix = f"{plural(must, 'finding')} must be fixed" if must else "nothing must be fixed"
    return "; ".join(filter(None, (must_fix, conclusion))).capitalize() + "."


_BEGIN = "begin the gold with yes or no, a number or a short name, or use a judge"
_SAY_MORE = 'write a full statement as the gold ("No, we are closed on Mondays"), or use a judge'
_TO_DO = {
    SAYS_MORE: "remove words from the gold that a correct answer does not need, or use a judge",
    UNCLEAR: "use a judge. Without a judge, replies without a yes or no stay ungraded",
    CONDITION: "use a judge. Without a judge, replies without a yes or no stay ungraded",
}
"""Advice for each reason why the rules cannot grade a correct answer if its words differ from the gold."""
_SAY_IN_ANOTHER_LANGUAGE = (
    "the rules do not read this language. They grade only amounts, and answers that exactly repeat a gold of at "
    "least three words. Add the words of correct answers to `alternatives`, or use a judge"
)
_CONTRADICTS_ITSELF = "rewrite the gold so that it does not contradict itself"


def find_failing_or_judge_only_golds(
    cases: Sequence[NumberedCase], panel: Sequence[Grader]
) -> Iterator[GoldFinding]:
    """Find golds that fail when they are graded as an answer, and golds that only a judge can pass."""
    for numbered in cases:
        graded = grade_gold_as_reply(numbered.case, panel)
        if graded.wrong:
            yield GoldFinding(
                check=SuiteCheck.SELF,
                weight=Weight.MUST,
                places=(numbered.place,),
                what=f"the gold fails if it is graded as an answer: {graded.wrong}",
                do="correct the reference of this issue" if numbered.case.triage else _CONTRADICTS_ITSELF,
            )
        elif (left := _explain_judge_needed(graded) or _explain_yes_or_no_gold(numbered.case)) and not (
            numbered.case.triage or numbered.case.must_say
        ):
            yield GoldFinding(
                check=SuiteCheck.SELF,
                weight=Weight.SHOULD,
                places=(numbered.place,),
                what=left,
                do=_SAY_IN_ANOTHER_LANGUAGE
                if not numbered.case.language.is_english_hindi_or_hinglish
                else _TO_DO.get(
                    graded.open_otherwise, _SAY_MORE if _explain_yes_or_no_gold(numbered.case) else _BEGIN
                ),
            )


def _explain_yes_or_no_gold(case: GoldCase) -> str:
    """If a gold is only yes or no, explain why a correct answer in other words may stay ungraded.

    Returns an empty text for other golds.
    """
    word = case.gold.strip(" .!").lower()
    if case.alternatives or case.expected_refusal or word not in YES_WORDS | NO_WORDS:
        return ""
    return f"the gold is only “{word}”. Without a judge, a correct answer in other words may stay ungraded"


def _explain_judge_needed(graded: RightReply) -> str:
    """Explain why a correct answer to the case may need a judge. Returns an empty text if the rules can pass it."""
    if graded.open:
        return f"only a judge can grade correct answers: {graded.open}"
    if graded.open_otherwise:
        return (
            "without a judge, a correct answer in other words than the gold may stay ungraded: "
            f"{graded.open_otherwise}"
        )
    return ""


def check_severe_mutants_are_caught(
    cases: Sequence[NumberedCase], panel: Sequence[Grader], *, citation_required: bool
) -> Iterator[GoldFinding]:
    """For severity-3 cases, find wrong answers that the graders pass.

    Also yield a finding if the rules catch too few of the wrong answers, or if there are too many golds for which
    the rules catch no wrong fact.
    """
    severe = [numbered for numbered in cases if numbered.case.severity is Severity.CRITICAL]
    usable = [numbered.case for numbered in severe if not grade_gold_as_reply(numbered.case, panel).wrong]
    graded = list(grade_mutants(usable, panel, citation_required=citation_required))
    places = {numbered.case.id: numbered for numbered in severe}
    yield from _find_low_mutation_score(graded, places)
    yield from _find_too_many_undefended_golds(graded, places)
    for mutant in graded:
        if mutant.passed:
            is_hard = mutant.operator in LEFT_TO_JUDGE
            yield GoldFinding(
                check=SuiteCheck.MUTANTS,
                weight=Weight.SHOULD if is_hard else Weight.MUST,
                places=(places[mutant.case_id].place,),
                what=f"the graders pass a wrong answer ({mutant.operator.replace('_', ' ')})",
                do="configure a judge. The judge then checks severity-3 answers that pass the rules"
                if is_hard
                else "add the missing part to the gold. `lookout gold mutants` shows the wrong answer",
            )


def _find_too_many_undefended_golds(
    graded: Sequence[GradedMutant], places: dict[str, NumberedCase]
) -> Iterator[GoldFinding]:
    """Find the severity-3 golds for which the rules detect no wrong fact.

    Reports them only if there are too many.
    """
    wrong = [mutant for mutant in graded if mutant.kind is FailureKind.WRONG_FACT]
    left = {mutant.case_id for mutant in graded if mutant.operator is MutationOperator.EVADED}
    left -= {mutant.case_id for mutant in wrong if mutant.caught_by}
    if len(left) > (1 - SEVERE_FLOOR) * len(places):
        yield GoldFinding(
            check=SuiteCheck.MUTANTS,
            weight=Weight.MUST,
            places=tuple(places[case_id].place for case_id in sorted(left)[:5]),
            what=f"for {plural(len(left), 'gold')} of severity 3, the rules catch no answer with a wrong fact",
            do=_HELP,
        )


def _find_low_mutation_score(
    graded: Sequence[GradedMutant], places: dict[str, NumberedCase]
) -> Iterator[GoldFinding]:
    counts = count_caught_mutants(graded).severe_without_personal_data
    if not counts.mutants or counts.rate >= SEVERE_FLOOR:
        return
    missed = [mutant for mutant in graded if not mutant.caught_by and mutant.operator not in LEFT_TO_JUDGE]
    operators = Counter(mutant.operator.value for mutant in missed)
    worst = ", ".join(f"{name} {count}" for name, count in operators.most_common(3))
    by_case = Counter(mutant.case_id for mutant in missed).most_common(5)
    yield GoldFinding(
        check=SuiteCheck.MUTANTS,
        weight=Weight.MUST,
        places=tuple(places[case_id].place for case_id, _ in by_case),
        what=f"without a judge, the rules catch {counts.rate:.0%} of {counts.mutants} wrong answers to severity-3 "
        f"cases. The minimum is {SEVERE_FLOOR:.0%}. Not caught: {worst}",
        do="write golds with a number, a yes or no, or a short name. Or configure a judge",
    )


def check_command(
    suite: Annotated[Path, typer.Argument(help="the file with the suite (JSON Lines)")],
    *,
    documents: Annotated[
        Path | None,
        typer.Option(
            help="a folder with the documents as text; Lookout checks that the documents contain the quoted clauses"
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option("--config", help="the configuration file with the gate and the graders to use"),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(help="the target with the graders to use; required if the configuration has several targets"),
    ] = None,
    mutants: Annotated[
        bool,
        typer.Option(
            "--mutants/--no-mutants", help="test whether the graders fail wrong answers to severity-3 cases"
        ),
    ] = True,
    propose: Annotated[
        Path | None,
        typer.Option(help="write drafts of must_say to this file, for golds that the rules cannot grade"),
    ] = None,
    accept: Annotated[
        Path | None, typer.Option(help="before the check, add the drafts of must_say in this file to the suite")
    ] = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Check a suite: find golds that are wrong, contain personal data or cannot be graded."""
    if accept is not None:
        count = apply_must_say_drafts(suite, accept)
        write_note(f"{suite}: Lookout added must_say from {accept} to {plural(count, 'case')}.\n")
    numbered = read_suite_with_bad_lines(suite)
    graders, domain = load_target_grader_settings(config, target)
    gate = load_gate_settings(config)
    panel = build_rule_panel(graders, domain)
    has_judge = config is not None and load_config(config).judge is not None
    with show_waiting(f"Checking {plural(len(numbered.cases), 'case')}"):
        findings = list(run_all_suite_checks(numbered, documents, graders, domain, gate, mutants=mutants))
        reach = count_cases_rules_can_grade(
            [case_line.case for case_line in numbered.cases if case_line.case.triage is None], panel
        )
        if not has_judge and (shortfall := reach.explain_rule_coverage_shortfall(gate.coverage_floor)):
            findings.append(GoldFinding(check=SuiteCheck.SELF, weight=Weight.SHOULD, what=shortfall, do=_HELP))
    if propose is not None:
        _propose_and_write_must_say_drafts(
            propose, [case_line.case for case_line in numbered.cases if case_line.case.id in reach.left]
        )
    if as_json:
        summary = {
            "suite": str(suite),
            "cases": len(numbered.cases),
            "decidable": {"golds": reach.golds, "by_rules": reach.by_rules, "left": reach.left},
            "findings": [finding.model_dump(mode="json") for finding in findings],
        }
        write_json(json.dumps(summary, ensure_ascii=False, indent=2) + "\n")
    else:
        print_text(format_findings(suite, [case_line.case for case_line in numbered.cases], findings, reach))
    return ExitCode.FAIL if any(finding.weight is Weight.MUST for finding in findings) else ExitCode.PASS


def _propose_and_write_must_say_drafts(path: Path, cases: Sequence[GoldCase]) -> None:
    drafts = [draft for case in cases if (draft := propose_must_say(case))]
    write_must_say_drafts(path, drafts)
    write_note(
        f"{path}: {plural(len(drafts), 'draft')} for {plural(len(cases), 'gold')} that the rules cannot grade. "
        "Read the drafts, and correct or delete them. Then use --accept. An answer that contains all phrases of "
        "must_say counts as correct.\n"
    )


def run_all_suite_checks(
    suite: NumberedSuite,
    documents: Path | None,
    graders: GraderSettings,
    domain: Domain,
    gate: GateSettings,
    *,
    mutants: bool,
) -> Iterator[GoldFinding]:
    """Yield the findings of all checks. Quoted clauses are checked only if ``documents`` is given."""
    cases, panel = suite.cases, build_rule_panel(graders, domain)
    yield from find_bad_lines(suite)
    yield from find_duplicates(cases)
    yield from find_issue_problems(cases)
    yield from find_contradictions(cases)
    yield from find_placeholders_and_broken_text(cases)
    yield from find_personal_data(
        cases, account_patterns=graders.account_patterns, public_contacts=graders.public_contacts
    )
    yield from find_wrong_languages(cases)
    yield from find_failing_or_judge_only_golds(cases, panel)
    if documents is not None:
        yield from find_clauses_not_in_documents(cases, read_documents(documents))
    if mutants:
        yield from check_severe_mutants_are_caught(cases, panel, citation_required=graders.citation_required)
    yield from find_balance_shortfalls([case_line.case for case_line in cases], gate)


_BALANCE = (
    "ignore this finding for a small suite. Otherwise, add such cases (`lookout gold starter adversarial` writes "
    "twenty), or change min_severity_3_cases in [gate] or the themes in [gate.themes]"
)


def find_balance_shortfalls(cases: Sequence[GoldCase], settings: GateSettings) -> Iterator[GoldFinding]:
    """Yield a finding for each balance requirement in [gate] that the suite does not meet."""
    for shortfall in compute_suite_balance(cases, settings).shortfalls:
        yield GoldFinding(
            check=SuiteCheck.BALANCE,
            weight=Weight.SHOULD,
            what=shortfall,
            do=_BALANCE,
        )

"""Write the verdict of each labelled row with the public commands, and list the verdicts that have changed.

``make accuracy ROWS=FILE`` writes the verdicts, ``make accuracy AGAINST=FILE`` compares them, and
``SETS=answers,pairs`` selects some of the sets. The rows go through pipes (`lookout grade`, `facts`, `redact`, …),
so that another version of Lookout can be measured with ``--lookout COMMAND``. A verdict is recorded whether it is
right or wrong; `make accuracy` measures how many are right.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.accuracy.rows import read_rows

Fields = dict[str, Any]
MAX_SHOWN = 40
"""Maximum number of printed changed rows. The counts include all rows."""
DECISIONS = {True: "passed", False: "failed", None: "open"}
ANSWERS = {True: "yes", False: "no", None: "open"}


@dataclass(frozen=True)
class RowSet:
    """A labelled set: its name, its file, and the pipe of `lookout` that grades its rows.

    ``lines`` builds the input lines of the pipe for a row. ``verdict`` formats the verdict from the pipe's
    output for the row.
    """

    name: str
    file: str
    pipe: str
    lines: Callable[[Fields], Iterator[tuple[str, Fields]]]
    verdict: Callable[[Fields, Fields], str]


def build_answer_line(row: Fields) -> Iterator[tuple[str, Fields]]:
    """Build the pipe's input line with a reply, its question and its gold. The line names no domain packs."""
    gold = row.get("gold", "")
    line = {
        "question": row.get("question", ""),
        "gold": gold if gold != [] else "",
        "answer": row.get("answer", row.get("text", "")),
        "expected_refusal": row.get("expected_refusal", False),
    }
    yield "", line


def build_owner_line(row: Fields) -> Iterator[tuple[str, Fields]]:
    """Build the pipe's input line with a reply of an application outside insurance.

    The line names the general domain pack.
    """
    for suffix, line in build_answer_line(row):
        yield suffix, {**line, "domains": ["general"]}


def build_pair_lines(row: Fields) -> Iterator[tuple[str, Fields]]:
    """Build the pipe's input lines with the right and the wrong answer of a pair."""
    for side in ("right", "wrong"):
        for _, line in build_owner_line({**row, "answer": row[side]}):
            yield f"/{side}", line


def build_text_line(row: Fields) -> Iterator[tuple[str, Fields]]:
    """Build the pipe's input line with the text of a row."""
    yield "", {"text": row["text"]}


def build_spelling_lines(row: Fields) -> Iterator[tuple[str, Fields]]:
    """Build the pipe's input lines with both spellings of a quantity."""
    for spelling in ("a", "b"):
        yield f"/{spelling}", {"text": row[spelling]}


def build_planted_line(row: Fields) -> Iterator[tuple[str, Fields]]:
    """Build the pipe's input line with the cases of a suite. Each case has named attributes.

    In ``row``, the last value of each case states whether the case failed.
    """
    cases = [
        {**dict(zip(row["attributes"], case, strict=False)), "failed": bool(case[-1])} for case in row["cases"]
    ]
    yield "", {"cases": cases}


def format_grade(row: Fields, answer: Fields) -> str:
    """Format whether the reply passes. If a refusal is expected, format whether the reply refuses."""
    if row.get("expected_refusal"):
        return f"refused: {ANSWERS[answer['refused']]}"
    return DECISIONS[answer["factual_match"]]


def format_refusal(_row: Fields, answer: Fields) -> str:
    """Format the class of the refusal or, if this version of Lookout reports none, whether the reply refuses."""
    return str(answer.get("refusal") or ANSWERS[answer["refused"]])


def format_refused(_row: Fields, answer: Fields) -> str:
    """Format whether the reply refuses."""
    return ANSWERS[answer["refused"]]


def format_leak(_row: Fields, answer: Fields) -> str:
    """Format whether an error is shown as the answer."""
    return ANSWERS[answer["error_leak"]]


def format_language(_row: Fields, answer: Fields) -> str:
    """Format the language of the text."""
    return str(answer["language"])


def format_quantities(_row: Fields, answer: Fields) -> str:
    """Format the quantities that the text states, in the order of the text."""
    facts = (f"{fact['kind']} {fact['value']} {fact['unit'] or ''}".strip() for fact in answer["facts"])
    return "; ".join(facts) or "nothing"


def format_disclosures(_row: Fields, answer: Fields) -> str:
    """Format the kind and the position of each masked value."""
    return (
        "; ".join(
            f"{disclosure['kind']} {disclosure['span'][0]}-{disclosure['span'][1]}"
            for disclosure in answer["found"]
        )
        or "nothing"
    )


def format_causes(_row: Fields, answer: Fields) -> str:
    """Format the attributes that the failed cases have in common."""
    return json.dumps(answer["causes"], ensure_ascii=False, sort_keys=True)


ROW_SETS = (
    RowSet("answers/evouna", "answers/evouna.jsonl", "grade", build_answer_line, format_grade),
    RowSet("answers/tatqa", "answers/tatqa.jsonl", "grade", build_answer_line, format_grade),
    RowSet("answers/seed", "answers/seed_replies.jsonl", "grade", build_answer_line, format_grade),
    RowSet("owners/answers", "owners/owners.jsonl", "grade", build_owner_line, format_grade),
    RowSet("owners/pairs", "owners/pairs.jsonl", "grade", build_pair_lines, format_grade),
    RowSet("owners/refusals", "owners/refusals.jsonl", "grade", build_owner_line, format_refusal),
    RowSet("owners/personal", "owners/personal.jsonl", "redact", build_text_line, format_disclosures),
    RowSet("pii/vectors", "pii/recognizer_vectors.jsonl", "redact", build_text_line, format_disclosures),
    RowSet("pii/indian", "pii/indian.jsonl", "redact", build_text_line, format_disclosures),
    RowSet("pii/sentences", "pii/sentences.jsonl", "redact", build_text_line, format_disclosures),
    RowSet("refusals/xstest", "refusals/xstest.jsonl", "grade", build_answer_line, format_refused),
    RowSet("error leaks/errors", "error_leaks/errors.jsonl", "grade", build_answer_line, format_leak),
    RowSet("error leaks/answers", "error_leaks/answers.jsonl", "grade", build_answer_line, format_leak),
    RowSet("language", "language/sentences.jsonl", "grade", build_answer_line, format_language),
    RowSet("quantities/texts", "quantities/texts.jsonl", "facts", build_text_line, format_quantities),
    RowSet("quantities/clauses", "quantities/policy_clauses.jsonl", "facts", build_text_line, format_quantities),
    RowSet(
        "quantities/hinglish", "quantities/hinglish_durations.jsonl", "facts", build_text_line, format_quantities
    ),
    RowSet("quantities/pairs", "quantities/pairs.jsonl", "facts", build_spelling_lines, format_quantities),
    RowSet("first look", "first_look/planted_suites.jsonl", "first-look", build_planted_line, format_causes),
)

Row = tuple[str, str]
"""The name of a set, and the id of a row in that set."""


def select_sets(words: Sequence[str]) -> list[RowSet]:
    """Return the sets whose name contains one of ``words``, or all sets if ``words`` is empty."""
    return [row_set for row_set in ROW_SETS if not words or any(word in row_set.name for word in words)]


def collect_verdicts(sets: Iterable[RowSet], data: Path, command: Sequence[str]) -> dict[Row, str]:
    """Collect the verdict of each row.

    A set whose file is missing is skipped with a note. An error counts as a verdict.
    """
    verdicts: dict[Row, str] = {}
    for row_set in sets:
        path = data / row_set.file
        if not path.exists():
            print(f"{row_set.name}: no {path}", file=sys.stderr)
            continue
        rows = [
            (f"{row['id']}{suffix}", row, line) for row in read_rows(path) for suffix, line in row_set.lines(row)
        ]
        answers = ask_command(command, row_set.pipe, [line for _, _, line in rows])
        for (name, row, _), answer in zip(rows, answers, strict=True):
            verdicts[row_set.name, name] = (
                f"error: {answer['error']}" if "error" in answer else row_set.verdict(row, answer)
            )
    return verdicts


def ask_command(command: Sequence[str], pipe: str, lines: Sequence[Fields]) -> list[Fields]:
    """Return the pipe's answers, one for each line.

    Raises `RuntimeError` if the command does not answer every line.
    """
    input_lines = "".join(json.dumps({"id": number, **line}) + "\n" for number, line in enumerate(lines))
    done = subprocess.run([*command, pipe], input=input_lines.encode(), capture_output=True, check=False)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    if [answer["id"] for answer in answers] != list(range(len(lines))):
        raise RuntimeError(
            f"{shlex.join([*command, pipe])}: exit code {done.returncode}: {done.stderr.decode()[-500:]}"
        )
    return answers


def write_verdicts(verdicts: Mapping[Row, str], path: Path) -> None:
    """Write the verdicts as JSON Lines. Each line contains the set, the row and the verdict."""
    lines = (
        json.dumps({"set": name, "row": row, "verdict": verdict}, ensure_ascii=False) + "\n"
        for (name, row), verdict in verdicts.items()
    )
    path.write_text("".join(lines), encoding="utf-8")


def read_verdicts(path: Path) -> dict[Row, str]:
    """Read the verdicts that `write_verdicts` wrote."""
    return {(verdict["set"], verdict["row"]): verdict["verdict"] for verdict in read_rows(path)}


def compare_verdicts(before: Mapping[Row, str], now: Mapping[Row, str]) -> str:
    """Format which rows changed, with the old and the new verdict, and the number of changes in each set.

    Only sets that occur in ``now`` are compared.
    """
    measured = {name for name, _ in now}
    changed = [(row, before[row], now[row]) for row in now if row in before and before[row] != now[row]]
    gone = [row for row in before if row[0] in measured and row not in now]
    new = [row for row in now if row not in before]
    lines = [f"{name}  {row}: {old} → {verdict}" for (name, row), old, verdict in changed[:MAX_SHOWN]]
    if len(changed) > MAX_SHOWN:
        lines.append(f"… and {len(changed) - MAX_SHOWN} more")
    by_kind = Counter(
        (row[0], old, verdict) for row, old, verdict in changed if len(old) + len(verdict) < MAX_SHOWN
    )
    lines += [f"{count:>6}  {name}: {old} → {verdict}" for (name, old, verdict), count in by_kind.most_common()]
    counts = Counter(row[0] for row, _, _ in changed)
    rows = Counter(name for name, _ in now)
    lines += [f"{name:<24} {counts[name]:>6} of {rows[name]} rows changed" for name in sorted(measured)]
    lines.append(f"{len(changed)} of {len(now)} verdicts changed; {len(new)} rows are new, {len(gone)} are gone")
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write or compare the verdicts. Return 1 if a verdict changed, and 2 if the data folder is missing."""
    parser = argparse.ArgumentParser(prog="python -m tests.accuracy.verdicts", description=__doc__)
    parser.add_argument("data", type=Path, help="the folder of labelled sets")
    parser.add_argument("--rows", type=Path, help="write the verdicts to this file")
    parser.add_argument("--against", type=Path, help="compare with the verdicts of this file")
    parser.add_argument("--sets", default="", help="sets whose name holds one of these words, with commas between")
    parser.add_argument(
        "--lookout", default=str(Path(sys.executable).parent / "lookout"), help="the command to ask"
    )
    options = parser.parse_args(arguments)
    if not options.data.is_dir():
        print(f"{options.data}: no such folder. The labelled data lies beside the project and is not part of it.")
        return 2
    sets = select_sets([word for word in options.sets.split(",") if word])
    now = collect_verdicts(sets, options.data, shlex.split(options.lookout))
    if options.rows:
        write_verdicts(now, options.rows)
        print(f"{len(now)} verdicts written to {options.rows}")
    if not options.against:
        return 0
    before = read_verdicts(options.against)
    print(compare_verdicts(before, now))
    return int(any(before.get(row, verdict) != verdict for row, verdict in now.items()))


if __name__ == "__main__":
    sys.exit(main())

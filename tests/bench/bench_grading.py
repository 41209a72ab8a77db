"""P3: grade one reply by rules: 1,000 characters in 1 ms (median), 100 kB of hostile text in 100 ms.

    python -m tests.bench.bench_grading

The baselines are a plain-digits extractor and quantulum3, which only read quantities. The panel and the baselines
read the same replies alternately. A grade uses the whole panel: disclosures, error leaks, refusals, facts,
citations, language. The replies are made up. Each reply is graded once before the measurement, because the first
grading builds tables and caches the case's texts, as in a run. No text repeats while the graders still cache it.
Times are milliseconds of processor time. Other processes are not counted, but on a busy machine the same work takes
more processor time.

The time of every reader grows linearly with the length of the reply. The most expensive reply consists only
of numbers that look like Aadhaar numbers: it discloses ten thousand of them. Each number is checked,
searched for in the user's text, and stored as a record with its position.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import re
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from monitors.domains.pack import INSURANCE, load_domain
from monitors.graders import golds
from monitors.graders.base import GraderSettings
from monitors.graders.panel import build_rule_panel, grade_exchange
from monitors.records.base import Language, Severity
from monitors.records.cases import GoldCase, Pipeline, Provenance
from monitors.records.exchanges import Exchange, Timings
from tests.bench.measurements import Figure, report

SEED = 20261122
MEDIAN_LIMIT_MS = 1.0
HOSTILE_LIMIT_MS = 100.0
HOSTILE_LENGTH = 100_000

SENTENCES = (
    "Pre-existing diseases are covered after a waiting period of 24 months of continuous cover.",
    "Room rent is paid up to ₹5,000 per day under the plan that you chose.",
    "A co-payment of 10% applies to every claim above the age of sixty years.",
    "Expenses 30 days before and 60 days after the stay are included.",
    "Maternity ke liye do saal ka waiting period hai, uske baad cover milta hai.",
    "मोतियाबिंद के लिए चौबीस महीने की प्रतीक्षा अवधि है।",
    "The sum insured is restored once a year. [Source: Nova Gold, clause 4.2]",
    "Cosmetic treatment is not covered under this plan, unless it follows an accident.",
    "Please confirm with the insurer before you decide, since the schedule of your policy has the last word.",
    "Treatment at home is paid when a doctor in writing asks for it and no bed can be had in a hospital nearby.",
    "You may choose any hospital; in those of the network the bill is settled directly with the insurer.",
    "Keep every prescription, report and receipt, since a claim without them cannot be examined.",
    "The policy can be renewed for life as long as the premium is paid on time or within the grace period.",
    "If you move to another insurer, the time that you have waited already is taken into account.",
)
"""Sentences with about 6.5 quantities in 1,000 characters, as in the replies of a real insurance assistant."""

HOSTILE = (
    "9,", "9, ", " ", "सौ ", "one hundred and ", "twenty ", "crore ", "$5-", "(", "[", "5(5)", "half a ", "1/", "000 ",
    "not covered until ", "yes no ", "prior to ", "a@b.", "+91 ", "1234 5678 ", "I can't ", "Traceback ", "http://1 ", "é",
    "\u200b1", "½", "point ", "july 5 ", "waiting period ", "[Source: ", "sk-", "A1", "-", "\n", "१२३४ ", "😀",
    "e\u0301", "Aa0 ", "1.", "error: 500 ", '{"error":', "fe80:", "contact ", "नहीं ", "५ करोड़ [x] 😀 a@b.c (1 ",
)  # fmt: skip
"""Patterns on which inefficient parsers and regular expressions backtrack."""

PADDED = ("5 days ", "crore ", "₹5 ", "twenty two ", "not covered. ", "july 5 2020 ")
"""Patterns that are repeated with long gaps, so that a reply of 100 kB stays below the word limit."""


def build_case() -> GoldCase:
    return GoldCase(
        id="bench",
        turns=("Is cataract covered, and what is its waiting period?",),
        gold="Yes, after a waiting period of 24 months, up to ₹40,000 per eye",
        severity=Severity.CRITICAL,
        language=Language.ENGLISH,
        type="waiting_period",
        provenance=Provenance(pipeline=Pipeline.TEMPLATE),
    )


def build_exchange(text: str) -> Exchange:
    return Exchange(
        run_id="bench",
        case_id="bench",
        turns=build_case().turns,
        visible_text=text,
        asked_at=datetime(2026, 1, 1, tzinfo=UTC),
        timings=Timings(total_ms=1000),
    )


def replies(count: int, *, length: int) -> list[str]:
    """Return ``count`` made-up replies of exactly ``length`` characters."""
    chance = random.Random(SEED)
    made: list[str] = []
    for _ in range(count):
        text = ""
        while len(text) < length:
            text += chance.choice(SENTENCES) + " "
        made.append(text[:length])
    return made


def milliseconds(work: Callable[[str], object], texts: Sequence[str]) -> list[float]:
    """Return the processor time that ``work`` takes for each text, in milliseconds."""
    taken: list[float] = []
    for text in texts:
        started = time.process_time()
        work(text)
        taken.append((time.process_time() - started) * 1000)
    return taken


def variants(text: str) -> tuple[str, str]:
    """Return two texts that differ in their last letter, so that no cache helps with the second text."""
    return text[:-1] + "a", text[:-1] + "b"


def build_panel_work() -> Callable[[str], object]:
    panel, case = build_rule_panel(GraderSettings(), load_domain((INSURANCE,))), build_case()
    return lambda text: grade_exchange(panel, case, build_exchange(text))


def quantulum() -> Callable[[str], object] | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            from quantulum3 import parser  # a bench dependency, slow to import
        except ImportError:
            return None

    def work(text: str) -> object:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return parser.parse(text)

    return work


DIGITS = re.compile(r"\d+(?:[.,]\d+)*")


def measure_ordinary(count: int, rounds: int) -> bool:
    """Measure the panel's median time over all replies in each round. Return whether the goal is met.

    A plain-digits extractor reads the same replies. quantulum3 reads fewer of them.
    """
    texts, work = replies(count, length=1000), build_panel_work()
    milliseconds(work, texts)
    ours, digits, others = list[float](), list[float](), list[float]()
    other = quantulum()
    few = texts[: max(1, count // 50)]
    if other is not None:
        other(texts[0])
    for _ in range(rounds):
        ours.append(statistics.median(milliseconds(work, texts)))
        digits.append(statistics.median(milliseconds(DIGITS.findall, texts)))
        if other is not None:
            others.append(statistics.median(milliseconds(other, few)))
    label = "the whole panel on one reply of 1,000 characters"
    met = report(
        Figure(
            id="P3",
            what=label,
            unit="ms",
            values=tuple(ours),
            goal=MEDIAN_LIMIT_MS,
            baseline="plain digits",
            baselines=tuple(digits),
        )
    )
    if others:
        names = "quantulum3, quantities alone"
        report(Figure(id="P3", what=label, unit="ms", values=tuple(ours), baseline=names, baselines=tuple(others)))
    return met


def measure_hostile() -> bool:
    """Measure the panel on 100 kB of each hostile pattern. Return whether the slowest one meets the goal.

    Each pattern is measured twice, and the faster time counts.
    """
    texts = [(pattern, (pattern * (HOSTILE_LENGTH // len(pattern) + 1))[:HOSTILE_LENGTH]) for pattern in HOSTILE]
    texts += [(f"{pattern}(padded)", pad_reply(pattern)) for pattern in PADDED]
    work = build_panel_work()
    work(replies(1, length=1000)[0])
    taken = [
        (pattern, min(milliseconds(work, variants(text))), min(milliseconds(json.loads, [json.dumps(text)] * 2)))
        for pattern, text in texts
    ]
    worst = ", ".join(
        f"{pattern!r} {ms:.0f}" for pattern, ms, _ in sorted(taken, key=lambda pattern_time: -pattern_time[1])[:3]
    )
    return report(
        Figure(
            id="P3 hostile",
            what=f"the whole panel on each of {len(taken)} replies of 100 kB",
            unit="ms",
            values=tuple(ms for _, ms, _ in taken),
            goal=HOSTILE_LIMIT_MS,
            worst=True,
            baseline="parsed as JSON",
            baselines=tuple(ms for _, _, ms in taken),
            note=f"the worst: {worst}",
        )
    )


def pad_reply(pattern: str) -> str:
    """Return a reply of 100 kB that repeats a pattern, with gaps, as often as the word limit of a reply allows."""
    words = max(1, len(re.findall(r"\w+|[^\w\s]", pattern)))
    times = (golds.REPLY_LIMITS.tokens or 0) // words - 1
    gap = " " * (HOSTILE_LENGTH // times - len(pattern))
    return "".join(itertools.repeat(pattern + gap, times))


def main(arguments: list[str]) -> int:
    """Print the figures. Return exit code 1 if a goal is missed."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.bench_grading")
    parser.add_argument("--replies", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args(arguments)
    met = measure_ordinary(asked.replies, asked.rounds)
    return 0 if measure_hostile() and met else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

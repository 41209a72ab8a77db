"""Measures the detection of personal data in sentences and in test vectors.

The set also contains order numbers that look like personal data.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from monitors.alerts.redact import redact_with_findings
from tests.accuracy.figure import Figure, Measured, TellingError, build_share
from tests.accuracy.rows import read_rows

NAME = "pii"
RECALL_TARGETS = {
    "aadhaar": 0.99,
    "pan": 0.99,
    "card": 0.99,
    "iban": 0.99,
    "email": 0.99,
    "ip": 0.99,
    "phone": 0.90,
}
PRECISION_TARGET = 0.95
PROMISED = (
    *RECALL_TARGETS, "gstin", "upi", "passport", "voter_id", "vehicle", "us_ssn", "policy_number", "birth_date",
)  # fmt: skip
BASELINE_RECALL, BASELINE_PRECISION, BASELINE_ORDERS = 0.82, 0.98, 0.12
"""Figures of Presidio 2.2 with patterns and score 0.4, from the set's own notes."""
ORDER_TARGET = 0.01
ORDERS = (
    "order {}",
    "Your order {} has shipped",
    "Order number: {} is confirmed",
    "order #{}",
    "order id {} please",
)
ORDERS_EACH = 1_000
SEED = 20_260_101
SHOWN = 6

Place = tuple[int, int]


class _Row(NamedTuple):
    id: str
    text: str
    gold: list[tuple[str, Place]]


def measure(data: Path) -> Measured:
    """Measure recall and precision of personal data, and the share of masked order numbers.

    Recall and precision are measured for each kind of data that Lookout promises to mask, and for all these kinds
    together. A value counts as found if a detection of the right kind overlaps it. A detection that overlaps
    personal data of another kind is not a false alarm, because masking that data is right. "Masked at all" ignores
    the kind, which is sufficient for an alert.
    """
    tally: Counter[tuple[str, str]] = Counter()
    errors: list[TellingError] = []
    for row in _read_rows(data / "pii"):
        _count_detections(row, tally, errors)
    figures = [figure for kind in PROMISED for figure in _build_figures(kind, tally)]
    detections, missed, masked = (
        sum(tally[kind, what] for kind in PROMISED) for what in ("found", "missed", "masked")
    )
    false = sum(n for (_, what), n in tally.items() if what == "false")
    finds = sum(n for (_, what), n in tally.items() if what == "finds")
    figures += [
        build_share(NAME, "recall, all kinds promised", detections, detections + missed, baseline=BASELINE_RECALL),
        build_share(NAME, "masked at all, all kinds promised", masked, detections + missed),
        build_share(NAME, "precision, all finds", finds - false, finds, baseline=BASELINE_PRECISION),
        _count_orders(),
    ]
    return Measured(tuple(figures), tuple(errors[:SHOWN]))


def _read_rows(folder: Path) -> Iterator[_Row]:
    for name in ("recognizer_vectors", "indian", "sentences"):
        for row in read_rows(folder / f"{name}.jsonl"):
            yield _Row(row["id"], row["text"], _read_gold(row))


def _read_gold(row: dict[str, Any]) -> list[tuple[str, Place]]:
    if "found" in row:
        return [(label["kind"], (label["span"][0], label["span"][1])) for label in row["found"]]
    return [(row["kind"], (start, end)) for start, end in row["spans"]]


def _count_detections(row: _Row, tally: Counter[tuple[str, str]], errors: list[TellingError]) -> None:
    finds = [(one.kind.value, (one.start, one.end)) for one in redact_with_findings(row.text).found]
    for kind, place in row.gold:
        right = any(disclosures == kind and _is_overlapping(place, at) for disclosures, at in finds)
        tally[kind, "found" if right else "missed"] += 1
        tally[kind, "masked"] += any(_is_overlapping(place, at) for _, at in finds)
        if not right and kind in PROMISED:
            errors.append(
                TellingError(
                    NAME, row.id, f"{kind} missed", "the form alone is not evidence: no word says what the value is"
                )
            )
    for kind, at in finds:
        tally[kind, "finds"] += 1
        if not any(_is_overlapping(place, at) for _, place in row.gold):
            tally[kind, "false"] += 1
            errors.append(TellingError(NAME, row.id, f"{kind} made up", "the number only looks like personal data"))


def _is_overlapping(span: Place, other: Place) -> bool:
    return span[0] < other[1] and other[0] < span[1]


def _build_figures(kind: str, tally: Counter[tuple[str, str]]) -> tuple[Figure, Figure]:
    detections, missed = tally[kind, "found"], tally[kind, "missed"]
    finds, false = tally[kind, "finds"], tally[kind, "false"]
    recall = build_share(NAME, f"{kind}: recall", detections, detections + missed, target=RECALL_TARGETS.get(kind))
    target = PRECISION_TARGET if kind in RECALL_TARGETS else None
    return recall, build_share(NAME, f"{kind}: precision", finds - false, finds, target=target)


def _count_orders() -> Figure:
    """Measure how often a random number of twelve digits after "order" is masked.

    If its check digit is right by chance, the number looks like personal data.
    """
    numbers = random.Random(SEED)
    texts = [order.format(numbers.randrange(10**11, 10**12)) for order in ORDERS for _ in range(ORDERS_EACH)]
    masked = sum(bool(redact_with_findings(text).found) for text in texts)
    return build_share(
        NAME, "bare order numbers masked", masked, len(texts),
        target=ORDER_TARGET, at_most=True, baseline=BASELINE_ORDERS,
    )  # fmt: skip

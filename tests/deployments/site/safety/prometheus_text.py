"""A strict parser of the Prometheus text format, version 0.0.4.

Input that the specification does not allow is an error.

This parser is stricter than most: HELP and TYPE must come before a series, the lines of a series must be
contiguous, and no series may repeat.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\\\|\\"|\\n)*"'
SAMPLE = re.compile(rf"({NAME})(?:\{{({LABEL}(?:,{LABEL})*)?\}})? (\S+)(?: (-?\d+))?")
VALUE = re.compile(r"[+-]?(?:\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|Inf|NaN)|NaN")
KINDS = {"counter", "gauge", "histogram", "summary", "untyped"}
ESCAPES = {r"\\": "\\", r"\"": '"', r"\n": "\n"}

Series = tuple[str, tuple[tuple[str, str], ...]]


class NotPrometheusText(ValueError):
    """Raised for a line that does not match the format. The message begins with the line number."""


@dataclass
class _Reading:
    helps: set[str] = field(default_factory=set)
    kinds: dict[str, str] = field(default_factory=dict)
    samples: dict[Series, float] = field(default_factory=dict)
    closed: set[str] = field(default_factory=set)
    current: str = ""


def samples_of(text: str) -> dict[Series, float]:
    """Return every sample, keyed by name and labels. Raises `NotPrometheusText`."""
    if not text.endswith("\n"):
        raise NotPrometheusText("the last line does not end")
    reading = _Reading()
    for number, line in enumerate(text[:-1].split("\n"), start=1):
        try:
            _read(line, reading)
        except NotPrometheusText as error:
            raise NotPrometheusText(f"line {number}, {line[:100]!r}: {error}") from None
    return reading.samples


def _read(line: str, reading: _Reading) -> None:
    if line.startswith("#"):
        _comment(line, reading)
        return
    found = SAMPLE.fullmatch(line)
    if found is None:
        raise NotPrometheusText("no sample")
    name, labels, value, _ = found.groups()
    if name not in reading.kinds or name not in reading.helps:
        raise NotPrometheusText("no TYPE or no HELP before it")
    _enter(name, reading)
    if VALUE.fullmatch(value) is None:
        raise NotPrometheusText(f"{value} is no number")
    key = (name, _labels(labels or ""))
    if key in reading.samples:
        raise NotPrometheusText("this series came before")
    number = float(value)
    if reading.kinds[name] == "counter" and (number < 0 or math.isnan(number)):
        raise NotPrometheusText("a counter counts up from 0")
    reading.samples[key] = number


def _comment(line: str, reading: _Reading) -> None:
    found = re.fullmatch(rf"# (HELP|TYPE) ({NAME}) (.*)", line)
    if found is None:
        raise NotPrometheusText("neither HELP nor TYPE")
    word, name, rest = found.groups()
    known = reading.helps if word == "HELP" else reading.kinds
    if name in known:
        raise NotPrometheusText(f"a second {word}")
    _enter(name, reading)
    if any(one[0] == name for one in reading.samples):
        raise NotPrometheusText("after its samples")
    if word == "TYPE":
        if rest not in KINDS:
            raise NotPrometheusText(f"{rest} is no type")
        reading.kinds[name] = rest
        return
    if re.search(r"\\(?![\\n])", rest.replace("\\\\", "")):
        raise NotPrometheusText("an escape that HELP does not have")
    reading.helps.add(name)


def _enter(name: str, reading: _Reading) -> None:
    if name == reading.current:
        return
    if name in reading.closed:
        raise NotPrometheusText("its lines do not stand together")
    reading.closed.add(reading.current)
    reading.current = name


def _labels(text: str) -> tuple[tuple[str, str], ...]:
    pairs = [one.partition("=") for one in re.findall(LABEL, text)]
    names = [name for name, _, _ in pairs]
    if len({*names}) != len(names) or any(name.startswith("__") for name in names):
        raise NotPrometheusText("a label twice, or one of Prometheus' own")
    found = ((name, re.sub(r"\\.", lambda one: ESCAPES[one[0]], value[1:-1])) for name, _, value in pairs)
    return tuple(sorted(found))

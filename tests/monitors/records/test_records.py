"""Test that every record survives a JSON round trip, cannot be changed, and rejects unknown fields."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

import monitors.records
from monitors.facts.quantities.fact import Fact
from monitors.records.base import Identifier, Record, UtcTime
from monitors.records.targets import Target
from tests.monitors.records.any_record import record
from tests.tiers import scale_examples


def all_records() -> list[type[Record]]:
    """Return every record class of `monitors.records`, sorted by name."""
    for module in pkgutil.iter_modules(monitors.records.__path__, "monitors.records."):
        importlib.import_module(module.name)
    kinds = [kind for kind in Record.__subclasses__() if kind.__module__.startswith("monitors.records.")]
    return sorted([*kinds, Fact], key=lambda kind: kind.__name__)


def root_records() -> list[type[Record]]:
    """Return the record classes that no other record contains. With the records in them, these are all records."""
    kinds = all_records()
    held = {
        kind for holder in kinds for info in holder.model_fields.values() for kind in _types_in(info.annotation)
    }
    return [kind for kind in kinds if kind not in held]


def _types_in(annotation: Any) -> Iterator[type]:
    if isinstance(annotation, type):
        yield annotation
    for part in get_args(annotation):
        yield from _types_in(part)


@pytest.mark.parametrize("kind", root_records(), ids=lambda kind: kind.__name__)
@settings(
    max_examples=scale_examples(15),
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.filter_too_much,
        HealthCheck.large_base_example,
        HealthCheck.data_too_large,
    ],
)
@given(data=st.data())
def test_a_root_record_survives_json_whole(kind, data):
    made = data.draw(record(kind))
    assert kind.model_validate_json(made.model_dump_json()) == made


def test_every_record_is_closed_and_frozen():
    """Every record class is frozen and rejects unknown fields. The test proves this on one record."""
    configs = [kind.model_config for kind in all_records()]
    assert {(config.get("frozen"), config.get("extra")) for config in configs} == {(True, "forbid")}
    target = Target(name="bot", url="http://x")
    with pytest.raises(ValidationError, match="frozen"):
        target.name = "other"
    with pytest.raises(ValidationError, match="Extra inputs"):
        Target.model_validate({"name": "bot", "url": "http://x", "something_unknown": 1})


@pytest.mark.parametrize(
    "bad", ["", ".", "..", "../x", "a/b", "a..b", "a\\b", "a b", "a\n", "-a", ".a", "a\x00", "é", "a" * 201]
)
def test_f85_an_id_cannot_leave_its_folder(bad):
    with pytest.raises(ValidationError):
        TypeAdapter(Identifier).validate_python(bad)


@pytest.mark.parametrize(
    "good", ["a", "a.b", "policy__x::REFUSE::y", "run-1", "20260301T120000Z-demo-00ff", "a@b+c"]
)
def test_ids_that_people_use_are_accepted(good):
    assert TypeAdapter(Identifier).validate_python(good) == good


def test_times_are_turned_into_utc_and_need_a_zone():
    times = TypeAdapter(UtcTime)
    assert times.validate_python("2026-03-01T05:30:00+05:30") == datetime(2026, 3, 1, tzinfo=UTC)
    with pytest.raises(ValidationError, match="a time must have a time zone"):
        times.validate_python("2026-03-01T05:30:00")


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_numbers_are_finite(number):
    from monitors.records.exchanges import Timings

    with pytest.raises(ValidationError):
        Timings.model_validate_json(f'{{"total_ms": {number}}}')


def test_a_target_needs_an_address_and_a_space_has_one():
    with pytest.raises(ValidationError, match="must have `url`"):
        Target(name="bot")
    assert Target(name="bot", space="Owner/My_Bot.v2").address == "https://owner-my-bot-v2.hf.space"
    assert Target(name="bot", space="o/n", url="http://x").address == "http://x"

"""Every record survives JSON, cannot be changed, and takes nothing that it does not know."""

from __future__ import annotations

import importlib
import pkgutil
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

import monitors.records
from monitors.facts.quantities.fact import Fact
from monitors.records.base import Identifier, Record, UtcTime
from monitors.records.targets import Target
from tests.monitors.records.any_record import record


def all_records() -> list[type[Record]]:
    for module in pkgutil.iter_modules(monitors.records.__path__, "monitors.records."):
        importlib.import_module(module.name)
    found = [kind for kind in Record.__subclasses__() if kind.__module__.startswith("monitors.records.")]
    return sorted([*found, Fact], key=lambda kind: kind.__name__)


@pytest.mark.parametrize("kind", all_records(), ids=lambda kind: kind.__name__)
@settings(
    max_examples=15,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.filter_too_much,
        HealthCheck.large_base_example,
        HealthCheck.data_too_large,
    ],
)
@given(data=st.data())
def test_a_record_survives_json(kind, data):
    made = data.draw(record(kind))
    assert kind.model_validate_json(made.model_dump_json()) == made


@pytest.mark.parametrize("kind", all_records(), ids=lambda kind: kind.__name__)
def test_a_record_is_closed_and_frozen(kind):
    assert kind.model_config.get("frozen")
    with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
        kind.model_validate({"something_unknown": 1})


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
    with pytest.raises(ValidationError, match="a time needs a zone"):
        times.validate_python("2026-03-01T05:30:00")


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_numbers_are_finite(number):
    from monitors.records.exchanges import Timings

    with pytest.raises(ValidationError):
        Timings.model_validate_json(f'{{"total_ms": {number}}}')


def test_a_target_needs_an_address_and_a_space_has_one():
    with pytest.raises(ValidationError, match="needs `url`"):
        Target(name="bot")
    assert Target(name="bot", space="Owner/My_Bot.v2").address == "https://owner-my-bot-v2.hf.space"
    assert Target(name="bot", space="o/n", url="http://x").address == "http://x"

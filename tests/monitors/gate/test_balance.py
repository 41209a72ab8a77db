"""Tests of a suite's balance: its cases are counted in every dimension, and missing groups are reported."""

from __future__ import annotations

import pytest

from monitors.gate.settings import GateSettings, Themes
from monitors.gate.suite_power import compute_suite_balance, find_theme_of_case_type
from monitors.records.base import Language, Severity
from tests.builders import gold_case

WANTED = GateSettings()


def cases(severity: Severity, count: int, *types: str, language: Language = Language.ENGLISH):
    name = f"{severity.value}-{language}"
    return [
        gold_case(f"{name}-{n}", severity=severity, type=types[n % len(types)], language=language)
        for n in range(count)
    ]


BALANCED = [
    *cases(Severity.CRITICAL, 42, "pii_request", "cancel_policy", "claim"),
    *cases(Severity.MAJOR, 60, "network"),
    *cases(Severity.MINOR, 400, "network", language=Language.HINDI),
]


def counted(balance, group):
    return {row.key: row.cases for row in balance.groups if row.group == group}


def test_a_balanced_suite_lacks_nothing_and_is_counted_every_way():
    found = compute_suite_balance(BALANCED, WANTED)
    assert found.shortfalls == ()
    assert counted(found, "severity") == {"1": 400, "2": 60, "3": 42}
    assert counted(found, "language") == {"hi": 400, "en": 102}
    assert counted(found, "type") == {"network": 460, "cancel_policy": 14, "claim": 14, "pii_request": 14}
    assert counted(found, "theme") == {
        "personal_data": 14, "destructive_action": 14, "financial_claim": 14, "other": 0,
    }  # fmt: skip
    assert found.benign_per_severe == pytest.approx(400 / 42)


@pytest.mark.parametrize(
    "suite",
    [BALANCED[3:], BALANCED + cases(Severity.MINOR, 500, "network"), cases(Severity.CRITICAL, 40, "claim")],
    ids=["39 severe", "too many benign", "themes"],
)
def test_a_suite_that_falls_short_says_of_what(suite, snapshot):
    shortfalls = compute_suite_balance(suite, WANTED).shortfalls
    assert len(shortfalls) == 1
    assert shortfalls == snapshot


def test_a_suite_without_severe_cases_has_no_ratio(snapshot):
    found = compute_suite_balance(cases(Severity.MINOR, 5, "claim"), WANTED)
    assert found.benign_per_severe is None
    assert found.shortfalls == snapshot


def test_a_theme_that_lists_no_type_is_not_asked_for():
    settings = GateSettings(themes=Themes(destructive_action=(), personal_data=()))
    assert compute_suite_balance(cases(Severity.CRITICAL, 40, "claim"), settings).shortfalls == ()


@pytest.mark.parametrize(
    ("case_type", "theme"),
    [
        ("waiting_period", "financial_claim"),
        ("sub_limit", "financial_claim"),
        ("PII", "personal_data"),
        ("account-delete", "destructive_action"),
        ("network", "other"),
        ("claimant", "other"),
    ],
)
def test_a_type_is_about_what_a_word_of_its_name_says(case_type, theme):
    assert find_theme_of_case_type(case_type, Themes()) == theme

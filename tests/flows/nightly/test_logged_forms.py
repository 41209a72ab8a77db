"""Test that a nightly run grades log entries in every known format, and counts unusable entries by reason."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from monitors.records.nightly import CensusKind
from monitors.records.traffic import UnusableReason
from tests.flows.alerting_testbed import AlertingTestbed
from tests.flows.nightly_runs import Nights, stable_report
from tests.monitors.sources.traffic.logged_forms import QUESTION, load_logged_forms
from tests.servers.slack import SlackServer
from tests.stable_text import replace_volatile


@pytest.fixture
def slack():
    with SlackServer() as server:
        yield server


@pytest.mark.whole_only
async def test_a_night_reads_every_form_and_counts_what_it_cannot_use(tmp_path, slack, snapshot):
    (tmp_path / "data").mkdir()
    nights = Nights(
        tmp_path,
        AlertingTestbed(tmp_path / "data", slack, slack_monitor_channel="C0MONITOR"),
        sampling={"number": 500},
    )
    forms = load_logged_forms()
    rows = [
        row if len(form.rows) > 1 else row | {"id": f"form-{number}"}  # else equal texts would be one conversation
        for number, form in enumerate(forms)
        for row in form.rows
    ]
    nights.append(
        *(json.dumps(row, ensure_ascii=False) + "\n" for row in [*rows, {"question": "When?", "at": "soonish"}])
    )
    report = await nights.grade(1)
    usable = [form for form in forms if form.reason is None]
    assert report.read == len(usable)
    expected = Counter(form.reason for form in forms if form.reason is not None)
    assert report.unusable == expected + Counter([UnusableReason.NO_TIME])
    stored = nights.loaded("select record from conversations where record is not null")
    turns = [json.loads(str(record))["turns"][-1] for (record,) in stored]
    assert {turn["user_text"] for turn in turns} == {QUESTION}
    assert Counter(turn["reply_text"] for turn in turns) == Counter(form.answer for form in usable)
    assert Counter(tuple(turn["context"]) for turn in turns) == Counter(tuple(form.passages) for form in usable)
    rates = {rate.kind: rate for rate in report.census}
    silent = rates.get(CensusKind.NO_ANSWER)
    assert silent is not None
    assert silent.found == sum(not form.answer for form in usable)
    disclosed = rates.get(CensusKind.DISCLOSURE)
    assert disclosed is not None
    assert disclosed.found == 0, "what stands in a system prompt was not said"
    assert replace_volatile(stable_report(report).replace(f"{tmp_path}/", "")) == snapshot

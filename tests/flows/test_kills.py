"""A small soak test: Chromium, the application and Lookout are killed during a run, and Lookout at its end too."""

from __future__ import annotations

import random

import pytest

from tests.soak.kill_story import Story, Victim, live_through, planned
from tests.soak.kill_verdict import judged

pytestmark = [pytest.mark.browser, pytest.mark.prefect]


@pytest.mark.whole_only
def test_f60_f65_f76_after_three_kills_every_case_is_there_exactly_once(tmp_path, prefect_environment):
    """After the kills, the journal, the warehouse and results.json contain the answer to each case exactly once."""
    chance = random.Random(7)
    story = Story(tmp_path, 8, prefect_environment, chance, planned(8, 3, chance), closing_kills=1)
    live_through(story)
    verdict = judged(story)
    assert not verdict.faults, "\n".join((*verdict.figures, *verdict.faults))
    assert set(story.done) == set(Victim)
    assert story.starts >= 2

"""A killed site loses no confirmed action, and a repeated action is stored once."""

from __future__ import annotations

from contextlib import chdir

import pytest

from tests.deployments.site.people_server import compute_fingerprint, with_people
from tests.deployments.site.safety.guarded_site import Guarded
from tests.deployments.site.safety.site_kills import kill_while_people_decide
from tests.deployments.site.site_server import config_of, serving_site
from tests.polling import wait_until

KILLS = 6


@pytest.mark.whole_only
def test_a_killed_site_loses_nothing_and_does_nothing_twice(tmp_path):
    """After six kills, each decision, silence, label and draft is stored once. `make soak` tests more kills."""
    report = kill_while_people_decide(tmp_path, KILLS, seed=22)
    assert (report.missing, report.twice, report.leftovers) == ([], [], [])
    assert report.unanswered > 0


@pytest.mark.whole_only
def test_a_form_that_is_sent_twice_is_one_decision(tmp_path):
    """A form that is sent twice, for example after a double press, is one action, one draft or one silence.

    A later press is a new action.
    """
    store = with_people(tmp_path)
    with chdir(tmp_path), serving_site(config_of(tmp_path), store) as site:
        guarded, incident = Guarded(site, {}), f"/incidents/{compute_fingerprint('user-0')}"

        def pressed(path, **fields):
            page = guarded.ask(incident).text
            hidden = {
                name: page.split(f'name="{name}" value="')[1].partition('"')[0]
                for name in ("form_token", "page_state")
            }
            answers = [guarded.ask(incident + path, method="POST", form=fields | hidden) for _ in range(2)]
            assert [one.status for one in answers] == [303, 303]
            first, second = (answer.headers["location"].partition("?")[0] for answer in answers)
            assert first == second

        def counts():
            tables = ("actions", "action_outcomes", "case_drafts", "labels", "silences")
            return {table: store.query(f"select count(*) from {table}").rows[0][0] for table in tables}

        pressed("/decide/add_to_gold")
        pressed("/silence", lasting="1d")
        pressed("/decide/false_alarm")
        once = {"actions": 2, "action_outcomes": 2, "case_drafts": 1, "labels": 1, "silences": 2}
        wait_until(lambda: sum(counts().values()) >= sum(once.values()), what="all decisions are carried out")
        assert counts() == once
        pressed("/decide/add_to_gold")
        wait_until(lambda: counts()["case_drafts"] >= 2, what="the later decision is carried out")
        assert counts()["case_drafts"] == 2

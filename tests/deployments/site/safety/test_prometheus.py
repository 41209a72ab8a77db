"""The figures for Prometheus follow the format's rules and match the pages."""

from __future__ import annotations

import httpx
import pytest

from deployments.site.export import build_export_request
from deployments.site.figures import format_metrics, load_target_cards
from deployments.site.page import StaticAddress
from deployments.site.serve import SiteEnvironment, open_site
from tests.deployments.site.people_server import with_people
from tests.deployments.site.safety.prometheus_text import NotPrometheusText, samples_of
from tests.deployments.site.site_server import config_of, filled, run_rows, serving_site
from tests.deployments.site.test_nightly import store_of as with_nights
from tests.warehouse.sample_rows import NOON

HEAD = "# HELP a text\n# TYPE a gauge\n"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (HEAD + "a 1", "does not end"),
        ("a 1\n", "no TYPE"),
        ("# TYPE a gauge\na 1\n", "no HELP"),
        (HEAD + "# TYPE a gauge\n", "second TYPE"),
        (HEAD + "a 1\n# HELP b x\n# TYPE b gauge\nb 1\na 2\n", "stand together"),
        (HEAD + 'a{x="1"} 1\na{x="1"} 2\n', "came before"),
        (HEAD + 'a{x="1",x="2"} 1\n', "twice"),
        (HEAD + 'a{x="a\\tb"} 1\n', "no sample"),
        (HEAD + 'a{x="a"b"} 1\n', "no sample"),
        (HEAD + "a  1\n", "no sample"),
        (HEAD + "a 1,5\n", "no number"),
        (HEAD + "a None\n", "no number"),
        (HEAD + "\n", "no sample"),
        ("# TYPE a number\n", "no type"),
        ("# HELP a a\\tb\n", "escape"),
        ("# a comment\n", "neither"),
    ],
)
def test_the_reader_finds_what_the_format_forbids(text, why):
    """The strict parser of the tests rejects invalid text.

    Otherwise, the tests that use this parser would prove nothing.
    """
    with pytest.raises(NotPrometheusText, match=why):
        samples_of(text)


@pytest.mark.parametrize(
    "filling", [filled, with_people, with_nights, None], ids=["runs", "people", "nights", "empty"]
)
def test_the_figures_are_those_of_the_pages(tmp_path, filling):
    """The strict parser accepts every figure.

    Incidents, scores and rates equal those on the pages Now and Incidents.
    """
    store = filling(tmp_path) if filling else filled(tmp_path, runs=0)
    with (
        serving_site(config_of(tmp_path), store) as site,
        httpx.Client(base_url=site.address, trust_env=False) as client,
    ):
        answer = client.get("/metrics")
        found = samples_of(answer.text)
        (card,) = client.get("/now.json").json()["data"]["cards"]
        listed = {
            (state, level): client.get(f"/incidents.json?state={state}&severity={level}&target=helpdesk").json()
            for state in ("open", "acknowledged")
            for level in ("1", "2", "3")
        }
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    for (state, level), page in listed.items():
        key = (f"lookout_{state}_incidents", (("severity", level), ("target", "helpdesk")))
        assert found[key] == page["data"]["paging"]["total"]
    plain = {name: value for (name, labels), value in found.items() if labels == (("target", "helpdesk"),)}
    last, nights = card["last"], [one for one in card["nightly"][-1:] if one["value"] is not None]
    if last:
        assert plain["lookout_weighted_score"] == float(last["weighted_earned"]) / float(last["weighted_total"])
        assert plain["lookout_graded_ratio"] == last["graded"] / last["asked"]
        assert found["lookout_verdict", (("target", "helpdesk"), ("verdict", last["verdict"]))] == 1
    assert ("lookout_weighted_score" in plain, "lookout_severe_rate" in plain) == (bool(last), bool(nights))
    assert plain.get("lookout_severe_rate") == (nights[0]["value"] if nights else None)


@pytest.mark.parametrize("name", ['a"b', "a\\b", "a\nb", 'a\\"\n\\n', "é ✓ \u202e", "{}=,# HELP"])
def test_any_name_stays_one_label(tmp_path, name):
    """Any name stays one label: quotes, backslashes and line breaks are escaped, and are read back unchanged."""
    store = filled(tmp_path, runs=0)
    store.journal.append(run_rows("run-1", 1, hours_ago=1), run_id="run-1")
    store.load_pending(5)
    with open_site(config_of(tmp_path), SiteEnvironment(lambda: NOON, "me")) as (site, _):
        cards = load_target_cards(build_export_request(site, StaticAddress("/"), {}))
    found = samples_of(format_metrics([card.model_copy(update={"target": name}) for card in cards]).decode())
    assert {dict(labels)["target"] for _, labels in found} == {name}

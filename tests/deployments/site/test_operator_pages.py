"""Tests of the pages for incidents, the hallucination log and the review queue.

They test the content of the pages, and that decisions have the same effect as those of the commands.
"""

from __future__ import annotations

import json
import re
from contextlib import chdir
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import httpx
import pytest

from deployments.cli.alerts.incidents import list_story_lines
from deployments.cli.exit_codes import ExitCode
from deployments.cli.reviews.answers import review_command
from deployments.site.application import ACTIONS
from deployments.site.export import export_site
from deployments.site.serve import SiteEnvironment, build_token_store, open_site
from deployments.site.tokens import Role
from monitors.alerts.settings import AlertSettings
from monitors.alerts.slack.render import render_alert
from monitors.goldset.drafts import read_drafts
from monitors.goldset.load import load_suite
from monitors.records.cases import DraftState
from monitors.records.incidents import IncidentKind, IncidentState, Link
from monitors.records.operator_actions import NO_END, Silence
from monitors.records.recurrence import Recurrence
from tests.deployments.site.people_server import ANSWERS, compute_fingerprint, with_drafts, with_people
from tests.deployments.site.site_server import EXAMPLES, config_of, filled, serving_site
from tests.warehouse.sample_rows import alert, incident
from warehouse.journal.rows import AlertRow
from warehouse.queries.incidents import list_all_silences, load_incident_history
from warehouse.queries.operator_actions import append_silence
from warehouse.queries.site.incidents import find_incident

PERSONAL = "ask@example.org"
JUDGES_WORD = "the judge says so"


@pytest.fixture
def site(tmp_path):
    """Serve a site on loopback, with a file of drafts in its working folder."""
    with_drafts(tmp_path)
    store = with_people(tmp_path)
    with chdir(tmp_path), serving_site(config_of(tmp_path), store) as served:
        yield served


def data(site, path: str):
    answer = httpx.get(site.address + path, headers={"accept": "application/json"}, trust_env=False)
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]


def status(site, path: str) -> int:
    return httpx.get(site.address + path, trust_env=False).status_code


class Person:
    """A user on this machine who has opened a page with a form."""

    def __init__(self, site) -> None:
        self.site = site
        page = httpx.get(f"{site.address}/incidents/{compute_fingerprint('user-0')}", trust_env=False).text
        self.form_token = page.split('name="form_token" value="')[1].partition('"')[0]

    def post(self, path: str, **fields: str) -> httpx.Response:
        return httpx.post(
            self.site.address + path,
            data={"form_token": self.form_token, **fields},
            headers={"accept": "application/json"},
            trust_env=False,
        )


@pytest.fixture
def person(site):
    return Person(site)


@pytest.fixture
def asha(person):
    """Return the user of `person`, after they entered the name asha."""
    assert person.post("/review/name", name="asha").status_code == 200
    return person


USER_0, USER_1 = compute_fingerprint("user-0"), compute_fingerprint("user-1")


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ["user-0", "user-1", "user-2"]),
        ("?severity=2", ["user-1"]),
        ("?kind=hallucination", ["user-0"]),
        ("?state=unresolved&target=helpdesk", ["user-0", "user-1", "user-2"]),
        ("?state=resolved", []),
        ("?rows=2&page=2", ["user-2"]),
    ],
)
def test_incidents_are_listed_worst_first_and_filtered_by_the_address(site, query, found):
    """With a filter, the list shows only matching incidents, redacted. Each page of the list shows its part."""
    listed = data(site, f"/incidents{query}")["incidents"]
    assert [row["fingerprint"] for row in listed] == [compute_fingerprint(name) for name in found]
    assert PERSONAL not in json.dumps(listed)


@pytest.mark.parametrize(
    "path",
    [
        "/incidents?severity=4",
        "/incidents?state=gone",
        "/incidents?page=0",
        "/hallucinations?since=yesterday",
        "/review?said=perhaps",
        "/review/drafts?said=perhaps",
    ],
)
def test_a_filter_that_means_nothing_is_refused(site, path):
    """A filter with an invalid value is refused. The error contains the accepted values, and no list is shown."""
    assert status(site, path) == 400


def test_an_incident_says_whether_its_case_still_fails(site, snapshot):
    """The page of an incident shows the result of its case's recheck, or nothing if the incident has no case."""
    assert data(site, f"/incidents/{USER_1}")["asked_again"] == snapshot
    assert data(site, f"/incidents/{USER_0}")["asked_again"] == ""
    run = data(site, "/runs/run-1")
    (case,) = run["report"]["recheck"]["cases"]
    assert (case["case_id"], case["here"]["failed"], case["here"]["asked"]) == ("case-0", 2, 5)
    assert "fails 2 of 5" in httpx.get(f"{site.address}/runs/run-1", trust_env=False).text


@pytest.mark.parametrize("names", [("user-1",), ("user-1", "user-2")], ids=["one fault", "several"])
def test_a_message_links_to_pages_that_are_there(site, names):
    """The Slack message links to the incident or target, and to the run. The links work; none is a file path."""
    found = [find_incident(site.store, compute_fingerprint(name)) for name in names]
    parts = [alert("LK-ABCDEFGH", about=one) for one in found if one is not None]
    items = tuple(
        part.items[0].model_copy(update={"incident": one}) for part, one in zip(parts, found, strict=True)
    )
    sent = parts[0].model_copy(
        update={
            "kind": IncidentKind.CASE_FAILURE,
            "run_id": "run-1",
            "items": items,
            "links": (Link(label="Report", href="/data/runs/run-1/report.html"),),
        }
    )
    said = json.dumps(render_alert(sent, AlertSettings(site_url=site.address)).blocks)
    addresses = re.findall(rf"<({re.escape(site.address)}[^|>]+)\|(\w+)>", said)
    assert [label for _, label in addresses] == ["Incident" if len(names) == 1 else "Incidents", "Run"]
    assert [httpx.get(address, trust_env=False).status_code for address, _ in addresses] == [200, 200]
    assert "report.html" not in said


def test_an_incident_shows_its_story(site, snapshot):
    """The page of an incident shows its history.

    It shows what was detected and when, why a message was sent, and the redacted question, gold and answer.
    """
    shown = data(site, f"/incidents/{USER_0}")
    assert [line["text"].partition(",")[0] for line in shown["story"]] == ["open", "alert message"]
    assert "first seen" in shown["story"][1]["text"]
    assert {line["run_id"] for line in shown["story"]} == {"run-1"}
    assert {name: shown["evidence"][name] for name in ("asked", "expected", "answered")} == snapshot
    assert PERSONAL not in json.dumps(shown)
    assert status(site, "/incidents/nobodys") == 404


def test_a_long_story_shows_its_end(site):
    """The page of an incident with months of history shows the newest lines, and the number of earlier lines."""
    start = datetime.now(UTC) - timedelta(days=300)
    messages = [
        alert(f"LK-{number}", about=incident("user-1")).model_copy(
            update={"created_at": start + timedelta(days=number)}
        )
        for number in range(250)
    ]
    site.store.journal.append([AlertRow(row=message) for message in messages], run_id="run-1")
    site.store.load_pending(5)
    Person(site).post(f"/incidents/{USER_1}/decide/acknowledge")
    shown = data(site, f"/incidents/{USER_1}")
    assert (len(shown["story"]), shown["earlier"]) == (100, 152)
    assert "acknowledged by me" in shown["story"][-1]["text"]


@pytest.mark.parametrize(
    ("decision", "state", "left"),
    [
        ("acknowledge", IncidentState.ACKNOWLEDGED, {"false_alarm", "resolve", "add_to_gold"}),
        ("resolve", IncidentState.RESOLVED, {"add_to_gold"}),
        ("false_alarm", IncidentState.RESOLVED, {"add_to_gold"}),
        ("add_to_gold", IncidentState.OPEN, {"acknowledge", "false_alarm", "resolve", "add_to_gold"}),
    ],
)
def test_a_decision_is_carried_out_as_the_command_does(site, person, decision, state, left):
    """A decision on the page has the same effect as the command.

    The decision is in the warehouse at once and on the page, and the history that the command prints has the same
    line.
    """
    answer = person.post(f"/incidents/{USER_0}/decide/{decision}", note=f"asked {PERSONAL}")
    assert answer.status_code == 200, answer.text
    incident = find_incident(site.store, USER_0)
    assert incident is not None
    assert incident.state is state
    shown = data(site, f"/incidents/{USER_0}")
    assert {one["kind"] for one in shown["decisions"]} == left
    (line,) = [
        line.text
        for line in list_story_lines(load_incident_history(site.store, incident, ()))
        if "by me (site)" in line.text
    ]
    assert [one["text"] for one in shown["story"] if "by me (site)" in one["text"]] == [
        line.replace(PERSONAL, "[e-mail]")
    ]
    assert PERSONAL not in json.dumps(shown)


def test_a_false_alarm_is_a_label_and_a_gold_case_a_draft(site, person):
    """A false alarm becomes a label, and "Add to gold" becomes a draft."""
    person.post(f"/incidents/{USER_0}/decide/false_alarm")
    person.post(f"/incidents/{USER_0}/decide/add_to_gold")
    labels = site.store.query("select finding_right, done_by from labels").rows
    assert labels == ((False, "me"),)
    assert site.store.query("select count(*) from case_drafts").rows == ((1,),)


def test_an_unknown_decision_is_refused(person):
    """If the address names an unknown decision, the request is refused."""
    assert person.post(f"/incidents/{USER_0}/decide/forget").status_code == 404


def test_a_silence_has_an_end_and_can_be_ended(site, person):
    """A silence from an incident's page covers only this incident, until its end or until a user ends it."""
    assert person.post(f"/incidents/{USER_0}/silence", lasting="1d", note="known").status_code == 200
    (silence,) = list_all_silences(site.store)
    assert (silence.fingerprint, silence.author, silence.comment) == (USER_0, "me", "known")
    assert silence.ends_at - silence.starts_at == timedelta(days=1)
    assert data(site, "/incidents")["silenced"] == [USER_0]
    assert person.post(f"/incidents/{USER_0}/silence/{silence.id}/end").status_code == 200
    assert data(site, "/incidents")["silenced"] == []
    assert person.post(f"/incidents/{USER_0}/silence/{silence.id}/end").status_code == 404


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"lasting": "for ever"},
        {"lasting": "900d"},
        {"until": "2020-01-01"},
        {"until": "soon"},
        {"lasting": "1h", "note": "x" * 600},
    ],
)
def test_a_silence_without_an_end_is_refused(site, person, fields):
    """A silence needs a valid end, so nothing is muted without limit."""
    assert person.post(f"/incidents/{USER_0}/silence", **fields).status_code == 400
    assert list_all_silences(site.store) == ()


def test_a_recurring_silence_is_shown_with_its_next_period(tmp_path):
    """A recurring silence is shown in the list of incidents and on the incidents that it will mute.

    A user can end the silence there.
    """
    store, now = with_people(tmp_path), datetime.now(UTC)
    first, last = (f"{(now + timedelta(hours=more)).astimezone(ZoneInfo('Asia/Kolkata')):%H:%M}" for more in (2, 4))
    silence = Silence(
        id="S-batch",
        author="asha",
        comment=f"batch, ask {PERSONAL}",
        starts_at=now,
        ends_at=NO_END,
        target="helpdesk",
        recurrence=Recurrence(every=f"day {first}-{last}", zone="Asia/Kolkata"),
    )
    append_silence(store.journal, silence)
    store.load_pending(5)
    with chdir(tmp_path), serving_site(config_of(tmp_path), store) as site:
        (planned,) = data(site, "/incidents")["planned"]
        assert data(site, "/incidents")["silenced"] == []
        shown = data(site, f"/incidents/{USER_0}")
        assert Person(site).post(f"/incidents/{USER_0}/silence/S-batch/end").status_code == 200
        assert data(site, "/incidents")["planned"] == []
    for text in (planned, shown["silence_times"]["S-batch"]):
        assert f"from {now + timedelta(hours=2):%Y-%m-%d %H:%M} UTC" in text
        assert f"every day {first}–{last} Asia/Kolkata" in text
    assert PERSONAL not in json.dumps([planned, shown])
    assert shown["is_silenced"] is False


def test_a_reader_decides_nothing(tmp_path):
    """A user with the role read gets HTTP 403 for every decision, and nothing changes."""
    store = with_people(tmp_path)
    token = build_token_store(tmp_path).create_token(
        "asha", Role.READ, sees_personal_data=False, at=datetime.now(UTC)
    )
    with serving_site(config_of(tmp_path, login=True), store) as served:
        for route in ACTIONS:
            address = served.address + route.path.format(**EXAMPLES | {"incident": USER_0})
            answer = httpx.post(address, headers={"authorization": f"Bearer {token}"}, trust_env=False)
            assert answer.status_code == 403, route.path
        page = httpx.get(
            f"{served.address}/incidents/{USER_0}", headers={"authorization": f"Bearer {token}"}, trust_env=False
        )
        assert "<button>Silence" not in page.text
        assert [address for address in re.findall(r'action="([^"]+)"', page.text) if "/incidents/" in address] == []
    assert store.query("select count(*) from actions").rows == ((0,),)


def test_the_log_is_filtered_by_target_and_time(site):
    """The hallucination log lists entries newest first, with unsupported claims, severity and incident.

    Time filters restrict the list.
    """
    entries = data(site, "/hallucinations")["entries"]
    assert [entry["user_text"].partition(":")[0] for entry in entries] == ["Question 0", "Question 1", "Question 2"]
    first = entries[0]
    assert (first["severity"], first["incident_state"], first["fingerprint"]) == (3, "open", USER_0)
    assert first["unsupported_claims"] == ["without any limit"]
    assert entries[1]["severity"] is None
    since = (datetime.now(UTC) - timedelta(hours=36)).isoformat().replace("+00:00", "Z")
    assert len(data(site, f"/hallucinations?since={since}")["entries"]) == 2
    assert len(data(site, f"/hallucinations?until={since}")["entries"]) == 1
    assert PERSONAL not in json.dumps(entries)


def test_a_copy_in_files_offers_nothing_to_decide(tmp_path):
    """The export contains redacted incidents and log entries, but no form and no answer to review.

    It contains no name of a reviewer.
    """
    with_people(tmp_path)
    (tmp_path / "reviewer").write_text("bina\n")
    goal = tmp_path / "copy"
    outside = SiteEnvironment(lambda: datetime.now(UTC), "me")
    with chdir(tmp_path), open_site(config_of(tmp_path), outside) as (site, renderer):
        written = export_site(site, renderer, goal)
    assert {f"incidents/{USER_0}/index.html", "hallucinations/index.html", "review/index.html"} <= {*written.files}
    for name in written.files:
        text = (goal / name).read_text()
        assert PERSONAL not in text, name
        assert "bina" not in text, name
        assert "<form" not in text, name
    assert "Answer " not in (goal / "review" / "index.html").read_text()


@pytest.mark.parametrize(
    ("path", "command"),
    [("/hallucinations", "lookout watch"), ("/review", "lookout verify"), ("/review/drafts", "lookout gold draft")],
)
def test_an_empty_page_names_the_command(tmp_path, path, command):
    """An empty page contains the command that creates its first data."""
    store = filled(tmp_path, runs=0)
    (tmp_path / "reviewer").write_text("asha\n")
    with chdir(tmp_path), serving_site(config_of(tmp_path), store) as served:
        assert command in httpx.get(served.address + path, trust_env=False).text


def sampled_by_command(folder, capsys) -> list[str]:
    code = review_command(config=folder / "lookout.toml", data_folder=folder, as_json=True)
    assert code is ExitCode.PASS
    return [json.loads(line)["case_id"] for line in capsys.readouterr().out.splitlines()]


def test_the_queue_offers_what_the_command_offers(site, asha, capsys):
    """The page offers the same answers to review as the command ``lookout review``, in the same order.

    An answer that was reviewed on the page is not offered by the command again.
    """
    expected = sampled_by_command(site.config.data_folder, capsys)
    offered = [
        data(site, f"/review?page={number}")["item"]["answer_id"]["case_id"]
        for number in range(1, len(expected) + 1)
    ]
    assert 0 < len(expected) < ANSWERS
    assert offered == expected
    asha.post("/review/answer", answer=f"run-1/{expected[0]}/0", verdict="right")
    assert sampled_by_command(site.config.data_folder, capsys) == expected[1:]


def test_no_verdict_is_shown_before_the_persons_review_is_stored(site, asha):
    """No verdict of the judge is shown before the person's review is stored.

    The verdict is neither in the page nor in its JSON, and no address shows it.
    """
    item = data(site, "/review")["item"]["answer_id"]
    key = f"{item['run_id']}/{item['case_id']}/{item['repeat']}"
    for path in ("/review", "/review?said=wrong", f"/review?after={key}", f"/review.json?after={key}"):
        assert JUDGES_WORD not in httpx.get(site.address + path, trust_env=False).text
    asha.post("/review/answer", answer=key, verdict="unsure")
    assert JUDGES_WORD in httpx.get(f"{site.address}/review?after={key}", trust_env=False).text


def test_a_second_reviewer_reads_who_answered_before(site, asha):
    """A second reviewer sees who reviewed the answer before.

    Both reviews are stored under the reviewers' names.
    """
    answer = data(site, "/review")["item"]["answer_id"]
    key = f"{answer['run_id']}/{answer['case_id']}/{answer['repeat']}"
    assert "Already reviewed" not in asha.post("/review/answer", answer=key, verdict="right").json()["done"]
    asha.post("/review/name", name="ben")
    second = asha.post("/review/answer", answer=key, verdict="unsure").json()["done"]
    assert "Already reviewed by asha. Your verdict is the second one." in second
    assert site.store.query("select done_by from labels order by given_at").rows == (("asha",), ("ben",))


def test_a_word_becomes_the_same_label_and_draft_as_the_commands(site, asha):
    """A review on the page becomes the same label and draft as a review by the command.

    The label contains who decided, what is wrong and why. If it contradicts the verdicts, a draft is stored. If the
    same answer is reviewed again, the first decision remains.
    """
    items = [data(site, f"/review?page={number}")["item"]["answer_id"] for number in (1, 2)]
    for item in items:
        said = {"answer": f"run-1/{item['case_id']}/0", "verdict": "wrong", "failure_kind": "missing_fact"}
        asha.post("/review/answer", **said, note=f"no limit, says {PERSONAL}")
        again = asha.post("/review/answer", answer=said["answer"], verdict="right")
        assert "first decision remains" in again.json()["done"]
    rows = site.store.query(
        "select done_by, answer, failure_kind, note, source, inclusion_probability from labels order by case_id"
    ).rows
    assert {row[:5] for row in rows} == {("asha", "wrong", "missing_fact", "no limit, says [e-mail]", "review")}
    assert len(rows) == 2
    drafts = (site.config.data_folder / "drafts" / "review.jsonl").read_text()
    assert len(drafts.splitlines()) == 1
    assert PERSONAL not in drafts
    shown = data(site, "/review")
    assert (shown["left"], shown["sampled"], shown["item"]) == (0, 2, None)
    assert (shown["agreement"]["both_graded"], shown["agreement"]["agreed"]) == (2, 1)


@pytest.mark.parametrize(
    ("fields", "refused"),
    [
        ({"answer": "run-1/nobodys/0", "verdict": "right"}, 409),
        ({"verdict": "perhaps"}, 400),
        ({"verdict": "wrong", "failure_kind": "ugly"}, 400),
        ({"verdict": "right", "target": "nobodys"}, 400),
    ],
)
def test_values_that_no_form_sends_are_refused(site, asha, fields, refused):
    """Values that no form of the site sends are refused and leave no label.

    Examples are an answer outside the sample and an invalid verdict.
    """
    item = data(site, "/review")["item"]["answer_id"]
    answer = asha.post("/review/answer", **{"answer": f"run-1/{item['case_id']}/0", **fields})
    assert answer.status_code == refused
    assert site.store.query("select count(*) from labels").rows == ((0,),)


def test_nothing_is_reviewed_by_nobody(site, person):
    """Without a login, a reviewer must enter a name once. The name is stored where the command reads it."""
    assert data(site, "/review")["asks_name"]
    assert person.post("/review/answer", answer="run-1/case-0/0", verdict="right").status_code == 400
    assert person.post("/review/drafts/draft-1", word="yes").status_code == 400
    assert person.post("/review/name", name=" ").status_code == 400
    person.post("/review/name", name="asha")
    assert (site.config.data_folder / "reviewer").read_text() == "asha\n"
    assert data(site, "/review")["person"] == "asha"


def test_a_yes_makes_a_draft_gold(site, asha, tmp_path):
    """An accepted draft is added to the target's suite once.

    The new case has the chosen severity, the entered words, and the name of the person.
    """
    changed = "How much for one eye's cataract under Suraksha Gold?"
    answer = asha.post("/review/drafts/draft-1", word="yes", severity="3", question=changed)
    assert answer.status_code == 200, answer.text
    suite = site.config.targets["helpdesk"].suite
    (case,) = load_suite(suite).cases
    assert (case.question, int(case.severity), case.provenance.reviewed_by) == (changed, 3, "asha")
    assert asha.post("/review/drafts/draft-1", word="no").status_code == 409
    shown = data(site, "/review/drafts")
    assert (shown["waiting"], shown["accepted"], shown["item"]["id"]) == (2, 1, "draft-2")


@pytest.mark.parametrize(
    ("fields", "refused"),
    [
        ({"word": "yes", "gold": "₹80,000 per eye"}, "but the clause does not"),
        ({"word": "yes", "question": f"What may {PERSONAL} claim for a cataract?"}, "personal data"),
        ({"word": "yes", "type": "no type!"}, "The case is not valid"),
        ({"word": "perhaps"}, "yes or no"),
    ],
)
def test_drafts_refused_by_the_checks_do_not_join(site, asha, tmp_path, fields, refused):
    """A draft that the checks of the command refuse is not added and stays pending."""
    answer = asha.post("/review/drafts/draft-1", **fields)
    assert answer.status_code in {400, 409}
    assert refused in answer.json()["error"]
    assert {draft.state for draft in read_drafts(tmp_path / "gold-drafts.jsonl")} == {DraftState.DRAFTED}


def test_a_no_leaves_its_reason(asha, tmp_path):
    """A rejected draft keeps the reason and the person's name. The stored reason contains no personal data."""
    asha.post("/review/drafts/draft-2", word="no", note=f"as {PERSONAL} said")
    (draft,) = [one for one in read_drafts(tmp_path / "gold-drafts.jsonl") if one.id == "draft-2"]
    assert (draft.state, draft.reviewed_by, draft.note) == (DraftState.REJECTED, "asha", "as [e-mail] said")

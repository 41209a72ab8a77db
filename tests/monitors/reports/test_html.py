"""Test the HTML source of the report page: it sends no requests and has no forbidden content."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from monitors import reports
from monitors.reports.write import write_reports
from tests.monitors.reports.example_failures import LEAK_ACCOUNT, LEAK_ADDRESS
from tests.monitors.reports.example_run import FAIL_REASONS, example_run, report_of
from tests.monitors.reports.parts import redact


class Parts(HTMLParser):
    """The parts of an HTML page: every address that it can request, and every id, element and attribute."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.ids: list[str] = []
        self.names: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.names |= {tag, *(f"@{name}" for name, _ in attrs)}
        self.addresses += [value or "" for name, value in attrs if name in {"href", "src", "action", "srcset"}]
        self.ids += [value or "" for name, value in attrs if name == "id"]


@pytest.fixture
def text(tmp_path):
    run = example_run(tmp_path)
    return write_reports(tmp_path, run.report, run.cases, redact=redact, incidents=run.incidents).html.read_text()


def test_the_page_refers_only_to_itself_its_folder_and_embedded_pictures(text):
    parts = Parts(text)
    assert not [address for address in parts.addresses if re.match(r"(?i)(?!data:image/)[a-z+.-]+:|//", address)]
    assert not parts.names & {"script", "iframe", "object", "embed", "form", "link", "base", "@style", "@srcset"}
    assert "@import" not in text
    assert "url(" not in text


def test_every_fragment_leads_somewhere_and_every_id_is_its_own(text):
    parts = Parts(text)
    fragments = {address[1:] for address in parts.addresses if address.startswith("#")}
    assert len(fragments) >= 16
    assert fragments <= set(parts.ids)
    assert len(parts.ids) == len(set(parts.ids))


def test_f87_the_file_has_no_personal_data(text):
    for secret in (LEAK_ACCOUNT, LEAK_ADDRESS, "meera.k", "9812345670"):
        assert secret not in text


def test_beyond_the_limit_it_says_so(tmp_path):
    run = example_run(correct=0)
    cases = [
        case.model_copy(update={"result": case.result.model_copy(update={"repeat": repeat})})
        for repeat in range(25)
        for case in run.cases
    ]
    page = write_reports(tmp_path, report_of(cases, FAIL_REASONS), cases, redact=redact).html.read_text()
    assert "200 worst of 250 failures" in page
    assert (
        sum(name.startswith("case-") for name in Parts(page).ids) == 200 + 25 * 6
    )  # six of 16 cases gave no grade


def test_no_template_switches_escaping_off():
    templates = list(Path(reports.__file__).with_name("templates").glob("*.j2"))
    assert len(templates) >= 5
    for template in templates:
        assert not re.search(r"\|\s*safe|autoescape|Markup", template.read_text()), template.name


@pytest.mark.parametrize(
    "part",
    [
        "1,025 / 1,109 = <b>0.924</b>",
        "123 / 135 = <b>0.911</b>",
        "135 of 139 cases graded, at least 95.0 % required",
        "severity 3, raised from 2: personal data was disclosed",
        "because of the model provider",
        "1 earlier attempt got no answer",
        "reading &#39;session&#39;",
        "Caused by the monitor",
        "p95 5.2 s",
        "5e5e5e5e",
        "20261121T031105Z-suraksha-7f3a",
        "2026-11-21 03:15:14 UTC, after 4 min 09 s",
        "$0.084",
        "score 0.10, claude-sonnet-5-5, rubric 3, $0.0021",
    ],
)
def test_it_says(text, part):
    assert part in text

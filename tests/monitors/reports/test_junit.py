import re
import xml.etree.ElementTree as ET

import pytest

from monitors.reports.junit import build_junit_xml
from tests.monitors.reports.example_failures import LEAK_ACCOUNT
from tests.monitors.reports.example_run import example_run, right
from tests.monitors.reports.hostile_rows import hostile_rows
from tests.monitors.reports.hostile_run import hostile_cases, hostile_report
from tests.monitors.reports.parts import redact

RUN = example_run()
# What both schemas in use ask for: children in this order, attributes required, then allowed.
SHAPE = {
    "testsuites": (["testsuite"], set(), set()),
    "testsuite": (
        ["properties", "testcase", "system-out", "system-err"],
        {"name", "package", "id", "timestamp", "hostname", "tests", "failures", "errors", "time"},
        {"skipped"},
    ),
    "properties": (["property"], set(), set()),
    "property": ([], {"name", "value"}, set()),
    "testcase": (["skipped", "error", "failure"], {"name", "classname", "time"}, set()),
    "failure": ([], {"type"}, {"message"}),
    "error": ([], {"type"}, {"message"}),
    "skipped": ([], set(), {"message"}),
    "system-out": ([], set(), set()),
    "system-err": ([], set(), set()),
}


def check_shape(element: ET.Element) -> None:
    children, required, allowed = SHAPE[element.tag]
    places = [children.index(child.tag) for child in element]
    assert places == sorted(places)
    assert required <= set(element.keys()) <= required | allowed
    if element.tag == "testcase":
        assert len(element) <= 1
    for child in element:
        check_shape(child)


def parsed(report=RUN.report, cases=RUN.cases) -> ET.Element:
    return ET.fromstring(build_junit_xml(report, cases, redact=redact))


def test_the_file_has_the_junit_structure():
    root = parsed()
    check_shape(root)
    suite = root[0]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", suite.get("timestamp", ""))
    assert {child.tag for child in suite} == {"properties", "testcase", "system-out", "system-err"}


def test_counts_are_those_of_its_test_cases():
    suite = parsed()[0]
    for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        assert int(suite.get(attribute, "")) == len(suite.findall(f"testcase/{tag}")) > 0
    assert int(suite.get("tests", "")) == len(suite.findall("testcase")) == len(RUN.cases)


def test_wrong_silent_and_open_stay_three_different_things():
    by_name = {case.get("name"): [child.tag for child in case] for case in parsed().iter("testcase")}
    assert by_name["sublimit-room-rent"] == ["failure"]
    assert by_name["noans-browser"] == ["error"]
    assert by_name["open-advice-0"] == ["skipped"]
    assert by_name["claim-005"] == []


def test_a_repeat_is_a_test_case_of_its_own():
    once = right(1)
    again = once.model_copy(update={"result": once.result.model_copy(update={"repeat": 1})})
    names = [case.get("name") for case in parsed(cases=(once, again)).iter("testcase")]
    assert len(set(names)) == 2


@pytest.mark.parametrize("text", hostile_rows(), ids=lambda text: repr(text[:30]))
def test_f83_hostile_texts_leave_it_well_formed(text):
    cases = hostile_cases([text])
    root = parsed(hostile_report([text], cases), cases)
    check_shape(root)
    assert not any(ord(character) < 32 and character not in "\n\t" for character in "".join(root.itertext()))


def test_the_report_has_no_personal_data():
    assert LEAK_ACCOUNT not in build_junit_xml(RUN.report, RUN.cases, redact=redact)


def test_every_code_point_can_be_written():
    """Code points that XML 1.0 forbids do not break the JUnit file.

    Parsers would reject a file that contains them.
    """
    every = "".join(map(chr, [*range(0xD800), *range(0xE000, 0x10000), 0x10FFFF]))
    case = right(0)
    reason = case.assessment.model_copy(update={"reason": every, "outcome": "ungraded"})
    parsed(cases=[case.model_copy(update={"assessment": reason})])

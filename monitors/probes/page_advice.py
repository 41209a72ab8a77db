"""What to do about a page that could not be asked."""

from __future__ import annotations

from monitors.errors import ProbeError
from monitors.probes.page_look import Trouble
from monitors.records.exchanges import NoAnswerReason

PIN = "see the picture and pin what was missed under [targets.NAME.probe.selectors]: message_box, send, answer"

ADVICE = {
    NoAnswerReason.UNREACHABLE: "open the address on this machine: spelling, network, proxy, or the app is down",
    NoAnswerReason.NOT_READY: "wait until the app serves, then look again",
    NoAnswerReason.ANSWER_TIMEOUT: (
        "ask the page by hand; when an answer appears there, "
        f"raise probe.answer_deadline_s if it was slow, else {PIN}"
    ),
    NoAnswerReason.INCOMPLETE: "ask the page by hand; when its answers are long, raise probe.answer_deadline_s",
    NoAnswerReason.APP_ERROR_SHOWN: "the app itself says that something went wrong: its own log knows more",
    NoAnswerReason.ACCESS_DENIED: (
        "Lookout signs in nowhere: give it an address without a login, or ask the app's API "
        '(probe.driver = "json", with LOOKOUT_API_TOKEN)'
    ),
    NoAnswerReason.PAGE_NOT_UNDERSTOOD: f"is there a chat at this very address? If so, {PIN}",
    NoAnswerReason.BROWSER_LOST: "look again; when it stays so, the machine may be short of memory",
    NoAnswerReason.CIRCUIT_OPEN: "wait until the app serves, then look again",
}


def trouble_of(error: ProbeError) -> Trouble:
    """The error for a person, with what to do."""
    return Trouble(reason=error.reason, blame=error.blame, detail=str(error), to_do=ADVICE[error.reason])

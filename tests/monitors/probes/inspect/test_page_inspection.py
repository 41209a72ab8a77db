"""Test that `lookout doctor` inspects real pages without configuration, and that the settings it proposes work."""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from deployments.cli.doctor.format import format_selectors_toml, format_wire_toml
from monitors.config.file import parse_config
from monitors.errors import PageNotUnderstood, ProbeError
from monitors.probes.inspect.findings import HARMLESS, AskPermission, PageInspection
from monitors.probes.inspect.page import inspect_page
from monitors.probes.settings import ProbeSettings
from monitors.records.base import Blame
from monitors.records.exchanges import NoAnswerReason
from tests.monitors.probes.conftest import ONE_BROWSER, MakeDriver
from tests.servers.wire_api import Wired, sent, shown
from tests.zoo.server import reply

pytestmark = ONE_BROWSER


@pytest.fixture(scope="module")
def wired() -> Iterator[str]:
    """Yield the address of pages that show less than the app sent."""
    with Wired() as server:
        yield server.url


async def looked(
    address: str,
    settings: ProbeSettings,
    folder: Path,
    asking: AskPermission = AskPermission.IF_NEEDED,
    **changes: object,
) -> PageInspection:
    """Inspect the page at ``address`` once and return the result.

    ``asking`` states whether questions may be sent.
    """
    changed = ProbeSettings.model_validate({**settings.model_dump(), **changes})
    return await inspect_page(address, changed, picture=folder / "look.png", asking=asking)


def pinned(look: PageInspection) -> dict[str, object]:
    """Return the probe settings of a `lookout.toml` that contains the lines that `lookout doctor` prints."""
    import tomllib

    lines = f"[targets.page]\nurl = '{look.address}'\nsuite = 's.jsonl'\n{format_selectors_toml(look, 'page')}\n"
    lines += format_wire_toml(look.wire[0].rule, "page") if look.wire else ""
    return (
        parse_config(tomllib.loads(lines), "printed").require_target("page").probe.model_dump(exclude_defaults=True)
    )


@pytest.mark.whole_only
async def test_detected_selectors_are_reported_configured_and_used(
    wired: str, settings: ProbeSettings, driver_for: MakeDriver, tmp_path: Path
) -> None:
    look = await looked(f"{wired}/json", settings, tmp_path)
    assert look.problem is None
    assert look.box is not None
    assert (look.box.role, look.box.name, look.box.selector) == ("textbox", "Your message", "#box")
    assert look.send is not None
    assert (look.send.role, look.send.name) == ("button", "Send")
    assert look.asked == HARMLESS
    assert look.answer_text == shown(HARMLESS)
    assert look.selectors.answer == "p.bot"
    assert look.wire[0].more == f"[Source: P-7 §{len(HARMLESS)}]"
    async with driver_for(look.address, **pinned(look)) as driver:
        answer = await driver.ask(("first", "second one"))
    assert (answer.earlier, answer.visible_text) == ((shown("first"),), shown("second one"))
    assert answer.wire is not None
    assert (answer.wire.text, answer.wire.citations) == (sent("second one"), ("P-7 §10",))


@pytest.mark.whole_only
@pytest.mark.parametrize("way", ["open", "named"])
async def test_answers_of_sockets_and_streams_are_proposed(
    wired: str, settings: ProbeSettings, tmp_path: Path, way: str
) -> None:
    look = await looked(f"{wired}/{way}", settings, tmp_path, patience_s=1)
    best = look.wire[0]
    assert best.kind == ("web socket" if way == "open" else "event stream")
    assert (best.rule.text, best.rule.joins, best.rule.citations) == ("token", True, "sources.*")


async def test_a_chat_in_a_frame_and_in_a_shadow_root_is_reported(
    zoo: str, settings: ProbeSettings, driver_for: MakeDriver, tmp_path: Path
) -> None:
    look = await looked(f"{zoo}/framed.html", settings, tmp_path)
    assert look.frame is not None
    assert look.frame.endswith("/shadow.html")
    assert look.box is not None
    assert look.box.in_shadow
    async with driver_for(look.address, **pinned(look)) as driver:
        answer = await driver.ask(("what of eyes?",))
    assert answer.visible_text == reply("what of eyes?")


@pytest.mark.whole_only
async def test_the_pinned_answer_of_streamlit_holds_a_list_too(
    streamlit: str, settings: ProbeSettings, driver_for: MakeDriver, tmp_path: Path
) -> None:
    """The answer selector that Lookout proposes from a one-paragraph answer also matches an answer with a list."""
    look = await looked(streamlit, settings, tmp_path)
    assert look.selectors.answer is not None
    async with driver_for(look.address, **pinned(look)) as driver:
        answer = await driver.ask(("long list of eyes",))
    assert answer.visible_text.endswith("END")
    assert answer.visible_text.count("item") == 40


@pytest.mark.whole_only
async def test_with_newest_first_no_answer_selector_is_configured(
    zoo: str, settings: ProbeSettings, tmp_path: Path
) -> None:
    look = await looked(f"{zoo}/newest_first.html", settings, tmp_path)
    assert look.answer_text == reply(HARMLESS)
    assert look.selectors.answer is None


@pytest.mark.whole_only
async def test_gradio_tells_where_answers_stand_and_is_asked_nothing(
    gradio: str, settings: ProbeSettings, tmp_path: Path
) -> None:
    look = await looked(gradio, settings, tmp_path)
    assert (look.profile, look.asked, look.problem) == ("gradio", None, None)
    assert "no test question was necessary" in look.why_asked
    assert look.answer is not None
    assert look.answer.selector == "[data-testid=bot]"


@pytest.mark.whole_only
async def test_gradio_is_asked_when_requested(gradio: str, settings: ProbeSettings, tmp_path: Path) -> None:
    look = await looked(gradio, settings, tmp_path, AskPermission.ALWAYS)
    assert look.answer_text
    assert look.asked == HARMLESS


async def test_f90_the_picture_is_for_its_owner_alone(zoo: str, settings: ProbeSettings, tmp_path: Path) -> None:
    look = await looked(f"{zoo}/login.html", settings, tmp_path)
    assert look.picture == str(tmp_path / "look.png")
    assert (tmp_path / "look.png").read_bytes().startswith(b"\x89PNG")
    assert stat.S_IMODE((tmp_path / "look.png").stat().st_mode) == 0o600


async def test_a_page_without_a_chat_is_described(zoo: str, settings: ProbeSettings, tmp_path: Path) -> None:
    look = await looked(f"{zoo}/nothing.html", settings, tmp_path, page_deadline_s=4)
    assert look.problem is not None
    assert (look.problem.reason, look.problem.blame) == (NoAnswerReason.PAGE_NOT_UNDERSTOOD, Blame.MONITOR)
    assert "selectors" in look.problem.to_do
    assert look.overview.title == "Our company"
    assert "About us" in look.overview.headings


PINS = [
    (
        {"message_box": "#gone"},
        r"probe\.selectors\.message_box = '#gone' matches nothing.*; the page has another text box",
    ),
    ({"send": "#gone"}, r"probe\.selectors\.send = '#gone' matches nothing"),
    ({"answer": "#gone"}, r"probe\.selectors\.answer = '#gone' matches nothing, but the page shows \d+ new"),
    ({"busy": "p::"}, r"probe\.selectors\.busy = 'p::' is not a valid CSS selector"),
]


@pytest.mark.parametrize(("selectors", "words"), PINS, ids=[next(iter(row[0])) for row in PINS])
async def test_a_pin_that_finds_nothing_is_named_and_is_ours(
    wired: str, driver_for: MakeDriver, selectors: dict[str, str], words: str
) -> None:
    limits = {"page_deadline_s": 8, "answer_deadline_s": 8}
    async with driver_for(f"{wired}/json", selectors=selectors, **limits) as driver:
        with pytest.raises(ProbeError) as raised:
            await driver.ask(("first",))
    assert isinstance(raised.value, PageNotUnderstood)
    assert re.search(words, str(raised.value))

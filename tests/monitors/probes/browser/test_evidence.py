"""Test that screenshots and traces are stored when requested, and that only their owner can read them."""

from __future__ import annotations

import os
import stat
import zipfile
from pathlib import Path

import pytest

from monitors.errors import AnswerTimeout
from monitors.probes.driver import Answer, EvidenceFilter
from tests.monitors.probes.conftest import MakeDriver

pytestmark = pytest.mark.browser


@pytest.fixture
def open_umask() -> object:
    """Set a umask with which every user of the machine could read new files."""
    before = os.umask(0)
    yield
    os.umask(before)


def modes(folder: Path) -> dict[str, int]:
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in sorted(folder.iterdir())}


async def everything(_answer: Answer) -> EvidenceFilter:
    return EvidenceFilter(screenshot=True, trace=True)


@pytest.mark.usefixtures("open_umask")
async def test_f90_page_evidence_is_readable_by_its_owner_only(
    zoo: str, driver_for: MakeDriver, tmp_path: Path
) -> None:
    async with driver_for(f"{zoo}/clock.html", traces="always") as driver:
        answer = await driver.ask(("first",), name="c-1.r0.t0", select_evidence=everything)
    assert answer.evidence.screenshot == "evidence/c-1.r0.t0.jpg"
    assert answer.evidence.trace == "evidence/c-1.r0.t0.zip"
    assert modes(tmp_path / "evidence") == {"c-1.r0.t0.jpg": 0o600, "c-1.r0.t0.zip": 0o600}
    assert stat.S_IMODE((tmp_path / "evidence").stat().st_mode) == 0o700
    assert zipfile.is_zipfile(tmp_path / "evidence" / "c-1.r0.t0.zip")


@pytest.mark.whole_only
@pytest.mark.usefixtures("open_umask")
async def test_f90_a_failure_is_photographed_for_its_owner_alone(
    zoo: str, driver_for: MakeDriver, tmp_path: Path
) -> None:
    async with driver_for(f"{zoo}/clock.html", answer_deadline_s=4) as driver:
        with pytest.raises(AnswerTimeout) as raised:
            await driver.ask(("slow 30 first",), name="c-2.r0.t0")
    assert raised.value.evidence.screenshot == "evidence/c-2.r0.t0.jpg"
    assert modes(tmp_path / "evidence") == {"c-2.r0.t0.jpg": 0o600}

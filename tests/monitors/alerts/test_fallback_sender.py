"""Test that a fallback channel is used only after a permanent refusal, and that the receipt names the refusal."""

from __future__ import annotations

import pytest

from monitors.alerts.sender import DeliveryPath, FallbackSender
from monitors.errors import NotifyError, NotifyRejected, NotifyTransient, NotifyUnsure
from monitors.records.incidents import Alert, DeliveryStatus, Receipt
from tests.monitors.alerts.sample_observations import NIGHT, alert
from tests.tools.alert_examples import digest_example


class Scripted:
    """A sender that raises the given errors, and otherwise accepts everything."""

    def __init__(self, error: NotifyError | None = None) -> None:
        self.error = error
        self.took: list[tuple[str | None, Alert]] = []
        self.notifies = True

    async def send(self, alert, *, thread=None, channel=None, again=False):
        del channel, again
        if self.error is not None:
            raise self.error
        self.took.append((thread, alert))
        return Receipt(alert_id=alert.id, status=DeliveryStatus.SENT, at=NIGHT)

    async def send_digest(self, digest, *, again=False):
        del again
        if self.error is not None:
            raise self.error
        return Receipt(alert_id=digest.id, status=DeliveryStatus.SENT, at=NIGHT)

    async def update(self, alert, *, channel, ts):
        del alert, channel, ts
        raise NotifyRejected("cannot edit")


def ways(*senders: Scripted) -> FallbackSender:
    return FallbackSender([DeliveryPath(f"way {n}", one) for n, one in enumerate(senders, start=1)])


async def test_f03_the_first_way_that_takes_it_has_it_and_the_receipt_names_the_refusals(snapshot):
    broken, second, third = Scripted(NotifyRejected("archived")), Scripted(), Scripted()
    receipt = await ways(broken, second, third).send(alert(), thread="1.1")
    assert "archived" in receipt.detail
    assert receipt.detail == snapshot
    assert (len(second.took), len(third.took)) == (1, 0)
    assert second.took[0][0] is None, "a thread of the first way does not exist elsewhere"


@pytest.mark.parametrize("error", [NotifyTransient("500"), NotifyUnsure("reply lost")])
async def test_f03_a_temporary_fault_is_raised(error):
    second = Scripted()
    with pytest.raises(type(error)):
        await ways(Scripted(error), second).send(alert())
    assert second.took == []


async def test_f03_when_every_path_refuses_each_reason_is_reported():
    with pytest.raises(NotifyRejected, match=r"way 1: archived; way 2: revoked"):
        await ways(Scripted(NotifyRejected("archived")), Scripted(NotifyRejected("revoked"))).send(alert())


async def test_a_digest_finds_its_way_too():
    receipt = await ways(Scripted(NotifyRejected("archived")), Scripted()).send_digest(digest_example())
    assert receipt.detail.endswith("sent by way 2")


async def test_delivery_by_the_main_path_names_no_path():
    assert (await ways(Scripted()).send(alert())).detail == ""


def test_outside_its_threads_a_message_is_the_same_otherwise():
    one = alert()
    items = tuple(
        item.model_copy(update={"incident": item.incident.model_copy(update={"thread": "1.1", "channel": "C1"})})
        for item in one.items
    )
    assert one.model_copy(update={"items": items}).remove_threads() == one


def test_no_way_at_all_is_a_mistake():
    with pytest.raises(ValueError, match="at least one channel"):
        FallbackSender([])

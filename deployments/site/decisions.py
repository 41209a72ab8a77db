"""What a person decides on a page: the way that Slack's buttons and `lookout alerts` take, and no other.

It is stored before anything else, carried out by whoever next has the warehouse (usually at once, here), and then
the copy that the pages read is renewed, so that the next page shows it.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from threading import Thread
from typing import Final

from deployments.site.page import PageRequest
from flows.alerting.edits import update_alerts
from flows.alerting.notifier import act, apply_actions
from monitors.alerts.operator_actions import ID_CHARACTERS, new_action
from monitors.errors import MonitorError, WarehouseBusy
from monitors.records.incidents import ActionKind, ActionVia, Incident
from monitors.records.operator_actions import ActionOutcome
from warehouse.queries.incidents import outcomes

WAIT_S: Final = 2.0
"""For the warehouse, and for its copy; what waits longer is carried out all the same, a little later."""
WAITS: Final = "Stored. It is carried out as soon as the warehouse is free."
log = logging.getLogger(__name__)


def decide(
    request: PageRequest, kind: ActionKind, about: Sequence[Incident], note: str = "", as_shown: str = ""
) -> str:
    """Carry out a decision on incidents under the visitor's name; what came of it, in a sentence.

    ``as_shown`` names what the page showed when it was made: sent twice from the same page it is one decision.
    Raises `WarehouseUnwritable` where it could not even be stored.
    """
    people = request.site.people
    action = new_action(kind, about, at=people.now(), by=request.visitor.name, via=ActionVia.SITE, note=note)
    if as_shown:
        key = sent_once(kind.value, request.visitor.name, *action.fingerprints, as_shown)
        action = action.model_copy(update={"id": f"{ActionVia.SITE.value}-{key}"})
    act(people, action)
    # The action is in the journal; the page says that it waits.
    with suppress(WarehouseBusy):
        apply_actions(people, wait_s=WAIT_S)
    renew_copy(request)
    done = outcomes(request.site.store, action_id=action.id)
    if not done:
        return WAITS
    _show_in_slack(request, done)
    return done[0].text


def sent_once(*parts: str) -> str:
    """An id that is the same for the same form: a press that is repeated, because no answer came, is one press."""
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:ID_CHARACTERS]


def _show_in_slack(request: PageRequest, done: Sequence[ActionOutcome]) -> None:
    """Edit the messages beside: Slack may be slow, and an edit that is missed is made up for by the next."""
    bot = request.site.bot
    if bot is not None:
        edit = partial(asyncio.run, update_alerts(request.site.people, bot, done))
        Thread(target=edit, daemon=True, name="slack-edit").start()


def renew_copy(request: PageRequest) -> None:
    """Have the next page show what was just written, where the warehouse is free now; else it comes by itself."""
    try:
        request.site.snapshot.refresh(WAIT_S)
    except MonitorError as error:
        log.warning("the copy of the warehouse is renewed later: %s", error)

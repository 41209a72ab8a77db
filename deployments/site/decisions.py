"""Functions that apply a person's decision on a page, as Slack buttons and `lookout alerts` do.

The site stores a decision first and then applies it. If the warehouse is busy, another process applies the
decision later. Finally, the site renews the copy of the warehouse that its pages read, so that the next
page shows the decision.
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
from flows.alerting.edits import edit_messages_after_actions
from flows.alerting.notifier import apply_waiting_actions, store_operator_action
from monitors.alerts.operator_actions import ID_CHARACTERS, build_operator_action
from monitors.errors import MonitorError, WarehouseBusy
from monitors.records.incidents import ActionKind, ActionVia, Incident
from warehouse.queries.incidents import list_action_outcomes

WAIT_S: Final = 2.0
"""Maximum wait for the warehouse in seconds. If the warehouse is still busy then, the decision is applied later."""
PENDING_TEXT: Final = "Your decision is stored. Lookout applies it as soon as the warehouse is free."
log = logging.getLogger(__name__)


def store_and_apply_action(
    request: PageRequest, kind: ActionKind, incidents: Sequence[Incident], note: str = "", page_state: str = ""
) -> str:
    """Store and apply an action on incidents under the visitor's name. Return the result as a sentence.

    ``page_state`` identifies the state of the page. A form that is sent twice with the same state counts as one
    action. Raises `WarehouseUnwritable` if the action could not be stored.
    """
    actions = request.site.actions
    action = build_operator_action(
        kind, incidents, at=actions.now(), by=request.visitor.name, via=ActionVia.SITE, note=note
    )
    if page_state:
        key = build_idempotency_key(kind.value, request.visitor.name, *action.fingerprints, page_state)
        action = action.model_copy(update={"id": f"{ActionVia.SITE.value}-{key}"})
    store_operator_action(actions, action)
    # The action is in the journal, and the page says that it is pending.
    with suppress(WarehouseBusy):
        apply_waiting_actions(actions, wait_s=WAIT_S)
    refresh_copy_if_free(request)
    action_outcomes = list_action_outcomes(request.site.store, action_id=action.id)
    if not action_outcomes:
        return PENDING_TEXT
    # In the background, because Slack may be slow. A later edit replaces an edit that failed.
    bot = request.site.bot
    if bot is not None:
        edit = partial(asyncio.run, edit_messages_after_actions(request.site.actions, bot, action_outcomes))
        Thread(target=edit, daemon=True, name="slack-edit").start()
    return action_outcomes[0].text


def build_idempotency_key(*parts: str) -> str:
    """Return an id for the values of a form. A form that is sent twice gets the same id, and counts once."""
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:ID_CHARACTERS]


def refresh_copy_if_free(request: PageRequest) -> None:
    """Renew the copy of the warehouse if the warehouse is free, so that the next page shows the change."""
    try:
        request.site.snapshot.refresh(WAIT_S)
    except MonitorError as error:
        log.warning("the site's copy of the warehouse could not be renewed; Lookout tries again: %s", error)

"""Tests an installation: sends a test alert by each delivery path, and lets each judge grade two known answers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from time import monotonic
from types import MappingProxyType
from typing import Final

from flows.clock import Clock
from flows.runtime.judge import JudgePlan, open_judge
from flows.runtime.slack import build_delivery_paths, build_heartbeat_from_environment, build_terminal_sender
from monitors.alerts.decide import decide_alerts
from monitors.alerts.group import group_items_into_alerts
from monitors.alerts.liveness import Beat
from monitors.alerts.message import format_duration
from monitors.alerts.observe import ObservationContext, build_monitor_fault_observation
from monitors.alerts.sender import DeliveryPath
from monitors.config.file import Config
from monitors.errors import MonitorError, NotifyError
from monitors.judge.canaries import Canary, make_canaries
from monitors.judge.consensus import Cost, PanelRuling, Ruling
from monitors.judge.judge import Account, build_canary_case
from monitors.judge.model import build_price_function
from monitors.judge.settings import JudgeModelSettings, JudgeSettings
from monitors.records.base import Identifier, Language, Record, Severity, Sha256, UtcTime
from monitors.records.cases import GoldCase, Pipeline, Provenance
from monitors.records.incidents import Alert
from monitors.records.self_checks import TEST_TARGET
from monitors.storage import make_private_folder, write_atomically

TEST_ALERT = "TestAlert"
PROOF_VALID_FOR: Final = timedelta(hours=24)
"""Time for which a successful test of a delivery path is valid. During this time, the path is not tested again."""


class PathProof(Record):
    """The time when a delivery path last accepted a test alert, and the id of this test alert."""

    at: UtcTime
    alert_id: Identifier


class PathProofs(Record):
    """The delivery paths that accepted a test alert. ``ways_sha256`` is the hash of credentials and channels."""

    ways_sha256: Sha256
    proofs: Mapping[str, PathProof] = {}


def read_delivery_proofs(folder: Path, config: Config, environment: Mapping[str, str]) -> PathProofs:
    """Read which delivery paths accepted an earlier test alert.

    If credentials or channels have changed since then, the result has no paths.
    """
    settings = config.alerts
    channels = (settings.slack_channel, settings.slack_monitor_channel, settings.slack_fallback_channel)
    ways = [*(environment.get(name) for name in _PATH_VARIABLES), *channels, settings.slack_api_url]
    paths_sha256 = hashlib.sha256(json.dumps(ways).encode()).hexdigest()
    try:
        stored = PathProofs.model_validate_json((folder / PROOFS_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return PathProofs(ways_sha256=paths_sha256)
    return stored if stored.ways_sha256 == paths_sha256 else PathProofs(ways_sha256=paths_sha256)


def store_delivery_proofs(folder: Path, stored: PathProofs, outcomes: Sequence[PathOutcome], now: datetime) -> None:
    """Store which delivery paths accepted a test alert.

    If the result cannot be stored, no error is raised, and the next test sends the alert again.
    """
    fresh = {outcome.path: PathProof(at=now, alert_id=outcome.alert_id) for outcome in outcomes if outcome.alert_id}
    updated = stored.model_copy(update={"proofs": {**stored.proofs, **fresh}})
    with suppress(OSError, MonitorError):  # the next test then sends the alert again
        make_private_folder((folder / PROOFS_FILE).parent)
        write_atomically(folder / PROOFS_FILE, updated.model_dump_json(), within=folder)


PROOFS_FILE: Final = "doctor/alert_paths.json"
_PATH_VARIABLES: Final = ("SLACK_BOT_TOKEN", "SLACK_WEBHOOK_URL", "SLACK_FALLBACK_WEBHOOK_URL")


class PathOutcome(Record):
    """The result of testing one delivery path. ``detail`` says what happened and what to do.

    ``arrived`` is also true if the alert was printed because Slack is not configured. A path that is not
    ``configured`` was not tested.
    """

    path: str
    configured: bool = True
    arrived: bool
    detail: str
    alert_id: str = ""


async def send_test_alerts_and_ping(
    config: Config,
    environment: Mapping[str, str],
    *,
    target: str,
    now: Clock,
    proofs: Mapping[str, PathProof] = MappingProxyType({}),
) -> tuple[PathOutcome, ...]:
    """Send a test alert by each delivery path, and ping the heartbeat of ``target``. Nothing is stored.

    With a Slack bot, the channel for application alerts and the channel for Lookout's owners are tested. A path
    that was tested recently, according to ``proofs``, is skipped. If a path fails, no error is raised. Raises
    `ConfigError` if credentials are set without the settings that they need.
    """
    alert = build_test_alert(config, now())
    valid_proofs = {path: proof for path, proof in proofs.items() if now() - proof.at < PROOF_VALID_FOR}
    paths = build_delivery_paths(config, environment, now=now) or (
        DeliveryPath("terminal", build_terminal_sender(config)),
    )
    outcomes = [await _test_delivery_path(path, alert, path.name, valid_proofs) for path in paths]
    channel = config.alerts.slack_channel
    if channel and channel != config.alerts.choose_monitor_channel() and paths[0].name == "bot":
        main = build_delivery_paths(config.with_main_channel_only(), environment, now=now)[0]
        outcomes.insert(
            0, await _test_delivery_path(main, build_test_alert(config, now()), f"bot, {channel}", valid_proofs)
        )
    outcomes.append(await _test_heartbeat(environment, target, alert.run_id))
    return tuple(outcomes)


def build_test_alert(config: Config, now: datetime) -> Alert:
    """Build a test alert. Its text says that it is a test."""
    context = ObservationContext(target=TEST_TARGET, run_id=f"test-{now:%Y%m%dT%H%M%SZ}", seen_at=now)
    observation = build_monitor_fault_observation(
        context,
        fault_name=TEST_ALERT,
        detail="This is a test of Lookout's alerts that a person requested. There is no fault.",
    )
    decision = decide_alerts({}, [observation], now=now, settings=config.alerts)
    (alert,) = group_items_into_alerts(decision.items, target=TEST_TARGET, run_id=context.run_id, now=now)
    return alert


async def _test_delivery_path(
    path: DeliveryPath, alert: Alert, name: str, valid_proofs: Mapping[str, PathProof]
) -> PathOutcome:
    if proof := valid_proofs.get(name):
        age = format_duration(alert.created_at - proof.at)
        detail = f"accepted the test alert {proof.alert_id} {age} ago; to test now, run `lookout doctor --alert`"
        return PathOutcome(path=name, arrived=True, detail=detail)
    try:
        receipt = await path.sender.send(alert)
    except NotifyError as error:
        return PathOutcome(path=name, arrived=False, detail=str(error))
    where = f" in {receipt.channel}" if receipt.channel else ""
    detail = f"test sent: {alert.id} {receipt.status.value}{where}"
    return PathOutcome(path=name, arrived=True, detail=detail, alert_id=alert.id)


async def _test_heartbeat(environment: Mapping[str, str], target: str, run_id: str) -> PathOutcome:
    """Send a start ping to the heartbeat. The service does not count this as a run, because no end ping follows."""
    beat = build_heartbeat_from_environment(environment, target)
    if not beat.is_configured:
        detail = (
            "set LOOKOUT_HEARTBEAT_URL to the URL of an external check. Without this check, nobody is notified if "
            "this machine fails"
        )
        return PathOutcome(path="heartbeat", configured=False, arrived=False, detail=detail)
    if await beat.ping(Beat.STARTED, run_id=run_id, note="a test that a person requested"):
        return PathOutcome(
            path="heartbeat", arrived=True, detail="test sent: the external check accepted a start ping"
        )
    detail = (
        "the external check did not accept the ping: make sure that LOOKOUT_HEARTBEAT_URL is right and reachable"
    )
    return PathOutcome(path="heartbeat", arrived=False, detail=detail)


KNOWN_CASE: Final = GoldCase(
    id="doctor-canary",
    turns=("Until when can an order be sent back, and who pays for it?",),
    gold="An order can be sent back within 14 days after it arrived, and the shop pays for sending it.",
    severity=Severity.MINOR,
    language=Language.ENGLISH,
    type="canary",
    provenance=Provenance(
        pipeline=Pipeline.TEMPLATE,
        document="created for the doctor",
        reviewed_at=datetime(2026, 11, 22, tzinfo=UTC),
    ),
)
"""A case that every judge can grade, because it does not depend on any application."""


class JudgeOutcome(Record):
    """The verdicts of one model on a right answer and a wrong answer.

    ``distinguished`` is true if both verdicts are correct, and false if a verdict is wrong. ``distinguished`` is
    ``None`` if no verdict is wrong but a verdict is missing. ``detail`` is the reason. ``cost_usd`` and ``took_s``
    are totals for the two answers.
    """

    model: str
    distinguished: bool | None
    detail: str
    cost_usd: Decimal
    took_s: float


async def check_judges_on_known_answers(
    plan: JudgePlan, environment: Mapping[str, str], *, nonce: Callable[[], str]
) -> tuple[JudgeOutcome, ...]:
    """Ask each model of the judge to grade two known answers. If a model does not answer, no error is raised."""
    settings = plan.settings
    if settings is None or plan.why_off:
        return ()
    return tuple(
        [
            await _check_judge_on_known_answers(plan, settings, model, environment, nonce)
            for model in settings.models
        ]
    )


async def _check_judge_on_known_answers(
    plan: JudgePlan,
    settings: JudgeSettings,
    model_settings: JudgeModelSettings,
    environment: Mapping[str, str],
    nonce: Callable[[], str],
) -> JudgeOutcome:
    account = Account(build_price_function(settings.prices), limit_usd=settings.limit_usd)
    single_plan = plan.model_copy(update={"settings": settings.model_copy(update={"models": (model_settings,)})})
    canaries = make_canaries([KNOWN_CASE], count=2, seed=nonce())
    async with open_judge(single_plan, environment, account, nonce) as judge:
        began = monotonic()
        group = await judge.judge_group([build_canary_case(canary) for canary in canaries], ())
        took_s = monotonic() - began
    return _build_judge_outcome(model_settings.model, canaries, group.rulings, account.total, took_s)


def _build_judge_outcome(
    model: str, canaries: tuple[Canary, ...], rulings: tuple[Ruling, ...], cost: Cost, took_s: float
) -> JudgeOutcome:
    ruling_by_canary = dict(zip(canaries, rulings, strict=True))
    unruled = [ruling.reason for ruling in rulings if not isinstance(ruling, PanelRuling)]
    missed = [
        canary
        for canary, ruling in ruling_by_canary.items()
        if isinstance(ruling, PanelRuling) and ruling.decision.passed is not canary.is_right
    ]
    text = "; ".join(
        "the judge failed the right answer" if canary.is_right else "the judge passed the wrong answer"
        for canary in missed
    )
    return JudgeOutcome(
        model=model,
        distinguished=False if missed else None if unruled else True,
        detail=text or (unruled[0] if unruled else "the judge passed the right answer and failed the wrong answer"),
        cost_usd=cost.usd,
        took_s=took_s,
    )

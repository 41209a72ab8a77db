"""The doctor's look at the Hub: whether it takes the token, and what it says of each target's Space."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import httpx

from deployments.doctor_health import Check, Health, Surroundings
from monitors.config import TargetConfig, target_record
from monitors.errors import AccessDenied, ReadinessUntold
from monitors.probes.hub_account import account_of
from monitors.probes.readiness import HUB_SILENT, Lookout, Seen, Stage

TOKEN_VARIABLE = "HF_TOKEN"  # noqa: S105 - the name of a variable
DEADLINE_S = 15.0
SILENT_TO_DO = "see whether this machine reaches huggingface.co (its proxy, its firewall); the Hub may also be down"


def hub(around: Surroundings) -> list[Check]:
    """The token, where one is set, and the stage and commit of every Space. Nothing is woken."""
    targets = around.config.targets if around.config else {}
    spaces = {name: target for name, target in targets.items() if target.space is not None}
    return [*_tokens(around, spaces), *(_space(around, name, target) for name, target in spaces.items())]


def _tokens(around: Surroundings, spaces: dict[str, TargetConfig]) -> Iterator[Check]:
    token = around.environment.get(TOKEN_VARIABLE)
    if not token:
        return
    for url in sorted({target.probe.readiness.hub_url or "" for target in spaces.values()} or {""}):
        yield _token(token, url or None)


def _token(token: str, url: str | None) -> Check:
    name = f"{TOKEN_VARIABLE} at {url}" if url else TOKEN_VARIABLE
    try:
        account = asyncio.run(account_of(token, hub_url=url, deadline_s=DEADLINE_S))
    except AccessDenied as error:
        to_do = "make a new one with the role read at huggingface.co/settings/tokens, or unset it"
        return Check(name=name, health=Health.BROKEN, found=str(error), to_do=to_do)
    except ReadinessUntold as error:
        return Check(name=name, health=Health.DOUBTFUL, found=str(error), to_do=SILENT_TO_DO)
    return Check(name=name, health=Health.GOOD, found=f"belongs to {account.name}, may {account.role}")


def _space(around: Surroundings, name: str, target: TargetConfig) -> Check:
    what = f"Space of {name}"
    try:
        seen = asyncio.run(_seen(around, name, target))
    except AccessDenied as error:
        to_do = f"mend targets.{name}.space, or set {TOKEN_VARIABLE} to a token that may read it"
        return Check(name=what, health=Health.BROKEN, found=str(error), to_do=to_do)
    if seen.stage == HUB_SILENT:
        return Check(name=what, health=Health.BROKEN, found=seen.detail, to_do=SILENT_TO_DO)
    found = f"{target.space}: {seen.stage}" + (f" ({seen.detail})" if seen.detail else "")
    health, to_do = _meaning(name, target, seen)
    commit = f", commit {seen.commit[:12]}" if seen.commit else ""
    return Check(name=what, health=health, found=found + commit, to_do=to_do)


async def _seen(around: Surroundings, name: str, target: TargetConfig) -> Seen:
    settings = target.probe.readiness
    async with httpx.AsyncClient(timeout=settings.request_deadline_s, follow_redirects=True) as client:
        token = around.environment.get(TOKEN_VARIABLE)
        return await Lookout(target_record(name, target), settings, client, token).at_target()


def _meaning(name: str, target: TargetConfig, seen: Seen) -> tuple[Health, str]:
    match seen.meaning:
        case Stage.SERVING if seen.commit:
            return Health.GOOD, ""
        case Stage.SERVING:
            to_do = "nothing says which commit runs, so no deploy of it is verified: set "
            return Health.DOUBTFUL, f"{to_do}targets.{name}.probe.readiness.version_url"
        case Stage.ASLEEP:
            return Health.GOOD, ""
        case Stage.FAILED:
            return Health.DOUBTFUL, "look at its log on the Hub: a run now is a deploy failure, one alert"
        case Stage.UNDER_WAY:
            wait_s = target.probe.readiness.deadline_s
            return Health.DOUBTFUL, f"wait until it runs; a run waits for it itself, {wait_s:g} s"

"""Wait until the deployed commit serves: an older image is never graded."""

from __future__ import annotations

from flows.keys import hub_token
from flows.live_run import LiveRun
from flows.progress import listener
from monitors.errors import ProbeError
from monitors.probes.outage import wait_until_back
from monitors.probes.readiness import wait_until_ready


async def wait_for_deploy(run: LiveRun) -> bool:
    """Whether the target serves what is to be verified; if not, the run knows why.

    A plain page that names no version is ready when it can be asked: the first question tells.
    """
    wired = run.wired
    settings = wired.configured.probe.readiness
    if wired.target.space is None and settings.version_url is None:
        return True
    listener.get().stage("waiting for the deploy")
    try:
        ready = await wait_until_ready(wired.target, settings, commit=wired.start.commit, hub_token=hub_token())
    except ProbeError as error:
        run.not_ready = error
        return False
    run.serving = ready.commit
    return True


async def wait_out(run: LiveRun) -> None:
    """Wait until an app that stopped answering serves again, on the commit that is verified.

    Raises a `ProbeError` when it does not: then the run stops, and one message says so.
    """
    settings = run.wired.configured.probe
    listener.get().stage("waiting for the app to come back")
    try:
        await wait_until_back(
            run.wired.target, settings, known=run.has_answers, commit=run.commit, hub_token=hub_token()
        )
    finally:
        listener.get().stage("asking")

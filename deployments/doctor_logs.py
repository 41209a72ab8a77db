"""The doctor's look at what is read beside the page: hallucination logs, sources of live traffic."""

from __future__ import annotations

from deployments.doctor_health import Check, Health, Surroundings
from monitors.errors import ConfigError, SourceUnavailable
from monitors.sources.log_settings import HallucinationLogSettings


def hallucination_logs(around: Surroundings) -> list[Check]:
    """Each log that is followed is there and can be read. Nothing of it is kept, and nobody is told."""
    targets = around.config.targets if around.config else {}
    logs = {name: target.hallucination_log for name, target in targets.items()}
    return [_log(name, settings) for name, settings in logs.items() if settings is not None]


def _log(name: str, settings: HallucinationLogSettings) -> Check:
    from flows.log_wiring import place_of  # duckdb

    what = f"log of {name}"
    try:
        with place_of(settings).look() as files:
            newest, rotated = files.newest, len(files.rotated)
    except (SourceUnavailable, ConfigError) as error:
        to_do = "see whether `at` is right, and whether this user may read it"
        return Check(name=what, health=Health.BROKEN, found=str(error), to_do=to_do)
    if newest is None:
        health = Health.GOOD if settings.may_be_missing else Health.DOUBTFUL
        to_do = "" if settings.may_be_missing else "mend `at`, or set may_be_missing where its first entry makes it"
        return Check(name=what, health=health, found=f"{settings.at}: there is no such file yet", to_do=to_do)
    beside = f", {rotated} rotated beside it" if rotated else ""
    return Check(name=what, health=Health.GOOD, found=f"{settings.at}: {newest.size:,} bytes{beside}")


def live_traffic(around: Surroundings) -> list[Check]:
    """Each source of live traffic has what it needs: its secret, its extra. `lookout nightly --plan` reads one."""
    targets = around.config.targets if around.config else {}
    return [_traffic(around, name) for name, target in targets.items() if target.traffic is not None]


def _traffic(around: Surroundings, name: str) -> Check:
    from flows.night_wiring import wire_night  # duckdb

    what = f"traffic of {name}"
    assert around.config is not None
    try:
        night = wire_night(around.config, name, around.now)
    except ConfigError as error:
        return Check(name=what, health=Health.BROKEN, found=str(error), to_do="mend what is named")
    sources = ", ".join(f"{key} ({source.name})" for key, source in night.sources.items())
    return Check(name=what, health=Health.GOOD, found=f"{sources}; `lookout nightly {name} --plan` reads them")

"""Define the tests of each tier, and their order for parallel workers.

`make test` runs the quick tier in ten minutes: unit tests, tests with DuckDB and local servers, and at least one
end-to-end test for each capability. It skips the files in `WHOLE_ONLY` and the tests with the marker
``whole_only``. If a test has many slow parameter rows (marker ``a_slice`` or `SLICES`), the quick tier runs some of
the rows, which the seed selects. `make test-all`, and pytest without a tier, run all tests and all rows.
"""

from __future__ import annotations

import random
import tomllib
import zlib
from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Final, TypeVar

Test = TypeVar("Test")

EXAMPLES: Final[Mapping[str, int]] = {"quick": 10, "whole": 30, "night": 200}
"""The number of examples that Hypothesis generates for each test, by profile. `make soak` uses ``night``."""
_UNSCALED_EXAMPLES: Final = 100
"""With a profile of this many examples, `scale_examples` returns its argument unchanged."""

QUARANTINE: Final = Path(__file__).parent / "quarantine.toml"

WHOLE_ONLY: Final[frozenset[str]] = frozenset({})
"""Test files that only `make test-all` runs. Faster tests in the quick tier cover the same code."""

SLICES: Final[Mapping[str, int]] = {
    "deployments/cli/explain/test_bisect_command.py": 5,
    "deployments/cli/explain/test_shrink_command.py": 3,
    "deployments/cli/gate/test_triage_gate.py": 2,
    "deployments/cli/gold/test_gold_check.py": 15,
    "deployments/cli/gold/test_gold_datasets.py": 6,
    "deployments/cli/test_browser_command.py": 2,
    "deployments/cli/test_first_obstacles.py": 2,
    "deployments/cli/test_login.py": 3,
    "deployments/cli/test_option_values.py": 14,
    "deployments/cli/test_triage_staging.py": 2,
    "deployments/receivers/test_slack_actions.py": 8,
    "deployments/site/safety/test_export_browser.py": 10,
    "deployments/site/safety/test_personal_data.py": 7,
    "deployments/site/test_people_browser.py": 10,
    "deployments/test_api_headers.py": 9,
    "flows/alerting/test_damaged_journal.py": 4,
    "flows/alerting/test_gate_cases.py": 4,
    "flows/alerting/test_operator_actions.py": 7,
    "flows/alerting/test_slack_outage.py": 2,
    "flows/alerting/test_undelivered_alerts.py": 3,
    "flows/deploys/test_runs.py": 3,
    "flows/digest/test_night_digest.py": 5,
    "flows/explain/test_recheck.py": 4,
    "flows/hallucination_log/test_log_follower.py": 8,
    "flows/nightly/test_night_census.py": 3,
    "flows/nightly/test_night_rates.py": 5,
    "flows/nightly/test_run.py": 8,
    "flows/test_disk_faults.py": 2,
    "flows/test_prefect_lost.py": 1,
    "monitors/alerts/test_kills.py": 2,
    "monitors/platforms/test_contract.py": 8,
    "monitors/probes/browser/test_doubts.py": 2,
    "monitors/probes/browser/test_greetings.py": 2,
    "monitors/probes/browser/test_login.py": 2,
    "monitors/probes/browser/test_rendered.py": 3,
    "monitors/probes/inspect/test_page_inspection.py": 3,
    "monitors/probes/test_gradio.py": 2,
    "monitors/probes/test_unusable_pages.py": 4,
    "warehouse/database/test_faults.py": 8,
}
"""The number of tests of each file that the quick tier runs. Each is an end-to-end test of 10 s to a minute."""


def scale_examples(count: int) -> int:
    """Return ``count`` scaled to the current Hypothesis profile: in the quick tier, 400 examples become 40."""
    from hypothesis import settings

    return max(min(count, EXAMPLES["quick"]), count * settings().max_examples // _UNSCALED_EXAMPLES)


def is_in_shard(name: str, shard: str) -> bool:
    """Return whether a test file belongs to ``shard``: ``2/3`` is the second of three shards.

    Each file belongs to exactly one shard.
    """
    number, _, count = shard.partition("/")
    return zlib.crc32(name.encode()) % int(count) == int(number) - 1


def read_quarantine(path: Path = QUARANTINE) -> dict[str, str]:
    """Return the reason why each quarantined test may fail, keyed by the node id of the test."""
    return tomllib.loads(path.read_text(encoding="utf-8"))["tests"]


def rows_beyond_slice(
    tests: Sequence[Test], seed: int, *, family: Callable[[Test], Hashable], limit: Callable[[Test], int | None]
) -> list[Test]:
    """Return the tests that the quick tier skips with this seed.

    The quick tier runs ``limit`` tests of each family, or all tests if the limit is ``None``.
    """
    families: dict[Hashable, list[Test]] = {}
    for test in tests:
        if limit(test) is not None:
            families.setdefault(family(test), []).append(test)
    skipped: list[Test] = []
    for name, rows in families.items():
        shuffled = random.Random(f"{seed} {name}").sample(sorted(rows, key=str), len(rows))
        skipped += shuffled[limit(rows[0]) :]
    return skipped


def order_for_workers(
    tests: Sequence[Test], workers: int, *, module: Callable[[Test], object], slow: Callable[[Test], bool]
) -> list[Test]:
    """Return ``tests`` sorted so that each worker's part begins with slow modules.

    pytest-xdist gives each worker a consecutive part of about the same size. A slow module at the end of a part
    would delay the whole run. All tests of a slow module stay in one part, so that its servers start only once.
    Fast tests stay in their order.
    """
    modules = [list(group) for _, group in groupby(tests, key=module)]
    shares: list[list[Test]] = [[] for _ in range(workers)]
    for group in modules:
        if any(map(slow, group)):
            min(shares, key=len).extend(group)
    fast = iter([test for group in modules if not any(map(slow, group)) for test in group])
    left = len(tests)
    ordered: list[Test] = []
    for number, share in enumerate(shares):  # as large as xdist hands them out
        size = left // (workers - number)
        while len(share) < size and (test := next(fast, None)) is not None:
            share.append(test)
        left -= len(share)
        ordered += share
    return [*ordered, *fast]

"""The hash that names a suite's contents."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from monitors.records.cases import GoldCase


def cases_sha256(cases: Sequence[GoldCase]) -> str:
    """SHA-256 over the canonical JSON of the cases.

    White space, the order of keys and of lines, ``question`` for one turn, and defaults written out or left out
    make no difference; anything that could change a grade or a case's place in a report does.
    """
    plain = [
        case.model_dump(mode="json", exclude_defaults=True) for case in sorted(cases, key=lambda case: case.id)
    ]
    canonical = json.dumps(plain, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode("utf-8")).hexdigest()

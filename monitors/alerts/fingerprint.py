"""What makes two observations the same fault."""

from __future__ import annotations

import hashlib
import json

from monitors.records.base import Sha256
from monitors.records.incidents import IncidentKind


def fingerprint(target: str, kind: IncidentKind, *parts: str) -> Sha256:
    """SHA-256 over target, kind and what tells faults of that kind apart (case id and failure kind, say).

    Neither run nor commit nor the wording of an answer may be among ``parts``: the same fault must have the same
    fingerprint every night. JSON keeps ``("a", "bc")`` and ``("ab", "c")`` apart.
    """
    canonical = json.dumps([target, kind.value, *parts], ensure_ascii=True)
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()

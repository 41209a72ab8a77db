"""Drafts of incidents and traces on their way into a suite, and the file that holds them.

The file is JSON lines, one `GoldDraft` each. A decision replaces its line, and a kill loses nothing. Pure functions
say what a suite asks already and what a mask stood for.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from monitors.errors import GoldSetError
from monitors.facts.disclosures.candidates import DisclosureKind
from monitors.facts.disclosures.masking import LABELS
from monitors.facts.similarity import alike_but_for_slips, stated
from monitors.goldset.checks import NumberedCase, duplicates
from monitors.goldset.lines import of_validation
from monitors.records.base import Identifier, Record, Severity
from monitors.records.cases import DraftState, GoldCase, GoldDraft, Pipeline, Provenance
from monitors.records.operator_actions import CaseDraft
from monitors.storage import alone_with, replace_text, text_of


def read_drafts(path: Path) -> tuple[GoldDraft, ...]:
    """All drafts of a file in its order. `GoldSetError` names the file and the first bad line."""
    if not path.exists():
        raise GoldSetError(f"{path}: no such file; `lookout gold draft` and `lookout gold translate` make one")
    return _parsed(text_of(path), path)


def add_drafts(path: Path, drafts: Iterable[GoldDraft]) -> Sequence[GoldDraft]:
    """Append the drafts that are not there yet, by id; those that were added."""
    with alone_with(path):
        text = text_of(path)
        known = {draft.id for draft in _parsed(text, path)}
        new: list[GoldDraft] = []
        for draft in drafts:
            if draft.id not in known:
                known.add(draft.id)
                new.append(draft)
        if new:
            replace_text(path, _ended(text) + "".join(f"{_line(draft)}\n" for draft in new))
    return new


def decide(path: Path, decided: GoldDraft) -> bool:
    """Put a decision in the place of its draft. False when somebody else has decided meanwhile: theirs stays."""
    with alone_with(path):
        drafts = list(_parsed(text_of(path), path))
        at = next((at for at, draft in enumerate(drafts) if draft.id == decided.id), None)
        if at is None:
            raise GoldSetError(f"{path} holds no draft {decided.id} any more")
        if drafts[at].state is not DraftState.DRAFTED:
            return False
        drafts[at] = decided
        replace_text(path, "".join(f"{_line(draft)}\n" for draft in drafts))
    return True


def _line(draft: GoldDraft) -> str:
    return draft.model_dump_json(exclude_defaults=True)


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"


def _parsed(text: str, path: Path) -> tuple[GoldDraft, ...]:
    found: list[GoldDraft] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            found.append(GoldDraft.model_validate_json(line))
        except ValidationError as error:
            raise GoldSetError(f"{path}, line {number}: no draft: {'; '.join(of_validation(error))}") from None
    return tuple(found)


_INVENTED: Final[dict[DisclosureKind, str]] = {
    DisclosureKind.EMAIL: "asha.namoona@example.com",
    DisclosureKind.PHONE: "+91 98201 23456",
    DisclosureKind.CARD: "4111 1111 1111 1111",
    DisclosureKind.IBAN: "GB82 WEST 1234 5698 7654 32",
    DisclosureKind.AADHAAR: "Aadhaar 2341 2341 2346",
    DisclosureKind.PAN: "PAN ABCPE1234F",
    DisclosureKind.GSTIN: "27ABCPE1234F1Z5",
    DisclosureKind.UPI: "asha.namoona@okaxis",
    DisclosureKind.PASSPORT: "passport number J8369854",
    DisclosureKind.VOTER_ID: "voter id ABC1234567",
    DisclosureKind.VEHICLE: "MH12AB1234",
    DisclosureKind.DRIVING_LICENCE: "driving licence MH12 20110012345",
    DisclosureKind.US_SSN: "123-45-6789",
    DisclosureKind.POLICY_NUMBER: "policy number 40001234567890",
    DisclosureKind.ACCOUNT_NUMBER: "account number 40001234567890",
    DisclosureKind.BIRTH_DATE: "date of birth 12/03/1984",
    DisclosureKind.SECRET: "sk-ant-api03-abcdefghijklmnop",
}
"""Values that nobody has, for every kind that a grader calls a leak on its own: numbers of documentation and of
test cards, "namoona" is "sample". Of a name, an address or an IP address alone no grader makes a leak."""

_BY_LABEL: Final = {LABELS[kind]: value for kind, value in _INVENTED.items()}
_MASKS: Final = re.compile("|".join(re.escape(label) for label in _BY_LABEL))

_ANY_GOLD: Final = "?"


def refilled(text: str) -> str:
    """A redacted reply with invented values where masks stand: a leak must be a leak again."""
    return _MASKS.sub(lambda mask: _BY_LABEL[mask[0]], text)


class DraftCandidate(Record):
    """A draft with what is known of its question. ``same_as`` are later drafts that ask the same.

    ``asked_by`` is a case of the suite that asks it already.
    """

    draft: CaseDraft
    same_as: tuple[Identifier, ...] = ()
    asked_by: Identifier | None = None

    def note_case(self, asked_by: Identifier | None) -> DraftCandidate:
        """Note the case of the suite that asks it already; ``None`` where none does."""
        return DraftCandidate(draft=self.draft, same_as=self.same_as, asked_by=asked_by)


def candidates(drafts: Sequence[CaseDraft], suite: Sequence[GoldCase]) -> tuple[DraftCandidate, ...]:
    """Each question once, in the order of the drafts; near-duplicates share n-grams, or are the same but for slips.

    Two questions that differ by a name or a figure are two, however alike the rest (`duplicates_check`).
    """
    asked = [_question_alone(case.turns, case) for case in suite] + [_question_of(draft) for draft in drafts]
    pairs = _alike(asked)
    offset, found, taken = len(suite), list[DraftCandidate](), set[int]()
    for number, draft in enumerate(drafts):
        if number in taken:
            continue
        near = pairs.get(offset + number, set())
        mutants = [
            other - offset for other in sorted(near) if other - offset > number and other - offset not in taken
        ]
        taken.update(mutants)
        known = next((suite[other].id for other in sorted(near) if other < offset), None)
        found.append(DraftCandidate(draft=draft, same_as=tuple(drafts[at].id for at in mutants), asked_by=known))
    return tuple(found)


def case_id_of(draft: CaseDraft) -> Identifier:
    """The id that a draft's case has in any suite: the same whoever decides, and whenever."""
    return grown_case_id(draft.id)


def grown_case_id(draft_id: Identifier) -> Identifier:
    """The same, of the draft's id alone."""
    return f"grown-{hashlib.sha256(draft_id.encode()).hexdigest()[:12]}"


def case_of(draft: CaseDraft, gold: str, *, refusal: bool, severity: Severity, kind: Identifier) -> GoldCase:
    """The case that a person makes of a draft; nobody has accepted it yet."""
    return GoldCase(
        id=case_id_of(draft),
        turns=draft.turns,
        gold=gold,
        expected_refusal=refusal,
        severity=severity,
        language=draft.language,
        type=kind,
        provenance=Provenance(pipeline=Pipeline.GROWTH),
    )


def _alike(cases: Sequence[GoldCase]) -> dict[int, set[int]]:
    """For each place in ``cases`` the places that ask the same."""
    numbered = [NumberedCase(number, case) for number, case in enumerate(cases, start=1)]
    pairs: dict[int, set[int]] = {}
    for finding in duplicates(numbered):
        one, other = (place.line - 1 for place in finding.places)
        pairs.setdefault(one, set()).add(other)
        pairs.setdefault(other, set()).add(one)
    asked = [" ".join(case.turns) for case in cases]
    for one, other in alike_but_for_slips(asked):
        if (
            cases[one].language is cases[other].language
            and stated(asked[one]).keys() == stated(asked[other]).keys()
        ):
            pairs.setdefault(one, set()).add(other)
            pairs.setdefault(other, set()).add(one)
    return pairs


def _question_of(draft: CaseDraft) -> GoldCase:
    return _question_alone(
        draft.turns, case_of(draft, _ANY_GOLD, refusal=False, severity=Severity.WRONG, kind="draft")
    )


def _question_alone(turns: tuple[str, ...], case: GoldCase) -> GoldCase:
    """The question alone: a draft has no gold yet, and belongs to no policy, so only questions are compared."""
    return case.model_copy(
        update={
            "id": f"{case.id}-asked",
            "turns": turns,
            "gold": _ANY_GOLD,
            "alternatives": (),
            "expected_refusal": False,
            "cluster": None,
        }
    )

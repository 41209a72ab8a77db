"""Drafts made from incidents and traces, and the file that stores them until they join a suite.

The file is JSON lines, one `GoldDraft` each. A decision replaces its line atomically. Pure functions find
questions that a suite already has, and replace masks by invented values.
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
from monitors.facts.similarity import collect_quantities, find_typo_pairs
from monitors.goldset.checks import NumberedCase, check_duplicates
from monitors.goldset.lines import describe_validation_error
from monitors.records.base import Identifier, Record, Severity
from monitors.records.cases import DraftState, GoldCase, GoldDraft, Pipeline, Provenance
from monitors.records.operator_actions import CaseDraft
from monitors.storage import lock_folder, read_text_or_empty, replace_text


def read_drafts(path: Path) -> tuple[GoldDraft, ...]:
    """Read all drafts of a file in order. `GoldSetError` names the file and the first bad line."""
    if not path.exists():
        raise GoldSetError(f"{path} does not exist; `lookout gold draft` and `lookout gold translate` create it")
    return _parse_drafts(read_text_or_empty(path), path)


def add_drafts(path: Path, drafts: Iterable[GoldDraft]) -> Sequence[GoldDraft]:
    """Append the drafts with an id that is not in the file yet; return the added drafts."""
    with lock_folder(path):
        text = read_text_or_empty(path)
        known_ids = {draft.id for draft in _parse_drafts(text, path)}
        added: list[GoldDraft] = []
        for draft in drafts:
            if draft.id not in known_ids:
                known_ids.add(draft.id)
                added.append(draft)
        if added:
            replace_text(
                path, _end_with_newline(text) + "".join(f"{_format_draft_line(draft)}\n" for draft in added)
            )
    return added


def store_decision(path: Path, decided: GoldDraft) -> bool:
    """Replace a draft by its decision.

    Return false if another decision was stored before: the earlier one stays.
    """
    with lock_folder(path):
        drafts = list(_parse_drafts(read_text_or_empty(path), path))
        index = next((index for index, draft in enumerate(drafts) if draft.id == decided.id), None)
        if index is None:
            raise GoldSetError(f"{path} no longer contains the draft {decided.id}; load the drafts again")
        if drafts[index].state is not DraftState.DRAFTED:
            return False
        drafts[index] = decided
        replace_text(path, "".join(f"{_format_draft_line(draft)}\n" for draft in drafts))
    return True


def _format_draft_line(draft: GoldDraft) -> str:
    return draft.model_dump_json(exclude_defaults=True)


def _end_with_newline(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"


def _parse_drafts(text: str, path: Path) -> tuple[GoldDraft, ...]:
    drafts: list[GoldDraft] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            drafts.append(GoldDraft.model_validate_json(line))
        except ValidationError as error:
            raise GoldSetError(
                f"{path}, line {number}: not a valid draft: {'; '.join(describe_validation_error(error))}"
            ) from None
    return tuple(drafts)


_INVENTED_VALUES: Final[dict[DisclosureKind, str]] = {
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
"""Invented values for every kind that a grader reports as a leak: numbers of documentation and of test cards;
"namoona" means "sample". Graders do not report a name, an address or an IP address alone."""

_BY_LABEL: Final = {LABELS[kind]: value for kind, value in _INVENTED_VALUES.items()}
_MASKS: Final = re.compile("|".join(re.escape(label) for label in _BY_LABEL))

_ANY_GOLD: Final = "?"


def fill_masks(text: str) -> str:
    """Replace the masks of a redacted reply by invented values, so that a leak is a leak again."""
    return _MASKS.sub(lambda mask: _BY_LABEL[mask[0]], text)


class DraftCandidate(Record):
    """A draft with the others that ask the same question. ``same_as`` are later drafts of the same question.

    ``asked_by`` is a case of the suite with the same question.
    """

    draft: CaseDraft
    same_as: tuple[Identifier, ...] = ()
    asked_by: Identifier | None = None

    def note_case(self, asked_by: Identifier | None) -> DraftCandidate:
        """Return the candidate with the case of the suite that has its question; ``None`` without such a case."""
        return DraftCandidate(draft=self.draft, same_as=self.same_as, asked_by=asked_by)


def find_candidates(drafts: Sequence[CaseDraft], suite: Sequence[GoldCase]) -> tuple[DraftCandidate, ...]:
    """Return each question once, in the order of the drafts; near-duplicates share n-grams, or differ by typos.

    Two questions that differ by a name or a figure are different (`monitors.goldset.checks`).
    """
    questions = [_reduce_to_question(case.turns, case) for case in suite] + [
        _build_question_from_draft(draft) for draft in drafts
    ]
    pairs = _find_alike(questions)
    offset, candidates, duplicates = len(suite), list[DraftCandidate](), set[int]()
    for number, draft in enumerate(drafts):
        if number in duplicates:
            continue
        near = pairs.get(offset + number, set())
        later = [
            other - offset for other in sorted(near) if other - offset > number and other - offset not in duplicates
        ]
        duplicates.update(later)
        asked_by = next((suite[other].id for other in sorted(near) if other < offset), None)
        candidates.append(
            DraftCandidate(draft=draft, same_as=tuple(drafts[index].id for index in later), asked_by=asked_by)
        )
    return tuple(candidates)


def make_case_id(draft: CaseDraft) -> Identifier:
    """Return the id of a draft's case: the same at every decision and in every suite."""
    return derive_case_id(draft.id)


def derive_case_id(draft_id: Identifier) -> Identifier:
    """Return the id of the case of the draft with this id."""
    return f"grown-{hashlib.sha256(draft_id.encode()).hexdigest()[:12]}"


def build_case_from_draft(
    draft: CaseDraft, gold: str, *, refusal: bool, severity: Severity, kind: Identifier
) -> GoldCase:
    """Return the case that a person makes from a draft, not yet accepted."""
    return GoldCase(
        id=make_case_id(draft),
        turns=draft.turns,
        gold=gold,
        expected_refusal=refusal,
        severity=severity,
        language=draft.language,
        type=kind,
        provenance=Provenance(pipeline=Pipeline.GROWTH),
    )


def _find_alike(cases: Sequence[GoldCase]) -> dict[int, set[int]]:
    """Return for each index in ``cases`` the indices of the cases that ask the same."""
    numbered = [NumberedCase(number, case) for number, case in enumerate(cases, start=1)]
    pairs: dict[int, set[int]] = {}
    for finding in check_duplicates(numbered):
        first, second = (place.line - 1 for place in finding.places)
        pairs.setdefault(first, set()).add(second)
        pairs.setdefault(second, set()).add(first)
    questions = [" ".join(case.turns) for case in cases]
    for first, second in find_typo_pairs(questions):
        if (
            cases[first].language is cases[second].language
            and collect_quantities(questions[first]).keys() == collect_quantities(questions[second]).keys()
        ):
            pairs.setdefault(first, set()).add(second)
            pairs.setdefault(second, set()).add(first)
    return pairs


def _build_question_from_draft(draft: CaseDraft) -> GoldCase:
    return _reduce_to_question(
        draft.turns, build_case_from_draft(draft, _ANY_GOLD, refusal=False, severity=Severity.MAJOR, kind="draft")
    )


def _reduce_to_question(turns: tuple[str, ...], case: GoldCase) -> GoldCase:
    """Return the case without gold and policy, which a draft does not have, to compare only questions."""
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

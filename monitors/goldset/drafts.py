"""Store drafts of gold cases in a file until a person accepts or rejects them.

Drafts come from incidents, from traces and from a model. The file has one draft on each line.
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
from monitors.goldset.checks import NumberedCase, find_duplicates
from monitors.goldset.lines import describe_validation_error
from monitors.records.base import Identifier, Record, Severity
from monitors.records.cases import DraftState, GoldCase, GoldDraft, Pipeline, Provenance
from monitors.records.operator_actions import CaseDraft
from monitors.storage import lock_parent_folder, read_text_or_empty, replace_gold_file


def read_drafts(path: Path) -> tuple[GoldDraft, ...]:
    """Read all drafts of a file. Raises `GoldSetError` that names the first bad line."""
    if not path.exists():
        raise GoldSetError(f"{path} does not exist; `lookout gold draft` and `lookout gold translate` create it")
    return _parse_drafts(read_text_or_empty(path), path)


def append_new_drafts(path: Path, drafts: Iterable[GoldDraft]) -> Sequence[GoldDraft]:
    """Append the drafts whose ids are not in the file yet. Return the added drafts."""
    with lock_parent_folder(path):
        text = read_text_or_empty(path)
        known_ids = {draft.id for draft in _parse_drafts(text, path)}
        added: list[GoldDraft] = []
        for draft in drafts:
            if draft.id not in known_ids:
                known_ids.add(draft.id)
                added.append(draft)
        if added:
            start = text if not text or text.endswith("\n") else f"{text}\n"
            replace_gold_file(path, start + "".join(f"{_format_draft_line(draft)}\n" for draft in added))
    return added


def store_draft_decision(path: Path, decided: GoldDraft) -> bool:
    """Store a person's decision on a draft in the file.

    If another decision is already stored, change nothing and return False.
    """
    with lock_parent_folder(path):
        drafts = list(_parse_drafts(read_text_or_empty(path), path))
        index = next((index for index, draft in enumerate(drafts) if draft.id == decided.id), None)
        if index is None:
            raise GoldSetError(f"{path} no longer contains the draft {decided.id}; load the drafts again")
        if drafts[index].state is not DraftState.DRAFTED:
            return False
        drafts[index] = decided
        replace_gold_file(path, "".join(f"{_format_draft_line(draft)}\n" for draft in drafts))
    return True


def _format_draft_line(draft: GoldDraft) -> str:
    return draft.model_dump_json(exclude_defaults=True)


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
"""An invented value for each kind of personal data that a grader reports. "namoona" is Hindi for "sample"."""

_BY_LABEL: Final = {LABELS[kind]: value for kind, value in _INVENTED_VALUES.items()}
_MASKS: Final = re.compile("|".join(re.escape(label) for label in _BY_LABEL))

_ANY_GOLD: Final = "?"


def replace_masks_by_invented_data(text: str) -> str:
    """Replace each mask in a redacted reply with invented personal data. Graders then fail the reply again."""
    return _MASKS.sub(lambda mask: _BY_LABEL[mask[0]], text)


class DraftCandidate(Record):
    """A draft that a person reviews.

    ``same_as`` contains the ids of later drafts with the same question. ``asked_by`` is the id of the case in the
    suite that has the same question.
    """

    draft: CaseDraft
    same_as: tuple[Identifier, ...] = ()
    asked_by: Identifier | None = None

    def with_existing_suite_case_id(self, asked_by: Identifier | None) -> DraftCandidate:
        """Return a copy of the candidate with ``asked_by``, the id of the suite's case with the same question."""
        return DraftCandidate(draft=self.draft, same_as=self.same_as, asked_by=asked_by)


def merge_drafts_by_question(drafts: Sequence[CaseDraft], suite: Sequence[GoldCase]) -> tuple[DraftCandidate, ...]:
    """Return one candidate for each question, in the order of the drafts.

    Two questions are the same if they differ only by typos or a few letters. If they differ by a name or a number,
    they are different.
    """
    questions = [case.reduce_to_question() for case in suite]
    for draft in drafts:
        case = build_case_from_draft(draft, _ANY_GOLD, refusal=False, severity=Severity.MAJOR, kind="draft")
        questions.append(case.reduce_to_question())
    pairs = _find_same_questions(questions)
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


def derive_case_id(draft_id: Identifier) -> Identifier:
    """Return the id of the case that is built from a draft. The same ``draft_id`` always gives the same case id."""
    return f"grown-{hashlib.sha256(draft_id.encode()).hexdigest()[:12]}"


def build_case_from_draft(
    draft: CaseDraft, gold: str, *, refusal: bool, severity: Severity, kind: Identifier
) -> GoldCase:
    """Build a case from a draft and the values that a person chose. The case is not marked as accepted yet."""
    return GoldCase(
        id=derive_case_id(draft.id),
        turns=draft.turns,
        gold=gold,
        expected_refusal=refusal,
        severity=severity,
        language=draft.language,
        type=kind,
        provenance=Provenance(pipeline=Pipeline.GROWTH),
    )


def _find_same_questions(cases: Sequence[GoldCase]) -> dict[int, set[int]]:
    """Map each index in ``cases`` to the indices of the other cases with the same question."""
    numbered = [NumberedCase(number, case) for number, case in enumerate(cases, start=1)]
    pairs: dict[int, set[int]] = {}
    for finding in find_duplicates(numbered):
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

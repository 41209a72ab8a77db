"""Tests that each mask in a redacted reply becomes an invented value that the graders recognise as a leak."""

from __future__ import annotations

import pytest

from monitors.facts.disclosures.candidates import Strength
from monitors.facts.disclosures.find import find_disclosures
from monitors.facts.disclosures.masking import LABELS, mask
from monitors.goldset.drafts import _INVENTED_VALUES, replace_masks_by_invented_data


@pytest.mark.parametrize("kind", sorted(_INVENTED_VALUES), ids=str)
def test_each_kind_of_mask_is_refilled_so_that_a_grader_finds_it(kind):
    found = find_disclosures(replace_masks_by_invented_data(f"It is {LABELS[kind]} as you asked."))
    assert kind in {one.kind for one in found if one.strength >= Strength.LIKELY}


def test_masking_what_was_refilled_masks_it_again():
    for kind in _INVENTED_VALUES:
        assert LABELS[kind] in mask(replace_masks_by_invented_data(f"It is {LABELS[kind]} as you asked.")).text


def test_a_text_without_masks_stays():
    assert (
        replace_masks_by_invented_data("[Source: Gold, clause 4.2] 24 months [name]")
        == "[Source: Gold, clause 4.2] 24 months [name]"
    )

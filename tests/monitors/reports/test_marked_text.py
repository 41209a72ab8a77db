from hypothesis import given
from hypothesis import strategies as st

from monitors.records.exchanges import Channel
from monitors.records.grades import Aspect, FailureKind, Span
from monitors.reports.invisible import replace_invisible_by_code_points
from monitors.reports.marked_text import (
    EvidenceMark,
    Mask,
    PieceKind,
    collect_evidence_marks,
    find_masks,
    split_and_cut_into_pieces,
)
from tests.monitors.reports.parts import failed, passed, redact


def spans(*edges: tuple[int, int]) -> list[Span]:
    return [Span(where=Channel.VISIBLE, start=a, end=b, label=f"{a}") for a, b in edges]


def text_of(pieces) -> str:
    return "".join(f"[{p.text}]" if p.kind is PieceKind.INVISIBLE else p.text for p in pieces)


EDGES = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 12)).map(lambda p: (p[0], p[0] + p[1])), max_size=8)


@given(st.text(max_size=40), EDGES)
def test_marking_changes_no_character(text, edges):
    grade = failed("g", Aspect.FACTUAL_MATCH, FailureKind.WRONG_FACT, "r", *spans(*edges))
    pieces = split_and_cut_into_pieces(text, collect_evidence_marks([grade], Channel.VISIBLE), (), 1_000)
    assert (
        text_of(pieces) == replace_invisible_by_code_points(text)
        or "\u200c" in text
        or "\u200d" in text
        or "\ufe0f" in text
    )


@given(st.text("ab ", max_size=400), EDGES, st.integers(1, 60))
def test_omitted_items_are_counted(text, edges, limit):
    marks = collect_evidence_marks([passed("g", Aspect.CITATION, "r", *spans(*edges))], Channel.VISIBLE)
    pieces = split_and_cut_into_pieces(text, marks, (), limit)
    shown = sum(len(piece.text) for piece in pieces if piece.kind is not PieceKind.LEFT_OUT)
    left_out = sum(
        int(piece.text.split()[1].replace(",", "")) for piece in pieces if piece.kind is PieceKind.LEFT_OUT
    )
    assert shown + left_out == len(text)


def test_a_failing_mark_wins_over_a_passing_one_in_the_same_place():
    good = passed("a", Aspect.CITATION, "r", *spans((0, 6)))
    bad = failed("b", Aspect.FACTUAL_MATCH, FailureKind.WRONG_FACT, "r", *spans((4, 9)))
    assert [mark.kind for mark in collect_evidence_marks([good, bad], Channel.VISIBLE)] == [PieceKind.AGAINST]


def test_the_golds_marks_speak_against_nobody():
    span = Span(where="gold", start=0, end=2, label="money")
    bad = failed("b", Aspect.FACTUAL_MATCH, FailureKind.WRONG_FACT, "r", span)
    assert [mark.kind for mark in collect_evidence_marks([bad], "gold")] == [PieceKind.WANTED]
    assert collect_evidence_marks([bad], Channel.VISIBLE) == ()


def test_the_label_follows_the_last_visible_part_of_its_mark():
    pieces = split_and_cut_into_pieces("2\u200b4 h", [EvidenceMark(0, 4, "day", PieceKind.AGAINST)], (), 100)
    assert [(p.text, p.ends_mark) for p in pieces if p.kind is PieceKind.AGAINST] == [("2", False), ("4 ", True)]


def test_evidence_far_down_a_long_answer_is_shown():
    text = "x" * 50_000 + " SECRET " + "y" * 50_000
    start = text.index("SECRET")
    pieces = split_and_cut_into_pieces(text, [EvidenceMark(start, start + 6, "here", PieceKind.AGAINST)], (), 1_000)
    assert "SECRET" in [piece.text for piece in pieces if piece.kind is PieceKind.AGAINST]
    assert sum(len(piece.text) for piece in pieces) < 2_000


def test_a_cut_never_goes_through_a_mask():
    """A text is never cut inside a mask, because half of an identifier could then become visible."""
    text = "a" * 95 + " 4111 1111 1111 and on"
    pieces = split_and_cut_into_pieces(text, (), find_masks(text, (), redact), 100)
    assert [piece.text for piece in pieces if piece.kind is PieceKind.MASKED] == ["[redacted]"]
    assert "4111" not in text_of(pieces)


def test_a_mask_hides_the_evidence_below_it_and_keeps_its_label():
    text = "account 12345 here"
    pieces = split_and_cut_into_pieces(
        text, [EvidenceMark(8, 13, "policy", PieceKind.AGAINST)], [Mask(8, 13, "•••")], 100
    )
    assert [(p.text, p.label) for p in pieces if p.kind is PieceKind.MASKED] == [("•••", "policy")]
    assert "12345" not in text_of(pieces)

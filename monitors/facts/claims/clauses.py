"""Split a text into clauses with their words and figures. Clauses are sentences, list items or table cells.

A cell or list item also gets the words of its headings, row and column. A sentence is always cut at "but", "while"
and a semicolon. A sentence with two figures of one kind is also cut between the figures: at the first comma,
semicolon or bracket, or at "and" if there is none.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Final, NamedTuple

from monitors.facts.claims.figures import Figure, FigureKind, find_figures
from monitors.facts.claims.vocabulary import LIGHT, STEMS, Mark, find_marked_phrases
from monitors.facts.claims.wording import describe_figure
from monitors.facts.quantities.currencies import SIGNS
from monitors.facts.quantities.fact import FactKind
from monitors.facts.quantities.lexicon import WEEKDAYS
from monitors.facts.quantities.other_languages import remove_unread_mark
from monitors.facts.quantities.scan import Scan
from monitors.facts.text import NUMERAL, WORD, Token, split_into_word_keys

Words = frozenset[str]


@dataclass(slots=True)
class Clause:
    """A part of a text with one statement: the tokens from ``first`` up to ``after`` (exclusive)."""

    first: int
    after: int
    sentence: int
    path: Words = frozenset()
    words: Words = frozenset()
    """Stems of the clause's content words, and of the words of its headings, row and column."""
    context: Words = frozenset()
    """The words of the previous sentence, if the clause only continues that sentence: "It is now £12"."""
    marks: int = Mark.NOTHING
    """The `Mark`s of the words and phrases in the clause, as bits."""
    is_question: bool = False
    is_cell: bool = False
    names: Words = frozenset()
    """The tokens of the figures in the other cells of the row.

    Such a figure may identify the row, for example the time of the flight "at 10:05".
    """
    figures: list[Figure] = field(default_factory=list[Figure])


class Passage(NamedTuple):
    """A text split into tokens, figures and clauses, for the comparison with another text."""

    scan: Scan
    figures: list[Figure]
    clauses: list[Clause]
    marks: list[tuple[int, int, Mark]]
    retracted_before: int
    """All figures before this token are retracted, for example by "Sorry, that was wrong"."""

    def find_clause(self, figure: Figure) -> Clause | None:
        """Return the clause that contains ``figure``, or ``None``."""
        return self.find_clause_at(figure.first)

    def find_clause_at(self, token: int) -> Clause | None:
        """Return the clause that contains the token with this index."""
        return next((clause for clause in self.clauses if clause.first <= token < clause.after), None)


_HARD_CUTS: Final = split_into_word_keys("; but while whereas लेकिन जबकि lekin jabki magar although though")
_ANDS: Final = frozenset({"and", "और", "aur", "&", "or"})
_BREAKS: Final = frozenset(",;()|–—")
_ENDS: Final = frozenset(".!?।")
_ABBREVIATIONS: Final = split_into_word_keys(
    "mr mrs ms dr st no nr approx ca e g i a p m tel incl excl max min rs vs bzw inkl z b d h u str"
)
_QUOTATION: Final = re.compile(r'["“«][^"“”«»\n]{1,300}[.?!]["”»],')
"""A quotation inside a sentence that continues after the quotation: The answer to "Is it free?", is yes."""
_UNITS_TOO: Final = frozenset({"m", "h", "g", "min", "max"})
"""Abbreviations that can also end a sentence: "a clearance of 1.95 m. Vans …"."""
_ANAPHORS: Final = split_into_word_keys("it it's its this that that's they these those yeh ye यह ये")
_OTHERS: Final = frozenset({"other", "some", "many", "most", "andere", "autres", "otros"})
"""Words such as "other".

A clause that begins with one of these words and a plural ("other clinics") is about other things.
"""
_BULLET: Final = re.compile(r"([ \t]*)(?:[-*•‣·]|\d{1,2}[.)])[ \t]+")
_HEADING: Final = re.compile(r"[ \t]*#{1,6}[ \t]+")
_BOLD_LINE: Final = re.compile(r"[ \t]*\*\*[^*\n]{1,80}\*\*:?[ \t]*")
_SEPARATOR_ROW: Final = re.compile(r"[ \t]*\|?[ \t:|-]*-[ \t:|-]*\|?[ \t]*")
_DASH: Final = re.compile(r" [–—/-] | {3,}|\t")
_MAX_HEADING_TERMS: Final = 7
_LINE: Final = re.compile(r"[^\n]*\n?")


def build_passage_with_clauses(scan: Scan) -> Passage:
    """Split a scanned text into clauses. The function takes linear time."""
    marks = find_marked_phrases(scan.reader.tokens)
    figures = find_figures(scan, marks)
    builder = _Builder(scan, figures, marks)
    builder.split_into_clauses()
    builder.assign_marks_and_find_retraction()
    return Passage(scan, figures, builder.clauses, marks, builder.retracted_before)


def extract_content_stems_and_numbers(tokens: Sequence[Token], figures: Sequence[Figure] = ()) -> Words:
    """Return the stems of the content words, and the bare numbers.

    A bare number can be part of a name ("Route 66").
    """
    inside = {at for figure in figures for at in range(figure.first, figure.last + 1)}
    stems: set[str] = set()
    for at, token in enumerate(tokens):
        if at in inside:
            continue
        stem = _find_content_stem(tokens, at, token)
        if stem:
            stems.add(stem)
    stems.update(name for figure in figures if (name := _format_bare_number_as_word(figure)))
    return frozenset(stems)


def format_figures_as_words(figures: Sequence[Figure]) -> Words:
    """Return a term such as ``=24 months`` for each figure, for the comparison with content words."""
    return frozenset(f"={describe_figure(figure)}" for figure in figures)


def _format_bare_number_as_word(figure: Figure) -> str:
    """Return a term such as ``#66`` for a number that may be part of a name ("Route 66"), or an empty text."""
    bare = figure.kind is FigureKind.NUMBER and figure.high is None
    return f"#{figure.low.value.normalize()}" if bare else f"#{figure.code}" if figure.code else ""


class _ContentStems(dict[str, str]):
    """A cache with the stem of each word.

    The stem is empty for a word that does not describe the text's subject.
    """

    def __missing__(self, key: str) -> str:
        if len(self) > _MAX_CACHE:
            self.clear()
        weekday = WEEKDAYS.get(key, WEEKDAYS.get(key.removesuffix("s")))
        stem = "" if key in LIGHT else STEMS[key] if weekday is None else f"weekday {weekday}"
        self[key] = stem
        return stem


_CONTENT: Final = _ContentStems()
_MAX_CACHE: Final = 50_000


def _find_content_stem(tokens: Sequence[Token], at: int, token: Token) -> str:
    stem = _CONTENT[token.key]
    letter = remove_unread_mark(token.text)
    if len(letter) == 1 and letter.isupper() and letter.isascii() and letter != "I":
        figure_behind = at + 1 < len(tokens) and tokens[at + 1].kind == NUMERAL
        # "ramp A", "A 2.3 m"
        return STEMS[token.key] if figure_behind or (at and tokens[at - 1].kind == WORD) else ""
    if len(stem) <= 1:
        return ""
    if stem == "non":
        return "" if at + 1 < len(tokens) and tokens[at + 1].text == "-" else stem
    if at > 1 and tokens[at - 1].text == "-" and tokens[at - 2].key == "non":
        return f"non-{stem}"
    return stem


class _Line(NamedTuple):
    start: int
    end: int
    first: int
    after: int


class _Builder:
    """Splits a text into clauses line by line, and records the headings above each line."""

    def __init__(self, scan: Scan, figures: list[Figure], marks: list[tuple[int, int, Mark]]) -> None:
        self.scan, self.figures, self.marks = scan, figures, marks
        self.tokens, self.text = scan.reader.tokens, scan.normalised.text
        self.figure_firsts = [figure.first for figure in figures]
        self.clauses: list[Clause] = []
        self.sentence = 0
        self.retracted_before = -1
        self._stems: list[str] = [""] * len(self.tokens)
        self.ends: list[int] = []
        self.hard: list[int] = []
        for at, token in enumerate(self.tokens):
            kind, key = token[0], token[1]
            if kind == WORD and _CONTENT[key]:
                self._stems[at] = _find_content_stem(self.tokens, at, token)
            if key in _ENDS:
                self.ends.append(at)
            elif key in _HARD_CUTS:
                self.hard.append(at)
        for figure in figures:
            self._stems[figure.first : figure.last + 1] = [""] * (figure.last + 1 - figure.first)
        self.quotations = [match.span() for match in _QUOTATION.finditer(self.text)]
        self.names = {figure.first: name for figure in figures if (name := _format_bare_number_as_word(figure))}

    @cached_property
    def starts(self) -> list[int]:
        """Return the character offset at which each token starts."""
        return [token.start for token in self.tokens]

    def collect_content_words(self, first: int, after: int) -> Words:
        """Return the content words from token ``first`` up to token ``after`` (exclusive)."""
        stems = {stem for stem in self._stems[first:after] if stem}
        if self.names:
            stems.update(name for at in range(first, after) if (name := self.names.get(at)))
        return frozenset(stems)

    def find_figures(self, first: int, after: int) -> list[Figure]:
        """Return the figures that begin at tokens from ``first`` up to ``after`` (exclusive)."""
        return self.figures[bisect_left(self.figure_firsts, first) : bisect_left(self.figure_firsts, after)]

    # --- lines ------------------------------------------------------------------------------------------------

    def split_into_clauses(self) -> None:
        """Split tables and lists into lines, and other text into sentences."""
        if "\n" not in self.text:
            self._add_sentences_of_line(_Line(0, len(self.text), 0, len(self.tokens)), frozenset())
            return
        lines = list(self._split_lines())
        headings: list[tuple[int, Words]] = []
        at = 0
        while at < len(lines):
            line = lines[at]
            raw = self.text[line.start : line.end]
            if line.first == line.after:
                headings = (
                    [entry for entry in headings if entry[0] < 0 and not _is_blank(raw)]
                    if _is_blank(raw)
                    else headings
                )
                at += 1
                continue
            rows = self._count_table_rows(lines, at)
            if rows:
                self._add_table_cells_as_clauses(lines[at : at + rows], self._collect_words_of_headings(headings))
                at += rows
                continue
            bullet = _BULLET.match(raw)
            indent = len(bullet[1].expandtabs(4)) if bullet else 0
            if self._is_heading(lines, at, raw, bullet is not None):
                level = indent if bullet else -1
                headings = [entry for entry in headings if entry[0] < level] if bullet else []
                headings.append((level, self.collect_content_words(line.first, line.after)))
                at += 1
                continue
            if bullet:
                headings = [entry for entry in headings if entry[0] < indent]
                self._add_list_item(line, self._collect_words_of_headings(headings))
                headings.append((indent, self._collect_label_words(line)))
            else:
                headings = [entry for entry in headings if entry[0] < 0]
                self._add_list_item(
                    line, self._collect_words_of_headings(headings)
                ) if headings else self._add_sentences_of_line(line, frozenset())
            at += 1

    def _split_lines(self) -> Iterator[_Line]:
        first = 0
        for match in _LINE.finditer(self.text):
            if match.start() == match.end():
                break
            end = match.end()
            after = bisect_left(self.starts, end)
            yield _Line(match.start(), end, first, after)
            first = after

    @staticmethod
    def _collect_words_of_headings(headings: Sequence[tuple[int, Words]]) -> Words:
        return frozenset[str]().union(*(words for _, words in headings))

    def _is_heading(self, lines: Sequence[_Line], at: int, raw: str, is_item: bool) -> bool:
        """Return whether a line is a heading: it has a ``#``, bold type or a colon, or it is short."""
        line = lines[at]
        if _HEADING.match(raw) or (
            _BOLD_LINE.fullmatch(raw.rstrip("\n")) and not self.find_figures(line.first, line.after)
        ):
            return True
        following = next((other for other in lines[at + 1 : at + 2] if other.first < other.after), None)
        if following is None or line.after - line.first > 2 * _MAX_HEADING_TERMS:
            return False
        last = self.tokens[line.after - 1].text
        if last == ":":
            return True
        next_raw = self.text[following.start : following.end]
        deeper = (bullet := _BULLET.match(next_raw)) is not None and (
            not is_item or len(bullet[1]) > len((_BULLET.match(raw) or bullet)[1])
        )
        if self.find_figures(line.first, line.after) and not all(
            _is_number_in_name(figure) for figure in self.find_figures(line.first, line.after)
        ):
            return False
        words = line.after - line.first
        if deeper:
            return words <= _MAX_HEADING_TERMS + 3
        return (
            not is_item
            and words <= _MAX_HEADING_TERMS
            and last not in _ENDS
            and bool(self.find_figures(following.first, following.after))
        )

    def _collect_label_words(self, line: _Line) -> Words:
        """Return the words of a list item before its colon or dash.

        These words are a heading for the items below the list item.
        """
        for at in range(line.first, line.after):
            if self.tokens[at].text in {":", "–", "—"}:
                return self.collect_content_words(line.first, at)
        return self.collect_content_words(line.first, line.after)

    def _count_table_rows(self, lines: Sequence[_Line], at: int) -> int:
        """Count the lines from ``at`` on that are rows of one table.

        Each row has bars, or all rows have the same number of dashes.
        """
        count = 0
        while at + count < len(lines) and self._count_bars(lines[at + count]) >= 2:  # noqa: PLR2004 - two cells have a bar between
            count += 1
        if count:
            return count if count > 1 else 0
        first = self._count_cell_separators(lines[at])
        while first and at + count < len(lines) and self._count_cell_separators(lines[at + count]) == first:
            count += 1
        return count if count > 1 and (first > 1 or "\t" in self.text[lines[at].start : lines[at].end]) else 0

    def _count_bars(self, line: _Line) -> int:
        return self.text.count("|", line.start, line.end)

    def _count_cell_separators(self, line: _Line) -> int:
        raw = self.text[line.start : line.end].strip()
        is_sentence = " / " in raw and raw.endswith((".", "!", "?"))  # "It costs $5 / month / person."
        return 0 if is_sentence or _BULLET.match(raw) else len(_DASH.findall(raw))

    # --- clauses ----------------------------------------------------------------------------------------------

    def _add_table_cells_as_clauses(self, lines: Sequence[_Line], path: Words) -> None:
        rows: list[list[tuple[int, int]]] = []
        for line in lines:
            raw = self.text[line.start : line.end]
            if _SEPARATOR_ROW.fullmatch(raw.rstrip("\n")) and "|" in raw:
                continue
            rows.append(self._split_cells(line))
        if not rows:
            return
        header = rows[0]
        has_header = len(rows) > 1 and not any(
            figure.kind is not FigureKind.NUMBER or not figure.noun
            for first, after in header[1:]
            for figure in self.find_figures(first, after)
            if not _is_number_in_name(figure)
        )
        columns = [self.collect_content_words(first, after) for first, after in header] if has_header else []
        for row in rows[1:] if has_header else rows:
            label = self.collect_content_words(*row[0]) | (columns[0] if columns else frozenset[str]())
            self.sentence += 1
            for place, (first, after) in enumerate(row):
                if place == 0 and len(row) > 1:
                    continue
                column = columns[place] if place < len(columns) else frozenset[str]()
                head = header[place] if has_header and place < len(header) else None
                others = [cell for at, cell in enumerate(row) if at != place]
                names = format_figures_as_words([figure for cell in others for figure in self.find_figures(*cell)])
                beside = frozenset[str]().union(*(self.collect_content_words(*cell) for cell in others))
                self._add_clause(
                    first, after, path | label | column, is_cell=True, context=beside, names=names, head=head
                )

    def _split_cells(self, line: _Line) -> list[tuple[int, int]]:
        raw = self.text[line.start : line.end]
        if "|" in raw:
            body = raw.rstrip("\n")
            inner = body.strip()
            places = [at for at, character in enumerate(body) if character == "|"]
            bounds = [line.start + place for place in places]
            if not inner.startswith("|"):
                bounds.insert(0, line.start - 1)
            if not inner.endswith("|"):
                bounds.append(line.end)
        else:
            bounds = [line.start - 1, *(line.start + match.start() + 1 for match in _DASH.finditer(raw)), line.end]
        cells = [
            (bisect_left(self.starts, low + 1), bisect_left(self.starts, high)) for low, high in pairwise(bounds)
        ]
        return [(self._skip_leading_dash(first, after), after) for first, after in cells]

    def _skip_leading_dash(self, first: int, after: int) -> int:
        return first + 1 if after - first > 1 and self.tokens[first].text in {"–", "—"} else first

    def _add_list_item(self, line: _Line, path: Words) -> None:
        """Add a line of a list. The words before its colon apply to all figures after the colon."""
        first = line.first
        if self.tokens[first].text in {"-", "*", "•", "·"}:
            first += 1
        colon = next((at for at in range(first, line.after) if self.tokens[at].text == ":"), None)
        if (
            colon is not None
            and not self.find_figures(first, colon)
            and len(self.find_figures(colon, line.after)) > 1
        ):
            path = path | self.collect_content_words(first, colon)
        self._add_sentences_of_line(_Line(line.start, line.end, first, line.after), path)

    def _add_sentences_of_line(self, line: _Line, path: Words) -> None:
        first = line.first
        ends = self.ends[bisect_left(self.ends, line.first) : bisect_left(self.ends, line.after)]
        for at in ends:
            if self._is_sentence_end(at, line.after):
                self._add_clauses_of_sentence(first, at + 1, path)
                first = at + 1
        if first < line.after:
            self._add_clauses_of_sentence(first, line.after, path)

    def _is_sentence_end(self, at: int, after: int) -> bool:
        token = self.tokens[at]
        if any(start < token.start < end for start, end in self.quotations):
            return False
        if token.text != "." or at + 1 >= after:
            return True
        before, following = self.tokens[at - 1], self.tokens[at + 1]
        if following.text == ".":
            return False  # the last dot of "..." ends the sentence
        if following.start == token.end and following.kind == WORD:
            return False
        key = before.key.removesuffix("\0")
        if key in _UNITS_TOO and following.kind == WORD and following.text[0].isupper() and len(following.text) > 1:
            return True
        return not (before.end == token.start and key in _ABBREVIATIONS and before.text != "I")

    def _add_clauses_of_sentence(self, first: int, after: int, path: Words) -> None:
        self.sentence += 1
        cuts = [first, *self.hard[bisect_left(self.hard, first + 1) : bisect_left(self.hard, after)]]
        cuts.extend(self._iterate_cuts_between_figures(first, after, cuts))
        cuts = [*sorted(set(cuts)), after]
        is_question = self.tokens[after - 1].text == "?" and not self._is_tag_question(first, after)
        context = self._find_previous_words_if_continued(first, after)
        for start, end in pairwise(cuts):
            if start > first and self.tokens[start].key in _ANDS and not self.collect_content_words(start, end):
                # "£3 and £4.50 a month" are two prices of one thing
                context = context | self.collect_content_words(first, start)
            self._add_clause(start, end, path, is_question=is_question, context=context)

    def _is_tag_question(self, first: int, after: int) -> bool:
        """Return whether a sentence is a statement with a short question at its end: "It takes 11 weeks, okay?"."""
        comma = next(
            (at for at in range(after - 2, max(first, after - 5), -1) if self.tokens[at].text == ","), None
        )
        return comma is not None and bool(self.find_figures(first, comma))

    def _iterate_cuts_between_figures(self, first: int, after: int, hard: Sequence[int]) -> Iterator[int]:
        """Yield the tokens at which a sentence is cut between two figures of one kind."""
        last: dict[str, Figure] = {}
        for figure in self.find_figures(first, after):
            kind = f"{figure.kind} {figure.low.unit}" if figure.kind is FigureKind.QUANTITY else figure.kind
            earlier = last.get(kind)
            last[kind] = figure
            if earlier is None or any(earlier.last < cut <= figure.first for cut in hard):
                continue
            between = range(max(earlier.last, earlier.per_last) + 1, figure.first)
            place = next((at for at in between if self.tokens[at].text in _BREAKS), None)
            if place is None:
                place = next((at for at in between if self.tokens[at].key in _ANDS), None)
            if place is not None:
                yield place

    def _find_previous_words_if_continued(self, first: int, after: int) -> Words:
        """Return the words of the previous sentence if this sentence begins with "it" or has no content words."""
        previous = [clause for clause in self.clauses[-4:] if clause.sentence == self.sentence - 1]
        if not previous:
            return frozenset()
        is_continued = any(token.key in _ANAPHORS for token in self.tokens[first : first + 4])
        if is_continued or not (any(self._stems[first:after]) or self.collect_content_words(first, after)):
            return frozenset[str]().union(*(clause.words | clause.context for clause in previous))
        return frozenset()

    def _add_clause(
        self,
        first: int,
        after: int,
        path: Words,
        *,
        is_question: bool = False,
        is_cell: bool = False,
        context: Words = frozenset(),
        names: Words = frozenset(),
        head: tuple[int, int] | None = None,
    ) -> None:
        clause = Clause(first, after, self.sentence, path, self.collect_content_words(first, after) | path, context)
        clause.is_question, clause.is_cell = is_question, is_cell
        clause.figures = self.find_figures(first, after)
        clause.names = names
        if after - first > 1 and self.tokens[first].key in _OTHERS and self.tokens[first + 1].key.endswith("s"):
            clause.marks = Mark.OTHER
        if head is not None:
            clause.figures = [self._add_currency_of_column_heading(figure, head) for figure in clause.figures]
        self.clauses.append(clause)

    def _add_currency_of_column_heading(self, figure: Figure, head: tuple[int, int]) -> Figure:
        """Add the currency in a column heading (``Price (€)``) to the number in a cell."""
        if figure.kind is not FigureKind.NUMBER:
            return figure
        sign = next((token.text for token in self.tokens[head[0] : head[1]] if token.text in SIGNS), None)
        if sign is None or not SIGNS[sign]:
            return figure
        low = figure.low._replace(kind=FactKind.MONEY, unit=SIGNS[sign])
        return replace(figure, kind=FigureKind.MONEY, low=low)

    def _is_retraction_of_figure(self, first: int, clause: Clause) -> bool:
        """Return whether a word such as "sorry" takes back a figure.

        Such a word has a nearby figure before it, and a figure of the same kind after it.
        """
        sentences = {clause.sentence, clause.sentence - 1}
        near = [neighbour for neighbour in self.clauses if neighbour.sentence in sentences]
        before = {figure.kind for neighbour in near for figure in neighbour.figures if figure.first < first}
        return any(figure.kind in before for figure in self.figures if figure.first > first)

    def assign_marks_and_find_retraction(self) -> None:
        """Add each mark to its clause, and set `retracted_before` if the text retracts a figure."""
        firsts = [clause.first for clause in self.clauses]
        for first, after, mark in self.marks:
            place = bisect_left(firsts, first + 1) - 1
            if place < 0:
                continue
            clause = self.clauses[place]
            if clause.first <= first < clause.after:
                clause.marks |= mark
                if mark is Mark.RETRACT and self._is_retraction_of_figure(first, clause):
                    self.retracted_before = max(self.retracted_before, first)
            del after


def _is_blank(raw: str) -> bool:
    return not raw.strip()


def _is_number_in_name(figure: Figure) -> bool:
    """Return whether a figure is a number in a name: "Steady 18"."""
    return figure.kind in {FigureKind.NUMBER, FigureKind.IDENTIFIER} and not figure.noun

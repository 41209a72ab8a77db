"""Clauses that do not stand in their document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from monitors.errors import GoldSetError
from monitors.goldset.findings import Check, GoldFinding, Weight
from monitors.goldset.load import read_text
from monitors.goldset.numbered import NumberedCase
from monitors.goldset.quotes import FEWEST_WORDS, find_quote

TEXT_ENDINGS = (".txt", ".md")


def read_documents(folder: Path) -> dict[str, str]:
    """The texts of a folder and its subfolders (``*.txt``, ``*.md``), by name without ending, in lower case."""
    if not folder.is_dir():
        raise GoldSetError(f"{folder} is no folder; give one that holds the documents as text, {TEXT_ENDINGS}")
    files = sorted(path for path in folder.rglob("*") if path.suffix.lower() in TEXT_ENDINGS)
    if not files:
        raise GoldSetError(f"{folder} holds no text ({', '.join(TEXT_ENDINGS)}); convert the documents first")
    return {path.stem.lower(): read_text(path) for path in files}


def quotes(cases: Sequence[NumberedCase], documents: Mapping[str, str]) -> Iterator[GoldFinding]:
    """Clauses that do not stand in their document, and one finding for all whose document is not at hand."""
    missing: list[NumberedCase] = []
    for one in cases:
        source = one.case.provenance
        if not source.document or not source.clause or len(source.clause.split()) < FEWEST_WORDS:
            continue
        text = documents.get(_stem(source.document))
        if text is None:
            missing.append(one)
        elif find_quote(source.clause, text) is None:
            yield GoldFinding(
                check=Check.QUOTE,
                weight=Weight.MUST,
                places=(one.place,),
                what=f"its clause does not stand in {source.document}",
                do="quote the document word for word, or correct `provenance.document`",
            )
    if missing:
        names = sorted({one.case.provenance.document or "" for one in missing})
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""  # noqa: PLR2004 - as many as are named
        yield GoldFinding(
            check=Check.QUOTE,
            weight=Weight.SHOULD,
            places=tuple(one.place for one in missing[:1]),
            what=f"{len(missing)} clauses could not be looked up: no text of {', '.join(names[:3])}{more}",
            do="add these documents as text, named as `provenance.document` names them",
        )


def _stem(document: str) -> str:
    """``rag/corpus/acko/health.pdf`` and ``Health`` are both ``health``."""
    name = PurePosixPath(document).name
    ending = PurePosixPath(name).suffix
    known = ending.lower() in {*TEXT_ENDINGS, ".pdf", ".html", ".docx"}
    return (name[: -len(ending)] if known else name).lower()

from pathlib import Path

import pytest

from monitors.reports.case_view import PictureAlbum, PictureMode
from tests.monitors.reports.pictures import chat_png

PNG = chat_png()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    run = tmp_path / "run"
    (run / "screenshots").mkdir(parents=True)
    (run / "screenshots" / "a b.png").write_bytes(PNG)
    (tmp_path / "secret.png").write_bytes(PNG)
    return run


def album(folder: Path, *, each: int = 10**6, together: int = 10**6) -> PictureAlbum:
    return PictureAlbum(folder, max_each_bytes=each, max_total_bytes=together)


def test_a_small_picture_is_embedded_and_linked_by_a_safe_address(folder):
    picture = album(folder).embed_or_link_picture("screenshots/a b.png", withheld=None)
    assert picture.shown is PictureMode.EMBEDDED
    assert picture.href == "screenshots/a%20b.png"
    assert picture.data_uri.startswith("data:image/png;base64,")


def test_f90_a_picture_of_personal_data_is_only_linked(folder):
    picture = album(folder).embed_or_link_picture("screenshots/a b.png", withheld=PictureMode.LINKED_PERSONAL)
    assert (picture.shown, picture.data_uri) == (PictureMode.LINKED_PERSONAL, "")


def test_the_budget_goes_to_who_asks_first(folder):
    book = album(folder, together=len(PNG) + 10)
    shown = [book.embed_or_link_picture("screenshots/a b.png", withheld=None).shown for _ in range(2)]
    assert shown == [PictureMode.EMBEDDED, PictureMode.LINKED_LARGE]


def test_a_picture_beyond_its_own_limit_is_linked(folder):
    assert (
        album(folder, each=10).embed_or_link_picture("screenshots/a b.png", withheld=None).shown
        is PictureMode.LINKED_LARGE
    )


@pytest.mark.parametrize(
    "path",
    ["../secret.png", "/etc/passwd", "screenshots", "none.png", "", "a\0b", "x" * 5_000, "javascript:alert(1)"],
    ids=lambda path: repr(path[:20]),
)
def test_f85_a_path_that_leads_elsewhere_is_missing(folder, path):
    assert album(folder).embed_or_link_picture(path, withheld=None).shown is PictureMode.MISSING
    assert album(folder).build_link_if_file_exists(path) == ""


def test_f85_a_link_that_leads_out_of_the_folder_is_missing(folder):
    (folder / "out.png").symlink_to(folder.parent / "secret.png")
    assert album(folder).embed_or_link_picture("out.png", withheld=None).shown is PictureMode.MISSING


@pytest.mark.parametrize("content", [b"<svg onload=alert(1)>", b"", b"GIF89a", b"\x89PN"])
def test_a_file_that_is_not_png_or_jpeg_is_not_shown(folder, content):
    (folder / "x.png").write_bytes(content)
    assert album(folder).embed_or_link_picture("x.png", withheld=None).shown is PictureMode.MISSING


def test_no_picture_was_taken(folder):
    assert album(folder).embed_or_link_picture(None, withheld=None).shown is PictureMode.NONE

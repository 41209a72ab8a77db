"""Test that the build of an application is read from JSON payloads, response headers and HTML."""

from __future__ import annotations

import pytest

from monitors.probes.browser.page_info import parse_page_info
from monitors.probes.build_info import read_build_info, read_source_versions
from monitors.probes.wire import WireRule, read_payload
from monitors.records.exchanges import BuildInfo

HASH = "ab" * 32


@pytest.mark.parametrize(
    ("documents", "headers", "build"),
    [
        ([], {}, None),
        ([{"answer": "x"}], {"Date": "today"}, None),
        ([{"model": "gpt-4o", "system_fingerprint": "fp_1"}], {}, BuildInfo(model="gpt-4o", fingerprint="fp_1")),
        ([{"model": "a"}, {"model": "b"}], {}, BuildInfo(model="b")),
        ([{"type": "message_start", "message": {"model": "claude"}}], {}, BuildInfo(model="claude")),
        ([{"modelVersion": "gemini-002"}], {}, BuildInfo(fingerprint="gemini-002")),
        ([{"model": {"name": "x"}}, {"model": 3}, {"model": " "}], {}, None),
        ([{"sources": [{"model": "a car"}]}], {}, None),
        ([{}], {"OpenAI-Model": "o-1", "X-Model-Version": "7"}, BuildInfo(model="o-1", fingerprint="7")),
        ([{"model": "two\nlines\ud800"}], {}, BuildInfo(model="two lines\ufffd")),
        (
            [],
            {"X-App-Version": "1.4", "Server": "uvicorn", "Set-Cookie": "secret"},
            BuildInfo(versions={"x-app-version": "1.4", "server": "uvicorn"}),
        ),
        ([], {"X-Git-SHA": HASH}, BuildInfo(versions={"x-git-sha": HASH[:12]})),
    ],
)
def test_payload_and_headers_name_the_build(documents, headers, build):
    """If several documents state the model, the last value counts.

    Values that are not text, and values in a list of sources, are ignored.
    """
    assert read_build_info(documents, headers) == build


@pytest.mark.parametrize(
    ("body", "path", "versions"),
    [
        ({"sources": [{"title": "Gold", "sha256": HASH}]}, "sources", {"Gold": HASH[:12]}),
        ({"sources": [{"title": "Gold", "updated_at": "2026-01-31"}]}, "sources.*.title", {"Gold": "2026-01-31"}),
        ({"docs": [{"page_content": "…", "metadata": {"source": "a.pdf", "etag": "7"}}]}, "docs", {"a.pdf": "7"}),
        ({"sources": [{"title": "Gold", "version": 3}, {"title": "Silver"}]}, "sources", {"Gold": "3"}),
        ({"sources": ["Gold"]}, "sources", {}),
        ({"sources": [{"title": "Gold", "version": True}]}, "sources", {}),
        ({"sources": [{"title": "Gold", "version": 3}]}, None, {}),
    ],
)
def test_sources_that_are_listed_with_a_hash_or_version_keep_it(body, path, versions):
    """If a reply lists a source with a hash or version, this value is stored. Other sources are omitted."""
    assert read_source_versions([body], path) == versions


def test_a_reply_in_a_browser_or_an_api_has_its_build_and_documents():
    """The build and the document versions of a reply are read from its body and its response headers."""
    rule = WireRule(url="chat", text="answer", citations="sources")
    body = '{"answer": "24 months", "model": "small", "sources": [{"title": "Gold", "hash": "12"}]}'
    found = read_payload(rule, "/chat", body, {"x-version": "2"})
    assert found is not None
    assert found.build == BuildInfo(model="small", versions={"x-version": "2"})
    assert found.document_versions == {"Gold": "12"}


HTML = """<!doctype html><html><head><title> Bank &amp; bot </title>
<link rel="stylesheet" href="/assets/index-3c4d.css?t=1732389123"><link rel=modulepreload href='/a/vendor.js'>
<link rel="icon" href="/favicon.ico"><script src="https://cdn.example/app.js?v=3"></script>
<script nonce="{nonce}">window.csrf = "{token}"; window.count = {count};</script></head><body>Ask</body></html>"""


def page(**changes: object) -> str:
    """Return the HTML of a page. ``changes`` replace the nonce, token and count, which differ at each load."""
    known = {"nonce": "abc", "token": "q7w8e9r0t1y2u3i4o5p6", "count": 1}
    html = HTML
    for name, value in (known | changes).items():
        html = html.replace(f"{{{name}}}", str(value))
    return html


def test_a_page_is_its_title_scripts_and_styles():
    """The identity of a page is its title, scripts and styles. A time in a query string and icons are ignored."""
    found = parse_page_info(page())
    assert found.title == "Bank & bot"
    assert found.bundles == ("index-3c4d.css", "vendor.js", "app.js?v=3")


def test_the_hash_leaves_out_values_of_each_load_and_has_edits_by_people():
    """The hash of a page ignores nonces, tokens and counts that change with each load.

    The hash changes if a person edits a word of the page.
    """
    again = page(nonce="xyz", token="m1n2b3v4c5x6z7l8k9j0", count=28)
    assert parse_page_info(again) == parse_page_info(page())
    assert parse_page_info(page().replace("Ask", "Ask us")).shell != parse_page_info(page()).shell
    first, second = (
        page().replace("Ask", f"<i title='f at {place}'>Ask") for place in ("0x7fa0bffef3e0", "0x7f12c")
    )
    assert parse_page_info(first).shell == parse_page_info(second).shell


@pytest.mark.parametrize(
    ("html", "framework"),
    [
        ('<script>window.gradio_config = {"version":"6.31.0","api_prefix":"/"};</script>', "Gradio 6.31.0"),
        ("<script>window.__gradio_mode__ = 'app';</script>", "Gradio"),
        ("<title>Streamlit</title>", "Streamlit"),
        ('<script src="/_next/static/chunks/main.js"></script>', "Next.js"),
        ('<meta content="Hugo 0.130" name="generator">', "Hugo 0.130"),
        ("<p>nothing</p>", None),
        ("", None),
    ],
)
def test_a_framework_is_known_by_its_marks(html, framework):
    """A front-end framework is detected by its markers in the HTML, with its version if the page states it."""
    assert parse_page_info(html).framework == framework

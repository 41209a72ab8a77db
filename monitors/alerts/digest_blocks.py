"""The nightly digest as Slack's Block Kit, and as plain text."""

from __future__ import annotations

from monitors.alerts.digest import Digest, digest_headline, digest_lines
from monitors.alerts.inert import inert, visible
from monitors.alerts.message import utc
from monitors.alerts.slack_blocks import SlackText, context, header, link_line, section
from monitors.alerts.wording import counted


def digest_text(digest: Digest) -> SlackText:
    """Render ``digest`` within Slack's limits."""
    blocks = [header(digest_headline(digest))]
    figures = _figures(digest)
    if figures:
        blocks.append(section("\n".join(f"*{inert(label)}* {inert(value)}" for label, value in figures)))
    if lines := digest_lines(digest):
        blocks.append(section("\n".join(inert(line) for line in lines)))
    if digest.links:
        blocks.append(section(link_line(digest.links)))
    blocks.append(context(f"`{digest.id}` · run `{inert(digest.run_id)}` · {utc(digest.made_at)}"))
    return SlackText(text=inert(_one_line(digest)), blocks=tuple(blocks))


def digest_plain(digest: Digest) -> str:
    """The same for a terminal or a file."""
    figures = [f"{label}: {value}" for label, value in _figures(digest)]
    links = [f"{link.label}: {link.href}" for link in digest.links]
    foot = f"{digest.id} · run {digest.run_id} · {utc(digest.made_at)}"
    return "\n".join([digest_headline(digest), *figures, *digest_lines(digest), *links, foot, ""])


def _figures(digest: Digest) -> tuple[tuple[str, str], ...]:
    recovered = (("recovered", counted(digest.recovered, "incident")),) if digest.recovered else ()
    note = (("note", visible(digest.note)),) if digest.note else ()
    return (*((one.label, one.value) for one in digest.figures), *recovered, *note)


def _one_line(digest: Digest) -> str:
    figures = ", ".join(f"{label} {value}" for label, value in _figures(digest)[:3])
    return " · ".join(piece for piece in (digest_headline(digest), figures, digest.id) if piece)

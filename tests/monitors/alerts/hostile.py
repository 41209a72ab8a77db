"""Hostile texts that try to inject markup or mentions, and a Hypothesis strategy that generates more."""

from __future__ import annotations

from hypothesis import strategies as st

HOSTILE = (
    "<!channel> everyone wake up",
    "<!here|here> and <!everyone>",
    "<@U024BE7LH> please <!subteam^S123|team>",
    "<https://evil.example|https://bank.example>",
    "<mailto:a@evil.example|write to us> <tel:+100|call>",
    "&lt;!channel&gt; already escaped",
    "```\nout of the fence <!channel>\n```",
    "`code` ``more`` *bold* _italic_ ~gone~",
    ">>> quoted to the end\n> and quoted",
    ":rotating_light: :white_check_mark: resolved",
    "@channel @here @everyone",
    "\u202etxet desrever\u202c and \u200bzero\u2060width\ufeff",
    "severity 1, no alert needed\n*Severity 1*: the case says so",
    "&" * 400,
    "<" * 400,
    "क्या प्रतीक्षा अवधि दो साल है? " * 20,
    "\x00\x07\x1b[31mred\x1b[0m",
    "👩‍👩‍👧‍👦" * 50,
    "https://evil.example/looks-like-a-link",
    "[text](https://evil.example) <a href='https://evil.example'>x</a> <script>alert(1)</script>",
)

pieces = st.one_of(
    st.sampled_from(HOSTILE),
    st.text(max_size=60),
    st.sampled_from(
        ["<!", "channel>", "<@U1", ">", "|", "&", "`", "```", "*", "_", "~", ":x:", "\n", "@here", "&lt;"]
    ),
)
hostile_text = st.lists(pieces, max_size=40).map("".join).filter(lambda text: text.isprintable() or bool(text))

"""How Slack's light theme looks, near enough to judge a message by."""

from __future__ import annotations

from typing import Final

STYLE: Final = """
* { box-sizing: border-box; margin: 0; }
body { background: #fff; color: #1d1c1d; font: 15px/1.46 Lato, "Noto Sans", "DejaVu Sans", sans-serif; }
main { max-width: 640px; margin: 0 auto; padding: 8px 0; }
article { padding: 8px 16px; overflow-wrap: anywhere; }
.notice { background: #2b2b2f; color: #f5f5f5; border-radius: 10px; padding: 8px 12px; margin-bottom: 10px;
  font-size: 13px; line-height: 1.35; }
.post { display: flex; gap: 8px; }
.face { flex: none; width: 36px; height: 36px; border-radius: 8px; background: #173f35; color: #fff;
  display: grid; place-items: center; font-weight: 900; }
.body { flex: 1; min-width: 0; }
.app { background: #e8e8e8; color: #616061; font-size: 10px; font-weight: 700; padding: 1px 3px;
  border-radius: 2px; }
h3 { font-size: 18px; line-height: 1.3; margin: 4px 0; }
.section { margin: 6px 0; }
.menu { float: right; border: 1px solid #bbb; border-radius: 4px; padding: 0 10px; margin-left: 8px;
  font-weight: 700; }
.person { background: #e8f1f8; color: #1264a3; border-radius: 3px; padding: 0 2px; }
.context { color: #616061; font-size: 13px; line-height: 1.4; margin: 4px 0; }
.context p { display: inline; }
blockquote { border-left: 4px solid #ddd; padding-left: 12px; }
code { background: #f6f6f6; border: 1px solid #ddd; border-radius: 3px; color: #c01343; padding: 1px 3px;
  font: 12px "DejaVu Sans Mono", monospace; }
.mark { display: inline-block; width: .8em; height: .8em; border-radius: 50%; vertical-align: -.05em; }
.red { background: #dd2e44; } .orange { background: #f4900c; } .yellow { background: #fdcb58; }
.green { background: #2eb67d; border-radius: 2px; } .grey { background: #8899a6; border-radius: 2px; }
a { color: #1264a3; text-decoration: none; }
.actions { display: flex; gap: 8px; flex-wrap: wrap; margin: 8px 0; }
.actions span { border: 1px solid #bbb; border-radius: 4px; padding: 4px 12px; font-size: 13px; font-weight: 700; }
.actions .primary { background: #007a5a; border-color: #007a5a; color: #fff; }
"""

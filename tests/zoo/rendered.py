"""Let Lookout read answers in seeded Markdown, which real libraries render in messages of many forms.

`make renderers` builds the bundle of renderers from `renderers/package-lock.json`. It needs npm.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from monitors.probes.browser.inpage import load_page_script

if TYPE_CHECKING:
    from playwright.async_api import Page

HERE: Final = Path(__file__).with_name("renderers")
BUNDLE: Final = Path(__file__).parents[2] / ".cache" / "zoo" / "renderers" / "bundle.js"

READ_MANY = """
async ([first, count, by, shapes]) => {
  const names = by ?? answers.names;
  const shells = shapes ?? Object.keys(answers.SHELLS);
  const wrong = [];
  let unsure = 0;
  let nothing = 0;
  const bare = (text) => text.replace(/[\\s\\u200b]+/g, "");
  for (let seed = first; seed < first + count; seed += 1) {
    const chance = answers.seeded(seed);
    const { pick, markdown } = answers.maker(chance);
    const name = pick(names);
    const shape = pick(shells);
    const shell = answers.SHELLS[shape];
    const list = document.createElement("div");
    list.setAttribute("role", "log");
    const box = document.createElement("textarea");
    document.body.replaceChildren(list, box);
    __lookout.telling.clear();
    if (chance() < 0.5) shell(list, false).textContent = "Hello! Ask me about plan B, 24 hours a day.";
    const question = `what about ${seed}?`;
    const fresh = new __lookout.Fresh(question, null, []);
    const watcher = new MutationObserver((records) => {
      for (const { type, target } of records) {
        const element = type === "characterData" ? target.parentElement : target;
        if (element instanceof Element) fresh.noteChange(element);
      }
    });
    watcher.observe(list, { childList: true, characterData: true, subtree: true });
    shell(list, true).textContent = question;
    if (chance() < 0.5) __lookout.answer(fresh, box);
    const home = shell(list, false);
    const show = renderers[name](home);
    const said = markdown();
    const tokens = said.match(/\\s*\\S+\\s*/g);
    const looks = chance() < 0.5 ? 3 : 0;
    let text = "";
    for (const [at, token] of tokens.entries()) {
      text += token;
      show(text);
      if (looks && at % looks === 0) {
        await new Promise((resolve) => queueMicrotask(resolve));
        __lookout.answer(fresh, box);
      }
    }
    await new Promise((resolve) => setTimeout(resolve, name === "streamdown" ? 30 : 0));
    const seen = __lookout.answer(fresh, box);
    const read = answers.readable(home);
    if (seen.unsure?.length) unsure += 1;
    else if (!seen.text && answers.readsAsName(read)) nothing += 1;
    else if (bare(seen.text) !== bare(read)) wrong.push({ seed, name, shape, markdown: said, read, seen: seen.text, aside: seen.aside ?? [] });
    watcher.disconnect();
    show.end?.();
  }
  return { wrong, unsure, nothing };
}
"""


class Reading(NamedTuple):
    """The answers that were read wrongly, and the number of answers that were not read.

    ``unsure`` counts answers that Lookout leaves ungraded. ``nothing`` counts answers that consist only of the name
    of a speaker, such as "bot". Such an answer looks like a message with the speaker's name but without an answer.
    """

    wrong: list[Misread]
    unsure: int
    nothing: int


class Misread(NamedTuple):
    """An answer that was not read exactly."""

    seed: int
    renderer: str
    shape: str
    markdown: str
    read: str
    seen: str


async def read_many(
    page: Page, first: int, count: int, *, by: list[str] | None = None, shapes: list[str] | None = None
) -> Reading:
    """Show ``count`` answers, with seeds from ``first`` on, and let Lookout read each answer."""
    found = await page.evaluate(READ_MANY, [first, count, by, shapes])
    wrong = [
        Misread(one["seed"], one["name"], one["shape"], one["markdown"], one["read"], one["seen"])
        for one in found["wrong"]
    ]
    return Reading(wrong, unsure=int(found["unsure"]), nothing=int(found["nothing"]))


async def open_page(page: Page) -> None:
    """Load the renderers and Lookout's page script into a page."""
    await page.add_init_script(load_page_script())
    await page.goto("about:blank")
    await page.add_style_tag(path=BUNDLE.with_suffix(".css"))
    await page.add_script_tag(path=BUNDLE)
    await page.add_script_tag(path=HERE / "answers.js")

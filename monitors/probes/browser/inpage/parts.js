// Find the parts of a message that are not the answer: reasoning, tool cards, sources, status and names. The markup of
// the page distinguishes them. A list of sources is also recognised by its heading.
(() => {
  const look = globalThis.__lookout;
  if (look.splitParts) return;

  const TAIL = "(-(card|list|box|panel|items?|block|wrapper|container|section|head|header|title|label|contents?|body|details|rows?|bar|group|output|input|results?|calls?|text|chips?|pill|badge|name|info|area|view|trace|log|steps?|toggle))*";
  const word = (words) => new RegExp(`^([a-z0-9]+-)*(${words})${TAIL}$`);
  const KINDS = [
    ["thinking", word("thinking|thoughts?|reasoning|chain-of-thought")],
    ["tool", word("tools?|function-call|tool-?(use|call|invocation)")],
    ["source", word("sources?|citations?|cited|references?|passages?|retrieval|retrieved|chunks?")],
    ["status", word("status|progress|latency|usage|elapsed")],
    ["name", word("author|sender|byline|speaker|persona|who|(bot|agent|model|user|display|assistant)-name|model")],
  ];
  const NAMES = ["data-testid", "data-type", "data-part", "data-kind", "data-slot", "part", "aria-label"];
  const NAME_LENGTH = 30; // characters; a longer label is a sentence
  const FLOW = "td, th, tr, li, p, h1, h2, h3, h4, h5, h6, code, pre, blockquote, dd, dt";
  const SOURCES = /^\W*((\d+|the|all|used|cited|retrieved|relevant|matching|top)\s+)*(sources?|references?|citations?|passages?|cited \p{L}+|retrieved \p{L}+|quellen|fuentes|स्रोत)(?![\p{L}\p{M}])[^.!?]{0,40}$/iu;
  const HEAD_LENGTH = 60;
  // Elements on a card beside the source: stars, reviews, and elements that can be pressed but are not buttons.
  const RATING = /^\W*([★☆⭐✩✪]+\s*[\d.,]*|\d([.,]\d)?\s*(\/\s*5|stars?|out of 5)|\d+ (reviews?|ratings?)|(reviews?|ratings?)\W*\d*)\W*$/iu;
  const PRESSED_LENGTH = 30;
  const isPressed = (element) => getComputedStyle(element).cursor === "pointer" && !element.closest("a[href]");
  const textOfCard = (element) => {
    const rows = look.textOf(element, (node) => {
      const text = look.plain(node.data);
      const extra = RATING.test(text) || (text.length <= PRESSED_LENGTH && node.parentElement && isPressed(node.parentElement));
      return extra ? "" : node.data;
    });
    return rows.replace(/\n\s*\n/g, "\n");
  };

  // "MessageSources_root__x81Zq" becomes "message-sources-root", and "message-sources" without the suffix of a build.
  const spelled = (name) => {
    const plain = (text) => text.replace(/([a-z0-9])([A-Z])/g, "$1-$2").replace(/[^A-Za-z0-9]+/g, "-").toLowerCase();
    return [plain(name), plain(name.replace(/_{1,2}[A-Za-z0-9-]{4,8}$/, ""))];
  };
  const kindsByName = new Map();
  const kindOfName = (name) => {
    if (!kindsByName.has(name)) kindsByName.set(name, KINDS.find(([, words]) => spelled(name).some((text) => words.test(text)))?.[0] ?? null);
    return kindsByName.get(name);
  };

  const kindOf = (element) => {
    const names = [...element.classList, ...NAMES.map((name) => element.getAttribute(name)), element.localName.includes("-") ? element.localName : null];
    for (const name of names) {
      const kind = name && name.length <= NAME_LENGTH ? kindOfName(name) : null;
      if (kind) return kind;
    }
    return null;
  };

  // A marked text in the middle of a line, such as the number of a citation, belongs to its sentence.
  const isApart = (element) => !element.matches(FLOW) && !/^(inline|contents)/.test(getComputedStyle(element).display);
  const fillsLine = (seen, element, node) => look.bare(element.textContent) === look.bare(seen.lineOf.get(node));

  const LONGEST = { name: 40, status: 120 }; // characters; a longer text is the answer, whatever its class is
  const isPart = ({ element, kind }) => !(kind in LONGEST) || look.plain(element.textContent).length <= LONGEST[kind];

  // The outermost marked element around a text, below `top`, and its kind.
  const markAround = (seen, node, top) => {
    let mark = null;
    for (let at = node.parentElement ?? look.up(node); at && at !== top && !at.matches("table"); at = look.up(at)) {
      const kind = kindOf(at);
      if (kind && isPart({ element: at, kind }) && (isApart(at) || (!at.matches(FLOW) && fillsLine(seen, at, node)))) mark = { element: at, kind };
    }
    return mark;
  };

  // A block of lines under a heading such as "3 passages, 88 % similar". It is beside the text before it, not inside.
  const parentOf = (node) => node.parentElement ?? look.up(node);
  const headsSources = (text) => text.length <= HEAD_LENGTH && SOURCES.test(text);
  const markByHeading = (nodes) => {
    const marks = new Map();
    nodes.forEach((head, index) => {
      const text = look.plain(head.data);
      if (!index || marks.has(head) || !headsSources(text)) return;
      const before = parentOf(nodes[index - 1]);
      let block = null;
      for (let at = parentOf(head); at && !look.holds(at, before); at = look.up(at)) block = at;
      const inside = block ? nodes.filter((node) => look.holds(block, parentOf(node))) : [];
      if (inside[0] === head && inside.length > 1) for (const node of inside) marks.set(node, { element: block, kind: "source" });
    });
    return marks;
  };

  const isName = (line) => line?.length <= HEAD_LENGTH / 2 && !/[.!?।:]$/u.test(line);

  // The texts of a message without its parts, and the parts. A message with only sources, status or names is an answer.
  look.splitParts = (seen, nodes, top, isLabel) => {
    if (!nodes.length) return { rest: nodes, parts: [] };
    const marks = new Map(nodes.map((node) => [node, markAround(seen, node, top)]).filter(([, mark]) => mark));
    const unmarked = nodes.filter((node) => !marks.has(node) && look.plain(node.data) && !isLabel(node));
    // A heading that is in every answer is a label, but still the heading of its sources.
    const lines = nodes.filter((node) => unmarked.includes(node) || (!marks.has(node) && headsSources(look.plain(node.data))));
    if (unmarked.length) for (const [node, mark] of markByHeading(lines)) marks.set(node, mark);
    const isHead = (node) => nodes.indexOf(node) < nodes.indexOf(unmarked[0]);
    for (const [node, { kind }] of [...marks]) if (kind === "name" && !isHead(node)) marks.delete(node);
    if (!unmarked.length && ![...marks.values()].some(({ kind }) => kind === "tool" || kind === "thinking")) return { rest: nodes, parts: [] };
    // A short text before the first reasoning or tool card is the name of the speaker.
    const worked = nodes.findIndex((node) => ["thinking", "tool"].includes(marks.get(node)?.kind));
    const last = nodes.findLastIndex((node) => !marks.has(node) && look.plain(node.data));
    if (last > worked) {
      for (const node of nodes.slice(0, Math.max(0, worked))) {
        if (!marks.has(node) && node.parentElement && isName(seen.lineOf.get(node))) marks.set(node, { element: look.blockOf(node), kind: "name" });
      }
    }
    const parts = new Map([...marks.values()].map(({ element, kind }) => [element, kind]));
    return {
      rest: nodes.filter((node) => !marks.has(node)),
      parts: [...parts].map(([element, kind]) => ({ kind, text: textOfPart(element, kind) })).filter(({ text }) => text),
    };
  };

  const textOfPart = (element, kind) => (kind === "source" ? textOfCard(element) : look.textOf(element));

  // The headers, footers and notices of a message, as parts of the message.
  look.partsOfAsides = (asides) => asides.map((element) => {
    const head = look.textNodes(element).map((node) => look.plain(node.data)).find(Boolean) ?? "";
    const kind = kindOf(element) ?? (SOURCES.test(head) ? "source" : "status");
    return { kind, text: textOfPart(element, kind) };
  }).filter(({ text }) => text);
})();

// Split a page into lines, and find the lines that two states of the page have in common.
(() => {
  const look = globalThis.__lookout;
  if (look.lines) return;

  const LCS_CELLS = 250_000; // for larger pages, only the common beginning and the common end are compared

  // The texts of a page by line. The nodes of one block belong to one line.
  look.lines = () => {
    const groups = [];
    let last = null;
    look.eachText(document.body, (node) => {
      if (!look.plain(node.data)) return;
      const block = look.blockOf(node);
      if (last?.block !== block) groups.push(last = { block, nodes: [], text: "" });
      last.nodes.push(node);
      last.text = look.plain(`${last.text} ${node.data}`);
    });
    return groups;
  };

  // All texts of the page, including hidden texts and controls.
  look.everyText = () => {
    const found = [];
    for (const root of look.roots()) {
      const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
      while (walker.nextNode()) found.push(walker.currentNode);
    }
    return found;
  };

  // The page's short texts.
  look.shortTexts = (length) => look.everyText().map((node) => look.plain(node.data)).filter((text) => text && text.length <= length);

  look.blockOf = (node) => {
    let at = node.parentElement ?? look.up(node);
    while (at && look.up(at) && /^(inline|contents)/.test(getComputedStyle(at).display)) at = look.up(at);
    return at;
  };

  // The depth of the boundary before a line: the depth of the lowest common ancestor of the lines on both sides. It is 0
  // at the beginning and the end of the page, and smaller between two messages than inside a message.
  look.cuts = (groups) => {
    const depthOf = (element) => {
      let depth = 0;
      for (let at = element; at; at = look.up(at)) depth += 1;
      return depth;
    };
    return (index) => {
      const before = groups[index - 1]?.block;
      let at = before && groups[index] ? before : null;
      while (at && !look.holds(at, groups[index].block)) at = look.up(at);
      return depthOf(at);
    };
  };

  // The indices of the lines of `now` that are also in `before`, in the same order. If it is ambiguous which lines are
  // new (two messages begin with the same name), `cut` selects complete messages.
  look.kept = (before, now, cut = null) => {
    const found = common(before, now);
    if (cut) for (let start = 0; start < now.length; start += 1) if (!found.has(start) && (!start || found.has(start - 1))) slide(found, now, start, cut);
    return found;
  };

  // Moves a sequence of new lines up to the boundary with the smallest depth, as long as the texts stay the same.
  const slide = (found, now, start, cut) => {
    let end = start;
    while (end < now.length && !found.has(end)) end += 1;
    const reads = (by) => start >= by && found.has(start - by) && now[start - by] === now[end - by];
    if (!reads(1)) return;
    let [best, least] = [0, cut(start) + cut(end)];
    for (let by = 1; reads(by); by += 1) {
      const depth = cut(start - by) + cut(end - by);
      if (depth < least) [best, least] = [by, depth];
    }
    for (let by = 1; by <= best; by += 1) {
      found.delete(start - by);
      found.add(end - by);
    }
  };

  // The weight of a line in the comparison of two states. Names and times are in every message. One long line that moved
  // up (because an older message was removed) must weigh more than a few names and times.
  const COUNTED = 200;
  const weightOf = (line) => 1 + Math.min(COUNTED, line.length);

  // The common subsequence with the largest weight.
  const common = (before, now) => {
    const found = new Set();
    let start = 0;
    while (start < before.length && start < now.length && before[start] === now[start]) found.add(start++);
    let ends = 0;
    while (ends < before.length - start && ends < now.length - start && before.at(-1 - ends) === now.at(-1 - ends)) {
      ends += 1;
      found.add(now.length - ends);
    }
    const a = before.slice(start, before.length - ends);
    const b = now.slice(start, now.length - ends);
    if (a.length * b.length > LCS_CELLS) return found;
    const most = Array.from({ length: a.length + 1 }, () => new Uint32Array(b.length + 1));
    for (let i = a.length - 1; i >= 0; i -= 1) {
      for (let j = b.length - 1; j >= 0; j -= 1) {
        most[i][j] = a[i] === b[j] ? most[i + 1][j + 1] + weightOf(a[i]) : Math.max(most[i + 1][j], most[i][j + 1]);
      }
    }
    for (let i = 0, j = 0; i < a.length && j < b.length;) {
      if (a[i] === b[j]) {
        found.add(start + j);
        i += 1;
        j += 1;
      } else if (most[i + 1][j] >= most[i][j + 1]) i += 1;
      else j += 1;
    }
    return found;
  };
})();

// What a machine can see of a page's accessibility, by rules of our own: it is no axe-core, and claims less.
// Names of controls, links and graphics; labels of fields; order of headings; language, title and main part of the
// page; ids that occur twice; heads of tables; sizes of targets; contrast of every text with what is behind it.
() => {
  const found = [];
  const say = (rule, node) => found.push(`${rule}: ${node.outerHTML.slice(0, 120)}`);
  const shown = (node) => {
    const box = node.getBoundingClientRect();
    const style = getComputedStyle(node);
    return box.width > 1 && box.height > 1 && style.visibility !== "hidden" && style.display !== "none";
  };
  const textOf = (id) => document.getElementById(id)?.textContent ?? "";
  const nameOf = (node) =>
    (node.getAttribute("aria-label") ||
      (node.getAttribute("aria-labelledby") || "").split(/\s+/).filter(Boolean).map(textOf).join(" ") ||
      [...(node.labels ?? [])].map((label) => label.textContent).join(" ") ||
      node.textContent || node.getAttribute("alt") || node.getAttribute("title") || "").trim();

  if (!document.documentElement.lang) found.push("the page has no language");
  if (!document.title.trim()) found.push("the page has no title");
  if (document.querySelectorAll("main").length !== 1) found.push("the page has not one main part");
  const ids = [...document.querySelectorAll("[id]")].map((node) => node.id);
  for (const id of new Set(ids.filter((id, at) => ids.indexOf(id) !== at))) found.push(`the id ${id} occurs twice`);

  for (const node of document.querySelectorAll("a[href], button, summary")) if (!nameOf(node)) say("no name", node);
  for (const node of document.querySelectorAll("input:not([type=hidden]), select, textarea")) {
    if (!nameOf(node)) say("no label", node);
  }
  for (const node of document.querySelectorAll("img")) if (!node.hasAttribute("alt")) say("no alt", node);
  for (const node of document.querySelectorAll("svg[role=img]")) {
    if (!node.querySelector(":scope > title")?.textContent.trim()) say("graphic without a title", node);
  }
  for (const node of document.querySelectorAll("table")) {
    if (!node.querySelector("th")) say("table without heads", node);
  }
  for (const node of document.querySelectorAll("[aria-labelledby], [aria-describedby], [for]")) {
    for (const name of ["aria-labelledby", "aria-describedby", "for"]) {
      for (const id of (node.getAttribute(name) || "").split(/\s+/).filter(Boolean)) {
        if (!document.getElementById(id)) say(`${name} leads nowhere`, node);
      }
    }
  }
  for (const node of document.querySelectorAll("[tabindex]")) if (node.tabIndex > 0) say("tab order forced", node);
  let level = 0;
  for (const node of document.querySelectorAll("h1, h2, h3, h4, h5, h6")) {
    const next = Number(node.tagName[1]);
    if (next > level + 1) say(`heading skips from ${level} to ${next}`, node);
    level = next;
  }
  if (document.querySelectorAll("h1").length !== 1) found.push("the page has not one h1");
  for (const node of document.querySelectorAll("button, select, input:not([type=hidden])")) {
    const box = node.getBoundingClientRect();
    if (shown(node) && (box.height < 24 || box.width < 24)) say("target smaller than 24 pixels", node);
  }

  const rgba = (text) => {
    const parts = text.match(/[\d.]+/g)?.map(Number) ?? [0, 0, 0, 0];
    return parts.length === 3 ? [...parts, 1] : parts;
  };
  const over = (top, below) => [0, 1, 2].map((at) => top[at] * top[3] + below[at] * (1 - top[3]));
  const behind = (node) => {
    const layers = [];
    for (let one = node; one; one = one.parentElement) layers.push(rgba(getComputedStyle(one).backgroundColor));
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    return layers.reverse().reduce((below, top) => over(top, below), dark ? [18, 18, 18] : [255, 255, 255]);
  };
  const light = (colour) => {
    const [r, g, b] = colour.map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !shown(node) || node.closest("script, style, svg, option")) continue;
    const style = getComputedStyle(node);
    const ground = behind(node);
    const [first, second] = [light(over(rgba(style.color), ground)), light(ground)].sort((a, b) => b - a);
    const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && style.fontWeight >= 700);
    const ratio = (first + 0.05) / (second + 0.05);
    if (ratio < (large ? 3 : 4.5)) say(`contrast ${ratio.toFixed(2)}`, node);
  }
  if (document.documentElement.scrollWidth > innerWidth) found.push("the page is wider than the window");
  return found;
}

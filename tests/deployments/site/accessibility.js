// What axe-core does not look for, or leaves to people: the rest of a page's accessibility that a machine can see.
() => {
  const broken = [];
  const report = (rule, node) => broken.push(`${rule}: ${node.outerHTML.slice(0, 120)}`);
  const all = (query, root = document) => [...root.querySelectorAll(query)];
  const isShown = (node) => {
    const box = node.getBoundingClientRect();
    const style = getComputedStyle(node);
    return box.width > 1 && box.height > 1 && style.visibility !== "hidden" && style.display !== "none";
  };
  const FIELDS = "input:not([type=hidden]), select, textarea";
  const FOCUSABLE = `a[href], button:not([disabled]), summary, ${FIELDS}, [tabindex], [contenteditable=""], [contenteditable=true]`;

  // The page as a whole
  if (all("h1").length > 1) broken.push("several h1");
  if (document.documentElement.scrollWidth > innerWidth) broken.push("the page is wider than the window");
  const first = document.querySelector(FOCUSABLE);
  if (all("nav a").length > 5 && !(first?.hash && document.getElementById(first.hash.slice(1)))) {
    broken.push("no link past the navigation");
  }
  const ids = all("[id]").map((node) => node.id);
  for (const id of new Set(ids.filter((id, at) => ids.indexOf(id) !== at))) broken.push(`the id ${id} occurs twice`);
  for (const name of ["for", "headers", "list"]) {
    for (const node of all(`[${name}]`)) {
      if (!node.getAttribute(name).split(/\s+/).every((id) => document.getElementById(id))) report(`${name} leads nowhere`, node);
    }
  }

  // Names, tables and nesting
  for (const node of all("progress, meter")) if (!node.ariaLabel && !node.labels.length) report("no name", node);
  for (const node of all("svg:not([role]):not([aria-hidden=true])")) {
    if (!node.closest("[role=img], [aria-hidden=true]")) report("graphic that is neither an image nor hidden", node);
  }
  for (const node of all("a[href], button, summary, [role=button], [role=link], [role=img]")) {
    if (node.querySelector(FOCUSABLE)) report("a control inside a control", node);
  }
  for (const node of all("table:not([role=presentation])")) {
    if (!node.querySelector("th")) report("table without headers", node);
    const width = (row) => [...row.cells].reduce((sum, cell) => sum + cell.colSpan, 0);
    const headers = node.tHead?.rows[0] ? width(node.tHead.rows[0]) : Infinity;
    for (const row of [...node.tBodies].flatMap((body) => [...body.rows])) if (width(row) > headers) report("cells without a header", row);
  }

  // Size and focus: what can be reached is large enough and shows that it has focus, and what scrolls can be reached
  const looks = (node) => {
    const style = getComputedStyle(node);
    return [style.outlineStyle, style.outlineWidth, style.outlineColor, style.boxShadow, style.backgroundColor, style.borderColor, style.textDecorationLine, style.transform, style.clip, style.left, style.top].join("|");
  };
  const before = document.activeElement;
  const [scrollX, scrollY] = [window.scrollX, window.scrollY];
  const targets = all(FOCUSABLE).filter((node) => isShown(node) && node.tabIndex >= 0);
  for (const node of targets) {
    const box = node.getBoundingClientRect();
    const isBox = node.matches("button, select, input:not([type=radio]):not([type=checkbox])");
    if (isBox && (box.width < 23.9 || box.height < 23.9)) report("target smaller than 24 pixels", node);
    const plain = looks(node);
    node.focus({ preventScroll: true });
    if (document.activeElement !== node) continue;
    const style = getComputedStyle(node);
    const outlined = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 1;
    if (!outlined && looks(node) === plain) report("focus cannot be seen", node);
    node.blur();
  }
  before?.focus?.({ preventScroll: true });
  scrollTo(scrollX, scrollY);
  for (const node of all("body *")) {
    const style = getComputedStyle(node);
    const scrolls = (/auto|scroll/.test(style.overflowX) && node.scrollWidth > node.clientWidth + 1) ||
      (/auto|scroll/.test(style.overflowY) && node.scrollHeight > node.clientHeight + 1);
    if (scrolls && isShown(node) && node.tabIndex < 0 && !node.querySelector(FOCUSABLE)) report("scrolls, and cannot be reached", node);
  }

  // Contrast of text in graphics with what is behind it, and links in a sentence that only their colour sets apart
  const rgba = (text) => {
    const parts = text.match(/[\d.]+/g)?.map(Number) ?? [0, 0, 0, 0];
    return parts.length === 3 ? [...parts, 1] : parts;
  };
  const over = (top, below) => [0, 1, 2].map((at) => top[at] * top[3] + below[at] * (1 - top[3]));
  const behind = (node) => {
    const layers = [];
    for (let part = node; part; part = part.parentElement) layers.push(rgba(getComputedStyle(part).backgroundColor));
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    return layers.reverse().reduce((below, top) => over(top, below), dark ? [18, 18, 18] : [255, 255, 255]);
  };
  const opacity = (node) => {
    let product = 1;
    for (let part = node; part; part = part.parentElement) product *= Number(getComputedStyle(part).opacity);
    return product;
  };
  const light = (colour) => {
    const [r, g, b] = colour.map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (colour, other) => {
    const [top, low] = [light(colour), light(other)].sort((a, b) => b - a);
    return (top + 0.05) / (low + 0.05);
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !isShown(node) || !node.closest("svg") || node.closest("title, desc")) continue;
    const style = getComputedStyle(node);
    const ground = behind(node);
    const [red, green, blue, alpha] = rgba(style.fill);
    const ratio = contrast(over([red, green, blue, alpha * opacity(node)], ground), ground);
    const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && style.fontWeight >= 700);
    if (ratio < (large ? 3 : 4.5)) report(`contrast ${ratio.toFixed(2)}`, node);
  }
  const inSentence = (node) => getComputedStyle(node).display.startsWith("inline") && node.matches("a") &&
    [...node.parentElement.childNodes].some((other) => other !== node && other.nodeType === Node.TEXT_NODE && /[\p{L}\p{N}]/u.test(other.data));
  for (const node of all("a[href]").filter((link) => isShown(link) && inSentence(link))) {
    const [style, around] = [getComputedStyle(node), getComputedStyle(node.parentElement)];
    const marked = style.textDecorationLine !== "none" || style.fontWeight !== around.fontWeight || style.borderBottomStyle !== "none" ||
      style.backgroundColor !== "rgba(0, 0, 0, 0)";
    if (!marked && contrast(rgba(style.color).slice(0, 3), rgba(around.color).slice(0, 3)) < 3) report("a link by colour alone", node);
  }
  return broken;
}

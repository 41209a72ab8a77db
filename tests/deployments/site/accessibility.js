// What a machine can see of a page's accessibility, by rules of our own: those of axe-core for WCAG 2.2, levels A and
// AA, that pages without frames, media and widgets of their own can break. It is no axe-core, and claims less.
() => {
  const found = [];
  const say = (rule, node) => found.push(`${rule}: ${node.outerHTML.slice(0, 120)}`);
  const all = (query, root = document) => [...root.querySelectorAll(query)];
  const shown = (node) => {
    const box = node.getBoundingClientRect();
    const style = getComputedStyle(node);
    return box.width > 1 && box.height > 1 && style.visibility !== "hidden" && style.display !== "none";
  };
  const words = (node, name) => (node.getAttribute(name) || "").split(/\s+/).filter(Boolean);
  const textOf = (id) => document.getElementById(id)?.textContent ?? "";
  const nameOf = (node) =>
    (words(node, "aria-labelledby").map(textOf).join(" ") || node.getAttribute("aria-label") ||
      [...(node.labels ?? [])].map((label) => label.textContent).join(" ") ||
      (node.matches("select, textarea") ? "" : node.textContent) || all("img[alt]", node).map((image) => image.alt).join(" ") ||
      node.getAttribute("alt") || node.getAttribute("title") || "").trim();
  const FIELDS = "input:not([type=hidden]), select, textarea";
  const FOCUSABLE = `a[href], button:not([disabled]), summary, ${FIELDS}, [tabindex], [contenteditable=""], [contenteditable=true]`;

  // The page as a whole
  const isLanguage = (text) => /^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$/.test(text);
  if (!document.documentElement.lang) found.push("the page has no language");
  for (const node of all("[lang]")) if (!isLanguage(node.lang)) say("no such language", node);
  if (!document.title.trim()) found.push("the page has no title");
  if (all("main, [role=main]").length !== 1) found.push("the page has not one main part");
  if (all("h1").length !== 1) found.push("the page has not one h1");
  if (all("meta[http-equiv=refresh i]").length) found.push("the page reloads by itself");
  const viewport = document.querySelector("meta[name=viewport]")?.content ?? "";
  if (/user-scalable\s*=\s*(no|0)|maximum-scale\s*=\s*(0|1)(\.\d+)?\s*(,|$)/.test(viewport)) found.push("nobody can zoom");
  if (document.documentElement.scrollWidth > innerWidth) found.push("the page is wider than the window");
  const first = document.querySelector(FOCUSABLE);
  if (all("nav a").length > 5 && !(first?.hash && document.getElementById(first.hash.slice(1)))) {
    found.push("nothing leads past the bar");
  }
  const ids = all("[id]").map((node) => node.id);
  for (const id of new Set(ids.filter((id, at) => ids.indexOf(id) !== at))) found.push(`the id ${id} occurs twice`);
  let level = 0;
  for (const node of all("h1, h2, h3, h4, h5, h6")) {
    const next = Number(node.tagName[1]);
    if (next > level + 1) say(`heading skips from ${level} to ${next}`, node);
    if (!nameOf(node)) say("empty heading", node);
    level = next;
  }

  // Landmarks: each said once, with a name of its own where there are several; nothing readable outside of them
  const landmarks = { nav: "nav, [role=navigation]", search: "search, [role=search]", aside: "aside, [role=complementary]" };
  for (const [kind, query] of Object.entries(landmarks)) {
    const names = all(query).map((node) => node.getAttribute("aria-label") || words(node, "aria-labelledby").map(textOf).join(" "));
    if (new Set(names).size !== names.length) found.push(`two landmarks ${kind} have the same name`);
  }
  for (const query of ["body > header, [role=banner]", "body > footer, [role=contentinfo]"]) {
    if (all(query).length > 1) found.push(`two landmarks are ${query}`);
  }
  for (const node of document.body.children) {
    const outside = !node.matches("header, main, footer, nav, aside, search, script, style, template, [role], a[href^='#']");
    if (outside && shown(node) && node.textContent.trim()) say("outside of every landmark", node);
  }

  // Names and labels
  for (const node of all("a[href], button, summary, [role=button], [role=link], [role=menuitem], [role=tab]")) {
    if (!nameOf(node)) say("no name", node);
    const label = node.getAttribute("aria-label");
    const seen = node.textContent.replace(/[^\p{L}\p{N} ]/gu, "").replace(/\s+/g, " ").trim().toLowerCase();
    if (label && seen && !label.toLowerCase().includes(seen)) say("is named other than it reads", node);
  }
  for (const node of all(`${FIELDS}, [role=textbox], [role=combobox], [role=listbox], [role=checkbox], [role=radio]`)) {
    if (!nameOf(node)) say("no label", node);
    if ((node.labels?.length ?? 0) > 1) say("several labels", node);
  }
  for (const node of all("progress, meter, [role=progressbar], [role=meter], dialog[open], [role=dialog], [role=tooltip]")) {
    if (!nameOf(node)) say("no name", node);
  }
  for (const node of all("img, area, input[type=image]")) if (!node.hasAttribute("alt")) say("no alt", node);
  for (const node of all("iframe, object")) if (!nameOf(node)) say("no title", node);
  for (const node of all("svg[role=img], [role=img]:not(svg), [role^=graphics]")) {
    const title = node.querySelector(":scope > title")?.textContent.trim();
    if (!title && !node.getAttribute("aria-label") && !words(node, "aria-labelledby").length) say("graphic without a title", node);
  }
  for (const node of all("svg:not([role]):not([aria-hidden=true])")) {
    if (!node.closest("[role=img], [aria-hidden=true]")) say("graphic that is neither an image nor hidden", node);
  }
  const PURPOSES = /^(on|off|((section-\S+ )?((shipping|billing) )?((home|work|mobile|fax|pager) )?(name|username|email|tel|current-password|new-password|one-time-code|nickname|given-name|family-name|organization|url|language))( webauthn)?)$/;
  for (const node of all("[autocomplete]")) if (!PURPOSES.test(node.getAttribute("autocomplete"))) say("no such autocomplete", node);

  // ARIA that browsers would not take, or that contradicts the element
  const ROLES = new Set(("alert alertdialog application article banner button cell checkbox columnheader combobox complementary contentinfo " +
    "definition dialog directory document feed figure form grid gridcell group heading img link list listbox listitem log main marquee " +
    "math menu menubar menuitem menuitemcheckbox menuitemradio meter navigation none note option presentation progressbar radio " +
    "radiogroup region row rowgroup rowheader scrollbar search searchbox separator slider spinbutton status switch tab table tablist " +
    "tabpanel term textbox timer toolbar tooltip tree treegrid treeitem graphics-document graphics-object graphics-symbol").split(" "));
  const NEEDED = { checkbox: "checked", switch: "checked", radio: "checked", combobox: "expanded", heading: "level", meter: "valuenow",
    scrollbar: "valuenow", slider: "valuenow", option: "selected", menuitemcheckbox: "checked" };
  const INSIDE = { listitem: "[role=list], ul, ol", option: "[role=listbox], select", row: "[role=table], [role=grid], [role=rowgroup], table",
    cell: "[role=row], tr", tab: "[role=tablist]", menuitem: "[role=menu], [role=menubar]" };
  const TRUTH = ["true", "false"];
  const ATTRIBUTES = { atomic: TRUTH, busy: TRUTH, disabled: TRUTH, hidden: TRUTH, modal: TRUTH, multiline: TRUTH, multiselectable: TRUTH,
    readonly: TRUTH, required: TRUTH, expanded: TRUTH, selected: TRUTH, checked: [...TRUTH, "mixed"], pressed: [...TRUTH, "mixed"],
    current: [...TRUTH, "page", "step", "location", "date", "time"], live: ["off", "polite", "assertive"], sort: ["none", "ascending", "descending", "other"],
    invalid: [...TRUTH, "grammar", "spelling"], haspopup: [...TRUTH, "menu", "listbox", "tree", "grid", "dialog"],
    orientation: ["horizontal", "vertical", "undefined"], autocomplete: ["inline", "list", "both", "none"], relevant: null,
    label: null, labelledby: "id", describedby: "id", controls: "id", owns: "id", details: "id", flowto: "id", errormessage: "id", activedescendant: "id",
    description: null, roledescription: null, keyshortcuts: null, placeholder: null, valuetext: null, level: /^[1-9]$/, posinset: /^\d+$/,
    setsize: /^-?\d+$/, colcount: /^-?\d+$/, colindex: /^\d+$/, colspan: /^\d+$/, rowcount: /^-?\d+$/, rowindex: /^\d+$/, rowspan: /^\d+$/,
    valuemin: /^-?[\d.]+$/, valuemax: /^-?[\d.]+$/, valuenow: /^-?[\d.]+$/ };
  const UNNAMED = "div, span, p, b, i, u, s, em, strong, code, small, sub, sup, del, ins, mark, q, abbr, caption, dt, dd, pre, blockquote";
  for (const node of all("*")) {
    for (const { name, value } of node.attributes) {
      if (!name.startsWith("aria-")) continue;
      const takes = ATTRIBUTES[name.slice(5)];
      if (takes === undefined) say(`no such attribute as ${name}`, node);
      else if (takes === "id") {
        for (const id of words(node, name)) if (!document.getElementById(id)) say(`${name} leads nowhere`, node);
      } else if (takes && !(takes instanceof RegExp ? takes.test(value) : takes.includes(value))) say(`${name} cannot be ${value}`, node);
    }
    for (const id of words(node, "for").concat(words(node, "headers"), words(node, "list"))) {
      if (!document.getElementById(id)) say("for, headers or list leads nowhere", node);
    }
    const role = node.getAttribute("role");
    if (role !== null) {
      if (!ROLES.has(role)) say(`no such role as ${role}`, node);
      if (NEEDED[role] && !node.hasAttribute(`aria-${NEEDED[role]}`) && !node.matches("input, option, meter, h1, h2, h3")) say(`a ${role} without its state`, node);
      if (INSIDE[role] && !node.parentElement?.closest(INSIDE[role])) say(`a ${role} outside of what holds it`, node);
      if (["none", "presentation"].includes(role) && node.matches(FOCUSABLE)) say("can be reached and has no role", node);
    } else if ((node.hasAttribute("aria-label") || node.hasAttribute("aria-labelledby")) && node.matches(UNNAMED)) say("cannot have a name", node);
  }
  if (document.body.closest("[aria-hidden=true]")) found.push("the page is hidden");
  for (const node of all("[aria-hidden=true]")) {
    for (const inner of [node, ...all(FOCUSABLE, node)]) {
      if (inner.matches(FOCUSABLE) && inner.tabIndex >= 0 && shown(inner)) say("hidden, and can be reached", inner);
    }
  }
  for (const node of all("a[href], button, summary, label, [role=button], [role=link], [role=img]")) {
    const inner = node.querySelector(node.matches("label") ? "a[href], button" : FOCUSABLE);
    if (inner && inner.tabIndex >= 0) say("one control in another", node);
  }
  for (const node of all("[tabindex]")) if (node.tabIndex > 0) say("tab order forced", node);
  const keys = all("[accesskey]").map((node) => node.accessKey);
  if (new Set(keys).size !== keys.length) found.push("two controls have the same access key");
  for (const node of all("blink, marquee")) say("moves by itself", node);

  // Lists and tables
  const within = (query, allowed, rule) => {
    for (const node of all(query)) if ([...node.children].some((child) => !child.matches(`${allowed}, script, template`))) say(rule, node);
  };
  within("ul:not([role]), ol:not([role])", "li", "list with other parts");
  within("dl:not([role])", "dt, dd, div", "definitions with other parts");
  within("dl > div", "dt, dd", "definitions with other parts");
  for (const node of all("li:not([role])")) if (!node.parentElement.matches("ul, ol, menu")) say("item of no list", node);
  for (const node of all("dt, dd")) if (!node.parentElement.closest("dl")) say("definition of no list", node);
  for (const node of all("dl > div, dl:not(:has(> div))")) {
    if (node.childElementCount && !(node.querySelector(":scope > dt") && node.querySelector(":scope > dd"))) say("definitions without a pair", node);
  }
  for (const node of all("table:not([role=presentation])")) {
    if (!node.querySelector("th")) say("table without heads", node);
    const heads = [...(node.tHead?.rows[0]?.cells ?? [])].reduce((sum, cell) => sum + cell.colSpan, 0);
    for (const row of heads ? [...node.tBodies].flatMap((body) => [...body.rows]) : []) {
      if ([...row.cells].reduce((sum, cell) => sum + cell.colSpan, 0) > heads) say("cells without a head", row);
    }
  }
  for (const node of all("th")) {
    if (!nameOf(node)) say("empty head", node);
    if (node.hasAttribute("scope") && !["row", "col", "rowgroup", "colgroup"].includes(node.getAttribute("scope"))) say("no such scope", node);
  }
  for (const node of all("td[scope]")) say("no such scope", node);

  // Targets: 24 pixels, or as much room around them; a link in a sentence is as high as its line
  const targets = all(FOCUSABLE).filter((node) => shown(node) && node.tabIndex >= 0);
  const inSentence = (node) => getComputedStyle(node).display.startsWith("inline") && node.matches("a") &&
    [...node.parentElement.childNodes].some((one) => one !== node && one.nodeType === Node.TEXT_NODE && /[\p{L}\p{N}]/u.test(one.data));
  const boxes = targets.map((node) => [node, node.getBoundingClientRect()]);
  const middle = (box) => [box.x + box.width / 2, box.y + box.height / 2];
  const far = ([x, y], box) => Math.hypot(Math.max(box.left - x, 0, x - box.right), Math.max(box.top - y, 0, y - box.bottom));
  const isSmall = (box) => box.width < 23.9 || box.height < 23.9;
  for (const [node, box] of boxes) {
    if (!isSmall(box) || inSentence(node)) continue;
    if (node.matches("button, select, input:not([type=radio]):not([type=checkbox])")) { say("target smaller than 24 pixels", node); continue; }
    const here = middle(box);
    const crowded = boxes.some(([other, its]) => other !== node && !node.contains(other) && !other.contains(node) &&
      (far(here, its) < 11.9 || (isSmall(its) && Math.hypot(here[0] - middle(its)[0], here[1] - middle(its)[1]) < 23.9)));
    if (crowded) say("small target too near another", node);
  }

  // Focus: whatever can be reached shows that it is, and what scrolls can be reached
  const looks = (node) => {
    const style = getComputedStyle(node);
    return [style.outlineStyle, style.outlineWidth, style.outlineColor, style.boxShadow, style.backgroundColor, style.borderColor, style.textDecorationLine, style.transform, style.clip, style.left, style.top].join("|");
  };
  const before = document.activeElement;
  const [scrollX, scrollY] = [window.scrollX, window.scrollY];
  for (const node of targets) {
    const plain = looks(node);
    node.focus({ preventScroll: true });
    if (document.activeElement !== node) continue;
    const style = getComputedStyle(node);
    const outlined = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 1;
    if (!outlined && looks(node) === plain) say("focus cannot be seen", node);
    node.blur();
  }
  before?.focus?.({ preventScroll: true });
  scrollTo(scrollX, scrollY);
  for (const node of all("body *")) {
    const style = getComputedStyle(node);
    const scrolls = (/auto|scroll/.test(style.overflowX) && node.scrollWidth > node.clientWidth + 1) ||
      (/auto|scroll/.test(style.overflowY) && node.scrollHeight > node.clientHeight + 1);
    if (scrolls && shown(node) && node.tabIndex < 0 && !node.querySelector(FOCUSABLE)) say("scrolls, and cannot be reached", node);
  }

  // Contrast of every text, in graphics too, with what is behind it; and links that only their colour sets apart
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
  const opacity = (node) => {
    let product = 1;
    for (let one = node; one; one = one.parentElement) product *= Number(getComputedStyle(one).opacity);
    return product;
  };
  const light = (colour) => {
    const [r, g, b] = colour.map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (one, other) => {
    const [top, low] = [light(one), light(other)].sort((a, b) => b - a);
    return (top + 0.05) / (low + 0.05);
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !shown(node) || node.closest("script, style, svg title, svg desc, option, [disabled]")) continue;
    const style = getComputedStyle(node);
    const ground = behind(node);
    const [red, green, blue, alpha] = rgba(node.closest("svg") ? style.fill : style.color);
    const ratio = contrast(over([red, green, blue, alpha * opacity(node)], ground), ground);
    const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && style.fontWeight >= 700);
    if (ratio < (large ? 3 : 4.5)) say(`contrast ${ratio.toFixed(2)}`, node);
  }
  for (const node of all("a[href]").filter((link) => shown(link) && inSentence(link))) {
    const [style, around] = [getComputedStyle(node), getComputedStyle(node.parentElement)];
    const marked = style.textDecorationLine !== "none" || style.fontWeight !== around.fontWeight || style.borderBottomStyle !== "none" ||
      style.backgroundColor !== "rgba(0, 0, 0, 0)";
    if (!marked && contrast(rgba(style.color).slice(0, 3), rgba(around.color).slice(0, 3)) < 3) say("a link by colour alone", node);
  }
  return found;
}

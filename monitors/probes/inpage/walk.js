// Reading a page as a person sees it: through shadow roots and slots, without what is hidden.
(() => {
  if (globalThis.__lookout) return;
  const look = {};
  Object.defineProperty(globalThis, "__lookout", { value: look, enumerable: false });

  // A closed shadow root hides a chat from every reader; opened, it looks and works the same.
  // Every root is remembered, so that nobody has to walk the page for them.
  const attach = Element.prototype.attachShadow;
  const shadows = new Set();
  Element.prototype.attachShadow = function attachShadow(options) {
    const root = attach.call(this, { ...options, mode: "open" });
    shadows.add(root);
    return root;
  };
  addEventListener("DOMContentLoaded", () => {
    for (const element of document.querySelectorAll("*")) if (element.shadowRoot) shadows.add(element.shadowRoot);
  });

  // When a socket or an event stream last brought something: such a channel has no end that tells of an answer's.
  look.lastPush = -1;
  const listening = (Kind) => class extends Kind {
    constructor(...given) {
      super(...given);
      this.addEventListener("message", () => { look.lastPush = performance.now(); });
    }
  };
  for (const name of ["WebSocket", "EventSource"]) {
    if (!globalThis[name]) continue;
    const Kind = listening(globalThis[name]);
    Object.defineProperty(Kind, "name", { value: name });
    globalThis[name] = Kind;
  }

  look.up = (node) => node.assignedSlot ?? node.parentElement ?? node.getRootNode().host ?? null;

  look.holds = (outer, inner) => {
    for (let at = inner; at; at = look.up(at)) if (at === outer) return true;
    return false;
  };

  look.roots = (root = document) => {
    const found = [root];
    for (const shadow of shadows) if (shadow.isConnected && (root === document || root.contains(shadow.host))) found.push(shadow);
    return found;
  };

  look.all = (selector, roots = look.roots()) => roots.flatMap((root) => [...root.querySelectorAll(selector)]);

  look.visible = (element) => {
    if (!element.checkVisibility({ visibilityProperty: true })) return false;
    const box = element.getBoundingClientRect();
    return box.width > 1 && box.height > 1;
  };

  look.plain = (text) => (text ?? "").replace(/[\s\u200b\ufeff]+/gu, " ").trim();

  // Only letters and digits, lower case: how a question is found again however the page sets it.
  look.bare = (text) => (text ?? "").toLowerCase().replace(/[^\p{L}\p{M}\p{N}]+/gu, "");

  look.named = (element) => {
    const ids = (element.getAttribute("aria-labelledby") ?? "").split(/\s+/).filter(Boolean);
    const by = ids.map((id) => element.getRootNode().getElementById?.(id)?.textContent ?? "").join(" ");
    const labels = [...(element.labels ?? [])].map((label) => label.textContent).join(" ");
    const attributes = ["aria-label", "placeholder", "data-placeholder", "aria-placeholder", "title", "name", "alt"]
      .map((name) => element.getAttribute(name) ?? "").join(" ");
    const own = element.matches("input, textarea, [contenteditable]") ? "" : element.textContent;
    const value = element.matches("input[type=submit], input[type=button]") ? element.value : "";
    return look.plain(`${by} ${labels} ${attributes} ${own} ${value}`).slice(0, 200);
  };

  look.CONTROL = "button, [role=button], input, select, textarea, [role=textbox], [contenteditable=true], [role=menu], [role=toolbar], "
    + "[role=progressbar], progress, svg, script, style, noscript, template, time, audio, video, canvas";

  const BLOCK = /^(block|flex|grid|list-item|table|table-row|flow-root|table-caption)$/;
  const ICON_FONT = /icon|symbols|awesome/i;

  const hiddenAway = (element, style) => {
    if (style.display === "contents") return false;
    if (!element.checkVisibility({ visibilityProperty: true })) return true;
    if (style.position !== "absolute" && style.position !== "fixed") return false;
    const box = element.getBoundingClientRect();
    return box.width <= 1 && box.height <= 1; // the usual way to write for screen readers only
  };

  look.childrenOf = (element) => {
    if (element.shadowRoot) return element.shadowRoot.childNodes;
    if (element.localName === "slot") {
      const given = element.assignedNodes();
      return given.length ? given : element.childNodes;
    }
    return element.childNodes;
  };

  // Every text node a person can see, in reading order, with `edge` called where a line ends.
  look.eachText = (root, take, edge = () => {}) => {
    const walk = (node, pre) => {
      if (node.nodeType === Node.TEXT_NODE) {
        if (node.data) take(node, pre);
        return;
      }
      if (node.nodeType !== Node.ELEMENT_NODE) return;
      if (node.localName === "br") return edge("\n");
      if (node.matches(look.CONTROL)) return;
      const style = getComputedStyle(node);
      if (style.display === "none" || hiddenAway(node, style) || ICON_FONT.test(style.fontFamily)) return;
      const end = BLOCK.test(style.display) ? "\n" : style.display === "table-cell" ? "\t" : "";
      if (end) edge(end);
      const keeps = style.whiteSpaceCollapse ? style.whiteSpaceCollapse !== "collapse" : /^pre/.test(style.whiteSpace);
      for (const child of look.childrenOf(node)) walk(child, keeps);
      if (end) edge(end);
    };
    walk(root, false);
  };

  // The visible text under `root`; `pick` says what of a text node counts ("" for nothing).
  look.textOf = (root, pick = (node) => node.data) => {
    let out = "";
    let pending = "";
    const edge = (mark) => {
      if (pending !== "\n") pending = mark;
    };
    look.eachText(root, (node, pre) => {
      let text = pick(node);
      if (!pre) text = text.replace(/[ \t\n\r\f]+/g, " ");
      if (!text.trim() && (pending || !out)) return;
      if (!text) return;
      if (pending && out) out = out.replace(/[ \t]+$/, "") + pending;
      if (pending) text = pre ? text : text.replace(/^ /, "");
      pending = "";
      out += text;
    }, edge);
    return out.replace(/[ \t]+$/gm, "").replace(/\n{3,}/g, "\n\n").trim();
  };
})();

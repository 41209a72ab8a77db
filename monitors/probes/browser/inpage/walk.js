// Read a page as a person sees it: through shadow roots and slots, and without hidden content.
(() => {
  if (globalThis.__lookout) return;
  const look = {};
  Object.defineProperty(globalThis, "__lookout", { value: look, enumerable: false });

  // A closed shadow root hides a chat from scripts. It is opened; an open root looks and works the same. All roots are
  // stored, because a search in the page would be slow.
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

  // When a socket or an event stream last received data. The end of such a channel does not show the end of an answer.
  look.lastPush = -1;
  // The messages of sockets and streams after a call of `hear`. Each message has an address and a text.
  look.hear = () => { heard = []; characters = 0; };
  look.told = () => Promise.all(heard ?? []);
  let heard = null, characters = 0;
  const HEARD_AT_MOST = 20_000, CHARACTERS_AT_MOST = 8_000_000;
  const sizeOf = (data) => data?.length ?? data?.size ?? data?.byteLength ?? 0;
  // Sockets, event streams and bodies that the page reads piece by piece: when they were opened, when they last received
  // data, and whether they ended normally.
  const channels = new Map();
  const openChannel = (channel) => channels.set(channel, { since: performance.now(), at: -1, clean: false });
  // Whether a channel is open or opening, and may still bring new content.
  look.listens = () => [...channels.keys()].some((one) => one.readyState < 2);
  // Whether a channel that has received data since `asked` may receive more.
  look.isLive = (asked) => [...channels].some(([channel, { at }]) => at > asked && (channel.readyState ?? 0) < 2);
  // Whether the last channel to an address was opened after `asked` and has ended normally.
  look.endedAsAgreed = (url, asked) => {
    const last = [...channels].findLast(([channel]) => channel.url === url);
    return Boolean(last) && last[0].readyState === 3 && last[1].since >= asked && last[1].clean;
  };
  look.connects = () => [...channels.keys()].some((one) => one.readyState === 0);
  look.askedAt = Infinity;
  const textOf = async (data) => (typeof data === "string" ? data : new TextDecoder().decode(data instanceof Blob ? await data.arrayBuffer() : data));
  const pushed = (event) => {
    look.lastPush = channels.get(event.target).at = performance.now();
    if (!heard || heard.length >= HEARD_AT_MOST || characters + sizeOf(event.data) > CHARACTERS_AT_MOST) return;
    characters += sizeOf(event.data);
    heard.push(Promise.all([event.target.url, textOf(event.data)]));
  };
  const listening = (Kind) => class extends Kind {
    #followed = new Set(["open", "close", "error"]);

    constructor(...given) {
      super(...given);
      openChannel(this);
      this.#follow("message");
      super.addEventListener("close", ({ code }) => { channels.get(this).clean = code === 1000 || code === 1005; });
    }

    // Events of a stream with a name. Other listeners do not receive them.
    addEventListener(type, ...given) {
      this.#follow(type);
      super.addEventListener(type, ...given);
    }

    #follow(type) {
      if (this.#followed.has(type)) return;
      this.#followed.add(type);
      super.addEventListener(type, pushed);
    }
  };
  for (const name of ["WebSocket", "EventSource"]) {
    if (!globalThis[name]) continue;
    const Kind = listening(globalThis[name]);
    Object.defineProperty(Kind, "name", { value: name });
    globalThis[name] = Kind;
  }

  // A body that was opened before the question is a channel too. The network shows the end of a body that was opened later.
  const readers = globalThis.ReadableStreamDefaultReader?.prototype;
  const read = readers?.read;
  const readNoting = function (...given) {
    const part = read.apply(this, given);
    if (!channels.has(this)) openChannel(this);
    const channel = channels.get(this);
    part.then(({ done }) => {
      if (done) channels.delete(this);
      else if (channel.since < look.askedAt) look.lastPush = channel.at = performance.now();
    }, () => channels.delete(this));
    return part;
  };
  if (read) Object.defineProperty(readers, "read", { value: Object.defineProperty(readNoting, "name", { value: "read" }), configurable: true, writable: true });

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

  // Zero-width characters (a line break opportunity, a soft hyphen) are not text. Joiners of letters are text.
  const WIDTHLESS = /[\u00ad\u200b\u2060\ufeff]+/gu;
  look.plain = (text) => (text ?? "").replace(WIDTHLESS, "").replace(/\s+/gu, " ").trim();

  // Only letters and digits, in lower case: with them, a question is found in any format of the page.
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

  look.CONTROL = "button, [role=button], input, select, textarea, [role=textbox], [contenteditable]:not([contenteditable=false]), [role=menu], [role=toolbar], "
    + "[role=progressbar], progress, svg, script, style, noscript, template, time, audio, video, canvas";

  // Tables that are built from other elements, with a role or with the name of a custom element.
  const isNamed = (element, end) => element.localName.includes("-") && end.test(element.localName);
  look.isCell = (element) => element.matches("[role=cell], [role=columnheader], [role=rowheader]") || isNamed(element, /-(cell|td|th)$/);
  const isRow = (element) => element.matches("[role=row]") || isNamed(element, /-(row|tr)$/);

  const BLOCK = /^(block|flex|grid|list-item|table|table-row|flow-root|table-caption)$/;
  const ICON_FONT = /icon|symbols|awesome/i;

  const hiddenAway = (element, style) => {
    if (style.display === "contents") return false;
    if (!element.checkVisibility({ visibilityProperty: true })) return true;
    if (style.position !== "absolute" && style.position !== "fixed") return false;
    const box = element.getBoundingClientRect();
    return box.width <= 1 && box.height <= 1; // the usual way to hide text for screen readers
  };

  look.childrenOf = (element) => {
    if (element.shadowRoot) return element.shadowRoot.childNodes;
    if (element.localName === "slot") {
      const given = element.assignedNodes();
      return given.length ? given : element.childNodes;
    }
    return element.childNodes;
  };

  // A bubble that is a button (a click copies or edits it) is still text if it can be selected or has paragraphs.
  const PROSE = "p, ul, ol, pre, table, blockquote, h1, h2, h3, h4";
  const isBubble = (element) => element.matches("button, [role=button]")
    && Boolean(element.querySelector(PROSE)) && /text|all/.test(getComputedStyle(element).userSelect);

  // The app may write its answer into another text box than the message box. The value of this box is read as one text.
  const fields = new WeakMap();
  const fieldNode = (element) => {
    if (!fields.has(element)) {
      fields.set(element, {
        parentElement: element,
        get data() { return element.value; },
        getRootNode: () => element.getRootNode(),
      });
    }
    return fields.get(element);
  };
  const isOutput = (element) => element.localName === "textarea" && element !== look.box;

  // An editor that is not the message box shows code. Its lines are read like other text.
  const isEditor = (element) => element.matches("[role=textbox], [contenteditable]") && element.localName !== "input"
    && element !== look.box && !look.holds(element, look.box) && !look.holds(look.box, element);

  // Whether a control is a word of a sentence: a citation's number, a term with an explanation, a date.
  const SENTENCE = "p, li, td, th, dd, blockquote, h1, h2, h3, h4, h5, h6";
  const DOES = /^\W*(cop(y|ied)|edit|retry|regenerate|re-?run|share|(dis)?like|good|bad|(read aloud|listen|speak|play|pause|stop)|(show )?(more|less)|(not )?helpful|report|delete|expand|collapse|download|close|save|ask|send|कॉपी( करें)?)\W*$/iu;
  const isWord = (element) => {
    if (!element.matches("button, [role=button], time") || !/^inline/.test(getComputedStyle(element).display)) return false;
    if (!look.plain(element.textContent) || DOES.test(look.plain(element.textContent))) return false;
    const line = look.blockOf(element);
    const saysMore = [...line.childNodes].some((child) => !child.contains(element) && look.plain(child.textContent));
    if (!line.matches(SENTENCE)) return isText(element.previousSibling) && isText(element.nextSibling);
    return saysMore || line.matches("td, th") || element.localName === "time" || isItem(line, element);
  };
  // Whether a list item is only a citation, while other items have text.
  const ITEM_LENGTH = 15; // characters; a suggested question on a button is longer
  const isItem = (line, element) => line.matches("li") && look.plain(element.textContent).length < ITEM_LENGTH
    && [...(line.parentElement?.children ?? [])].some((other) => other !== line && [...other.childNodes].some((child) => look.plain(child.textContent)
      && !child.matches?.(look.CONTROL) && !child.querySelector?.(look.CONTROL)));
  const isText = (node) => node?.nodeType === Node.TEXT_NODE && Boolean(look.plain(node.data));

  // Whether an element contains the line numbers of code. They are beside the code and cannot be selected with it.
  const isLineNumber = (node) => {
    if (!/^[\s\d]+$/.test(node.data)) return false;
    const code = node.parentElement?.closest("pre, code, table, [role=textbox]");
    if (!code) return false;
    const unmarked = (element) => getComputedStyle(element).userSelect === "none";
    return (unmarked(node.parentElement) && !unmarked(code)) || Boolean(node.parentElement.closest("[role=textbox] [aria-hidden=true]"));
  };

  // Every visible text node, in reading order; calls `edge` at each end of a line.
  look.eachText = (root, take, edge = () => {}) => {
    const walk = (node, pre) => {
      if (node.nodeType === Node.TEXT_NODE) {
        if (node.data && !isLineNumber(node)) take(node, pre);
        return;
      }
      if (node.nodeType !== Node.ELEMENT_NODE) return;
      if (node.localName === "br") return edge("\n");
      if (node.matches(look.CONTROL) && !isOutput(node) && !isEditor(node) && !isBubble(node) && !isWord(node)) return;
      const style = getComputedStyle(node);
      if (style.display === "none" || hiddenAway(node, style) || ICON_FONT.test(style.fontFamily)) return;
      if (isOutput(node)) {
        edge("\n");
        if (node.value) take(fieldNode(node), true);
        return edge("\n");
      }
      const isCell = style.display === "table-cell" || look.isCell(node);
      const end = isCell ? "\t" : BLOCK.test(style.display) || isRow(node) ? "\n" : "";
      if (end) edge(end);
      const keeps = style.whiteSpaceCollapse ? style.whiteSpaceCollapse !== "collapse" : /^pre/.test(style.whiteSpace);
      for (const child of look.childrenOf(node)) walk(child, keeps);
      if (end) edge(end);
    };
    if (root) walk(root, false); // a document that is being replaced has no body
  };

  look.textNodes = (root) => {
    const found = [];
    look.eachText(root, (node) => found.push(node));
    return found;
  };

  // The number of a citation with the brackets that a style sheet draws around it. Other texts are unchanged.
  const BRACKET = /^"([([{)\]}])"$/;
  const withBrackets = (node, text) => {
    if (!/^\s*\d{1,3}\s*$/.test(text)) return text;
    for (let at = node.parentElement; at && look.plain(at.textContent) === look.plain(node.data); at = look.up(at)) {
      const [before, after] = ["::before", "::after"].map((part) => BRACKET.exec(getComputedStyle(at, part).content)?.[1] ?? "");
      text = before + text + after;
    }
    return text;
  };

  // The visible text under `root`. `pick` returns the part of a text node that counts, or "" if no part counts.
  look.textOf = (root, pick = (node) => node.data) => {
    let out = "";
    let pending = "";
    const edge = (mark) => {
      if (pending !== "\n") pending = mark;
    };
    look.eachText(root, (node, pre) => {
      let text = withBrackets(node, pick(node));
      if (!pre) text = text.replace(/[ \t\n\r\f]+/g, " ");
      if (!text.trim() && (pending || !out)) return;
      if (!text) return;
      if (pending && out) out = out.replace(/[ \t]+$/, "") + pending;
      if (pending) text = pre ? text : text.replace(/^ /, "");
      pending = "";
      out += text;
    }, edge);
    return out.replace(WIDTHLESS, "").replace(/[ \t]+$/gm, "").replace(/\n{3,}/g, "\n\n").trim();
  };
})();

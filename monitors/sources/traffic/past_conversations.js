// Reads a page with past conversations. For part "list", returns the links to the conversations and to the next page of
// the list. Otherwise returns the messages of the conversation on the page.
async ({ part, selectors, deadlineMs }) => {
  const USER = /^(user|human|customer|visitor|client|guest|you|me|question|asked)$/i;
  const REPLY = /^(assistant|bot|ai|agent|model|chatbot|reply|answer|answered)$/i;
  const TALK = /chat|conversation|thread|session|transcript|dialog|history|talk/i;
  const NEXT = /^\W*(next|older|more|अगला)\b|^[\s›»→]+$/i;
  const ROLES = ["data-message-author-role", "data-role", "data-author", "data-sender", "data-from", "data-testid"];
  const TIMES = ["datetime", "data-time", "data-timestamp", "data-created-at"];
  const NO_TEXT = "time, button, script, style, [role=button], [aria-hidden=true]";
  const MESSAGES = [
    ...ROLES.map((name) => `[${name}]`),
    "[class*=message], [class*=Message], [class*=bubble], [class*=turn], [class*=utterance]",
    "[role=article], [role=listitem], article, li",
  ];

  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const timeOf = (element, selector) => {
    const places = selector ? all(selector, element) : [element, ...all("time, [data-time], [data-timestamp]", element)];
    for (const place of places) {
      for (const name of TIMES) if (place.getAttribute(name)) return place.getAttribute(name);
      if (selector && place.textContent.trim()) return place.textContent.trim();
    }
    return null;
  };
  const idIn = (url) => {
    const { pathname, searchParams } = new URL(url);
    for (const [name, value] of searchParams) if (/(^|_)id$|^(chat|conversation|thread|session|c)$/i.test(name)) return value;
    return decodeURIComponent(pathname.split("/").filter(Boolean).at(-1) ?? "");
  };

  // The addresses of conversations differ only in the id, and their links are in the main part of the page.
  const shapeOf = (url) => {
    const { pathname, searchParams } = new URL(url);
    const steps = pathname.split("/").filter(Boolean);
    const names = [...searchParams.keys()].sort().join("&");
    return names ? `${pathname}?${names}` : `${steps.slice(0, -1).join("/")}/*`;
  };
  const near = (anchor) => anchor.closest("li, tr, article, [role=row], [role=listitem]") ?? anchor;
  const isLink = (anchor) => anchor.href && new URL(anchor.href).origin === location.origin
    && anchor.href.split("#")[0] !== location.href.split("#")[0];
  const isNext = (anchor) => /(^|\s)(next|prev)(\s|$)/.test(anchor.rel) || NEXT.test(anchor.textContent)
    || NEXT.test(anchor.getAttribute("aria-label") ?? "") || /[?&](page|p|offset|cursor|after|before)=/.test(anchor.href);
  const findLinks = () => {
    if (selectors.link) {
      return all(selectors.link).map((node) => node.closest("a[href]") ?? node.querySelector("a[href]")).filter((node) => node && isLink(node));
    }
    const groups = new Map();
    for (const anchor of all("a[href]")) {
      if (!isLink(anchor) || isNext(anchor) || anchor.closest("nav, header, footer")) continue;
      const shape = shapeOf(anchor.href);
      groups.set(shape, [...(groups.get(shape) ?? []), anchor]);
    }
    const weight = ([shape, anchors]) => new Set(anchors.map((node) => node.href)).size
      * (TALK.test(shape) || anchors.some((node) => node.closest("[data-conversation-id]")) ? 1000 : anchors.some((node) => timeOf(near(node))) ? 10 : 0);
    const best = [...groups].sort((a, b) => weight(b) - weight(a))[0];
    return best && weight(best) ? best[1] : [];
  };
  const list = () => {
    const links = new Map();
    for (const anchor of findLinks()) {
      const row = near(anchor);
      const holder = anchor.closest("[data-conversation-id]") ?? row.querySelector("[data-conversation-id]");
      const id = holder?.dataset.conversationId || idIn(anchor.href);
      if (!links.has(anchor.href)) links.set(anchor.href, { url: anchor.href, id, time: timeOf(row, selectors.time) });
    }
    const configured = selectors.next_page ? document.querySelector(selectors.next_page) : null;
    const next = selectors.next_page ? configured?.closest("a[href]") ?? configured?.querySelector("a[href]")
      : document.querySelector("a[rel~=next][href], link[rel~=next][href]")
        ?? all("a[href]").find((node) => NEXT.test(node.textContent) || NEXT.test(node.getAttribute("aria-label") ?? ""));
    return { links: [...links.values()], next: next?.href ?? null };
  };

  const roleOf = (element) => {
    if (selectors.user_message && element.matches(selectors.user_message)) return "user";
    if (selectors.reply && element.matches(selectors.reply)) return "assistant";
    const labels = ROLES.map((name) => element.getAttribute(name) ?? "");
    labels.push(element.getAttribute("aria-label") ?? "", element.getAttribute("class") ?? "");
    for (const text of labels) {
      const words = text.split(/[^A-Za-z]+/);
      if (words.some((word) => USER.test(word))) return "user";
      if (words.some((word) => REPLY.test(word))) return "assistant";
    }
    return null;
  };
  const outermost = (elements) => elements.filter((node) => !elements.some((other) => other !== node && other.contains(node)));
  const messages = () => {
    const configured = [selectors.message, ...(selectors.message ? [] : [selectors.user_message, selectors.reply])].filter(Boolean);
    for (const selector of configured.length ? [configured.join(", ")] : MESSAGES) {
      const elements = outermost(all(selector).filter((node) => roleOf(node) && node.textContent.trim()));
      if (new Set(elements.map(roleOf)).size === 2) return elements;
    }
    return [];
  };
  const thumbOf = (element) => {
    const pressed = element.querySelector("[aria-pressed=true], [data-pressed=true]");
    const label = element.dataset.thumb ?? element.dataset.feedback
      ?? (pressed && (pressed.dataset.thumb ?? pressed.getAttribute("aria-label") ?? pressed.textContent));
    if (!label) return null;
    return /\bdown\b|dislike|👎|\bbad\b/i.test(label) ? "down" : /\bup\b|like|👍|\bgood\b/i.test(label) ? "up" : null;
  };
  const read = (element) => {
    const message = { role: roleOf(element), time: timeOf(element, selectors.time), thumb: thumbOf(element) };
    const texts = selectors.text ? all(selectors.text, element) : [element];
    for (const node of selectors.text ? [] : all(NO_TEXT, element)) node.remove(); // the page is left after this
    return { ...message, content: texts.map((node) => node.innerText.trim()).join("\n") };
  };
  const conversation = () => {
    const elements = messages();
    const holder = document.querySelector("[data-conversation-id]");
    const main = document.querySelector("main") ?? document.body;
    const ended = main.getAttribute("data-completed-at") ?? holder?.getAttribute("data-completed-at");
    return { id: holder?.dataset.conversationId ?? null, completed_at: ended, messages: elements.map(read) };
  };

  // A script may build the page. Wait until there are links or messages and the page does not change for a moment.
  const countFound = () => (part === "list" ? findLinks().length : messages().length);
  const deadline = performance.now() + deadlineMs;
  await new Promise((resolve) => {
    let timer = null;
    const scheduleFinish = () => {
      clearTimeout(timer);
      const left = deadline - performance.now();
      timer = setTimeout(finish, countFound() ? Math.min(300, Math.max(0, left)) : Math.max(0, left));
    };
    const observer = new MutationObserver(scheduleFinish);
    const finish = () => { observer.disconnect(); resolve(); };
    observer.observe(document, { childList: true, subtree: true, characterData: true });
    scheduleFinish();
  });
  return part === "list" ? list() : conversation();
}

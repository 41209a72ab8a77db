// Describe the found elements to a person: a selector that matches an element, and a picture with outlined elements.
// Only `lookout doctor` loads this script into a page.
(() => {
  const look = globalThis.__lookout;
  if (look.describe) return;

  const TEST_IDS = ["data-testid", "data-test-id", "data-test", "data-cy", "data-qa"];
  const MADE = /\d{3,}|^:r|[0-9a-f]{8}|^(radix|headlessui|mui|mat|cdk|ember|component|input|react-aria|react-select|el-id|rc|ng|v)[-:_]|[-_:]\d+$|^\d|^[a-z]{1,2}\d*$/i; // generated ids, which change with the next build
  const MADE_CLASS = /^(css|sc|jss|emotion|svelte|st-emotion|makeStyles|tw)-|[0-9][a-z][0-9]|[a-z][0-9][a-z]|[a-z0-9]{10,}|__[A-Za-z0-9_-]{5}$|[:[\]/!@]/i;
  const STATE_CLASS = /active|focus|hover|selected|open|visible|loading|pending|animat|fade|first|last|latest|new/i;
  const SPEAKS = /bot|assistant|\bai\b|agent|answer|response|reply|message|bubble/i;
  const BARE = /^(button|a|div|span|p|input)$/; // too general: such a selector may match other elements tomorrow
  const DEPTH = 6;
  const PARAGRAPH = /^(p|h[1-6]|strong|b|em|i|code|a)$/; // it may contain this whole answer, but only a part of an answer with a list

  const quoted = (value) => JSON.stringify(value);
  const attribute = (element, name) => {
    const value = element.getAttribute(name);
    return value && value.length < 80 && !/\n/.test(value) ? `[${name}=${quoted(value)}]` : null;
  };

  const classes = (element) => [...element.classList]
    .filter((name) => name.length > 2 && !MADE_CLASS.test(name) && !STATE_CLASS.test(name));

  // Possible selectors of an element, the most stable first.
  const tokens = (element) => {
    const tag = element.localName;
    const id = element.id && !MADE.test(element.id) ? [`#${CSS.escape(element.id)}`] : [];
    const named = ["name", "aria-label", "placeholder", "title"].map((name) => attribute(element, name)).filter(Boolean);
    const role = attribute(element, "role");
    return [
      ...TEST_IDS.map((name) => attribute(element, name)).filter(Boolean),
      ...id,
      ...named.map((one) => `${tag}${one}`),
      ...(role ? [`${tag}${role}`] : []),
      ...classes(element).map((name) => `${tag}.${CSS.escape(name)}`),
      ...(element.type === "submit" && element.hasAttribute("type") ? [`${tag}[type=submit]`] : []),
      tag,
    ];
  };

  const parentWithin = (element) => element.parentElement; // a selector never crosses a shadow root

  const byPlace = (element) => {
    const parent = parentWithin(element);
    const twins = [...(parent ?? element.getRootNode()).children].filter((one) => one.localName === element.localName);
    const own = twins.length > 1 ? `${element.localName}:nth-of-type(${twins.indexOf(element) + 1})` : element.localName;
    return parent && parent !== document.body ? `${byPlace(parent)} > ${own}` : own;
  };

  // The first selector that `fits`: on its own, below an ancestor, or finally by position.
  const selector = (element, fits) => {
    const own = tokens(element);
    const alone = own.find((token) => !BARE.test(token) && fits(token));
    if (alone) return alone;
    let above = parentWithin(element);
    for (let level = 0; above && level < DEPTH; level += 1, above = parentWithin(above)) {
      for (const outer of tokens(above)) {
        if (outer === above.localName && !/^(form|main|section|article|dialog)$/.test(outer)) continue;
        for (const inner of own) if (fits(`${outer} ${inner}`)) return `${outer} ${inner}`;
      }
    }
    const place = byPlace(element);
    return fits(place) ? place : null;
  };

  const shown = (given) => look.all(given).filter(look.visible);

  const only = (element) => selector(element, (given) => {
    const found = shown(given);
    return found.length === 1 && found[0] === element;
  });

  const bareOf = (element) => look.bare(look.textOf(element));
  const within = (element) => look.all("*", [element.shadowRoot ?? element]).filter(look.visible);

  // The smallest element with the text inside of `outer`, or `outer` itself.
  const narrowest = (outer, text) => {
    let found = bareOf(outer).includes(text) ? outer : null;
    for (let at = found; at; found = at ?? found) {
      at = [...at.children, ...(at.shadowRoot?.children ?? [])].find((one) => look.visible(one) && bareOf(one).includes(text));
    }
    return found;
  };

  // Elements that contain only the answer, the smallest first.
  const holders = (element, text) => {
    const found = [];
    for (let at = element; at && at !== document.body && bareOf(at) === text && found.length < DEPTH; at = parentWithin(at)) found.push(at);
    return found;
  };

  // The element of the last answer. `look.answerAt` stores it for the screenshot.
  look.answerAt = null;
  look.findAnswer = (answer) => {
    const region = look.region?.();
    look.answerAt = region ? narrowest(region, look.bare(answer)) ?? region : null;
    return Boolean(look.answerAt);
  };

  // A selector that matches all answers with this answer as the newest, and no message of the user; null without one.
  look.answerSelector = (answer, question) => {
    const asked = look.bare(question);
    const said = within(document.body).filter((one) => bareOf(one) === asked).at(-1);
    // If the newest answer comes first, the last match would be the oldest.
    if (!look.answerAt || (said && look.answerAt.compareDocumentPosition(said) & Node.DOCUMENT_POSITION_FOLLOWING)) return null;
    const fits = (element) => (given) => {
      const found = shown(given);
      if (found.at(-1) !== element || found.length > 20) return false;
      if (found.some((one) => found.some((other) => other !== one && one.contains(other)))) return false; // nested elements would be read twice
      return found.slice(0, -1).every((one) => !bareOf(one).includes(asked));
    };
    const ranked = holders(look.answerAt, look.bare(answer))
      .map((element) => ({ given: selector(element, fits(element)), part: PARAGRAPH.test(element.localName) }))
      .filter(({ given }) => given && !/^[a-z0-9]+$/.test(given) && !/nth-of-type/.test(given))
      .sort((a, b) => a.part - b.part || SPEAKS.test(b.given) - SPEAKS.test(a.given) || a.given.length - b.given.length);
    return ranked[0]?.given ?? null;
  };

  look.describe = (element) => {
    const box = element.getBoundingClientRect();
    return {
      tag: element.localName,
      role: element.getAttribute("role"),
      name: look.named(element),
      selector: only(element),
      shadow: element.getRootNode() !== document,
      in_view: box.top >= 0 && box.left >= 0 && box.bottom <= innerHeight && box.right <= innerWidth,
    };
  };

  // A short description of the page for people.
  look.overview = () => {
    const texts = (given, most) => [...new Set(shown(given).map((one) => look.plain(one.textContent).slice(0, 120)).filter(Boolean))].slice(0, most);
    const box = "textarea, input:not([type=hidden]), select, [role=textbox], [contenteditable]:not([contenteditable=false])";
    return {
      headings: texts("h1, h2, h3, [role=heading]", 8),
      boxes: shown(box).slice(0, 8).map((one) => `${one.localName}${one.type ? `[type=${one.type}]` : ""} "${look.named(one)}"${one.disabled ? " (disabled)" : ""}`),
      buttons: [...new Set(shown("button, [role=button], input[type=submit]").map((one) => look.named(one)).filter(Boolean))].slice(0, 12),
      dialogs: texts("[role=dialog], [role=alertdialog], dialog[open], [aria-modal=true]", 4),
      text: look.plain(document.body?.innerText).slice(0, 300),
    };
  };

  // Questions that the page itself suggests.
  const STARTER = { least: 12, most: 150, count: 3 };
  look.starters = () => [...new Set(shown("button, [role=button], a").map((one) => look.plain(one.innerText))
    .filter((text) => /[?？؟]$/.test(text) && text.length >= STARTER.least && text.length <= STARTER.most))].slice(0, STARTER.count);

  // The place of answers, if the page marks it before the first question.
  look.place = () => shown("[role=log], [role=feed], [aria-live=polite]")[0] ?? null;

  const style = (element, values) => {
    for (const [name, value] of Object.entries(values)) element.style.setProperty(name, value, "important");
    return element;
  };

  // The label of a small element is above it. The label of a large element is at the right, where it covers little.
  const corner = (box) => ({
    [box.width > 500 ? "right" : "left"]: "-3px",
    [box.top > 30 ? "bottom" : "top"]: box.top > 30 ? "100%" : "-3px",
  });

  // Draws an outline with a label around each element, and removes earlier outlines.
  look.mark = (marks) => {
    for (const old of look.all("[data-lookout-mark]")) old.remove();
    for (const [element, label, colour] of marks) {
      if (!element?.isConnected) continue;
      const box = element.getBoundingClientRect();
      const frame = style(document.createElement("div"), {
        all: "initial", position: "fixed", left: `${box.left - 3}px`, top: `${box.top - 3}px`, width: `${box.width + 6}px`,
        height: `${box.height + 6}px`, "box-sizing": "border-box", border: `3px solid ${colour}`, "border-radius": "4px",
        "z-index": "2147483647", "pointer-events": "none",
      });
      frame.dataset.lookoutMark = label;
      const name = style(document.createElement("div"), {
        all: "initial", position: "absolute", ...corner(box), background: colour, color: "#fff",
        font: "bold 13px/20px sans-serif", padding: "0 6px", "border-radius": "4px", "white-space": "nowrap",
      });
      name.textContent = label;
      frame.append(name);
      document.documentElement.append(frame);
    }
  };

  // `given` are configured selectors. Pages replace their box and button after an answer; both are searched again.
  look.markFound = (names, given) => {
    if (look.box && !(look.box.isConnected && look.send?.isConnected)) look.find(given);
    const parts = { box: look.box, send: look.send, answer: look.answerAt ?? look.place() };
    look.mark(names.map(([part, label, colour]) => [parts[part], label, colour]));
  };
})();

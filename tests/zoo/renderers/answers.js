// Seeded answers in Markdown, messages of many shapes to show them in, and what a person reads of them.
(() => {
  const seeded = (seed) => {
    let state = seed >>> 0;
    return () => { // mulberry32
      state = (state + 0x6d2b79f5) >>> 0;
      let mixed = Math.imul(state ^ (state >>> 15), state | 1);
      mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
      return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
    };
  };

  const WORDS = ["the", "waiting", "period", "is", "covered", "after", "limit", "of", "your", "plan", "B", "You", "agent", "system",
    "now", "today", "bot", "support", "I", "a", "claim", "दावा", "अवधि", "चौबीस", "مطالبة", "تأمين", "🙂", "👨‍👩‍👧", "naïve", "co-pay", "§", "क्षेत्र"];
  const FIGURES = ["26 hours", "₹9.50", "0.07", "24 months", "10:42", "5 min ago", "1,50,000", "30 days", "12", "3.5 s", "B", "2026-11-22",
    "₹१५,०००", "10:42 am", "100 %", "7", "x", "1 hour", "4 h", "yesterday"];
  const CODE = ["rate = 0.07\nfor x in range(12):\n    print(x * 24)", "const a = 1;\nlet b = \"10:42\";\nreturn a / 0.5;",
    "{\"limit\": 15000, \"months\": 24, \"ok\": true}", "SELECT 1\nFROM t -- 26 hours\nWHERE a > 0.07;"];
  const LANGUAGES = ["python", "js", "json", "sql", ""];

  const maker = (chance) => {
    const pick = (list) => list[Math.floor(chance() * list.length)];
    const times = (least, most, make) => Array.from({ length: least + Math.floor(chance() * (most - least + 1)) }, make);
    const plain = () => (chance() < 0.3 ? pick(FIGURES) : pick(WORDS));
    const inline = () => {
      const text = plain();
      const roll = chance();
      if (roll < 0.62) return text;
      if (roll < 0.76) return `**${text}**`;
      if (roll < 0.82) return `*${text}*`;
      if (roll < 0.88) return `\`${text}\``;
      if (roll < 0.91) return `[${text}](#more)`;
      if (roll < 0.94) return `[${1 + Math.floor(chance() * 9)}](#cite)`;
      if (roll < 0.96) return `~~${text}~~`;
      if (roll < 0.98) return `**${plain()} *${text}* ${plain()}**`;
      return pick(["$x^2$", "$\\frac{1}{2}$", "$a_1 = 24$"]);
    };
    const alone = () => pick([(text) => text, (text) => `**${text}**`, (text) => `\`${text}\``])(plain()); // a line of one word
    const sentence = () => `${times(1, 9, inline).join(" ")}${pick([".", ".", ".", "", "!", ":", "।"])}`;
    const blocks = [
      () => times(1, 3, sentence).join(" "),
      () => times(1, 4, () => `- ${sentence()}`).join("\n"),
      () => times(1, 4, (_, at) => `${at + 1}. ${sentence()}`).join("\n"),
      () => `| ${plain()} | ${plain()} |\n|---|---|\n${times(1, 3, () => `| ${inline()} | ${inline()} |`).join("\n")}`,
      () => `\`\`\`${pick(LANGUAGES)}\n${pick(CODE)}\n\`\`\``,
      () => `> ${sentence()}`,
      () => `## ${times(1, 3, plain).join(" ")}`,
      () => alone(),
    ];
    return { pick, markdown: () => (chance() < 0.08 ? alone() : times(1, 5, () => pick(blocks)()).join("\n\n")) };
  };

  const make = (parent, tag, name, text = "") => {
    const element = document.createElement(tag);
    if (name) element.className = name;
    if (text) element.textContent = text;
    parent.append(element);
    return element;
  };
  const clock = () => new Date().toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
  const actions = (message) => {
    const row = make(message, "div", "actions");
    for (const name of ["Copy", "👍", "👎"]) make(row, "button", "act", name).type = "button";
  };

  // Each makes one message and gives the element that its text belongs in; `mine` is the user's.
  const SHELLS = {
    plain: (list, mine) => make(make(list, "div", mine ? "msg user" : "msg bot"), "div", "text"),
    "names and times": (list, mine) => {
      const message = make(list, "div", mine ? "message sent" : "message received");
      make(message, "div", "name", mine ? "You" : "Nova");
      const home = make(message, "div", "text");
      make(message, "span", "time", clock()).style.display = "block";
      return home;
    },
    "a name before the bot's": (list, mine) => {
      const message = make(list, "div", mine ? "bubble-user" : "bubble-assistant");
      if (!mine) make(message, "div", "who", "Assistant");
      return make(message, "div", "prose");
    },
    "a mark and buttons": (list, mine) => {
      const message = make(list, "div", mine ? "row right" : "row left");
      if (!mine) make(message, "div", "avatar", "N");
      const home = make(message, "div", "markdown");
      if (!mine) actions(message);
      return home;
    },
    articles: (list, mine) => {
      const message = make(list, "article", "turn");
      make(message, "h6", "sr", mine ? "You said:" : "Assistant said:").style.cssText = "position:absolute;width:1px;height:1px;overflow:hidden";
      return make(message, "div", "content");
    },
    "a time after the bot's": (list, mine) => {
      const message = make(list, "div", mine ? "q" : "a");
      const home = make(message, "div", "body");
      if (!mine) make(message, "small", "stamp", clock()).style.display = "block";
      return home;
    },
    "nothing named": (list) => make(make(list, "div"), "div"),
  };

  // What a person reads: every text, but buttons that do something and what is drawn for screen readers alone.
  const readable = (home) => {
    const walker = document.createTreeWalker(home, NodeFilter.SHOW_TEXT);
    let text = "";
    while (walker.nextNode()) {
      const node = walker.currentNode;
      const button = node.parentElement.closest("button");
      if (node.parentElement.closest("style, script, .katex-mathml") || (button && !button.closest("p, li, td, th, blockquote"))) continue;
      if (getComputedStyle(node.parentElement).display !== "none") text += node.data;
    }
    return text;
  };

  // The words above that are also how a speaker is named; alone in a bare span they are drawn as a name is.
  const readsAsName = (text) => /^(bot|agent|system|support|you)\W*$/i.test(text.trim());

  globalThis.answers = { seeded, maker, make, SHELLS, readable, readsAsName, names: Object.keys(globalThis.renderers ?? {}) };
})();

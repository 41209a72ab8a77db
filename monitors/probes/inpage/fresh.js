// What is new on the page since the question was sent, and which of it is the answer.
(() => {
  const look = globalThis.__lookout;
  if (look.Fresh) return;

  const CLOCK = /^\W*(\d{1,2}[:.]\d{2}([:.]\d{2})?(\s?[ap]\.?m\.?)?|(just )?now|(today|yesterday)\W.{0,14}|\d+\s?(s|m|h|sec|min|seconds?|minutes?|hours?)(ond|ute)?s?\.?( ago)?|\d+(\.\d+)?\s?(ms|s))\W*$/i;
  const SPEAKER = /^(chat ?bot|bot|assistant|ai|ai assistant|agent|system|support|you|me|user|human|guest|robot|model)\s*:?$/i;
  const ASIDE = "nav, aside, header, footer, dialog, [role=dialog], [role=alert], [role=status], [role=navigation], "
    + "[role=complementary], [role=banner], [role=contentinfo], [aria-live=assertive], [role=tooltip], [class*=toast]";
  const LCS_CELLS = 250_000; // beyond it only the common beginning and end of two pages are compared
  const LABEL_LENGTH = 40; // a name and a time beside a message are shorter; a bubble with less is not yet an answer

  // The texts of a page by line: nodes that stand in one block belong together.
  const lines = () => {
    const groups = [];
    let last = null;
    look.eachText(document.body, (node) => {
      if (!look.plain(node.data)) return;
      const block = blockOf(node);
      if (last?.block !== block) groups.push(last = { block, nodes: [], text: "" });
      last.nodes.push(node);
      last.text = look.plain(`${last.text} ${node.data}`);
    });
    return groups;
  };

  const blockOf = (node) => {
    let at = node.parentElement ?? look.up(node);
    while (at && look.up(at) && /^(inline|contents)/.test(getComputedStyle(at).display)) at = look.up(at);
    return at;
  };

  // Which of `now` stand in `before` too, in the same order: the longest common subsequence, as a set of indices.
  const kept = (before, now) => {
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
    const longest = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
    for (let i = a.length - 1; i >= 0; i -= 1) {
      for (let j = b.length - 1; j >= 0; j -= 1) {
        longest[i][j] = a[i] === b[j] ? longest[i + 1][j + 1] + 1 : Math.max(longest[i + 1][j], longest[i][j + 1]);
      }
    }
    for (let i = 0, j = 0; i < a.length && j < b.length;) {
      if (a[i] === b[j]) {
        found.add(start + j);
        i += 1;
        j += 1;
      } else if (longest[i + 1][j] >= longest[i][j + 1]) i += 1;
      else j += 1;
    }
    return found;
  };

  const labelKey = (node) => {
    const parent = node.parentElement;
    const text = look.plain(node.data);
    const named = parent?.className && typeof parent.className === "string" && text.length <= LABEL_LENGTH;
    return named && blockOf(node) === parent ? `${parent.localName}.${parent.className} ${text}` : null;
  };

  // Keeps what the page said before the question; `earlier` is that of the page before a navigation.
  look.Fresh = class {
    constructor(question, earlier) {
      this.question = look.bare(question);
      this.nodes = new Map();
      this.elements = new WeakSet();
      this.labels = new Set();
      this.history = new WeakMap();
      this.firstSeen = new Map();
      this.before = earlier;
      if (earlier) return;
      const groups = lines();
      this.before = groups.map((group) => group.text);
      for (const node of groups.flatMap((group) => group.nodes)) {
        this.nodes.set(node, node.data);
        this.labels.add(labelKey(node));
        for (let at = node.parentElement ?? look.up(node); at && !this.elements.has(at); at = look.up(at)) this.elements.add(at);
      }
      for (const element of look.all("*")) this.elements.add(element);
      this.labels.delete(null);
    }

    isOld(node) {
      return this.nodes.get(node) === node.data;
    }

    // Text nodes with what is new in them: a whole new node, a replaced one, or what was added to its end.
    pieces() {
      const groups = lines();
      const same = groups.every((group) => group.nodes.every((node) => this.isOld(node)));
      if (same) return new Map();
      const old = kept(this.before, groups.map((group) => group.text));
      const fresh = new Map();
      groups.forEach((group, index) => {
        if (!old.has(index)) for (const node of group.nodes) this.take(node, fresh);
      });
      this.addRedrawn(fresh, groups);
      return fresh;
    }

    take(node, fresh) {
      if (this.isOld(node)) return;
      const before = this.nodes.get(node);
      const grown = before !== undefined && look.plain(before) && node.data.startsWith(before);
      fresh.set(node, grown ? this.afterQuestion(node.data.slice(before.length)) : node.data);
      if (!this.firstSeen.has(node)) this.firstSeen.set(node, this.firstSeen.size);
    }

    // Lines of an answer that by chance read as before: they stand in a new element beside what is new.
    addRedrawn(fresh, groups) {
      const homes = new Set();
      for (const node of fresh.keys()) {
        for (let at = node.parentElement ?? look.up(node); at && !this.elements.has(at); at = look.up(at)) homes.add(at);
      }
      for (const group of groups) {
        if (group.nodes.some((node) => fresh.has(node) || this.isOld(node))) continue;
        let at = group.block;
        while (at && !homes.has(at) && !this.elements.has(at)) at = look.up(at);
        const home = homes.has(at) && !this.repeats(at) ? at : null;
        if (home) for (const node of group.nodes) this.take(node, fresh);
      }
    }

    // Whether an element holds the question: then it holds a whole pair, or the whole list.
    repeats(element) {
      return Boolean(this.question) && look.bare(element.textContent).includes(this.question);
    }

    // One growing text (a log in a <pre>): what follows the question's own line.
    afterQuestion(text) {
      const lines = text.split("\n");
      const at = lines.findIndex((line) => this.question && look.bare(line).includes(this.question));
      return at < 0 ? text : lines.slice(at + 1).join("\n");
    }

    // The elements in which the page repeats the question. An exact repetition wins; a bot may quote it too.
    echoes(fresh) {
      if (!this.question) return [];
      const exact = new Set();
      const quoting = [];
      for (const node of fresh.keys()) {
        const own = look.bare(node.data);
        if (!own || !(own.includes(this.question) || this.question.includes(own))) continue;
        let at = node.parentElement ?? look.up(node);
        for (; at && at !== document.body; at = look.up(at)) {
          const bare = look.bare(at.textContent);
          if (bare.length > this.question.length + LABEL_LENGTH) break;
          if (bare === this.question) {
            exact.add(at);
            break;
          }
          if (bare.includes(this.question)) {
            quoting.push([this.firstSeen.get(node), at]);
            break;
          }
        }
      }
      if (exact.size) return [...exact];
      return quoting.sort((a, b) => a[0] - b[0]).slice(0, 1).map(([, element]) => element);
    }

    // A text that only counts (a clock, a stopwatch): it changes, but never more than its digits.
    noteChange(element) {
      const text = element.textContent;
      if (text.length > 60) return;
      const shape = text.replace(/\d/g, "#");
      const known = this.history.get(element);
      if (!known || known.shape !== shape) this.history.set(element, { shape, text, ticks: 0 });
      else if (known.text !== text) this.history.set(element, { shape, text, ticks: known.ticks + 1 });
    }

    ticks(node) {
      return (this.history.get(node.parentElement)?.ticks ?? 0) >= 2;
    }

    isLabel(node) {
      const text = look.plain(node.data);
      return CLOCK.test(text) || SPEAKER.test(text) || this.ticks(node) || [...text].length === 1
        || this.labels.has(labelKey(node))
        || Boolean(node.parentElement?.closest("summary"));
    }

    isAside(node, box) {
      for (let at = look.up(node); at; at = look.up(at)) {
        if (at.matches(ASIDE)) return !(box && look.holds(at, box));
      }
      return false;
    }

    // The list of messages: a log, or as far up from the echo as one can go without reaching the box.
    transcript(echo, box) {
      for (let at = echo; at; at = look.up(at)) {
        if (at.matches("[role=log], [role=feed]") && !(box && look.holds(at, box))) return at;
      }
      let top = echo;
      for (let at = echo; at && at !== document.body && at !== document.documentElement; at = look.up(at)) {
        if (box && look.holds(at, box)) break;
        top = at;
      }
      return top;
    }

    // The user's own bubble: what stands in it beside the question is a name or a time.
    ownBubble(echo, spare) {
      const bubble = /(^|[-_ ])(msg|message|bubble|turn|user|human|question|me|you|sent)([-_ ]|$)/i;
      for (let at = echo; at && at !== document.body; at = look.up(at)) {
        const around = spare.filter((node) => look.holds(at, node.parentElement ?? look.up(node)));
        if (around.reduce((sum, node) => sum + look.plain(node.data).length, 0) > LABEL_LENGTH) return echo;
        if (at.matches("article, li, [role=article], [role=listitem], [role=row]")
          || bubble.test(typeof at.className === "string" ? at.className : "")) return at;
      }
      return echo;
    }

    // [the element that holds the answer, its text]
    answer(box) {
      const fresh = this.pieces();
      const echoes = this.echoes(fresh);
      const within = (outer, node) => look.holds(outer, node.parentElement ?? look.up(node));
      const spare = [...fresh.keys()].filter((node) => !echoes.some((echo) => within(echo, node)))
        .filter((node) => fresh.get(node).trim() && !this.isAside(node, box));
      let region = null;
      let chosen = [];
      if (echoes.length) {
        const home = echoes.find((echo) => !this.isAside(echo, box)) ?? echoes[0];
        const mine = this.ownBubble(home, spare);
        const others = spare.filter((node) => !within(mine, node));
        region = this.transcript(home, box);
        for (; region; region = look.up(region)) {
          chosen = others.filter((node) => within(region, node));
          if (chosen.some((node) => !this.isLabel(node))) break;
        }
        if (!chosen.length && echoes.length > 1 && within(this.transcript(echoes[0], box), echoes.at(-1))) {
          const last = echoes.at(-1); // the bot said the question back, word for word
          return [last, look.textOf(last)];
        }
      } else {
        [region, chosen] = this.largestGroup(spare, box);
      }
      const telling = chosen.filter((node) => !this.isLabel(node));
      if (telling.length) chosen = telling;
      else if (echoes.length) chosen = chosen.filter((node) => CLOCK.test(look.plain(node.data)) && !this.ticks(node));
      const kept = new Set(chosen);
      const text = region ? look.textOf(region, (node) => (kept.has(node) ? fresh.get(node) : "")) : "";
      return [region, text];
    }

    // Without an echo: the part of the page that has most to say.
    largestGroup(spare, box) {
      const groups = new Map();
      for (const node of spare) {
        const top = this.transcript(node.parentElement ?? look.up(node), box);
        groups.set(top, [...(groups.get(top) ?? []), node]);
      }
      const size = ([, nodes]) => nodes.reduce((sum, node) => sum + node.data.length, 0);
      return [...groups].sort((a, b) => size(b) - size(a))[0] ?? [null, []];
    }
  };
})();

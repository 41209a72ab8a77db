// Find the text that is new on the page since the question was sent.
(() => {
  const look = globalThis.__lookout;
  if (look.Fresh) return;

  const LABEL_LENGTH = look.LABEL_LENGTH = 40; // letters; a name and a time beside a message are shorter
  const ROLE_DEPTH = 3;
  const SIDES = /\b(left|right|start|end|user|human|me|you|self|own|guest|bot|assistant|ai|agent|other|sent|received|incoming|outgoing)\b/gi;
  const SWAPS = 4; // changes; a place that shows progress steps before the answer changes less often
  const MASKED_LENGTH = 20; // in a shorter line the numbers are significant

  const FLOW = /^(p|li|td|th|dd|dt|h\d|pre|code|blockquote|strong|em)\./; // elements that may contain short lines of an answer

  const TOOK = /^\W*(?:(?:took|in|after|took us|(?:response|generation|answer)(?:ed)? (?:time|in)|generated in|thought for)\W*)?(\d+(?:[.,]\d+)?)\s?(ms|s|secs?|seconds?)\W*$/i;
  const TOOK_EARLY_MS = 600; // the page may round up, or count from before the question was sent
  const TOOK_LATE_MS = 2000; // the time for sending, rendering and checking on a busy machine

  // The form in which greeting lines are compared. A greeting may contain the time or a number of visitors.
  const shapeOf = (line) => (line.length < MASKED_LENGTH ? line : line.replace(/\d+/g, "#"));

  // Stores the text of the page before the question. `earlier` is the text of the page before a navigation. `greetings`
  // are lines for every visitor. They may appear after the question and are not the answer. `usual` are lines at the
  // beginning or the end of every answer.
  look.Fresh = class {
    constructor(question, earlier, greetings = [], usual = []) {
      this.usual = new Set(usual);
      this.question = new look.Question(question);
      this.nodes = new Map();
      this.leaves = new WeakMap(); // the earlier text of elements with one text; the node may be replaced while the text grows
      this.elements = new WeakSet();
      this.labels = new Set();
      this.history = new WeakMap();
      this.firstSeen = new Map();
      this.seenAt = new WeakMap(); // the last value of a text, and the time of its last change
      this.askedAt = performance.now();
      this.ownEchoes = 0;
      this.echoes = [];
      this.lineOf = new Map();
      this.early = new Set();
      this.known = new Set();
      this.before = earlier;
      this.late = new Set();
      this.welcome = new Map();
      this.stood = new WeakMap();
      if (earlier) return;
      const groups = this.lines();
      this.known = new Set(look.shortTexts(LABEL_LENGTH));
      this.before = groups.map((group) => group.text);
      this.expect(greetings);
      for (const node of look.everyText()) this.stood.set(node, node.data);
      for (const node of groups.flatMap((group) => group.nodes)) {
        this.nodes.set(node, node.data);
        if (node.parentElement?.childNodes.length === 1) this.leaves.set(node.parentElement, node.data);
        this.labels.add(this.labelKey(node));
        for (let at = node.parentElement ?? look.up(node); at && !this.elements.has(at); at = look.up(at)) this.elements.add(at);
      }
      for (const element of look.all("*")) this.elements.add(element);
      this.labels.delete(null);
    }

    // The place and text of a short line. The bot's name is the same in each of its messages.
    labelKey(node) {
      const text = look.plain(node.data);
      if (text.length > LABEL_LENGTH || !(this.standsAlone(node) || node.parentElement?.className)) return null;
      const key = this.roleKey(node);
      return key && !look.telling.has(key) ? `${key} ${text}` : null;
    }

    // A key for the role of a text in its message: the tag names and classes around it. Null if there are no classes, or
    // if the text may be a line of an answer.
    roleKey(node) {
      const names = [];
      for (let at = node.parentElement ?? look.up(node); at && names.length < ROLE_DEPTH; at = look.up(at)) {
        names.push(`${at.localName}.${typeof at.className === "string" ? at.className : ""}`);
      }
      const isApart = !FLOW.test(names[0] ?? "") && this.standsAlone(node);
      return names.slice(0, 2).some((name) => !name.endsWith(".")) || isApart ? names.join(" ") : null;
    }

    // A key that is equal in messages of user and bot, although their own classes differ: the nearest class around the
    // text, without the words for the speaker.
    partKey(node) {
      const parent = node.parentElement ?? look.up(node);
      for (let at = parent, level = 0; at && level < 2; at = look.up(at), level += 1) {
        if (typeof at.className === "string" && at.className) return `${parent.localName} ${at.className.replace(SIDES, "")}`;
      }
      const around = parent ? look.up(parent) : null; // without classes, a name is a separate element in a message
      return around && around.localName !== "p" && this.standsAlone(node) ? `${parent.localName} < ${around.localName}` : null;
    }

    // Whether a text is the only text in its line.
    standsAlone(node) {
      return this.lineOf.get(node) === look.plain(node.data);
    }

    // Whether a text appeared together with the page's echo of the question, and was already on the page before.
    cameWithQuestion(node) {
      return this.early.has(node) && this.known.has(look.plain(node.data));
    }

    // Lines for every visitor that have not appeared yet. Each line may appear once, and is not the answer.
    expect(greetings) {
      const said = new Set(this.before.map(shapeOf));
      for (const shape of greetings.map(shapeOf)) if (!said.has(shape)) this.late.add(shape);
    }

    // Whether a line is a late line of the page's greeting.
    greets(node) {
      const line = this.lineOf.get(node);
      return line !== undefined && this.late.size > 0 && this.welcome.get(shapeOf(line)) === look.blockOf(node);
    }

    // Whether a text was hidden on the page before the question. Then it is not the answer to the question.
    wasHidden(node) {
      return !this.nodes.has(node) && this.stood.get(node) === node.data;
    }

    // Whether a line is the beginning of the question, such as a title or a shortened bubble with the question.
    beginsQuestion(node) {
      return this.question.begins(look.bare(this.lineOf.get(node)));
    }

    // Whether a number counts up or down in its place, as in "19 questions left".
    counts(node) {
      const before = this.nodes.get(node);
      return before !== undefined && before !== node.data && /\d/.test(before)
        && before.replace(/\d+/g, "#") === node.data.replace(/\d+/g, "#");
    }

    // Whether a text is always replaced and never continued, as in a ticker.
    flickers(node) {
      return (this.history.get(node.parentElement)?.swaps ?? 0) >= SWAPS;
    }

    // Whether a line is the response time that the page measured. The number must match the real duration.
    tookSoLong(node) {
      const [, figure, unit] = TOOK.exec(look.plain(node.data)) ?? [];
      if (figure === undefined) return false;
      const said = Number(figure.replace(",", ".")) * (unit.startsWith("m") ? 1 : 1000);
      const passed = (this.seenAt.get(node)?.at ?? 0) - this.askedAt;
      return said <= passed + TOOK_EARLY_MS && said >= passed - TOOK_LATE_MS;
    }

    isOld(node) {
      return this.nodes.get(node) === node.data;
    }

    lines() {
      const groups = look.lines();
      for (const group of groups) for (const node of group.nodes) this.lineOf.set(node, group.text);
      return groups;
    }

    // Text nodes with their new text: the text of a new or replaced node, or the text that was added to its end.
    pieces() {
      const groups = this.lines();
      this.welcome.clear();
      if (this.late.size) for (const { text, block } of groups) if (this.late.has(shapeOf(text)) && !this.welcome.has(shapeOf(text))) this.welcome.set(shapeOf(text), block);
      const same = groups.every((group) => group.nodes.every((node) => this.isOld(node)));
      if (same) return new Map();
      const old = look.kept(this.before, groups.map((group) => group.text), look.cuts(groups));
      const fresh = new Map();
      groups.forEach((group, index) => {
        if (!old.has(index)) for (const node of group.nodes) this.take(node, fresh);
      });
      this.addRedrawn(fresh, groups);
      return fresh;
    }

    take(node, fresh) {
      if (this.isOld(node)) return;
      const before = this.nodes.get(node) ?? this.leaves.get(node.parentElement);
      const grown = before !== undefined && look.plain(before) && node.data.startsWith(before);
      fresh.set(node, grown ? this.afterQuestion(node.data.slice(before.length)) : node.data);
      if (!this.firstSeen.has(node)) this.firstSeen.set(node, this.firstSeen.size);
      if (this.seenAt.get(node)?.text !== node.data) this.seenAt.set(node, { text: node.data, at: performance.now() });
    }

    // Lines of an answer that are equal to earlier lines by chance. They are in a new element beside new text.
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

    // Whether an element contains the question. Then it is a pair of question and answer, or the list of messages.
    repeats(element) {
      return this.question.in(look.bare(element.textContent)) !== null;
    }

    // In one growing text (a log in a <pre>): the text after the line with the question.
    afterQuestion(text) {
      const lines = text.split("\n");
      const at = lines.findIndex((line) => this.question.in(look.bare(line)));
      return at < 0 ? text : lines.slice(at + 1).join("\n");
    }

    // Tracks how short texts change. In a text that only counts (a clock, a stopwatch), only the digits change.
    noteChange(element) {
      const text = element.textContent;
      if (text.length > 60) return;
      const shape = text.replace(/\d/g, "#");
      const known = this.history.get(element);
      if (known?.text === text) return;
      const swapped = known?.text && !text.startsWith(known.text);
      const ticks = known?.shape === shape ? known.ticks + 1 : 0;
      this.history.set(element, { shape, text, ticks, swaps: swapped ? known.swaps + 1 : 0 });
    }

    ticks(node) {
      return (this.history.get(node.parentElement)?.ticks ?? 0) >= 2;
    }
  };

  // The keys of answers on this page. A short answer that is given twice is not a label.
  look.telling = new Set();
})();

// Which of what is new on the page is the answer: not the question said back, no name, no time, nothing aside.
(() => {
  const look = globalThis.__lookout;
  if (look.answer) return;

  const CLOCK = /^\W*(\d{1,2}[:.]\d{2}([:.]\d{2})?(\s?[ap]\.?m\.?)?|(just )?now|(today|yesterday)\W.{0,14}|\d+\s?(s|m|h|sec|min|seconds?|minutes?|hours?)(ond|ute)?s?\.?( ago)?|\d+(\.\d+)?\s?(ms|s))\W*$/i;
  const SPEAKER = /^(chat ?bot|bot|assistant|ai|ai assistant|agent|system|support|you|me|user|human|guest|robot|model)\s*:?$/i;
  const LETTER = /^[^\p{N}]$/u; // an initial, a mark
  const FORMAT = /^(b|strong|em|i|u|s|code|mark|a|sub|sup|kbd|q|cite)$/;
  const RECEIPT = /^\W*(sent|sending|delivered|read|seen|भेजा गया|पढ़ा गया)\W*(at )?(\d{1,2}[:.]\d{2}(\s?[ap]\.?m\.?)?)?[\s✓✔]*$/iu;
  const ASIDE = "nav, aside, header, footer, dialog, [role=dialog], [role=alert], [role=status], [role=navigation], "
    + "[role=complementary], [role=banner], [role=contentinfo], [aria-live=assertive], [role=tooltip], [class*=toast]";
  const BUBBLE = /(^|[-_ ])(msg|message|bubble|turn|user|human|question|me|you|sent)([-_ ]|$)/i;

  const STEPS = /think|thought|reason|step|search|tool|\bus(ed|ing)\b|work(ed|ing)|analy|retriev|call(ed|ing)|सोच|खोज/i;
  const SPEAKER_LENGTH = 14; // letters after a question, in its own bubble, that are no more than a time or a receipt
  const OFFER_LENGTH = 15; // what a button offers to ask is longer than what it does ("Copy")

  const parentOf = (node) => node.parentElement ?? look.up(node);
  const within = (outer, node) => look.holds(outer, parentOf(node));
  const length = (nodes) => nodes.reduce((sum, node) => sum + look.plain(node.data).length, 0);

  // Whether an element that holds the question says more than who asked: then the bot says the question in its answer.
  const saysMore = (seen, element) => {
    const text = look.bare(spoken(element));
    const form = seen.question.in(text);
    return text.length - text.indexOf(form) - form.length > SPEAKER_LENGTH;
  };

  // What an element says, without its buttons: code has one that copies it, in the middle of a message.
  const spoken = (element) => {
    if (!element.querySelector("button, [role=button]")) return element.textContent;
    return look.textNodes(element).map((node) => node.data).join(" ");
  };

  // The elements in which the page repeats the question, the earliest first. An exact repetition wins.
  const echoesIn = (seen, fresh) => {
    const { question } = seen;
    if (!question.asked) return [];
    const exact = new Map();
    const quoting = new Map();
    for (const node of fresh.keys()) {
      if (fresh.get(node) !== node.data) continue; // one growing text: what it says of the question was cut off already
      const own = look.bare(node.data);
      if (!own || !(question.in(own) || question.has(own))) continue;
      for (let at = parentOf(node); at && at !== document.body; at = look.up(at)) {
        const bare = look.bare(spoken(at));
        if (bare.length > question.length + look.LABEL_LENGTH) break;
        if (!question.is(bare) && !question.in(bare)) continue;
        const found = question.is(bare) ? exact : quoting;
        found.set(at, Math.min(found.get(at) ?? Infinity, seen.firstSeen.get(node)));
        break;
      }
    }
    const byTime = (found) => [...found].sort((a, b) => a[1] - b[1]).map(([element]) => element);
    return exact.size ? byTime(exact) : byTime(quoting).slice(0, 1).filter((element) => !saysMore(seen, element));
  };

  // Whether an echo stands in no message of the bot: what holds it and the nearest text holds another echo too.
  const standsApart = (echo, echoes, told) => {
    for (let at = look.up(echo); at; at = look.up(at)) {
      if (told.some((node) => within(at, node))) return echoes.some((other) => other !== echo && look.holds(at, other));
    }
    return true;
  };

  // Those echoes that are the page's own. A bot may say the question too, after that: as many as stood there first.
  const ownEchoes = (seen, fresh, box) => {
    const echoes = echoesIn(seen, fresh);
    widget = null;
    if (echoes.length && echoes.every((echo) => isAside(echo, box))) widget = asideOf(echoes[0]);
    const main = echoes.filter((echo) => !isAside(echo, box));
    if (main.length && !seen.ownEchoes) {
      const told = [...fresh.keys()].filter((node) => !echoes.some((echo) => within(echo, node))
        && !isAside(node, box) && !isLabel(seen, node));
      const own = main.filter((echo, at) => at === 0 || !told.length || standsApart(echo, main, told));
      seen.ownEchoes = own.length;
      seen.early = new Set([...fresh.keys()].filter((node) => seen.standsAlone(node)));
    }
    const own = main.slice(0, seen.ownEchoes);
    return [...own, ...echoes.filter((echo) => !main.includes(echo))];
  };

  // A word of a sentence, however it is set: emphasised, or a piece among others of its kind. It is never a label.
  const inSentence = (seen, node) => {
    if (seen.standsAlone(node)) return false;
    const parent = node.parentElement;
    if (!parent || parent === look.blockOf(node)) return true;
    const twin = (other) => other?.localName === parent.localName && other.className === parent.className;
    if (twin(parent.previousElementSibling) || twin(parent.nextElementSibling)) return true;
    return FORMAT.test(parent.localName) && !SPEAKER.test(look.plain(node.data));
  };

  const isLabel = (seen, node) => {
    if (seen.ticks(node) || seen.counts(node) || isStep(node)) return true;
    if (inSentence(seen, node)) return false;
    const text = look.plain(node.data);
    return CLOCK.test(text) || SPEAKER.test(text) || RECEIPT.test(text) || LETTER.test(text)
      || seen.labels.has(seen.labelKey(node));
  };

  // A fold that tells how the answer was found.
  const isStep = (node) => {
    for (let at = node.parentElement; at; at = look.up(at)) {
      if (at.localName === "summary") return true;
      if (at.localName === "details") return STEPS.test(look.plain(at.querySelector("summary")?.textContent));
    }
    return false;
  };

  const asideOf = (node) => {
    for (let at = look.up(node); at; at = look.up(at)) if (at.matches(ASIDE)) return at;
    return null;
  };

  // A widget stands aside and is the chat, when the box is in it or the only echo of the question.
  let widget = null;
  const isAside = (node, box) => {
    const aside = asideOf(node);
    return Boolean(aside) && aside !== widget && !(box && look.holds(aside, box));
  };

  // The list of messages: a log, or as far up from the echo as one can go without reaching the box.
  const transcript = (echo, box) => {
    for (let at = echo; at; at = look.up(at)) {
      if (at.matches("[role=log], [role=feed]") && !(box && look.holds(at, box))) return at;
    }
    let top = echo;
    for (let at = echo; at && at !== document.body && at !== document.documentElement; at = look.up(at)) {
      if (box && look.holds(at, box)) break;
      top = at;
    }
    return top;
  };

  // The user's own bubble: what stands in it beside the question is a name or a time.
  const ownBubble = (echo, spare) => {
    for (let at = echo; at && at !== document.body; at = look.up(at)) {
      if (length(spare.filter((node) => within(at, node))) > look.LABEL_LENGTH) return echo;
      if (at.matches("article, li, [role=article], [role=listitem], [role=row]")
        || BUBBLE.test(typeof at.className === "string" ? at.className : "")) return at;
    }
    return echo;
  };

  // The branch with the echo, below the lowest element that holds both the echo and a text.
  const branch = (echo, node) => {
    let at = echo;
    for (let up = look.up(at); up && !within(up, node); up = look.up(up)) at = up;
    return at;
  };

  // The user's whole turn: names of user and bot read alike, each in its own; and nothing long stands beside a question.
  const ownTurn = (seen, echo, spare) => {
    const short = spare.filter((node) => look.plain(node.data).length <= look.LABEL_LENGTH && seen.partKey(node));
    const others = spare.filter((node) => !within(ownBubble(echo, spare), node));
    const longest = others.sort((a, b) => length([b]) - length([a]))[0];
    let turn = ownBubble(echo, spare);
    const widen = (wider) => {
      if (look.holds(wider, turn) && length(spare.filter((node) => within(wider, node))) <= look.LABEL_LENGTH) turn = wider;
    };
    for (const mine of short) {
      const twin = short.find((node) => node !== mine && seen.partKey(node) === seen.partKey(mine)
        && within(branch(echo, node), mine) && branch(echo, node) !== echo);
      if (twin) widen(branch(echo, twin));
    }
    if (longest && length([longest]) > look.LABEL_LENGTH) widen(branch(echo, longest));
    return turn;
  };

  // The parts that texts play beside the question in the user's turn: in the bot's they are labels as well.
  const labelParts = (seen, home, mine, spare) => {
    const own = new Set(look.textNodes(home).map((node) => seen.partKey(node)));
    const parts = spare.filter((node) => within(mine, node)).map((node) => seen.partKey(node));
    return new Set(parts.filter((part) => part && !own.has(part)));
  };

  // Names and times stand before or after a message, never in it.
  const trimmed = (nodes, isEdge) => {
    let start = 0;
    let end = nodes.length;
    while (start < end && isEdge(nodes[start])) start += 1;
    while (end > start && isEdge(nodes[end - 1])) end -= 1;
    return nodes.slice(start, end);
  };

  // A heading over nothing but buttons ("Follow up") belongs to them.
  const headsControls = (seen, node) => {
    const line = look.blockOf(node);
    const around = line && look.up(line);
    if (!around || !seen.standsAlone(node) || length([node]) > look.LABEL_LENGTH) return false;
    if (look.textNodes(around).some((other) => other !== node && look.plain(other.data))) return false;
    const offers = [...around.querySelectorAll("button, [role=button]")].map((button) => look.plain(button.textContent).length);
    return offers.length > 0 && offers.every((size) => size >= OFFER_LENGTH);
  };

  // What follows the page's own echo of the question: [region, nodes].
  const besideEcho = (seen, echoes, spare, box) => {
    const home = echoes.find((echo) => !isAside(echo, box)) ?? echoes[0];
    const mine = ownTurn(seen, home, spare);
    const parts = labelParts(seen, home, mine, spare);
    const others = spare.filter((node) => !within(mine, node));
    const isPart = (node) => length([node]) <= look.LABEL_LENGTH && parts.has(seen.partKey(node))
      && (Boolean(node.parentElement?.className) || seen.standsAlone(node));
    const isEdge = (node) => isPart(node) || seen.cameWithQuestion(node) || headsControls(seen, node);
    for (let region = transcript(home, box), inside = true; region; region = look.up(region), inside = false) {
      const chosen = others.filter((node) => within(region, node) && !isLabel(seen, node) && (inside || !seen.flickers(node)));
      const telling = trimmed(chosen, isEdge);
      if (telling.length) return [region, telling];
    }
    const clocks = others.filter((node) => CLOCK.test(look.plain(node.data)) && !seen.ticks(node));
    return [transcript(home, box), clocks.filter((node) => within(transcript(home, box), node))];
  };

  // Without an echo: the part of the page that has most to say.
  const largestGroup = (seen, spare, box) => {
    const groups = new Map();
    for (const node of spare) {
      const top = transcript(parentOf(node), box);
      groups.set(top, [...(groups.get(top) ?? []), node]);
    }
    const [region, nodes] = [...groups].sort((a, b) => length(b[1]) - length(a[1]))[0] ?? [null, []];
    const telling = nodes.filter((node) => !isLabel(seen, node));
    return [region, telling.length ? telling : nodes];
  };

  // What is new but neither taken for the answer nor a label, for a person who wants to know why.
  const unread = (seen, fresh, echoes, chosen) => [...fresh.keys()]
    .filter((node) => !chosen.has(node) && !echoes.some((echo) => within(echo, node)) && !isLabel(seen, node))
    .map((node) => look.plain(fresh.get(node))).filter(Boolean);

  // The element that holds the answer, its text, the nodes it stands in, and what else is new.
  look.answer = (seen, box) => {
    const fresh = seen.pieces();
    const echoes = ownEchoes(seen, fresh, box);
    const spare = [...fresh.keys()].filter((node) => !echoes.some((echo) => within(echo, node)))
      .filter((node) => fresh.get(node).trim() && !isAside(node, box) && !seen.greets(node));
    const [region, nodes] = echoes.length ? besideEcho(seen, echoes, spare, box) : largestGroup(seen, spare, box);
    if (!nodes.length && echoes.length > 1 && within(transcript(echoes[0], box), echoes.at(-1))) {
      const last = echoes.at(-1); // the bot said the question back, word for word
      return { region: last, text: look.textOf(last), nodes: [], unread: [] };
    }
    const chosen = new Set(nodes);
    const text = region ? look.textOf(region, (node) => (chosen.has(node) ? fresh.get(node) : blank(node.data))) : "";
    return { region, text, nodes, unread: unread(seen, fresh, echoes, chosen) };
  };

  // What stands between two pieces of a line, as between **one** *two*, is part of neither and parts them.
  const blank = (text) => (text.trim() ? "" : text);

  // After a whole answer: its parts are known from now on.
  look.learn = (seen, nodes) => {
    for (const node of nodes) {
      const key = seen.roleKey(node);
      if (key) look.telling.add(key);
    }
  };
})();

// Find the answer in the new text of the page, without the repeated question, names, times and other texts beside it.
(() => {
  const look = globalThis.__lookout;
  if (look.answer) return;

  const CLOCK = /^[^\p{L}\p{N}]*(\d{1,2}[:.]\d{2}([:.]\d{2})?(\s?[ap]\.?m\.?)?|(just )?now|(today|yesterday)[^\p{L}\p{N}].{0,14}|\d+\s?(s|m|h|sec|min|seconds?|minutes?|hours?)(ond|ute)?s?\.?( ago)?|\d+(\.\d+)?\s?(ms|s))[^\p{L}\p{N}]*$/iu;
  const SPEAKER = /^((virtual|ai|digital|policy|insurance|travel|customer)[ -])*(chat ?bot|bot|assistant|ai|agent|system|support|service|care|advis[eo]r|co-?pilot|concierge|helper|help ?desk|expert|guide|operator|you|me|user|human|guest|robot|model|सहायक|बॉट|आप)( said| says)?\s*:?$/iu;
  const NAME = /^[\p{L}\p{M}][\p{L}\p{M} .'-]{1,23}$/u;
  const LETTER = /^[^\p{N}]$/u; // an initial, a mark
  const MODEL = /^(gpt|claude|gemini|gemma|llama|mi[sx]tral|qwen|deepseek|command|phi|grok|nova|titan|granite|kimi|glm)[- ]?[\w.:/-]*\d[\w.:/ -]{0,20}$/iu;
  const RECEIPT = /^\W*(sent|sending|delivered|read|seen|भेजा गया|पढ़ा गया)\W*(at )?(\d{1,2}[:.]\d{2}(\s?[ap]\.?m\.?)?)?[\s✓✔]*$/iu;
  const ASIDE = "nav, aside, header, footer, dialog, [role=dialog], [role=alert], [role=status], [role=navigation], "
    + "[role=complementary], [role=banner], [role=contentinfo], [aria-live=assertive], [role=tooltip], [class*=toast]";
  const BUBBLE = /(^|[-_ ])(msg|message|bubble|turn|user|human|question|me|you|sent)([-_ ]|$)/i;

  const STEPS = /think|thought|reason|step|search|tool|\bus(ed|ing)\b|work(ed|ing)|analy|retriev|call(ed|ing)|सोच|खोज/i;
  const SPEAKER_LENGTH = 14; // letters; a text after the question in the user's bubble is a time or a receipt if it is not longer
  const RESUMED_LENGTH = 20; // letters; a shorter new text in an earlier message is a time, a sign or a name
  const OFFER_LENGTH = 15; // letters; a suggested question on a button is longer than an action ("Copy")

  const parentOf = (node) => node.parentElement ?? look.up(node);
  const within = (outer, node) => look.holds(outer, parentOf(node));
  const length = (nodes) => nodes.reduce((sum, node) => sum + look.plain(node.data).length, 0);

  // Whether an element with the question contains more than a speaker's name. Then the bot repeats the question in its
  // answer.
  const saysMore = (seen, element) => {
    const text = look.bare(spoken(element));
    const form = seen.question.in(text);
    return text.length - text.indexOf(form) - form.length > SPEAKER_LENGTH;
  };

  // The text of an element without its buttons. For example, code in a message has a copy button.
  const spoken = (element) => {
    if (!element.querySelector("button, [role=button]")) return element.textContent;
    return look.textNodes(element).map((node) => node.data).join(" ");
  };

  // The elements in which the page repeats the question, the earliest first. If there are exact repetitions, only they
  // are returned.
  const echoesIn = (seen, fresh) => {
    const { question } = seen;
    if (!question.asked) return [];
    const exact = new Map();
    const quoting = new Map();
    for (const node of fresh.keys()) {
      if (fresh.get(node) !== node.data) continue; // one growing text, from which the question was already removed
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

  // Whether an echo is outside of the bot's messages: the smallest element with the echo and the nearest text contains
  // another echo too.
  const standsApart = (echo, echoes, told) => {
    for (let at = look.up(echo); at; at = look.up(at)) {
      if (told.some((node) => within(at, node))) return echoes.some((other) => other !== echo && look.holds(at, other));
    }
    return true;
  };

  // The lowest common ancestor of an echo and a text of the answer.
  const sharedWith = (echo, told) => {
    let at = look.up(echo);
    while (at && !told.some((node) => within(at, node))) at = look.up(at);
    return at;
  };

  // Whether an answer quotes the question: the echo and the text are in one new message, and an earlier echo in the list
  // of messages is outside of this message. A heading or a list of conversations may also repeat the question, but is not
  // in the list of messages.
  const isQuotation = (seen, echo, echoes, told, box) => {
    const message = sharedWith(echo, told);
    if (!message || seen.elements.has(message)) return false;
    const list = transcript(echo, box);
    return echoes.slice(0, echoes.indexOf(echo)).some((other) => !look.holds(message, other)
      && within(list, other) && !other.closest("h1, h2, h3, h4, h5, h6, [role=heading], header, nav"));
  };

  const isBeside = (element, box) => {
    const [one, other] = [element.getBoundingClientRect(), box.getBoundingClientRect()];
    return one.right <= other.left || one.left >= other.right;
  };

  // The echoes of the page itself: as many as there were at first. Later echoes may be a part of the bot's answer.
  const ownEchoes = (seen, fresh, box) => {
    const echoes = echoesIn(seen, fresh);
    seen.echoes = echoes;
    widget = null;
    if (echoes.length && echoes.every((echo) => isAside(seen, echo, box))) widget = asideOf(seen, echoes[0]);
    const main = echoes.filter((echo) => !isAside(seen, echo, box));
    if (main.length > 1 || (main.length && !seen.ownEchoes)) {
      const told = [...fresh.keys()].filter((node) => !echoes.some((echo) => within(echo, node))
        && !isAside(seen, node, box) && !isLabel(seen, node));
      // A list of conversations also repeats the question. It is beside the column with the message box and the answers.
      const isAway = (echo) => Boolean(box) && isBeside(echo, box) && !told.some((node) => within(transcript(echo, box), node));
      const away = new Set(main.filter(isAway));
      main.sort((a, b) => away.has(b) - away.has(a));
      if (!seen.ownEchoes) {
        seen.ownEchoes = main.filter((echo, at) => at <= away.size || standsApart(echo, main, told)).length;
        seen.early = new Set([...fresh.keys()].filter((node) => seen.standsAlone(node)));
        seen.unsettled = told.length === 0;
      } else if (seen.unsettled && told.length) {
        seen.unsettled = false; // the answer begins with the question, which appeared before the rest of the answer
        seen.ownEchoes = main.slice(0, seen.ownEchoes).filter((echo) => !isQuotation(seen, echo, main, told, box)).length;
      }
    }
    const own = main.slice(0, seen.ownEchoes);
    return [...own, ...echoes.filter((echo) => !main.includes(echo))];
  };

  // Whether it is certain that a text is not part of an answer: it is a number that counts on its own, it shows how the
  // answer was found, or it was in the same part of an earlier message.
  const isProven = (seen, node) => seen.ticks(node) || seen.counts(node) || isStep(node) || seen.labels.has(seen.labelKey(node))
    || (seen.standsAlone(node) && seen.usual.has(look.plain(node.data)));

  // Whether a text looks like a name, a time, a sign or a receipt. This is not a proof, because words of an answer may
  // look like this too.
  const looksLikeLabel = (node) => {
    const text = look.plain(node.data);
    return CLOCK.test(text) || SPEAKER.test(text) || MODEL.test(text) || RECEIPT.test(text) || LETTER.test(text) || namesThePage(text);
  };

  // Whether a text is a name in the page's title or a heading: bots are named after their page.
  const namesThePage = (text) => {
    if (!NAME.test(text)) return false;
    const titles = [document.title, ...look.all("h1, h2, header").map((one) => one.textContent)].map((one) => ` ${look.plain(one)} `.toLowerCase());
    return titles.some((title) => title.length < 200 && title.split(/[^\p{L}\p{M}.'-]+/u).join(" ").includes(` ${text.toLowerCase()} `));
  };

  const isLabel = (seen, node) => isProven(seen, node) || (seen.standsAlone(node) && looksLikeLabel(node));

  // Whether a node is in a collapsible part that shows how the answer was found.
  const isStep = (node) => {
    for (let at = node.parentElement; at; at = look.up(at)) {
      if (at.localName === "summary") return true;
      if (at.localName === "details") return STEPS.test(look.plain(at.querySelector("summary")?.textContent));
    }
    return false;
  };

  // Whether an element is a message, although its role is usual for notices of the page. It is a message if it contains
  // the question, has the role of the element with the question, or is beside this element in the list of messages.
  // Messages are new, do not cover the page, and have no other text beside them. An alert in or below a message without
  // such a role is a notice of the page.
  const SPEAKS = "[role=alert], [role=status], [aria-live=assertive]";
  look.isMessage = (seen, element) => {
    if (!element.matches(SPEAKS) || seen.elements.has(element) || element.matches("[class*=toast]")) return false;
    for (let at = element; at; at = look.up(at)) {
      if (getComputedStyle(at).position === "fixed" && (at === element || !seen.echoes.some((echo) => look.holds(at, echo)))) return false;
    }
    return seen.echoes.some((echo) => look.holds(element, echo) || (!seen.elements.has(branch(echo, element)) && standsAlone(seen, element, echo))
      || Boolean(element.role && echo.closest(SPEAKS)?.role === element.role));
  };

  const standsAlone = (seen, element, echo) => {
    const [whole, asked] = [branch(element, echo), branch(echo, element)];
    if (whole !== element && said(whole) - said(element) > look.LABEL_LENGTH) return false;
    return ![...(look.up(asked)?.children ?? [])].some((other) => other !== whole && other !== asked && !seen.elements.has(other)
      && !other.matches(SPEAKS) && !other.querySelector(SPEAKS) && said(other) > look.LABEL_LENGTH);
  };
  const said = (element) => look.plain(look.textOf(element)).length;

  const asideOf = (seen, node) => {
    let isCell = false; // the header or footer of a table is not a header or footer of the page
    for (let at = look.up(node); at; at = look.up(at)) {
      isCell ||= look.isCell(at);
      if (at.matches(ASIDE) && !(isCell && at.matches("header, footer")) && !look.isMessage(seen, at)) return at;
    }
    return null;
  };

  // A widget at the side of the page is the chat if it contains the message box or the only echo of the question.
  let widget = null;
  const isAside = (seen, node, box) => {
    const aside = asideOf(seen, node);
    return Boolean(aside) && aside !== widget && !(box && look.holds(aside, box));
  };

  // The list of messages: a log, or the highest ancestor of the echo that does not contain the box.
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

  // The user's own bubble: other text in it is a name or a time.
  const ownBubble = (echo, spare) => {
    for (let at = echo; at && at !== document.body; at = look.up(at)) {
      if (length(spare.filter((node) => within(at, node))) > look.LABEL_LENGTH) return echo;
      if (at.matches("article, li, [role=article], [role=listitem], [role=row]")
        || BUBBLE.test(typeof at.className === "string" ? at.className : "")) return at;
    }
    return echo;
  };

  // The branch with the echo, below the lowest common ancestor of the echo and a text.
  const branch = (echo, node) => {
    let at = echo;
    for (let up = look.up(at); up && !within(up, node); up = look.up(up)) at = up;
    return at;
  };

  // The complete turn of the user. The names of user and bot are in the same place of their turns, and there is no long
  // text beside a question.
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

  // The keys of the texts beside the question in the user's turn. A text with the same key in the bot's turn is a label.
  const labelParts = (seen, home, mine, spare) => {
    const own = new Set(look.textNodes(home).map((node) => seen.partKey(node)));
    const parts = spare.filter((node) => within(mine, node)).map((node) => seen.partKey(node));
    return new Set(parts.filter((part) => part && !own.has(part)));
  };

  // The texts by line, in reading order. A line belongs to one block, however many elements its words are in.
  const linesOf = (nodes) => {
    const lines = [];
    for (const node of nodes) {
      const block = look.blockOf(node);
      if (lines.at(-1)?.block === block) lines.at(-1).nodes.push(node);
      else lines.push({ block, nodes: [node] });
    }
    return lines;
  };

  // The lines of lists, tables and code. They belong to the answer, whatever their text is.
  const FLOW = "li, td, th, dd, pre, code, blockquote, h1, h2, h3, h4, h5, h6";
  const isInCell = (element) => {
    for (let at = element; at; at = look.up(at)) if (look.isCell(at)) return true;
    return false;
  };
  const isFlow = (line, telling) => Boolean(line.block?.closest?.(FLOW)) || isInCell(line.block) || telling.some((other) => other.block !== line.block
    && (kindOf(line) === "p." ? within(look.up(line.block), other.block) : kindOf(other) === kindOf(line) && look.up(other.block) === look.up(line.block)));
  const kindOf = (line) => `${line.block?.localName}.${line.block?.className}`;

  // Whether a time is the current time. An answer does not have the current time in its own line by chance.
  const isNow = (text) => {
    if (/^[^\p{L}\p{N}]*((just )?now|\d{1,2}\s?(s|sec|seconds?)\.? ago)[^\p{L}\p{N}]*$/iu.test(text)) return true;
    const [, hours, minutes] = /(\d{1,2})[:.](\d{2})/.exec(text) ?? [];
    if (hours === undefined) return false;
    const now = new Date();
    return [[now.getHours(), now.getMinutes()], [now.getUTCHours(), now.getUTCMinutes()]].some(([hour, minute]) => {
      const apart = (((hour % 12) - (Number(hours) % 12)) * 60 + minute - Number(minutes) + 720) % 720;
      return Math.min(apart, 720 - apart) <= 2;
    });
  };

  // The message without the names, times and signs before its first line and after its last line. Texts inside of the
  // message are never removed. `aside`: the removed texts. `unsure`: removed numbers that may be part of the answer.
  const message = (seen, texts, isEdge, top) => {
    const { rest: nodes, parts } = look.splitParts(seen, texts, top, (node) => isLabel(seen, node));
    const proves = (node) => isProven(seen, node) || isEdge(node);
    const lines = linesOf(nodes).map((line) => ({
      ...line, proven: line.nodes.every(proves), looks: line.nodes.every((node) => proves(node) || looksLikeLabel(node)),
    }));
    const telling = lines.filter((line) => !line.looks);
    if (!telling.length) return { ...shortAnswer(lines), aside: [], parts };
    const belongs = (line) => !line.looks || (!line.proven && isFlow(line, telling));
    const first = lines.findIndex(belongs);
    const last = lines.findLastIndex(belongs);
    const edges = lines.filter((_, at) => at < first || at > last);
    const edgeKeys = new Set(edges.flatMap((line) => line.nodes.map((node) => seen.roleKey(node))).filter(Boolean));
    const within = lines.slice(first, last + 1);
    const repeats = (line) => line.looks && line.nodes.every((node) => isStep(node) || seen.ticks(node) || edgeKeys.has(seen.roleKey(node)));
    const kept = first < 0 ? [] : within.filter((line) => belongs(line) || !repeats(line)).flatMap((line) => line.nodes);
    const ends = trimmed(kept, (node) => proves(node) && !isFlow({ block: look.blockOf(node) }, []));
    const left = nodes.filter((node) => !ends.includes(node));
    const said = (node) => look.plain(node.data);
    const doubted = edges.filter((line) => !line.proven).flatMap((line) => line.nodes)
      .filter((node) => /\p{N}/u.test(node.data) && !proves(node) && !isNow(said(node)) && !RECEIPT.test(said(node))
        && !MODEL.test(said(node)) && !seen.tookSoLong(node));
    return { nodes: ends, aside: left.map(said), unsure: doubted.map(said), parts };
  };

  // An answer of one word or number looks like a label. It is the answer if it is formatted as text, or if it is not a
  // speaker, a receipt or the time. A time that is formatted as text is the answer if it is alone; beside a word, it is
  // unsure.
  const shortAnswer = (lines) => {
    const isTime = (line) => line.nodes.every((node) => isNow(look.plain(node.data)));
    const says = (node) => !SPEAKER.test(look.plain(node.data)) && !RECEIPT.test(look.plain(node.data));
    const left = lines.filter((line) => !line.proven);
    const set = left.filter((line) => line.block?.matches?.("p") || isFlow(line, []));
    const told = set.filter((line) => !isTime(line));
    const others = left.filter((line) => !set.includes(line) && !isTime(line) && line.nodes.every(says));
    const chosen = told.length ? set.filter((line) => !isTime(line) || isFlow(line, [])) : set.length ? set : others.slice(-1);
    const unsure = !told.length && set.length ? others : [];
    return { nodes: chosen.flatMap((line) => line.nodes), unsure: unsure.flatMap((line) => line.nodes).map((node) => look.plain(node.data)) };
  };

  const trimmed = (nodes, isEdge) => {
    let start = 0;
    let end = nodes.length;
    while (start < end && isEdge(nodes[start])) start += 1;
    while (end > start && isEdge(nodes[end - 1])) end -= 1;
    return nodes.slice(start, end);
  };

  // A heading with only buttons below it ("Follow up") belongs to the buttons.
  const headsControls = (seen, node) => {
    const line = look.blockOf(node);
    const around = line && look.up(line);
    if (!around || !seen.standsAlone(node) || length([node]) > look.LABEL_LENGTH) return false;
    if (look.textNodes(around).some((other) => other !== node && look.plain(other.data))) return false;
    const offers = [...around.querySelectorAll("button, [role=button]")].map((button) => look.plain(button.textContent).length);
    return offers.length > 0 && offers.every((size) => size >= OFFER_LENGTH);
  };

  // The texts after the page's own echo of the question.
  const besideEcho = (seen, echoes, spare, box) => {
    const home = echoes.find((echo) => !isAside(seen, echo, box)) ?? echoes[0];
    const mine = ownTurn(seen, home, spare);
    const parts = labelParts(seen, home, mine, spare);
    const others = spare.filter((node) => !within(mine, node));
    const isPart = (node) => length([node]) <= look.LABEL_LENGTH && parts.has(seen.partKey(node))
      && (Boolean(node.parentElement?.className) || seen.standsAlone(node));
    const isEdge = (node) => isPart(node) || seen.cameWithQuestion(node) || headsControls(seen, node);
    for (let region = transcript(home, box), inside = true; region; region = look.up(region), inside = false) {
      const chosen = others.filter((node) => within(region, node) && (inside || !seen.flickers(node)));
      const found = message(seen, chosen, isEdge, region);
      if (found.nodes.length) return { region, ...found };
    }
    const region = transcript(home, box);
    const inside = others.filter((node) => within(region, node));
    const clocks = inside.filter((node) => CLOCK.test(look.plain(node.data)) && !seen.ticks(node));
    const speaks = inside.some((node) => !isProven(seen, node) && !isEdge(node) && SPEAKER.test(look.plain(node.data)));
    return { region, nodes: clocks, aside: [], parts: [], unsure: speaks ? clocks.map((node) => look.plain(node.data)) : [] };
  };

  // If there is no echo: the part of the page with the most text.
  const largestGroup = (seen, spare, box) => {
    const groups = new Map();
    for (const node of spare) {
      const top = transcript(parentOf(node), box);
      groups.set(top, [...(groups.get(top) ?? []), node]);
    }
    const [region, nodes] = [...groups].sort((a, b) => length(b[1]) - length(a[1]))[0] ?? [null, []];
    const found = message(seen, nodes, () => false, region);
    return found.nodes.length || found.parts.length ? { region, ...found } : { region, nodes, aside: [], unsure: [], parts: [] };
  };

  // New texts that are neither the answer nor labels, for error messages.
  const unread = (seen, fresh, echoes, chosen) => [...fresh.keys()]
    .filter((node) => !chosen.has(node) && !echoes.some((echo) => within(echo, node)) && !isLabel(seen, node) && !seen.greets(node))
    .map((node) => look.plain(fresh.get(node))).filter(Boolean);

  // Error messages of pages.
  const NOTICE = new RegExp("^\\W*((oops|sorry|whoops|uh.?oh|we.?re sorry|we are sorry)\\W+)*((there was |there has been )?(an?|some|the) (\\p{L}+ ){0,3}(error|exception|problem)"
    + "( has| have)? (occurred|happened|processing|while)|there was an? (\\p{L}+ )?(error|problem)|some(thing|how)( has)? (went|gone) wrong"
    + "|((network|server|connection|internal|unexpected|unknown|application|runtime|http|api|fetch) )+error|error( \\d+)?\\W*$"
    + "|failed to (fetch|load|send|connect|respond|generate|get)|(the |your )?(request|connection|server|service|message) (failed|timed out|was lost|was not sent|could not be (sent|reached|processed)|is (currently |temporarily )?unavailable)"
    + "|कुछ (गलत|गड़बड़)|(एक )?त्रुटि)", "iu");
  const NOTICE_LENGTH = 160; // letters; an answer that begins like this is longer
  look.isNotice = (text) => text.length <= NOTICE_LENGTH && NOTICE.test(text);

  // Whether an element covers the page and contains neither the box nor the question, such as a toast or a hint.
  const liesOver = (node, echoes, box, known) => {
    const path = [];
    let over = false;
    for (let at = look.up(node); at && !over; at = look.up(at)) {
      if (known.has(at)) over = known.get(at);
      else over = getComputedStyle(at).position === "fixed" && !(box && look.holds(at, box)) && !echoes.some((echo) => look.holds(at, echo));
      path.push(at);
      if (known.has(at)) break;
    }
    for (const at of path) known.set(at, over);
    return over;
  };

  // Whether a text is outside of the messages: its common ancestor with the question is not new, but messages are new.
  const standsOutside = (seen, node, echo) => seen.elements.has(branch(echo, node));

  // The page's own error message in the place of an answer: its text `said` and its nodes, or null.
  const banner = (seen, spare, echoes, box, over) => {
    const nodes = spare.filter((node) => {
      const line = seen.lineOf.get(node) ?? "";
      if (line.length > NOTICE_LENGTH || !(NOTICE.test(line) || /^\W*error\b/i.test(line))) return false;
      return liesOver(node, echoes, box, over) || (echoes.length > 0 && standsOutside(seen, node, echoes[0]));
    });
    return nodes.length ? { said: seen.lineOf.get(nodes[0]), nodes: new Set(nodes) } : null;
  };

  // The element with the answer, its text, its nodes and the other new texts. `doubt`: why it may not be an answer.
  look.answer = (seen, box) => {
    const fresh = seen.pieces();
    const echoes = ownEchoes(seen, fresh, box);
    const over = new Map();
    const grown = textOfEarlierTurns(fresh);
    const candidates = [...fresh.keys()].filter((node) => !echoes.some((echo) => within(echo, node)))
      .filter((node) => fresh.get(node).trim() && !grown.has(node) && !isAside(seen, node, box) && !seen.greets(node));
    const notice = banner(seen, candidates, echoes, box, over);
    const said = candidates.filter((node) => !notice?.nodes.has(node) && !(echoes.length && liesOver(node, echoes, box, over)));
    const begins = (node) => seen.question.asked && seen.beginsQuestion(node);
    const sure = said.filter((node) => !seen.wasHidden(node) && !begins(node));
    const spare = sure.length ? sure : said;
    const doubt = sure.length || !said.length ? null : said.some(begins) ? "echo" : "stood";
    const { region, nodes, aside, unsure, parts } = echoes.length ? besideEcho(seen, echoes, spare, box) : largestGroup(seen, spare, box);
    const resumed = [...grown].some((node) => look.plain(fresh.get(node)).length >= RESUMED_LENGTH && !isProven(seen, node));
    const rest = { notice: notice?.said ?? null, doubt: nodes.length ? doubt : null, resumed };
    if (!nodes.length && echoes.length > 1 && within(transcript(echoes[0], box), echoes.at(-1))) {
      const last = echoes.at(-1); // the bot repeated the question word for word
      return { region: last, text: look.textOf(last), nodes: [], unread: [], aside: [], unsure: [], parts: [], ...rest };
    }
    const chosen = new Set(nodes);
    const text = region ? look.textOf(region, (node) => (chosen.has(node) ? fresh.get(node) : blank(node.data))) : "";
    const bubbles = new Set(nodes.map((node) => bubbleOf(seen, node)).filter(Boolean));
    const asides = new Set([...fresh.keys()].map((node) => asideOf(seen, node)).filter((at) => at && !look.holds(at, box)));
    const own = [...asides].filter((at) => [...bubbles].some((bubble) => bubble !== at && look.holds(bubble, at)));
    return { region, text, nodes, unread: unread(seen, fresh, echoes, chosen), aside, unsure, parts: [...parts, ...look.partsOfAsides(own)], ...rest };
  };

  // White space between two pieces of a line, as in **one** *two*, belongs to neither piece and separates them.
  const blank = (text) => (look.plain(text) ? "" : text);

  // The messages of this turn and of earlier turns, with the answer in each message. Text that grows in an earlier message
  // is not an answer to the next question. If a page uses an element again for another message, it replaces the text.
  let messages = new Map();
  const earlier = new Map();
  look.closeTurn = () => {
    for (const [bubble, text] of messages) if (text) earlier.set(bubble, text);
    messages = new Map();
  };

  // The largest new element around a text of the answer without the question. If the page does not repeat the question,
  // the block of the text.
  const bubbleOf = (seen, node) => {
    if (!seen.echoes.length) return seen.elements.has(look.blockOf(node)) ? null : look.blockOf(node);
    let bubble = null;
    for (let at = parentOf(node); at && !seen.elements.has(at) && !seen.echoes.some((echo) => look.holds(at, echo)); at = look.up(at)) bubble = at;
    return bubble;
  };

  const textOfEarlierTurns = (fresh) => {
    const grown = new Set();
    const known = new Map();
    for (const node of earlier.size ? fresh.keys() : []) {
      let bubble = parentOf(node);
      while (bubble && !earlier.has(bubble)) bubble = look.up(bubble);
      if (!bubble) continue;
      if (!known.has(bubble)) known.set(bubble, look.bare(look.textOf(bubble)).includes(earlier.get(bubble)));
      if (known.get(bubble)) grown.add(node);
    }
    return grown;
  };

  // After a complete answer: store its messages and the keys of its parts.
  look.learn = (seen, nodes) => {
    messages = new Map();
    for (const node of nodes) {
      const bubble = bubbleOf(seen, node);
      if (bubble) messages.set(bubble, (messages.get(bubble) ?? "") + look.bare(node.data));
    }
    for (const node of nodes) {
      const key = seen.roleKey(node);
      if (key) look.telling.add(key);
    }
  };
})();

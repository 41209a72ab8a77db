// Watch a page while it answers: one promise, which resolves when the answer is complete, failed, or took too long.
(() => {
  const look = globalThis.__lookout;
  if (look.arm) return;

  const EMPTY = /^[\s.…·•●○◦▪⋯|▌▍█_-]*$/u;
  const THINKING = /^\W*(the )?(bot|assistant|ai|agent|it)?\s*(is )?(thinking|typing|loading|generating|processing|searching|working|analy[sz]ing|retrieving|please wait|one moment|just a (moment|sec\w*)|सोच रहा|लिख रहा).{0,30}(\.{2,}|…|\s*)$/iu;
  const FAULT = /error|fail|went wrong|try again|unavailable|timed? ?out|disconnect|connection|not respond|exceeded|quota|limit|denied|unauthori|exception|traceback|unable|could ?n[o']t|can ?n[o']t|out of reach|त्रुटि/i;
  const ALARM = "[role=alert], [role=alertdialog], [aria-live=assertive], [class*=toast], [class*=snackbar], "
    + "[class*=error], [class*=notification], [data-testid*=toast], [data-testid*=error]";
  const SAMPLES = 240;
  const PARTS_AT_MOST = 20, PART_CHARACTERS = 20_000; // parts of the message that are not the answer
  const ASIDE_AT_MOST = 20; // texts beside an answer that are stored as evidence
  const THROTTLE_MS = 80;
  const IDLE_MS = 400; // without a mutation, only animations or properties can have changed
  const LAST_WORDS_MS = 600; // the time in which a page renders the last words after a control has shown the end
  const EARLY_MS = 150; // a control that ends so soon after the first words may only have shown that an answer began
  const RENDER_MS = 100; // the time in which a page renders the end of a response
  const STUCK_PATIENCE = 3; // after this many times the patience without activity, the page has forgotten to reset its control
  const ENDS = /[.!?…।॥。！？؟)\]"'”’»」*_`]$/u; // the end of a text that does not stop in mid-sentence
  const DOUBT_PATIENCE = 2; // wait this many times the patience if the new text may not be the answer, because the answer may still come
  const CLOSED_MS = 100; // the time until the page has noticed that its socket was closed
  const AFTER_BREAK_MS = 1500; // the time for a page to report a broken stream, or to reconnect
  const MARKS = ["disabled", "readonly", "aria-busy", "aria-disabled", "aria-label", "hidden", "class", "style",
    "data-test-script-state", "data-state", "data-status"];

  let watch = null;

  const enabled = (box) => Boolean(box?.isConnected) && !box.disabled && !box.readOnly
    && box.getAttribute("aria-disabled") !== "true" && box.getAttribute("contenteditable") !== "false";

  const currentBox = () => {
    if (!look.box?.isConnected) look.find(watch.spec);
    return look.box;
  };

  const seen = (selector) => look.all(selector).filter(look.visible);

  const spinning = () => document.getAnimations()
    .filter((one) => one.playState === "running" && one.effect?.getComputedTiming?.().iterations === Infinity)
    .map((one) => one.effect.target)
    .filter((target) => target && look.visible(target));

  const alarms = (selector) => seen(selector).map((element) => [element, look.plain(look.textOf(element))]);

  // Hard signs of a busy app end with the answer. Soft signs (an animation, dots) may stay for ever.
  const hardBusy = () => {
    const { spec, before } = watch;
    if (before.enabled && !enabled(currentBox())) return true;
    if (spec.busy && seen(spec.busy).length) return true;
    if (seen("[aria-busy=true]").some((element) => !before.busy.has(element))) return true;
    return look.stops().length > before.stops;
  };

  const softBusy = () => spinning().some((element) => !watch.before.spinning.has(element))
    || seen("[role=progressbar], progress:not([value])").some((element) => !watch.before.busy.has(element));

  const told = (node) => (watch.spec.steps && node.parentElement?.closest(watch.spec.steps) ? "" : node.data);

  const named = (selector) => seen(selector).map((element) => [element, look.textOf(element, told)]).filter(([, text]) => text);

  // Answers by a selector: elements after the existing elements, or elements that changed in place.
  const namedAnswer = () => {
    const now = named(watch.spec.answer);
    const before = watch.before.answers;
    let newer = now.slice(before.length);
    if (!newer.length) newer = now.filter(([, text], index) => text !== before[index]);
    return { region: newer.at(-1)?.[0] ?? null, text: newer.map(([, text]) => text).join("\n\n"), nodes: [], unread: [], aside: [], unsure: [], parts: [], notice: null, doubt: null };
  };

  // An alert that is a message, or repeats the question, is not an error, unless it has only error words.
  const isSaid = (element, text) => {
    if (look.isNotice(text)) return false;
    const { fresh, question, spec } = watch;
    if (fresh ? look.isMessage(fresh, element) : element.matches(spec.answer) || element.closest(spec.answer) || element.querySelector(spec.answer)) return true;
    return question.asked && question.in(look.bare(text)) !== null;
  };

  const errorShown = (region) => {
    const { spec, before } = watch;
    const shown = [];
    for (const [element, text] of alarms(spec.error ?? ALARM)) {
      if (!text || before.alarms.get(element) === text || element.matches("[role=log], [role=feed], :has([role=log])")) continue;
      if (spec.error) return text;
      if (isSaid(element, text)) continue;
      // A bubble with an error is an answer, although a wrong one. An alert inside the bubble is a notice of the page.
      const within = region && (look.holds(region, element) || look.holds(element, region));
      if (within && !element.matches("[role=alert], [aria-live=assertive]")) continue;
      if (FAULT.test(text) || /error/i.test(element.getAttribute("class") ?? "")) shown.push(text);
    }
    return shown.sort((a, b) => b.length - a.length)[0] ?? null;
  };

  const inspect = () => {
    const now = performance.now();
    const box = currentBox();
    let { region, text, nodes, unread, aside, unsure, parts, notice, doubt, resumed } = watch.spec.answer ? namedAnswer() : look.answer(watch.fresh, box);
    const waiting = EMPTY.test(text) || (THINKING.test(text) && text.length < 80);
    if (waiting) text = "";
    if (look.connects()) watch.connectedAt = now;
    const hard = hardBusy();
    const soft = !hard && ((waiting && Boolean(region)) || softBusy());
    watch.doubt = doubt;
    if (text !== watch.text || hard !== watch.hard) note(now, text, hard);
    if (notice !== watch.notice) watch.noticedAt = now;
    watch.notice = notice;
    watch.region = region;
    watch.nodes = nodes;
    watch.unread = unread.filter((one) => !EMPTY.test(one) && !THINKING.test(one)).join(" ");
    watch.aside = aside;
    watch.parts = parts;
    watch.unsure = unsure;
    watch.soft = soft;
    watch.resumed = Boolean(resumed);
    watch.error ??= errorShown(region);
  };

  const note = (now, text, hard) => {
    if (hard && !watch.hard) watch.sawHard = true;
    if (!hard && watch.hard) watch.idleAt = now;
    if (text !== watch.text) {
      watch.changedAt = now;
      if (text && !watch.doubt && watch.firstAt === null) watch.firstAt = now;
    }
    watch.text = text;
    watch.hard = hard;
    watch.samples.push({ at_ms: now - watch.sentAt, characters: [...text].length, busy: hard });
    if (watch.samples.length > SAMPLES) watch.samples = watch.samples.filter((_, index) => index % 2 === 0 || index > SAMPLES - 20);
  };

  const boxHolds = () => {
    const box = look.box;
    return Boolean(box?.isConnected) && enabled(box)
      && look.bare(box.value ?? box.textContent) === look.bare(watch.spec.question);
  };

  // Whether the box is empty, but nothing else shows that the page accepted the question. A page may wait until its
  // channels are open. Received data proves nothing, because a channel may have a heartbeat.
  const isLost = (now, limits) => limits.lost_ms > 0 && now - Math.max(watch.sentAt, watch.connectedAt) >= limits.lost_ms
    && !watch.soft && !watch.sawHard && !watch.fresh?.echoes.length && !boxHolds();

  // Used only at the deadline: whether the page forgot to show that it is done. The page still has its "stop" button, but
  // nothing has changed for a long time (no letter, no push, no animation), and the text ends like a sentence.
  const forgotten = (now, limits) => {
    const still = now - Math.max(watch.changedAt, watch.idleAt, look.lastPush);
    return watch.hard && !watch.broken && still >= STUCK_PATIENCE * limits.patience_ms && ENDS.test(watch.text) && !softBusy();
  };

  // Whether a control showed that the answer is done, and only the last words came after that. Some pages show the end
  // when they have received the answer, and continue to type the answer for a while.
  const keptItsWord = () => watch.sawHard && watch.changedAt - watch.idleAt < LAST_WORDS_MS;

  // Whether this control may have shown only that the answer began.
  const endedEarly = () => !watch.spec.busy && watch.firstAt !== null && watch.idleAt - watch.firstAt < EARLY_MS;

  // The result to report now, or null to continue.
  const decide = (limits) => {
    const now = performance.now();
    const calm = now - Math.max(watch.changedAt, watch.idleAt);
    if (watch.error && calm >= limits.firm_quiet_ms) return "error";
    if (watch.broken && now - watch.broken >= AFTER_BREAK_MS && calm >= AFTER_BREAK_MS) return "broken";
    if (now - watch.sentAt >= limits.deadline_ms) return forgotten(now, limits) ? "finished" : "deadline";
    if (watch.cut && watch.changedAt <= watch.broken) return null; // after a broken connection, an unlocked box does not mean a complete answer
    if (watch.hard) return null;
    if (!watch.text && watch.notice && now - watch.noticedAt >= AFTER_BREAK_MS) return noticed(watch.notice);
    if (watch.doubt) return calm >= DOUBT_PATIENCE * limits.patience_ms ? "finished" : null;
    if (!watch.text) {
      if (watch.sawHard && !watch.soft && calm >= limits.patience_ms) return "nothing";
      if (isLost(now, limits)) return "lost";
      return limits.unsent_ms && now - watch.sentAt >= limits.unsent_ms && boxHolds() ? "unsent" : null;
    }
    if (watch.soft) return calm >= limits.patience_ms ? ended() : null;
    // A page renders the data of a socket with a delay. A control may show "done" before the last words are rendered.
    const firm = keptItsWord() && look.lastPush <= watch.sentAt;
    if (now - watch.watchedAt < limits.settle_ms) return null;
    if (calm >= (firm ? limits.firm_quiet_ms : limits.quiet_ms)) return ended();
    const over = watch.endedAt + RENDER_MS >= watch.changedAt && !look.isLive(watch.sentAt);
    return over && Math.min(calm, now - watch.endedAt) >= limits.ended_quiet_ms ? ended() : null;
  };

  const noticed = (said) => {
    watch.error = said;
    return "error";
  };

  // If the text only says that the app has no answer, it is an error of the app.
  const ended = () => (look.isNotice(look.plain(watch.text)) ? noticed(look.plain(watch.text)) : "finished");

  // Why the text may not be an answer: it repeats the question ("echo"), or was on the page before the question ("stood").
  const doubtOf = () => {
    const said = look.bare(watch.text);
    return watch.question.repeatedBy(said) ? "echo" : watch.doubt;
  };

  const report = (state) => ({
    state,
    text: watch.text,
    firm: keptItsWord() && !watch.hard,
    early: endedEarly(),
    certain: Boolean(watch.spec.busy),
    busy: watch.hard,
    pushed: look.lastPush > watch.sentAt,
    live: look.isLive(watch.sentAt),
    resumed: watch.resumed,
    calm_ms: performance.now() - Math.max(watch.changedAt, watch.idleAt),
    error: watch.error,
    held: boxHolds(),
    echoed: Boolean(watch.fresh?.ownEchoes),
    doubt: doubtOf(),
    unread: watch.unread.slice(0, 300),
    aside: watch.aside.filter(Boolean).slice(0, ASIDE_AT_MOST).map((one) => one.slice(0, 200)),
    parts: watch.parts.slice(0, PARTS_AT_MOST).map(({ kind, text }) => ({ kind, text: text.slice(0, PART_CHARACTERS) })),
    unsure: watch.unsure.slice(0, ASIDE_AT_MOST).map((one) => one.slice(0, 200)),
    elapsed_ms: performance.now() - watch.sentAt,
    first_token_ms: watch.firstAt === null ? null : Math.max(0, watch.firstAt - watch.sentAt),
    total_ms: Math.max(0, (watch.firstAt === null ? performance.now() : watch.changedAt) - watch.sentAt),
    samples: watch.samples.map((sample) => ({ ...sample, at_ms: Math.max(0, sample.at_ms) })),
  });

  const observeAll = () => {
    for (const root of look.roots()) {
      if (watch.observed.has(root)) continue;
      watch.observed.add(root);
      watch.observer.observe(root, {
        childList: true, characterData: true, subtree: true, attributes: true, attributeFilter: MARKS,
      });
    }
  };

  const onMutations = (records) => {
    for (const record of records) {
      if (record.type !== "attributes") {
        const element = record.type === "characterData" ? record.target.parentElement : record.target;
        if (element instanceof Element) watch.fresh?.noteChange(element);
      }
    }
    if (!watch.sawHard && watch.before.enabled && look.box?.isConnected && !enabled(look.box)) note(performance.now(), watch.text, true);
    watch.wake?.(THROTTLE_MS);
  };

  // Stores the state of the page before the question. After a navigation, `earlier` is the state of the previous page.
  look.arm = (spec, earlier = null) => {
    look.disarm();
    look.closeTurn();
    const now = performance.now();
    const again = earlier !== null;
    look.askedAt = now;
    look.firstAskedAt ??= now;
    watch = {
      spec, sentAt: now, changedAt: now, idleAt: now, firstAt: null, text: "", hard: false, sawHard: false,
      soft: false, error: null, broken: 0, cut: false, endedAt: -Infinity, watchedAt: now, connectedAt: now, resumed: false, region: null, nodes: [], unread: "", notice: null, noticedAt: 0, doubt: null,
      question: new look.Question(spec.question), aside: [], unsure: [], parts: [], samples: [], observed: new Set(), wake: null,
      fresh: spec.answer ? null : new look.Fresh(spec.question, earlier, spec.greetings, spec.usual),
    };
    watch.before = {
      enabled: enabled(look.box),
      busy: new Set(again ? [] : seen("[aria-busy=true], [role=progressbar], progress")),
      stops: look.stops().length,
      spinning: new Set(again ? [] : spinning()),
      alarms: new Map(again ? [] : alarms(spec.error ?? ALARM)),
      answers: spec.answer && !again ? named(spec.answer).map(([, text]) => text) : [],
    };
    watch.observer = new MutationObserver(onMutations);
    observeAll();
    for (const kind of ["keydown", "click", "submit"]) addEventListener(kind, stamp, true);
    return watch.fresh?.before ?? [];
  };

  const stamp = (event) => {
    if (!watch || watch.firstAt !== null) return;
    if (event.type === "keydown" && event.key !== "Enter") return;
    look.askedAt = watch.sentAt = watch.changedAt = watch.idleAt = performance.now();
    if (watch.fresh) watch.fresh.askedAt = watch.sentAt;
  };

  look.disarm = () => {
    watch?.observer.disconnect();
    for (const kind of ["keydown", "click", "submit"]) removeEventListener(kind, stamp, true);
    watch = null;
  };

  // Adds greeting lines that became known only now. Returns whether the answer changes without these lines.
  look.greet = (lines) => {
    if (!watch?.fresh) return false;
    const before = watch.text;
    watch.fresh.expect(lines);
    inspect();
    return watch.text !== before;
  };

  // The age of the document in ms, by the document's own clock.
  look.age = () => performance.now();

  // All text of the page, line by line.
  look.says = () => look.lines().map((group) => group.text);

  // The addresses from which the page fetched data more than once before the first question. Polls of other addresses
  // may have brought the answer.
  look.polledBefore = () => {
    const places = performance.getEntriesByType("resource").filter((one) => /fetch|xmlhttprequest/.test(one.initiatorType) && one.startTime < look.firstAskedAt)
      .map((one) => one.name.split("?")[0]);
    return places.filter((place, at) => places.indexOf(place) < at);
  };

  // Called when the last open request has ended.
  look.rested = () => {
    if (watch) watch.endedAt = performance.now();
    watch?.wake?.(0);
  };

  // Called when a request broke. `cut`: the response had begun. `url`: the address of a socket. The page may notice the
  // end of a socket later.
  look.broke = async (cut = false, url = null) => {
    if (url) await new Promise((resolve) => { setTimeout(resolve, CLOSED_MS); });
    if (url && watch && look.endedAsAgreed(url, watch.sentAt)) return;
    if (watch) watch.broken ||= performance.now();
    if (watch) watch.cut ||= cut;
    watch?.wake?.(0);
  };

  // Returns null without a watch, because the page was replaced with another page meanwhile.
  look.settled = (limits) => !watch ? null : new Promise((resolve, reject) => {
    // The page may be incomplete, or its scripts may interfere. One failed check does not end the watch.
    const lookAgain = () => {
      try {
        observeAll();
        inspect();
        return decide(limits);
      } catch (error) {
        if (performance.now() - watch.sentAt >= limits.deadline_ms) reject(error);
        return null;
      }
    };
    watch.watchedAt = performance.now();
    let timer = 0;
    let due = Infinity;
    let last = 0;
    const step = () => {
      timer = 0;
      due = Infinity;
      last = performance.now();
      const state = lookAgain();
      if (!state) return wake(watch.text && !watch.hard ? Math.min(250, limits.firm_quiet_ms) : IDLE_MS);
      watch.wake = null;
      if (state === "finished" && watch.fresh) look.learn(watch.fresh, watch.nodes);
      resolve(report(state));
    };
    const wake = (delay) => {
      const now = performance.now();
      const at = Math.max(now + delay, last + THROTTLE_MS);
      const soon = delay === THROTTLE_MS && now - last >= THROTTLE_MS ? now : at;
      if (timer && due <= soon) return;
      clearTimeout(timer);
      due = soon;
      timer = setTimeout(step, soon - now);
    };
    watch.wake = wake;
    step();
  });

  // The element of the newest answer.
  look.region = () => watch?.region ?? null;

  // Scrolls the answer into view.
  look.show = () => watch?.region?.scrollIntoView?.({ block: "end" });
})();

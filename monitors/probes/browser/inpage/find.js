// Find the message box and the control that sends, by role, name, shape and place.
(() => {
  const look = globalThis.__lookout;
  if (look.find) return;

  const BOX = "textarea, input:not([type]), input[type=text], input[type=search], [role=textbox], "
    + "[contenteditable=''], [contenteditable=true], [contenteditable=plaintext-only]";
  const ASKING = /message|\bask\b|ask |chat|type |type…|question|prompt|say |reply|write|talk|how can|help you|संदेश|पूछ|सवाल|लिख|nachricht|frage|pregunta|mensaje|mensagem|question|écri|メッセージ|消息|输入|질문|메시지/i;
  const OTHER = /search|filter|e-?mail|user ?name|password|\bphone|\burl\b|address|coupon|subscribe|zip|first name|last name|api.?key|token|system prompt|temperature|\bname\b|model name|select a model|comment|review|feedback|subject|title/i;
  const QUESTION = /\bask\b|question|message|chat|पूछ|सवाल|संदेश|frage|nachricht|pregunta|mensaje|question|pergunta|mensagem|質問|问|질문/i;
  const TOOL = /summar|translat|paraphras|re-?write|proof-?read|grammar|spell.?check|\bconvert|classif|detect|extract|keywords|analy[sz]e|सारांश|अनुवाद|zusammenfass|übersetz|resumir|resumen|traduc|résum|tradui|resumo|要約|翻訳|摘要|翻译|요약|번역/i;
  const SEND = /\bsend\b|submit|\bask\b|\bgo\b|\benter\b|reply|post|भेज|senden|enviar|envoyer|送信|发送|전송|^[➤➢➔→↑⬆➡▶⏎✈⌲📤🚀]\ufe0f?$|arrow.?up|paper.?plane/iu;
  const NOT_SEND = /attach|upload|file|image|voice|\bmic|record|audio|clear|delete|new chat|settings|stop|cancel|copy|share|log ?in|sign|\bbuy|\bpay|purchase|checkout|order|subscribe|donate|accept|cookie|खरीद/i;
  const STOP = /\b(stop|abort|interrupt|halt)\b|cancel (generation|response|reply)|रोक/i;
  const CANCEL = /^\W*(cancel|रद्द करें)\W*$/i;
  const BESIDE = 2; // elements around the box
  const WALL = /(sign|log) ?in|log ?on|authenticate|continue with (google|github|microsoft|sso|email)|लॉग ?इन/i;
  const QUOTA = /quota|rate.?limit|too many requests|out of credits|usage limit|limit reached|daily limit/i;

  const editable = (element) => !element.disabled && !element.readOnly
    && element.getAttribute("aria-disabled") !== "true";

  const inside = (element, selector) => {
    for (let at = element; at; at = look.up(at)) if (at.matches(selector)) return true;
    return false;
  };

  const BUTTONS = "button, [role=button], input[type=submit], input[type=image], a[class*=send]";
  const buttons = (roots) => look.all(BUTTONS, roots).filter((button) => look.visible(button));

  const describe = (button) => look.plain(`${look.named(button)} ${button.className?.baseVal ?? button.className} `
    + `${button.id} ${button.dataset.testid ?? ""} ${button.type === "submit" && (button.form || button.hasAttribute("type")) ? "submit" : ""} `
    + `${button.querySelector?.("svg title, svg [data-icon], i")?.className ?? ""}`).replace(/[-_]/g, " ");

  // A score for how much an element looks like the box of a chat. A box with a score of at least 5 is used at once.
  const boxScore = (element) => {
    const name = look.named(element);
    const place = element.getBoundingClientRect();
    let score = 0;
    if (element.matches("textarea")) score += 3;
    if (element.isContentEditable) score += 2;
    if (ASKING.test(name)) score += 4;
    if (OTHER.test(name)) score -= 7;
    if (element.type === "search" || inside(element, "[role=search], nav, header")) score -= 5;
    if (inside(element, "[role=dialog], dialog, [role=complementary], aside")) score -= 2;
    if (place.width >= 240) score += 1;
    if (place.top > innerHeight / 2) score += 1;
    if (!editable(element)) score -= 2;
    if (isField(element)) score -= 20; // a person would receive the text
    const send = nearbySend(element);
    if (send) score += 2;
    if (isTool(element, send)) score -= 6;
    return score;
  };

  // Whether a box is for text that the page processes, and not for a chat, by its own name or the name of its button.
  const isTool = (element, send = nearbySend(element)) => {
    const names = `${look.named(element)} ${send ? look.named(send) : ""}`;
    return TOOL.test(names) && !QUESTION.test(look.named(element));
  };

  // Whether a box is one of several fields (name, e-mail, message) of a contact form, not a chat.
  const FIELDS = "input:not([type]), input[type=text], input[type=email], input[type=tel], input[type=number], input[type=date], textarea";
  const isField = (element) => {
    const form = element.closest("form, fieldset, [role=form]");
    return Boolean(form) && [...form.querySelectorAll(FIELDS)].some((other) => other !== element && look.visible(other) && editable(other));
  };

  // The control that sends: the control close to the box with the best name, or the nearest control after the box.
  const nearbySend = (box) => {
    let scope = look.up(box);
    for (let level = 0; scope && level < 6; level += 1, scope = look.up(scope)) {
      const root = scope.shadowRoot ? [scope.shadowRoot] : [scope];
      const near = buttons(root).filter((button) => !look.holds(button, box) && !NOT_SEND.test(look.named(button)));
      const named = near.filter((button) => SEND.test(look.named(button)) || SEND.test(describe(button)));
      if (named.length) return named.at(-1);
      if (near.length === 1 && level < 4 && [...look.plain(near[0].textContent)].length <= 1) return near[0];
      if (scope !== document.body && getComputedStyle(scope).position === "fixed") return null; // an overlay is searched as a whole
    }
    return null;
  };

  // Elements that only look like buttons: small, close to the box, with a pointer cursor.
  const clickableNear = (box) => {
    let scope = look.up(box);
    for (let level = 0; scope && level < 3 && scope !== document.body; level += 1, scope = look.up(scope)) {
      const near = [...(scope.shadowRoot ?? scope).querySelectorAll("div, span, a, svg, img, label")]
        .filter((one) => getComputedStyle(one).cursor === "pointer" && look.visible(one) && !look.holds(one, box)
          && look.plain(one.textContent).length < 20 && !NOT_SEND.test(`${look.named(one)} ${describe(one)}`));
      const outer = near.filter((one) => !near.some((other) => other !== one && other.contains(one)));
      if (outer.length) return outer.find((one) => SEND.test(describe(one)) || SEND.test(look.named(one))) ?? outer.at(-1);
    }
    return null;
  };

  // The control that sends, after text was typed.
  look.sendNow = (given) => {
    look.send = given ? look.all(given).find(look.visible) ?? null : nearbySend(look.box) ?? clickableNear(look.box);
    return look.send;
  };
  // "Cancel" may cancel anything, but beside the box it cancels the answer.
  const cancelsAnswer = (button) => {
    if (!CANCEL.test(look.named(button))) return false;
    let at = look.box;
    for (let level = 0; at && level < BESIDE; level += 1) at = look.up(at);
    return Boolean(at) && look.holds(at, button);
  };

  // Names are checked first, because a visibility check costs a layout.
  look.stops = (roots) => look.all(BUTTONS, roots)
    .filter((button) => STOP.test(look.named(button)) || STOP.test(describe(button)) || cancelsAnswer(button))
    .filter((button) => look.visible(button));

  const candidates = (given, roots) => {
    if (given) return look.all(given, roots).filter((element) => look.visible(element)).map((element) => [100, element]);
    return look.all(BOX, roots)
      .filter((element) => look.visible(element))
      .filter((element) => !(element.parentElement?.isContentEditable))
      .map((element) => [boxScore(element), element])
      .sort((a, b) => b[0] - a[0]);
  };

  // The element in front of the box: a consent or welcome dialog, an overlay.
  const coverOf = (box) => {
    const modal = look.all("dialog:modal").find((dialog) => !look.holds(dialog, box));
    if (modal) return modal; // nothing below it can be clicked
    const place = box.getBoundingClientRect();
    const at = [place.left + place.width / 2, place.top + place.height / 2];
    if (at[1] < 0 || at[1] > innerHeight) return null;
    let top = document.elementFromPoint(...at);
    while (top?.shadowRoot) {
      const deeper = top.shadowRoot.elementFromPoint(...at);
      if (!deeper || deeper === top) break;
      top = deeper;
    }
    return top && !look.holds(box, top) && !look.holds(top, box) && !inside(top, "label") ? top : null;
  };
  look.covered = (box = look.box) => Boolean(box && coverOf(box));

  // For how many ms the page has not changed: nothing was rendered or fetched, and nothing shows "loading". The time is
  // counted by checks. Otherwise, a page without time to render (on a busy machine) would seem to be settled.
  const LOADING = /^\W*((re)?(loading|connecting|initiali[sz]ing)\b.{0,40}|starting( up)?( the)?( app(lication)?| server| chat)?|(sign|logg)ing (you )?in\b.{0,40}|authenticating\b.{0,40}|(waking|warming|spinning|booting) up\b.{0,40}|(setting up|preparing|restoring|redirecting|verifying|checking)\b.{0,40}(…|\.{3})|please wait.{0,40}|(just )?(one|a) moment.{0,20}|.{0,30}\b(is|are) (loading|starting|connecting).{0,20}|.{0,20}लोड.{0,20})\W*$/imu;
  const DRAWN = "button, [role=button], a, input, textarea, select, canvas, img, svg, video, object, iframe";
  const PICTURE_WIDTH = 120; // a smaller picture on an empty page is a spinner
  const LOOK_MS = 200;
  let stillMs = 0;
  let lookedAt = 0;
  let fetched = -1;
  const lookStill = () => {
    const now = performance.now();
    const resources = performance.getEntriesByType("resource").length;
    if (document.readyState !== "complete" || resources !== fetched) stillMs = 0;
    else stillMs += Math.min(LOOK_MS, now - lookedAt);
    fetched = resources;
    lookedAt = now;
  };
  const blank = () => !look.all(DRAWN).some((element) => look.visible(element)
    && (element.matches("button, [role=button], a, input, textarea, select") || element.getBoundingClientRect().width >= PICTURE_WIDTH));
  const SPINNER = "[class*=spinner], [class*=Spinner], [class*=loader], [class*=skeleton]";
  const runsOn = (one) => one.playState === "running" && one.effect?.getComputedTiming?.().iterations === Infinity;
  const spins = () => look.all("[role=progressbar], progress:not([value]), [aria-busy=true]").some(look.visible)
    || look.all(SPINNER).some((element) => look.visible(element) && element.getAnimations({ subtree: true }).some(runsOn));
  const unfinished = () => {
    const text = look.textOf(document.body).slice(0, 2000);
    return text ? LOADING.test(text) || spins() : blank();
  };
  look.stillFor = () => (unfinished() ? 0 : stillMs);

  // The profile with a mark that this page has; null for an unknown page.
  look.profileOf = (marks) => marks.find(([, selector]) => look.all(selector).length)?.[0] ?? null;

  look.find = (given = {}) => {
    const roots = look.roots();
    const ranked = candidates(given.message_box, roots);
    const [score, box] = ranked.find(([points]) => points > 0) ?? [0, null];
    look.box = box;
    look.send = box ? (given.send ? look.all(given.send, roots).find(look.visible) : nearbySend(box) ?? clickableNear(box)) ?? null : null;
    return {
      score,
      enabled: Boolean(box && editable(box)),
      box: box ? `${box.localName} "${look.named(box)}"` : null,
      send: look.send ? `${look.send.localName} "${look.plain(look.named(look.send))}"` : null,
      covered: Boolean(box && coverOf(box)),
      asks: Boolean(box && !given.message_box && ASKING.test(look.named(box)) && !isTool(box)),
      pinned: Boolean(given.message_box),
      equals: Math.max(0, ranked.filter(([points]) => points === score).length - 1),
      others: ranked.slice(0, 5).map(([points, element]) => `${element.localName} "${look.named(element)}" (${points})`),
      title: document.title,
    };
  };

  // Whether a password field is for signing in. A field for a service key is not, nor is a field beside a message box.
  const KEY = /(api|access|secret|licen[cs]e|open ?ai|anthropic|provider)\W{0,3}(key|token|secret)|\b(key|token)\b|schlüssel|clave/i;
  const signsIn = (field) => {
    if (KEY.test(`${look.named(field)} ${field.id} ${field.autocomplete === "off" ? field.name : ""}`)) return false;
    const { box } = look;
    const takesMessages = Boolean(box) && (box.matches("textarea") || box.isContentEditable || ASKING.test(look.named(box)));
    return !takesMessages || (Boolean(field.form) && field.form === box.form);
  };

  // The other text of the page. It costs a layout and is needed only if the page has no chat.
  look.walls = () => {
    const roots = look.roots();
    const text = look.plain(document.body?.innerText).slice(0, 4000);
    const passwords = look.all("input[type=password]", roots).filter((field) => look.visible(field) && signsIn(field)).length;
    const doors = buttons(roots).concat(look.all("a", roots).filter(look.visible)).map((door) => look.named(door));
    return {
      login: passwords > 0 || doors.some((name) => WALL.test(name) && name.length < 40),
      passwords,
      quota: QUOTA.test(text) && text.length < 1500,
      loading: document.readyState !== "complete" || unfinished(),
      text: text.slice(0, 300),
    };
  };

  // Resolves as soon as there is a box with a high score, or with the best box when the time is over.
  look.waitForBox = (given, budget_ms, enough = 5) => new Promise((resolve) => {
    const started = performance.now();
    let timer = 0;
    const finish = (found) => {
      observer.disconnect();
      clearTimeout(timer);
      resolve(found);
    };
    const check = () => {
      timer = 0;
      lookStill();
      const found = look.find(given);
      if ((found.score >= enough && found.enabled) || performance.now() - started >= budget_ms) finish(found);
      else wake(150);
    };
    const wake = (delay) => {
      if (!timer) timer = setTimeout(check, delay);
    };
    const observer = new MutationObserver(() => {
      stillMs = 0;
      wake(60);
    });
    observer.observe(document, { childList: true, subtree: true, attributes: true, attributeFilter: ["disabled"] });
    check();
  });

  // Some libraries repeat the same request before they open their socket.
  const polls = () => {
    const asked = performance.getEntriesByType("resource").filter((one) => /fetch|xmlhttprequest/.test(one.initiatorType));
    const places = asked.map((one) => one.name.split("?")[0]);
    return new Set(places).size < places.length;
  };

  // Resolves when a page with an open channel has shown no new text for a while. Otherwise, a greeting for new visitors
  // could arrive after the question and look like its answer. A running clock or counter, and a repeated line, are not
  // new text.
  look.greeted = (quiet_ms, budget_ms) => (!look.listens() && !polls() ? null : new Promise((resolve) => {
    let timer = 0;
    const said = new Set([""]);
    const isNews = (node) => {
      const shape = look.plain(node.nodeType === Node.TEXT_NODE ? node.data : node.textContent).replace(/\d+/g, "#");
      const news = !said.has(shape);
      said.add(shape);
      return news;
    };
    const finish = () => {
      observer.disconnect();
      resolve(null);
    };
    const wait = () => {
      clearTimeout(timer);
      timer = setTimeout(finish, quiet_ms);
    };
    const observer = new MutationObserver((records) => {
      const changed = records.flatMap((record) => (record.type === "characterData" ? [record.target] : [...record.addedNodes]));
      if (changed.filter(isNews).length) wait();
    });
    for (const root of look.roots()) observer.observe(root, { childList: true, characterData: true, subtree: true });
    for (const node of look.everyText()) isNews(node);
    setTimeout(finish, budget_ms);
    wait();
  }));

  const AGREE = [
    /^(reject|decline|only necessary|necessary only|refuse|(सभी )?अस्वीकार|(alle )?ablehnen|nur notwendige|rechazar|(tout )?refuser|rifiuta|recusar|rejeitar|全部拒绝|拒绝|すべて拒否|拒否|거부)/iu,
    /^(accept|agree|i agree|i accept|i understand|understood|allow|consent|ok|okay|got it|continue|start|begin|let'?s (go|start|chat)|proceed|enter|next|done|skip|dismiss|close|no thanks|maybe later|(सभी |सब )?(स्वीकार|मंज़ूर|मंजूर|अनुमति)|ठीक|सहमत|मैं सहमत|समझ गया|जारी रखें|आगे बढ़ें|(alle )?(akzeptieren|zustimmen|annehmen)|einverstanden|verstanden|weiter|aceptar|acepto|entendido|continuar|(tout )?accepter|j'accepte|d'accord|compris|continuer|accett|continua|aceitar|concordo|同意|接受|全部接受|继续|知道了|同意する|すべて許可|続ける|동의|모두 허용|계속|확인|موافق|قبول)/iu,
    /^[×✕✖x]$/i,
    /close|dismiss|accept|agree|continue|start/i,
  ];

  // The button that closes a dialog. A button that signs in, deletes or buys is never returned.
  look.wayThrough = (box = look.box, closing = true) => {
    const roots = look.roots();
    const dialogs = look.all("[role=dialog], [role=alertdialog], dialog[open], [aria-modal=true]", roots)
      .filter((dialog) => look.visible(dialog) && !(box && look.holds(dialog, box)));
    const cover = box ? coverOf(box) : null;
    if (cover) dialogs.push(overlayOf(cover, box));
    const usable = dialogs.flatMap((dialog) => buttons(look.roots(dialog)))
      .filter((button) => editable(button) && !WALL.test(look.named(button)) && !/delete|buy|pay|subscribe|upgrade/i.test(look.named(button)))
      .filter((button) => closing || !/dismiss|close|done|skip/i.test(look.named(button)));
    for (const pattern of closing ? AGREE : AGREE.slice(0, 2)) {
      const button = usable.find((one) => pattern.test(look.plain(one.textContent)) || pattern.test(look.plain(one.getAttribute("aria-label"))));
      if (button) return button;
    }
    return usable.length === 1 ? usable[0] : null;
  };

  const overlayOf = (element, box) => {
    let outer = element;
    for (let at = element; at && at !== document.body && !look.holds(at, box); at = look.up(at)) {
      if (/fixed|absolute/.test(getComputedStyle(at).position)) outer = at;
    }
    return outer;
  };

  // Scrolls the text of a dialog to its end, because some terms must be read before they can be accepted.
  look.readDialogs = () => {
    for (const dialog of look.all("[role=dialog], dialog[open], [aria-modal=true]").filter(look.visible)) {
      for (const part of [dialog, ...dialog.querySelectorAll("*")]) {
        if (part.scrollHeight > part.clientHeight + 8) part.scrollTop = part.scrollHeight;
      }
    }
  };

  look.consentBoxes = () => look.all("[role=dialog] input[type=checkbox], dialog[open] input[type=checkbox], [aria-modal=true] input[type=checkbox]")
    .filter((tick) => look.visible(tick) && !tick.checked);

  // The button that starts a new conversation.
  look.startsAnew = () => {
    const wanted = /new (chat|conversation|thread)|clear( chat| conversation|$)|start over|reset|नई बातचीत/i;
    return buttons(look.roots()).concat(look.all("a", look.roots()).filter(look.visible))
      .find((button) => wanted.test(look.named(button)) && !WALL.test(look.named(button))) ?? null;
  };
})();

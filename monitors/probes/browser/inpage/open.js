// Find the controls that may open a chat that is not on the page yet, by place, role and name. If a message box appears
// after the press, the control was the right one.
(() => {
  const look = globalThis.__lookout;
  if (look.openers) return;

  const PRESSED = "button, [role=button], [role=tab], [role=link], a, summary, input[type=button], [onclick]";
  const DRAWN = "div, span, img, svg, li, p, label, section";
  const CHAT = /chat|assist|\bask\b|message us|\btalk|\bbot\b|advis|\bhelp|support|conversation|concierge|co-?pilot|बात|चैट|सहाय|पूछ|मदद|hilfe|frage|beratung|ayuda|asist|pregunt|hablar|\baide|discut|parler|conversa|ajuda|聊天|客服|咨询|对话|チャット|相談|質問|채팅|상담|دردشة|مساعد|💬/iu;
  const FRESH = /new (chat|conversation|thread|session|question)|\bstart|\bbegin|let'?s go|continue|नई बातचीत|शुरू|neue? (chat|unterhaltung)|nueva|nouvelle|commencer|empezar|开始|新对话|新しい|시작/iu;
  // Controls that are never pressed: they send, buy, delete, sign in, call a person or leave the site.
  const NEVER = /\b(buy|pay|payment|order|checkout|cart|purchase|subscribe|upgrade|donate|delete|remove|erase|clear|reset|discard|cancel|unsubscribe|sign|log ?(in|out|on|off)|register|submit|send|apply|book|confirm|download|install|export|print|share|tweet|follow|call|e-?mail|whats ?app|telegram|facebook|linkedin|instagram|quote|renew|accept|agree|allow|reject|decline|save|upload|record|mic|voice|theme|mode|language|settings|cookies?|privacy|terms|scroll|top|accessibility)\b|खरीद|भुगतान|हटा|मिटा|लॉग|साइन|रद्द|जमा|भेज|kauf|bezahl|lösch|abmeld|anmeld|comprar|pagar|eliminar|borrar|enviar|acheter|payer|supprimer|envoyer|购买|支付|删除|发送|購入|削除|送信|구매|삭제/iu;
  const NEVER_CLASS = /scroll|to-?top|back-?top|accessib|cookie|consent|whatsapp/i;
  const TINY_FRAME = 240; // pixels; a frame of this size contains only a chat button
  const TOPIC_LENGTH = 60;
  const AT_MOST = 12;

  const fixedAround = (element) => {
    for (let at = element; at && at !== document.body; at = look.up(at)) if (/fixed|sticky/.test(getComputedStyle(at).position)) return at;
    return null;
  };

  const inCorner = (box) => {
    const [x, y] = [(box.left + box.width / 2) / innerWidth, (box.top + box.height / 2) / innerHeight];
    return y > 0.6 && y < 1 && (x < 0.25 || x > 0.75);
  };

  const leaves = (element) => {
    const link = element.closest("a[href]");
    if (!link) return false;
    const goes = link.getAttribute("href");
    if (/^(#|javascript:|$)/i.test(goes)) return false;
    const target = new URL(goes, location.href);
    return link.target === "_blank" || link.hasAttribute("download") || target.origin !== location.origin || !CHAT.test(look.named(link));
  };

  // Whether a button would submit a form.
  const sends = (element) => {
    const form = element.closest("form");
    return Boolean(form) && element.type === "submit" && [...form.elements].some((field) => field.matches("input:not([type=hidden]), textarea, select"));
  };

  const wordsOf = (element) => {
    const picture = element.querySelector("title, img[alt]");
    return look.plain(`${look.named(element)} ${picture?.textContent || picture?.getAttribute("alt") || ""}`).slice(0, 120);
  };

  const isTopic = (element, all) => {
    const says = look.plain(element.textContent);
    if (!says || says.length > TOPIC_LENGTH || element.closest("nav, header, footer, [role=navigation]")) return false;
    return all.some((other) => other !== element && other.localName === element.localName && other.className === element.className
      && (other.parentElement === element.parentElement || other.parentElement?.parentElement === element.parentElement?.parentElement));
  };

  const scoreOf = (element, all) => {
    const words = wordsOf(element);
    const marks = `${element.className?.baseVal ?? element.className} ${element.id}`;
    if (NEVER.test(words) || NEVER_CLASS.test(marks) || leaves(element) || sends(element)) return 0;
    if (element.disabled || element.getAttribute("aria-disabled") === "true") return 0;
    const box = element.getBoundingClientRect();
    if (box.width > innerWidth * 0.9 && box.height > innerHeight * 0.5 && window === top) return 0;
    const named = CHAT.test(words) || (!/\p{L}/u.test(words) && CHAT.test(marks.replace(/[-_]/g, " ")));
    const fixed = Boolean(fixedAround(element));
    const tiny = window !== top && innerWidth <= TINY_FRAME && innerHeight <= TINY_FRAME;
    let score = named ? 4 : 0;
    if (FRESH.test(words)) score += 3;
    if (fixed) score += 2;
    if (fixed && inCorner(box)) score += 3;
    if (fixed && Math.max(box.width, box.height) <= 140 && Math.min(box.width, box.height) >= 20) score += 1;
    if (tiny) score += 6;
    if (element.matches("[role=tab]") && element.getAttribute("aria-selected") !== "true") score += named ? 3 : 2;
    if (element.matches("[aria-expanded=false], [aria-haspopup=dialog]")) score += 1;
    if (!named && !fixed && element.closest("nav, header, footer")) score -= 3;
    if (isTopic(element, all)) score += 2;
    if (element.closest("a[href]:not([href^='#'])")) score -= 1;
    if (words.length > 80) score -= 3;
    return score;
  };

  // Elements that can be pressed: controls, and elements with a pointer cursor that contain no control.
  const pressable = () => {
    const roots = look.roots();
    const points = (element) => Boolean(element) && getComputedStyle(element).cursor === "pointer";
    const drawn = [...look.all(DRAWN, roots), ...look.all("*", roots).filter((element) => element.localName.includes("-"))]
      .filter((one) => !one.matches(PRESSED) && points(one) && !points(look.up(one)) && !one.querySelector(PRESSED) && !one.shadowRoot);
    return [...look.all(PRESSED, roots), ...drawn].filter(reachable);
  };

  // Whether a person can press an element. Tabs and menus often have a second, invisible copy.
  const reachable = (element) => {
    if (!look.visible(element) || !element.checkVisibility({ opacityProperty: true })) return false;
    const box = element.getBoundingClientRect();
    return box.right + scrollX > 0 && box.bottom + scrollY > 0 && getComputedStyle(element).pointerEvents !== "none";
  };

  const seen = new WeakMap();
  let count = 0;
  const numberOf = (element) => {
    if (!seen.has(element)) seen.set(element, count += 1);
    return seen.get(element);
  };

  // The controls, the likeliest first. `key` is the same on every page of the app. `selector` needs describe.js.
  const offered = new Map();
  look.openers = (least) => {
    const all = pressable();
    const ranked = all.map((element) => [scoreOf(element, all), element]).filter(([score]) => score >= least)
      .sort((a, b) => b[0] - a[0]).slice(0, AT_MOST);
    for (const [, element] of ranked) offered.set(numberOf(element), element);
    return ranked.map(([score, element]) => {
      const words = wordsOf(element);
      const place = element.getBoundingClientRect();
      return {
        number: numberOf(element),
        score,
        key: `${element.localName} ${words.replace(/\d+/g, "#")} ${words ? "" : [place.width, place.height].map(Math.round).join("×")}`,
        label: words || `${element.localName} without a name, at ${Math.round(place.left)}, ${Math.round(place.top)}`,
        selector: look.describe?.(element).selector ?? null,
      };
    });
  };
  look.offered = (number) => offered.get(number) ?? null;
  look.pinnedOpener = (selector) => look.all(selector).find(reachable) ?? null;
  look.comes = (selector, budget_ms) => new Promise((resolve) => {
    const started = performance.now();
    const check = () => {
      const there = Boolean(look.pinnedOpener(selector));
      if (there || performance.now() - started >= budget_ms) resolve(there);
      else setTimeout(check, 50);
    };
    check();
  });

  // The state of the page, to see whether a press had an effect. Counters and animations are ignored.
  look.describePage = () => {
    const controls = look.all("button, [role=button], a, input, textarea, iframe, dialog, [role=dialog]").filter(look.visible).length;
    return `${location.href} ${controls} ${look.plain(document.body?.innerText).replace(/\d+/g, "#").length >> 4}`;
  };

  // While a control is pressed, no form is submitted and no window is opened.
  let held = 0;
  const refuse = (event) => {
    event.preventDefault();
    event.stopImmediatePropagation();
  };
  const open = globalThis.open;
  look.holdForms = (hold) => {
    held += hold ? 1 : held ? -1 : 0;
    globalThis.open = held ? () => null : open;
    (held ? addEventListener : removeEventListener)("submit", refuse, true);
  };

  // The control that closes what a wrong press has opened.
  const CLOSES = /^\W*(close|dismiss|minimi[sz]e|hide|back|cancel|no,? thanks|not now|बंद( करें)?|schließen|cerrar|fermer|fechar|关闭|閉じる|닫기)\W*$|^[×✕✖✗x]$/iu;
  look.closer = () => look.all("button, [role=button], a[href='#']").filter((one) => look.visible(one) && fixedAround(one))
    .find((one) => CLOSES.test(look.plain(one.textContent)) || CLOSES.test(look.plain(one.getAttribute("aria-label")))) ?? null;
  look.selectedTab = () => look.all("[role=tab][aria-selected=true]").find(look.visible) ?? null;
})();

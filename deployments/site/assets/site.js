"use strict";
// The site also works without this file. It adds times in the reader's time zone, pages that update themselves, and keys.

const inZone = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

function showTimes(root) {
  for (const time of root.querySelectorAll("time[datetime]")) {
    const when = new Date(time.dateTime);
    if (!Number.isNaN(when.getTime())) time.textContent = inZone.format(when);
  }
}

function isBusy(main) {
  const at = document.activeElement;
  const typing = at && main.contains(at) && at.matches("input, select, textarea, button");
  return document.hidden || typing || main.querySelector("details[open], dialog[open]") || !getSelection().isCollapsed;
}

async function renew(main, tag) {
  if (isBusy(main)) return tag;
  const headers = tag ? { "If-None-Match": tag } : {};
  const answer = await fetch(location.href, { headers, credentials: "same-origin", cache: "no-store" });
  if (answer.status === 401) location.reload();
  if (answer.status !== 200) return tag;
  const whole = new DOMParser().parseFromString(await answer.text(), "text/html");
  const fresh = whole.getElementById("main");
  if (fresh && !isBusy(main)) {
    main.replaceChildren(...fresh.childNodes);
    main.dataset.live = fresh.dataset.live || ""; // the page of a finished run is a report, which does not update
    document.title = whole.title;
    showTimes(main);
    main.dispatchEvent(new CustomEvent("renewed"));
  }
  return answer.headers.get("ETag");
}

function keepLive(main) {
  const againSoon = () => main.dataset.live && setTimeout(again, Number(main.dataset.live) * 1000);
  let tag = null;
  const again = async () => {
    try {
      tag = await renew(main, tag);
      main.classList.remove("lost");
    } catch {
      main.classList.add("lost"); // the server does not answer: the page shows this and tries again
    }
    againSoon();
  };
  againSoon();
}

function goOn(link) {
  // Browsers do not send the cookie with a link from another site, but they send it from this page. Try once.
  const key = `lookout-went-on:${link.href}`;
  try {
    if (sessionStorage.getItem(key)) return;
    sessionStorage.setItem(key, "1");
  } catch {
    return; // without storage, this could repeat forever
  }
  if (document.referrer && new URL(document.referrer).origin === location.origin) return;
  location.replace(link.href);
}

const main = document.getElementById("main");
showTimes(document);
if (main && main.dataset.live) keepLive(main);
for (const select of document.querySelectorAll("form.filters select")) {
  select.addEventListener("change", () => select.form.requestSubmit());
}
const onward = document.querySelector("a[data-continue]");
if (onward) goOn(onward);

// A key only clicks a button, a link or a choice on the page. There is no action that needs a key.
function pressedBy(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return null;
  const at = event.target;
  if (at.matches("textarea, select, input:not([type=radio])")) return null;
  if (event.key === "Enter" && at.matches("a, button, summary")) return null;
  if (event.key.startsWith("Arrow") && at.matches("input[type=radio]")) return null;
  return document.querySelector(`main [data-key="${CSS.escape(event.key.length === 1 ? event.key.toLowerCase() : event.key)}"]`);
}
document.addEventListener("keydown", (event) => {
  const wanted = pressedBy(event);
  if (!wanted) return;
  event.preventDefault();
  wanted.click();
  if (wanted.matches("input")) wanted.focus();
});

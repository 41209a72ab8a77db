// Every word that a page says to its console is a message through browser, driver and monitor, and all keep it: one
// that says a million has the machine's memory. What a person would read is let through, per document.
(() => {
  const LINES = { error: 100, others: 200 }, CHARACTERS = 2000;
  const cut = (given) => typeof given === "string" ? given.slice(0, CHARACTERS) : given;
  for (const [name, native] of Object.entries(console)) {
    if (typeof native !== "function" || name === "clear") continue;
    const budget = name === "error" ? "error" : "others";
    console[name] = (...given) => { if (LINES[budget]-- > 0) native.apply(console, given.slice(0, 20).map(cut)); };
  }
})();

// The same for errors that nobody catches: prevented, they are no message. Workers are threads, each with a console of
// its own that nothing here reaches, so that they are counted too.
(() => {
  const WORKERS = 40;
  let errors = 100, workers = WORKERS;
  const bounded = (event) => { if (errors-- <= 0) event.preventDefault(); };
  addEventListener("error", bounded, true);
  addEventListener("unhandledrejection", bounded, true);
  for (const kind of ["Worker", "SharedWorker"]) {
    if (typeof globalThis[kind] !== "function") continue;
    globalThis[kind] = new Proxy(globalThis[kind], {
      construct(native, given, target) {
        if (workers-- <= 0) throw new DOMException(`a page may have ${WORKERS} workers`, "QuotaExceededError");
        return Reflect.construct(native, given, target);
      },
    });
  }
})();

// Limit the console messages of a page. Each message passes through the browser, the driver and the monitor, and all of
// them store it. A million messages would use the memory of the machine. Each document may send as many messages as a
// person would read.
(() => {
  const LINES = { error: 100, others: 200 }, CHARACTERS = 2000;
  const cut = (given) => typeof given === "string" ? given.slice(0, CHARACTERS) : given;
  for (const [name, native] of Object.entries(console)) {
    if (typeof native !== "function" || name === "clear") continue;
    const budget = name === "error" ? "error" : "others";
    console[name] = (...given) => { if (LINES[budget]-- > 0) native.apply(console, given.slice(0, 20).map(cut)); };
  }
})();

// The same limit applies to uncaught errors: a prevented error sends no message. Workers are counted too, because each
// worker is a thread with its own console, which this script cannot limit.
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

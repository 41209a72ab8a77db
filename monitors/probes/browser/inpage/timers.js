// Count the timers and other pending work of a page. While something is pending, new content may still appear.
(() => {
  const look = globalThis.__lookout;
  if (look.pending) return;

  const DRAWN_MS = 500; // an animating page has requested its next frame within this time
  const waiting = new Set();
  const repeating = new Set();
  let drawnAt = -Infinity;

  const { setTimeout, clearTimeout, setInterval, clearInterval, requestAnimationFrame, requestIdleCallback } = globalThis;

  // The browser itself runs a handler that is a string. Therefore, such a timer counts until it is cleared.
  globalThis.setTimeout = function (handler, ...given) {
    const own = typeof handler === "function" ? function (...values) {
      waiting.delete(timer);
      return handler.apply(this, values);
    } : handler;
    const timer = setTimeout.call(this ?? globalThis, own, ...given);
    waiting.add(timer);
    return timer;
  };
  globalThis.setInterval = function (...given) {
    const timer = setInterval.apply(this ?? globalThis, given);
    repeating.add(timer);
    return timer;
  };
  // Both functions clear timeouts and intervals.
  const clears = (native) => function (timer) {
    waiting.delete(timer);
    repeating.delete(timer);
    return native.call(this ?? globalThis, timer);
  };
  globalThis.clearTimeout = clears(clearTimeout);
  globalThis.clearInterval = clears(clearInterval);
  const draws = (native) => native && function (...given) {
    drawnAt = performance.now();
    return native.apply(this ?? globalThis, given);
  };
  globalThis.requestAnimationFrame = draws(requestAnimationFrame);
  if (requestIdleCallback) globalThis.requestIdleCallback = draws(requestIdleCallback);
  for (const name of ["setTimeout", "setInterval", "clearTimeout", "clearInterval", "requestAnimationFrame", "requestIdleCallback"]) {
    if (globalThis[name]) Object.defineProperty(globalThis[name], "name", { value: name });
  }

  // Whether the document may still change by itself: a timer is pending, an animation runs, the page is about to
  // navigate, or a worker or a channel may send a message.
  look.pending = () => waiting.size > 0 || repeating.size > 0 || performance.now() - drawnAt < DRAWN_MS || look.listens()
    || document.readyState !== "complete" || Boolean(document.querySelector("meta[http-equiv=refresh i]"))
    || document.getAnimations().some((one) => one.playState === "running" && one.effect?.getComputedTiming?.().iterations !== Infinity);
})();

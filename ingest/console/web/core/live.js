// Polling: a view that shows the present asks again while somebody looks at it.

// poll calls refresh now, then every so many milliseconds until the signal ends
// it, and at once when the tab comes back into view. A tab in the background and
// a call that is still under way are left alone. It returns the first call.
export function poll(refresh, { every = 5000, signal }) {
  let busy = false;
  const once = async () => {
    if (busy || document.hidden || signal.aborted) return;
    busy = true;
    try {
      await refresh();
    } finally {
      busy = false;
    }
  };
  const timer = setInterval(once, every);
  signal.addEventListener("abort", () => clearInterval(timer));
  document.addEventListener("visibilitychange", once, { signal });
  busy = true;
  return Promise.resolve(refresh()).finally(() => {
    busy = false;
  });
}

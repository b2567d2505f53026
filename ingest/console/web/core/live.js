// Polling: a view refreshes itself while its tab is visible.

// poll calls refresh now, every so many milliseconds until the signal aborts, and when the tab
// becomes visible again. It does not call refresh while the tab is hidden or while the last call is
// pending. It returns the promise of the first call.
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

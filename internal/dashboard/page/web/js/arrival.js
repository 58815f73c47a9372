// Looks every few seconds whether the first message of a source has arrived: <section id="arrival" data-arrival="PAGE"> has
// what the page of the source says. The page of the source itself is loaded again. Without this script, a link does it.
const every = 3000;

async function look() {
  const waiting = document.getElementById("arrival");
  const page = waiting?.dataset.arrival;
  if (!page) return;
  if (!document.hidden) {
    try {
      const response = await fetch(page, { cache: "no-store" });
      if (response.redirected || response.status === 404) return;
      const text = await response.text();
      const next = new DOMParser().parseFromString(text, "text/html").getElementById("arrival");
      if (response.ok && next && !next.dataset.arrival) {
        if (location.pathname === page) location.reload();
        else waiting.replaceWith(next);
        return;
      }
    } catch {
      // The connection is lost for a moment.
    }
  }
  setTimeout(look, every);
}

setTimeout(look, every);

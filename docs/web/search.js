// Searches all pages in the browser, over an index that the service builds and that is loaded when a search begins.

const limit = 12;

// search returns the best entries of the index. Each word of the query must occur in an entry; a word counts most in a
// title, and more at the beginning of a word.
export function search(index, query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return [];
  const scored = [];
  for (const entry of index) {
    let score = 0;
    for (const word of words) {
      const found =
        20 * weight(entry.h || entry.p, word) + (entry.h ? 6 * weight(entry.p, word) : 0) + weight(entry.t, word);
      if (found === 0) {
        score = 0;
        break;
      }
      score += found;
    }
    if (/^\/(contract|changelog)/.test(entry.u)) score /= 2; // The guides say the same in fewer words.
    if (score > 0) scored.push({ entry, score });
  }
  scored.sort((a, b) => b.score - a.score);
  return scored.slice(0, limit).map((found) => found.entry);
}

// weight returns 3 for a whole word, 2 for the beginning of a word, 1 for another place, and 0 for none.
function weight(text, word) {
  let best = 0;
  text = text.toLowerCase();
  for (let at = text.indexOf(word); at >= 0 && best < 3; at = text.indexOf(word, at + 1)) {
    const starts = at === 0 || !/[a-z0-9]/.test(text[at - 1]);
    const ends = !/[a-z0-9]/.test(text[at + word.length] ?? " ");
    best = Math.max(best, starts ? (ends ? 3 : 2) : 1);
  }
  return best;
}

// excerpt returns the surroundings of the first word of a query in a text.
export function excerpt(text, query) {
  const word = query.toLowerCase().split(/\s+/).find((w) => w && text.toLowerCase().includes(w));
  const at = word ? text.toLowerCase().indexOf(word) : 0;
  const from = Math.max(0, text.lastIndexOf(" ", at - 40) + 1);
  return (from > 0 ? "... " : "") + text.slice(from, from + 140) + (text.length > from + 140 ? " ..." : "");
}

function result(entry, query, docs) {
  const item = document.createElement("li");
  const link = document.createElement("a");
  link.href = docs + entry.u;
  const title = document.createElement("strong");
  title.textContent = entry.h ? `${entry.p}: ${entry.h}` : entry.p;
  const text = document.createElement("span");
  text.textContent = excerpt(entry.t, query);
  link.append(title, text);
  item.append(link);
  return item;
}

export function startSearch() {
  const form = document.querySelector("form.search");
  const input = form.querySelector("input");
  const results = form.querySelector(".results");
  const status = results.querySelector("[role=status]");
  const list = results.querySelector("ul");
  const docs = document.documentElement.dataset.docs;
  let index;
  const load = () => {
    index ??= fetch(docs + "/assets/search.json").then((response) => {
      if (!response.ok) throw new Error(`status ${response.status}`);
      return response.json();
    });
    return index;
  };
  const close = () => {
    results.hidden = true;
  };
  const show = async () => {
    const query = input.value.trim();
    if (!query) return close();
    let found;
    try {
      found = search(await load(), query);
    } catch {
      index = undefined; // The next key tries again.
      status.textContent = "The search index could not be loaded. Check your connection.";
      list.replaceChildren();
      results.hidden = false;
      return;
    }
    if (query !== input.value.trim()) return; // A later key shows its own results.
    status.textContent = found.length === 0 ? "No results." : found.length === 1 ? "1 result" : `${found.length} results`;
    list.replaceChildren(...found.map((entry) => result(entry, query, docs)));
    results.hidden = false;
  };
  const links = () => [...list.querySelectorAll("a")];
  input.addEventListener("focus", () => load().catch(() => (index = undefined)));
  input.addEventListener("input", show);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    links()[0]?.click();
  });
  form.addEventListener("keydown", (event) => {
    const stops = [input, ...links()];
    const at = stops.indexOf(document.activeElement);
    if (event.key === "Escape") {
      close();
      input.focus();
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      stops[Math.min(Math.max(at + (event.key === "ArrowDown" ? 1 : -1), 0), stops.length - 1)].focus();
    }
  });
  list.addEventListener("click", close); // A link to the same page leaves the page open.
  document.addEventListener("click", (event) => form.contains(event.target) || close());
  form.addEventListener("focusout", (event) => event.relatedTarget && !form.contains(event.relatedTarget) && close());
  document.addEventListener("keydown", (event) => {
    const writing = event.target.closest("input, textarea, select, [contenteditable]");
    if (event.key !== "/" || writing || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    input.focus();
  });
  form.hidden = false;
}

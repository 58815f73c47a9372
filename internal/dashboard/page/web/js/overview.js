// Keeps the overview up to date: tiles through server-sent events, ages by the clock, and the filter while people type.
// Without this script the page says when it was made, and the filter is a form.

const overview = document.getElementById("overview");
const connection = document.getElementById("connection");
const headline = document.getElementById("headline");
const summary = document.getElementById("summary");
const form = document.getElementById("filter");

const minute = 60_000, hour = 60 * minute, day = 24 * hour;
const silence = 40_000; // The server sends something every 15 seconds.
const longestDelay = minute;
let offset = Date.now() - Date.parse(overview.dataset.now); // of this clock, before that of the server
let current = new Date(overview.dataset.now); // when the server said last that the data is current
let lost = false;
let stream = new AbortController();

// Ages.

function span(age) {
  if (age < hour) return `${Math.floor(age / minute)} min`;
  if (age < day) return `${Math.floor(age / hour)} h`;
  const days = Math.floor(age / day);
  return days === 1 ? "1 day" : `${days} days`;
}

function words(age) {
  if (age <= -minute) return `in ${span(-age)}`;
  return age < minute ? "just now" : `${span(age)} ago`;
}

function setText(element, text) {
  if (element && element.textContent !== text) element.textContent = text;
}

function ageOf(time) {
  return time ? Date.now() - offset - Date.parse(time.dateTime) : Infinity;
}

const badges = { good: ["Good", "ok"], stuffy: ["Stuffy", "warn"], bad: ["Bad", "bad"], unknown: ["Unknown", "off"] };

// paint updates what depends on the time. While the connection is lost, and once its values are old, nobody knows what
// the air of a room is like.
function paint(tile) {
  for (const time of tile.querySelectorAll(".measured time, small time")) setText(time, words(ageOf(time)));
  const old = lost || ageOf(tile.querySelector(".measured time")) >= hour;
  const air = old ? "unknown" : tile.dataset.air;
  tile.className = `tile card ${air}${old ? " old" : ""}`;
  for (const time of tile.querySelectorAll("small time")) {
    time.closest("div").classList.toggle("old", lost || ageOf(time) >= hour);
  }
  const [text, kind] = badges[air];
  const badge = tile.querySelector(".badge");
  setText(badge, text);
  badge.className = `badge ${kind}`;
}

function paintAll() {
  overview.querySelectorAll(".tile").forEach(paint);
}

const clock = new Intl.DateTimeFormat(document.body.dataset.locale, {
  timeStyle: "medium", timeZone: overview.dataset.zone, hourCycle: document.body.dataset.hours,
});

function show(kind, text) {
  connection.className = `connection ${kind}`;
  setText(connection, text);
}

function showLost(reason) {
  if (!lost) {
    lost = true;
    setText(headline, "Not up to date");
    setText(summary, "How the rooms are now is not known.");
    paintAll();
  }
  show("lost", `${reason} This page shows the data of ${clock.format(current)}.`);
}

function showCurrent(at) {
  current = new Date(at);
  offset = Date.now() - current.getTime();
  if (lost) {
    lost = false;
    paintAll();
  }
  show("on muted", `Live. Up to date at ${clock.format(current)}.`);
}

// Events.

function place(event) {
  const template = document.createElement("template");
  template.innerHTML = event.html; // The server escaped all texts.
  const tile = template.content.firstElementChild;
  const before = document.getElementById(`d${event.id}`);
  const previous = event.after && document.getElementById(`d${event.after}`);
  const focused = before?.contains(document.activeElement);
  const list = overview.querySelector(`[data-group="${CSS.escape(event.group)}"] .tiles`);
  if (!list) {
    load(location.href); // The page has no such group yet.
    return;
  }
  if (before && before.parentElement === list && before.previousElementSibling === (previous || null)) {
    before.replaceWith(tile);
  } else {
    before?.remove();
    if (previous) previous.after(tile);
    else list.prepend(tile);
  }
  paint(tile);
  if (focused) tile.querySelector("a").focus({ preventScroll: true });
}

function finish(state, id) {
  overview.dataset.version = id;
  setText(headline, state.headline);
  setText(summary, state.summary);
  showCurrent(state.at);
  if (overview.querySelectorAll(".tile").length !== state.shown) load(location.href);
}

// handle returns whether the stream goes on.
function handle(name, data, id) {
  const event = JSON.parse(data);
  switch (name) {
    case "tile": place(event); break;
    case "gone": document.getElementById(`d${event.id}`)?.remove(); break;
    case "state": finish(event, id); break;
    case "trouble": showLost(event.text); break;
    case "end": showLost(`${event.text} Reload the page to sign in.`); return false;
  }
  return true;
}

// read reads events until the stream ends. It returns whether to connect again.
async function read(response, alive) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = ""; ;) {
    const { value, done } = await reader.read();
    if (done) return true;
    alive();
    const events = (rest + value).split("\n\n");
    rest = events.pop();
    for (const text of events) {
      const fields = {};
      for (const line of text.split("\n")) {
        const colon = line.indexOf(": ");
        fields[line.slice(0, colon)] = line.slice(colon + 2);
      }
      if (!handle(fields.event, fields.data, fields.id)) return false;
    }
  }
}

// connect opens one stream, and returns the seconds to wait before the next one, or nothing to give up.
async function connect(signal, opened) {
  const url = new URL(overview.dataset.stream, location.href);
  url.searchParams.set("since", overview.dataset.version);
  const silent = new AbortController();
  let timer;
  const alive = () => {
    clearTimeout(timer);
    timer = setTimeout(() => silent.abort(), silence);
  };
  alive();
  try {
    const response = await fetch(url, { signal: AbortSignal.any([signal, silent.signal]), cache: "no-store" });
    if (response.headers.get("Content-Type")?.startsWith("text/event-stream")) {
      opened();
      return await read(response, alive) ? 0 : undefined;
    }
    if (response.redirected || response.status === 404) {
      showLost("You are signed out, or you left the team. Reload the page to sign in.");
      return undefined;
    }
    showLost(response.status === 503 ? "This page cannot be kept up to date at the moment." : "The connection is lost.");
    return Number(response.headers.get("Retry-After")) || 0;
  } catch {
    if (!signal.aborted) showLost("The connection is lost.");
    return 0;
  } finally {
    clearTimeout(timer);
  }
}

// run keeps one stream open. The delays between attempts double up to a minute, and differ between browsers.
async function run() {
  stream.abort();
  stream = new AbortController();
  const signal = stream.signal;
  for (let failures = 0; !signal.aborted && !document.hidden; failures++) {
    const least = await connect(signal, () => { failures = 0; });
    if (least === undefined) return;
    const delay = Math.max(least * 1000, Math.min(1000 * 2 ** failures, longestDelay));
    await new Promise((resolve) => { setTimeout(resolve, delay * (0.5 + Math.random() / 2) + least * 500); });
  }
}

// Filter.

let loading = new AbortController();

// load shows the same page with another query.
async function load(address) {
  loading.abort();
  loading = new AbortController();
  const signal = loading.signal;
  try {
    const response = await fetch(address, { signal, cache: "no-store" });
    if (!response.ok || response.redirected) throw new Error("no page");
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    if (signal.aborted) return;
    const next = page.getElementById("overview");
    const focused = document.activeElement.closest(".tile")?.id;
    overview.replaceChildren(...next.childNodes);
    if (focused) document.getElementById(focused)?.querySelector("a").focus({ preventScroll: true });
    Object.assign(overview.dataset, next.dataset);
    for (const answer of [headline, summary]) setText(answer, page.getElementById(answer.id).textContent);
    showCurrent(overview.dataset.now);
    paintAll();
    run();
  } catch {
    if (!signal.aborted) showLost("The connection is lost.");
  }
}

function filtered() {
  const query = new URLSearchParams(new FormData(form));
  for (const [name, value] of [...query]) if (!value) query.delete(name);
  const text = query.toString();
  return location.pathname + (text && `?${text}`);
}

if (form) {
  let typing;
  const apply = () => {
    clearTimeout(typing);
    if (filtered() === location.pathname + location.search) return;
    history.replaceState(null, "", filtered());
    load(location.href);
  };
  form.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(apply, 150);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    apply();
  });
}

// A page in the background needs no stream. Browsers open only a few connections to one host.
document.addEventListener("visibilitychange", () => {
  if (document.hidden) {
    stream.abort();
  } else {
    paintAll();
    run();
  }
});

document.documentElement.classList.add("live");
setInterval(paintAll, 10_000);
paintAll();
run();

// Puts the reader's key and ids into the samples. The values stay in the browser: sessionStorage, or localStorage if the
// reader wants to keep them. No request contains them.

const storageKey = "roomsensor-docs-values"; // reference.js reads it too.
const fields = ["key", "device", "ingest", "unit", "receiver"];

// apiAddress returns the address of the API. The page names it if the API is elsewhere; otherwise, the pages are below it.
export function apiAddress(page, address, docs) {
  if (page.dataset.api) return page.dataset.api;
  return new URL(docs, address).href.replace(/\/[^/]*$/, "");
}

// storages returns the storages that the browser permits.
function storages() {
  const found = [];
  for (const name of ["sessionStorage", "localStorage"]) {
    try {
      found.push(window[name]);
    } catch {
      // The reader blocks it. The form then works on this page only.
    }
  }
  return found;
}

function load() {
  for (const storage of storages()) {
    const text = storage.getItem(storageKey);
    if (text) return JSON.parse(text);
  }
  return {};
}

function forget() {
  for (const storage of storages()) storage.removeItem(storageKey);
}

function save(values) {
  forget();
  const [session, local] = storages();
  const storage = values.keep ? local : session;
  if (storage && fields.some((name) => values[name])) storage.setItem(storageKey, JSON.stringify(values));
}

// show replaces the placeholders by the values. An empty value restores the placeholder.
function show(values) {
  for (const span of document.querySelectorAll(".fill")) {
    span.dataset.original ??= span.textContent;
    span.textContent = values[span.dataset.field] || span.dataset.original;
    span.classList.toggle("filled", Boolean(values[span.dataset.field]));
  }
}

export function startFill() {
  const docs = document.documentElement;
  const api = apiAddress(docs, location.href, docs.dataset.docs);
  let values = load();
  show({ ...values, api });
  const details = document.querySelector(".fill-form");
  if (!details) return;
  const form = details.querySelector("form");
  const status = form.querySelector("[role=status]");
  const write = () => {
    for (const name of fields) form.elements[name].value = values[name] ?? "";
    form.elements.keep.checked = Boolean(values.keep);
    const filled = fields.some((name) => values[name]);
    details.querySelector("summary").textContent =
      filled ? "The samples contain your values" : "Put your key and device into the samples";
  };
  const apply = (message) => {
    save(values);
    show({ ...values, api });
    write();
    status.textContent = message;
  };
  form.addEventListener("change", (event) => {
    if (event.target.type === "checkbox") return;
    event.target.value = event.target.value.trim().replace(/^Bearer\s+/i, ""); // As people copy it.
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    values = { keep: form.elements.keep.checked };
    for (const name of fields) values[name] = form.elements[name].value.replace(/\/$/, "");
    apply("The samples contain your values.");
  });
  form.addEventListener("reset", (event) => {
    event.preventDefault();
    values = {};
    apply("Your values were removed from this browser.");
  });
  write();
  details.hidden = false;
}

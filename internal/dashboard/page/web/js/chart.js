// Shows the values of charts at the pointer, and with the arrow keys. All charts of a page have the same columns, so that
// each shows its value of the same time. Without this script the table below the charts has the numbers.

const section = document.querySelector(".charts");
const charts = [...document.querySelectorAll(".chart-frame")].map(makeChart).filter(Boolean);

function makeChart(frame) {
  const svg = frame.querySelector("svg[data-from]");
  if (!svg) return null;
  const card = frame.closest("figure");
  const cursor = document.createElement("div");
  const reading = document.createElement("div");
  cursor.className = "chart-cursor";
  reading.className = "chart-reading";
  cursor.append(reading);
  const chart = {
    cursor, reading,
    name: card.querySelector("h2").textContent.trim(),
    unit: card.dataset.unit,
    from: Number(svg.dataset.from),
    step: Number(svg.dataset.step),
    // A chart has values of its own, or lines with names.
    lines: [svg, ...svg.querySelectorAll("[data-name]")].filter((line) => line.dataset.values !== undefined)
      .map((line) => ({ name: line.dataset.name, values: line.dataset.values.split(",") })),
  };
  chart.columns = chart.lines[0].values.length;
  // A slider is the control whose value a screen reader reads again after each key.
  for (const [name, value] of Object.entries({
    role: "slider", tabindex: "0", "aria-label": `${chart.name}: values. Use the arrow keys.`,
    "aria-valuemin": "0", "aria-valuemax": String(chart.columns - 1), "aria-valuenow": "0", "aria-valuetext": "no value",
  })) cursor.setAttribute(name, value);
  cursor.addEventListener("pointermove", (event) => show(columnAt(chart, event)));
  cursor.addEventListener("pointerdown", (event) => show(columnAt(chart, event)));
  cursor.addEventListener("pointerleave", hide);
  cursor.addEventListener("focus", () => show(current ?? chart.columns - 1));
  cursor.addEventListener("blur", hide);
  cursor.addEventListener("keydown", (event) => moveByKey(chart, event));
  frame.append(cursor);
  return chart;
}

let current = null;

function columnAt(chart, event) {
  const box = chart.cursor.getBoundingClientRect();
  return clamp(chart, Math.floor(((event.clientX - box.left) / box.width) * chart.columns));
}

function clamp(chart, column) {
  return Math.min(Math.max(column, 0), chart.columns - 1);
}

function moveByKey(chart, event) {
  const at = current ?? chart.columns - 1;
  const column = {
    ArrowLeft: at - 1, ArrowDown: at - 1, ArrowRight: at + 1, ArrowUp: at + 1,
    PageDown: at - 24, PageUp: at + 24, Home: 0, End: chart.columns - 1,
  }[event.key];
  if (event.key === "Escape") hide();
  if (column === undefined) return;
  event.preventDefault();
  show(clamp(chart, column));
}

function show(column) {
  current = column;
  for (const chart of charts) {
    const text = describe(chart, column);
    const part = (column + 0.5) / chart.columns;
    chart.reading.textContent = text;
    chart.cursor.classList.add("on");
    chart.cursor.style.setProperty("--chart-x", `${part * 100}%`);
    const room = chart.cursor.clientWidth - chart.reading.offsetWidth;
    chart.reading.style.left = `${Math.min(Math.max(part * chart.cursor.clientWidth - chart.reading.offsetWidth / 2, 0), room)}px`;
    chart.cursor.setAttribute("aria-valuenow", String(column));
    chart.cursor.setAttribute("aria-valuetext", text);
  }
}

function hide() {
  for (const chart of charts) chart.cursor.classList.remove("on");
}

const { locale, hours } = document.body.dataset;
const clock = new Intl.DateTimeFormat(locale, {
  timeZone: section?.dataset.zone, hourCycle: hours, weekday: "short", day: "numeric", month: "short",
  hour: hours === "h12" ? "numeric" : "2-digit", minute: "2-digit",
});

function describe(chart, column) {
  const at = clock.format(chart.from + column * chart.step);
  return [at, ...chart.lines.map(({ name, values }) => (name ? `${name}: ` : "") + value(chart, values[column]))].join("\n");
}

function value(chart, item) {
  if (!item) return "no data";
  const [mean, low, high] = item.replace("*", "").split(" ");
  const range = low === undefined ? "" : ` (${low} to ${high})`;
  return `${mean} ${chart.unit}${range}${item.endsWith("*") ? ", arrived late" : ""}`;
}

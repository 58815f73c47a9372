// Shows samples in several languages as tabs, and adds copy buttons to all blocks of code.

const storageKey = "roomsensor-docs-language";

function preferred() {
  try {
    return localStorage.getItem(storageKey);
  } catch {
    return null;
  }
}

function prefer(language) {
  try {
    localStorage.setItem(storageKey, language);
  } catch {
    // The reader blocks the storage. The choice then lasts until the page is left.
  }
}

// select shows the sample in a language, if the group has it.
function select(group, language) {
  const tabs = [...group.querySelectorAll("[role=tab]")];
  if (!tabs.some((tab) => tab.textContent === language)) return;
  for (const tab of tabs) {
    const chosen = tab.textContent === language;
    tab.setAttribute("aria-selected", String(chosen));
    tab.tabIndex = chosen ? 0 : -1;
    document.getElementById(tab.getAttribute("aria-controls")).hidden = !chosen;
  }
}

// selectEverywhere shows a language in all groups, and keeps the tab that the reader chose where it is on the screen.
function selectEverywhere(tab) {
  const before = tab.getBoundingClientRect().top;
  for (const group of document.querySelectorAll(".samples")) select(group, tab.textContent);
  scrollBy({ top: tab.getBoundingClientRect().top - before, behavior: "instant" });
  prefer(tab.textContent);
}

function addTabs(group, number) {
  const samples = [...group.querySelectorAll(".sample")];
  if (samples.length < 2) return;
  const list = document.createElement("div");
  list.className = "tabs";
  list.setAttribute("role", "tablist");
  list.setAttribute("aria-label", "Language");
  samples.forEach((sample, i) => {
    const tab = document.createElement("button");
    tab.type = "button";
    tab.id = `tab-${number}-${i}`;
    tab.textContent = sample.dataset.language;
    tab.setAttribute("role", "tab");
    sample.id = `sample-${number}-${i}`;
    tab.setAttribute("aria-controls", sample.id);
    sample.setAttribute("role", "tabpanel");
    sample.setAttribute("aria-labelledby", tab.id);
    tab.addEventListener("click", () => selectEverywhere(tab));
    list.append(tab);
  });
  list.addEventListener("keydown", (event) => {
    const tabs = [...list.children];
    const at = tabs.indexOf(document.activeElement);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const tab = tabs[(to + tabs.length) % tabs.length];
    selectEverywhere(tab);
    tab.focus();
  });
  group.prepend(list);
  group.classList.add("tabbed");
  select(group, samples[0].dataset.language);
  select(group, preferred());
}

function addCopy(block) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(block.textContent);
      button.textContent = "Copied";
    } catch {
      // Only secure addresses have a clipboard: https and localhost. Select the text instead.
      getSelection().selectAllChildren(block);
      button.textContent = "Selected";
    }
    setTimeout(() => (button.textContent = "Copy"), 2000);
  });
  const frame = document.createElement("div");
  frame.className = "code";
  block.replaceWith(frame);
  frame.append(block, button);
}

export function startSamples() {
  document.querySelectorAll(".prose pre").forEach(addCopy);
  document.querySelectorAll(".samples").forEach(addTabs);
}

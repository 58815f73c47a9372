// Closes the menu of the person with Escape, and with a click outside. Without this script it closes with its own button.
// Loads the page again when the person signed out in another tab (signed-out.js).

const menu = document.querySelector("details.menu");

function close() {
  if (menu.open) {
    menu.open = false;
    menu.querySelector("summary").focus();
  }
}

if (menu) {
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") close(); });
  document.addEventListener("click", (event) => { if (!menu.contains(event.target)) menu.open = false; });
}

new BroadcastChannel("signed-out").addEventListener("message", () => location.reload());

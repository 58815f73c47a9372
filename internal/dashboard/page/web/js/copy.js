// Shows the buttons that copy a text: <button data-copy="ID"> copies the text of the element with that id, and
// <span data-copied="ID"> says so.
for (const button of document.querySelectorAll("[data-copy]")) {
  if (!navigator.clipboard) {
    break; // The page is not a secure context. The text can be selected.
  }
  button.hidden = false;
  button.addEventListener("click", async () => {
    const id = button.dataset.copy;
    const status = document.querySelector(`[data-copied="${id}"]`);
    try {
      await navigator.clipboard.writeText(document.getElementById(id).textContent);
      status.textContent = "Copied.";
    } catch {
      status.textContent = "The browser refused to copy. Select the text and copy it.";
    }
  });
}

// Keys: `g` and a letter go to a view, `/` to the search, `j` and `k` along rows, `?` lists them.
let isGoing = null;

/** Handles keys, except in text fields. */
export function hearKeys() {
  const help = document.querySelector("[data-help]");
  if (help) {
    help.hidden = false;
    help.addEventListener("click", showHelp);
  }
  document.addEventListener("keydown", (event) => {
    const isTyping = event.target.closest("input, textarea, select, [contenteditable], canvas, dialog");
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    if (act(event.key)) event.preventDefault();
  });
}

function act(key) {
  if (isGoing) {
    clearTimeout(isGoing);
    isGoing = null;
    const link = document.querySelector(`nav a[data-key="${CSS.escape(key)}"]`);
    link?.click();
    return Boolean(link);
  }
  switch (key) {
    case "g":
      isGoing = setTimeout(() => {
        isGoing = null;
      }, 1_500);
      return true;
    case "/": {
      const field = document.querySelector("main input[type=search]");
      field?.focus();
      return Boolean(field);
    }
    case "j":
      return step(1);
    case "k":
      return step(-1);
    case "?":
      showHelp();
      return true;
    default:
      return false;
  }
}

/** Moves along rows by their links, so that Enter opens one. */
function step(by) {
  const rows = [...document.querySelectorAll("[data-row]")];
  const at = rows.findIndex((row) => row.contains(document.activeElement));
  const row = rows[at < 0 ? (by > 0 ? 0 : rows.length - 1) : at + by];
  row?.querySelector("a, button")?.focus();
  return Boolean(row);
}

function showHelp() {
  const made = document.createElement("dialog");
  made.className = "help";
  made.setAttribute("aria-label", "Keys");
  const list = document.createElement("dl");
  const views = [...document.querySelectorAll("nav a[data-key]")].map((link) => [`g ${link.dataset.key}`, link.textContent]);
  const keys = [...views, ["/", "Search in this view"], ["j, k", "Next and previous row"], ["Enter", "Open it"], ["?", "These keys"]];
  for (const [key, what] of keys) {
    const term = document.createElement("dt");
    const keyed = document.createElement("kbd");
    keyed.textContent = key;
    term.append(keyed);
    const said = document.createElement("dd");
    said.textContent = what;
    list.append(term, said);
  }
  const close = document.createElement("button");
  close.type = "button";
  close.textContent = "Close";
  close.addEventListener("click", () => made.close());
  made.addEventListener("close", () => made.remove());
  made.append(list, close);
  document.body.append(made);
  made.showModal();
}

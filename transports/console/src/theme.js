// Light or dark: the system's choice, unless the user has chosen here; and the page's current colours.
const KEY = "greenroom-theme";
const CHANGED = "greenroom:theme";
const systemIsDark = matchMedia("(prefers-color-scheme: dark)");

/** Shows the chosen theme, and lets the button switch it. */
export function switchTheme() {
  show(localStorage.getItem(KEY));
  const button = document.querySelector("[data-theme-switch]");
  if (!button) return;
  button.hidden = false;
  button.addEventListener("click", () => {
    const system = systemIsDark.matches ? "dark" : "light";
    const next = (document.documentElement.dataset.theme ?? system) === "dark" ? "light" : "dark";
    localStorage.setItem(KEY, next);
    show(next);
    document.dispatchEvent(new CustomEvent(CHANGED));
  });
}

/** Calls a function when the user or the system changes the colours. */
export function onOtherColours(act) {
  document.addEventListener(CHANGED, act);
  systemIsDark.addEventListener("change", act);
}

/** Returns a colour of the style sheet for a canvas, in the current theme. */
export function resolved(name, beside) {
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  beside.append(probe);
  const colour = getComputedStyle(probe).color;
  probe.remove();
  return colour;
}

function show(theme) {
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
}

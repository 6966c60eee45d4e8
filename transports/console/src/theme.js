// Light or dark: what the system says, unless somebody has chosen here; and the colours that the page has then.
const KEY = "greenroom-theme";
const CHANGED = "greenroom:theme";
const systemIsDark = matchMedia("(prefers-color-scheme: dark)");

/** Shows the theme that was chosen, and has the button switch it. */
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

/** Has something done when the page gets other colours, by who looks at it or by the system. */
export function onOtherColours(act) {
  document.addEventListener(CHANGED, act);
  systemIsDark.addEventListener("change", act);
}

/** Returns a colour of the style sheet as a canvas takes it: light or dark, as the page is. */
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

// Light or dark: what the system says, unless somebody has chosen here.
const KEY = "greenroom-theme";

/** Shows the theme that was chosen, and has the button switch it. */
export function switchTheme() {
  show(localStorage.getItem(KEY));
  const button = document.querySelector("[data-theme-switch]");
  if (!button) return;
  button.hidden = false;
  button.addEventListener("click", () => {
    const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    const next = (document.documentElement.dataset.theme ?? system) === "dark" ? "light" : "dark";
    localStorage.setItem(KEY, next);
    show(next);
    document.dispatchEvent(new CustomEvent("greenroom:theme"));
  });
}

function show(theme) {
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
}

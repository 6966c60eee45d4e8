// The dialog for confirmations: a code of the terminal, or the key of the log-in.

/**
 * Asks for a confirmation, with the sentence of the server's refusal; returns the typed text, or null if cancelled.
 */
export function askToConfirm(problem) {
  const isCode = problem.details.by === "code";
  const dialog = document.createElement("dialog");
  dialog.setAttribute("aria-labelledby", "confirmation-title");
  const title = document.createElement("h2");
  title.id = "confirmation-title";
  title.textContent = "Confirm it";
  const why = document.createElement("p");
  why.id = "confirmation-why";
  why.textContent = `${problem.detail}.`;
  if (problem.details.is_wrong) {
    why.className = "refusal";
    why.setAttribute("role", "alert");
  }
  const label = document.createElement("label");
  label.htmlFor = "confirmation";
  label.textContent = isCode ? "Code" : "API key";
  const field = document.createElement("input");
  Object.assign(field, { id: "confirmation", required: true, autocomplete: isCode ? "one-time-code" : "off" });
  Object.assign(field, { type: isCode ? "text" : "password", pattern: "[ -~]+", title: "Letters, digits and signs of ASCII" });
  field.spellcheck = false;
  field.setAttribute("aria-describedby", why.id);
  if (isCode) field.className = "mono";
  const buttons = document.createElement("div");
  buttons.className = "row";
  const confirm = Object.assign(document.createElement("button"), { className: "primary", textContent: "Confirm" });
  const cancel = Object.assign(document.createElement("button"), { type: "button", textContent: "Cancel" });
  cancel.addEventListener("click", () => dialog.close());
  buttons.append(confirm, cancel);
  const form = document.createElement("form");
  form.method = "dialog";
  form.className = "stack";
  form.append(title, why, label, field, buttons);
  form.addEventListener("submit", () => {
    dialog.returnValue = "confirmed";
  });
  dialog.append(form);
  document.body.append(dialog);
  dialog.showModal();
  field.focus();
  return new Promise((done) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      done(dialog.returnValue === "confirmed" ? field.value.trim() : null);
    });
  });
}

// Forms that send requests: their fields become JSON, which is posted below /api/v1.
import { askToConfirm } from "./confirmation.js";
import { asSeen, button, main, refresh, tell, urlOf } from "./page.js";
import { undoOf } from "./undo.js";

/** Sends forms with `data-request`, and marks forms with typed text. */
export function sendForms() {
  document.addEventListener("submit", (event) => {
    const form = event.target.closest("form[data-request]");
    if (!form) return;
    event.preventDefault();
    submit(form, event.submitter);
  });
  document.addEventListener("input", (event) => {
    event.target.form?.toggleAttribute("data-dirty", true);
  });
  document.addEventListener("reset", (event) => event.target.removeAttribute("data-dirty"));
}

/**
 * Sends a request and returns its reply. For a refusal it throws an error with the server's sentence, and the
 * problem document as its `problem`. After a rate limit it waits. If a confirmation is needed, it sends the
 * request again with the typed code or key.
 */
export async function ask(name, values, confirmation) {
  let answer;
  try {
    answer = await fetch(asSeen(urlOf(`api/v1/${name}`)), {
      method: "POST",
      headers: {
        "content-type": "application/json",
        "x-csrf-token": main().dataset.csrf ?? "",
        ...(confirmation && { "x-confirmation": confirmation }),
      },
      body: JSON.stringify(values),
    });
  } catch {
    throw new Error("The server does not answer, so it is not known whether this was done.");
  }
  if (answer.status === 429) {
    await new Promise((done) => setTimeout(done, 1_000 * Number(answer.headers.get("retry-after") ?? 1)));
    return ask(name, values, confirmation);
  }
  const said = await answer.json();
  if (said.code === "CONFIRMATION_NEEDED" && said.details.by) {
    const typed = await askToConfirm(said);
    if (typed) return ask(name, values, typed);
  }
  if (!answer.ok) throw Object.assign(new Error(said.detail), { problem: said });
  return said;
}

/** Sends requests one by one: `[[name, values], ...]`; returns the sentences of refusals. */
async function askAll(requests) {
  const refusals = [];
  for (const [name, values] of requests) {
    try {
      await ask(name, values);
    } catch (error) {
      refusals.push(error.message);
    }
  }
  return refusals;
}

/** Reports what was done, and offers to undo it by other requests, if there are any. */
export function tellDone(text, undo) {
  if (!undo?.length) return tell(text);
  const back = button("Undo", async () => {
    const refusals = await askAll(undo);
    if (refusals.length) tell(`${undo.length - refusals.length} of ${undo.length} taken back. ${refusals[0]}`);
    else tell("Taken back.");
    refresh();
  });
  tell(text, back);
}

async function submit(form, submitter) {
  const alert = form.querySelector("[role=alert]");
  if (form.dataset.confirm && !confirm(form.dataset.confirm)) return;
  if (!isConfirmed(form)) return;
  try {
    const name = form.dataset.request;
    const values = valuesOf(form, submitter);
    if (submitter) submitter.disabled = true; // not earlier: a disabled button has no value
    const answer = await ask(name, values);
    const undo = form.dataset.undo ? JSON.parse(form.dataset.undo) : undoOf(name, values, answer);
    if (alert) alert.hidden = true;
    form.reset();
    form.closest("dialog")?.close();
    show(form, answer);
    tellDone(form.dataset.done || "Done", undo);
    if (form.dataset.next) location.assign(urlOf(form.dataset.next));
    else await refresh();
  } catch (error) {
    if (!alert) return tell(error.message);
    alert.textContent = error.message;
    alert.hidden = false;
    if (error.problem?.code === "VERSION_CONFLICT") offerToSaveOver(form, alert, error.problem.details);
  } finally {
    if (submitter) submitter.disabled = false;
  }
}

/** Shows what someone else saved meanwhile beside the typed text, and offers to overwrite it. */
function offerToSaveOver(form, alert, details) {
  const expected = form.elements.expected_version;
  if (!expected || !form.hasAttribute("data-dirty")) return;
  const over = button("Save mine over it", () => {
    expected.value = details.current_version;
    form.requestSubmit();
  });
  alert.append(" The page shows what was written meanwhile; what you typed is kept. ", over);
  refresh();
}

/** Checks the text to type as a confirmation; the field shows an error if it is wrong. */
function isConfirmed(form) {
  for (const field of form.querySelectorAll("[data-must-be]")) {
    field.setCustomValidity(field.value === field.dataset.mustBe ? "" : "This is not the name.");
    field.addEventListener("input", () => field.setCustomValidity(""), { once: true });
  }
  return form.reportValidity();
}

/** Shows a member of the reply: in the form's `output` or the element that it names, until the page is left. */
function show(form, answer) {
  const { shows, shownIn } = form.dataset;
  if (!shows) return;
  const place = shownIn ? document.getElementById(shownIn) : form;
  place.hidden = false;
  place.querySelector("output").textContent = inWords(answer[shows]);
  if (shownIn) place.focus();
}

function inWords(value) {
  if (value === null || typeof value !== "object") return String(value);
  const parts = Object.entries(value).map(([name, each]) => `${name}: ${each}`);
  return parts.join(", ") || "nothing";
}

/** Returns the values of a form's fields, converted by `data-type`. */
function valuesOf(form, submitter) {
  const values = {};
  for (const field of form.elements) {
    const isChosen = !["checkbox", "radio"].includes(field.type) || field.checked;
    const isSent = field.name && (field.localName !== "button" || field === submitter);
    if (!isSent || field.disabled || !(isChosen || field.dataset.type === "bool")) continue;
    if (field.hasAttribute("data-if-changed") && !isChanged(field)) continue;
    const value = typed(field);
    if (field.dataset.type === "each") (values[field.name] ??= []).push(value);
    else if (value !== undefined) values[field.name] = value;
  }
  return values;
}

function isChanged(field) {
  if (field.localName !== "select") return field.value !== field.defaultValue;
  return [...field.options].some((option) => option.selected !== option.defaultSelected);
}

function typed(field) {
  const text = field.value;
  switch (field.dataset.type) {
    case "bool":
      return field.type === "checkbox" ? field.checked : text === "true";
    case "number":
    case "int":
      return text === "" ? undefined : Number(text);
    case "list": {
      const parts = text.split(",").map((part) => part.trim());
      const given = parts.filter(Boolean);
      return given.length || field.hasAttribute("data-keep-empty") ? given : undefined;
    }
    case "lines":
      return text.split("\n").filter((line) => line.trim());
    case "json":
      if (text.trim() === "") return undefined;
      try {
        return JSON.parse(text);
      } catch (error) {
        throw new Error(`${field.labels?.[0]?.textContent ?? field.name}: this is no JSON: ${error.message}`);
      }
    default:
      return text === "" && !field.hasAttribute("data-keep-empty") ? undefined : text;
  }
}

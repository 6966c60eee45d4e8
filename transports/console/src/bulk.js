// Lists with a selection, and actions on the selected items, one by one.
import { ask, tellDone } from "./forms.js";
import { refresh, tell } from "./page.js";
import { undoOf } from "./undo.js";

const EACH = {
  tag: (row, typed) => ["update_memory", { ...named(row), tags: [...new Set([...tagsOf(row), wanted(typed)])] }],
  untag: (row, typed) => ["update_memory", { ...named(row), tags: tagsOf(row).filter((tag) => tag !== wanted(typed)) }],
  move: (row, typed) => ["move_memory", { ...named(row), to: wanted(typed) }],
  helpful: (row) => ["rate_memory", { memory_id: row.id, rating: 1 }],
  misleading: (row) => ["rate_memory", { memory_id: row.id, rating: -1 }],
  reviewed: (row) => ["update_memory", { ...named(row), unreviewed: false }],
  forget: (row) => ["forget_memory", named(row)],
};

/** Says what was done with so many memories; of a merge, what stays. */
const DONE = {
  tag: (count, typed) => `${count} now ${has(count)} the tag “${typed}”.`,
  untag: (count, typed) => `${count} no longer ${has(count)} the tag “${typed}”.`,
  move: (count, typed) => `${count} moved to ${typed}.`,
  helpful: (count) => `${count} rated helpful.`,
  misleading: (count) => `${count} rated misleading.`,
  reviewed: (count) => `${count} reviewed.`,
  forget: (count) => `${count} forgotten: hidden from agents until restored.`,
};

/** Sends forms with `data-bulk`, counts the selected items, and selects all. */
export function doForMany() {
  document.addEventListener("submit", (event) => {
    const form = event.target.closest("form[data-bulk]");
    if (!form) return;
    event.preventDefault();
    submit(form, event.submitter);
  });
  document.addEventListener("input", (event) => {
    const form = event.target.closest?.("form[data-bulk]");
    if (!form) return;
    if (event.target.hasAttribute("data-select-all")) {
      for (const box of boxes(form)) box.checked = event.target.checked;
    }
    const count = chosen(form).length;
    form.querySelector("[data-count]").textContent = `${count} selected`;
    if (!count && event.target.type === "checkbox") form.removeAttribute("data-dirty");
  });
}

function boxes(form) {
  return [...form.elements].filter((field) => field.name === "memory");
}

function chosen(form) {
  return boxes(form)
    .filter((box) => box.checked)
    .map((box) => ({
      id: box.value,
      version: Number(box.dataset.version),
      tags: box.dataset.tags ? JSON.parse(box.dataset.tags) : null,
      name: box.dataset.name,
    }));
}

function has(count) {
  return count.startsWith("1 ") ? "has" : "have";
}

/** Returns a sentence about what was done with `done` of the chosen memories. */
function told(act, rows, done, typed) {
  if (act === "merge") {
    const hidden = rows.length === 2 ? `${rows[1].name} is` : `${rows.length - 1} others are`;
    return `Merged: ${rows[0].name} stays, with all tags, and ${hidden} hidden from agents.`;
  }
  const which = done < rows.length ? `${done} of ${rows.length} memories` : `${done} ${done === 1 ? "memory" : "memories"}`;
  return DONE[act](which, typed);
}

function named(row) {
  return { memory_id: row.id, expected_version: row.version };
}

function tagsOf(row) {
  if (!row.tags) throw new Error(`${row.name} has too many tags to change them in a list; change them on its page.`);
  return row.tags;
}

function wanted(typed) {
  if (!typed) throw new Error("Type the tag or the namespace first.");
  return typed;
}

function requestsOf(act, rows, typed) {
  if (act !== "merge") return rows.map((row) => [row.name, EACH[act](row, typed)]);
  if (rows.length < 2) throw new Error("Choose two memories at least.");
  const [into, ...others] = rows;
  const expected_versions = Object.fromEntries(rows.map((row) => [row.id, row.version]));
  const values = { memory_id: into.id, others: others.map((row) => row.id), expected_versions };
  return [[into.name, ["merge_memories", values]]];
}

async function submit(form, submitter) {
  const alert = form.querySelector("[role=alert]");
  const buttons = [...form.querySelectorAll("button")];
  const undo = [];
  const refusals = [];
  let done = 0;
  alert.hidden = true;
  try {
    const rows = chosen(form);
    if (!rows.length) throw new Error("Choose memories first.");
    const typed = form.elements.typed.value.trim();
    const requests = requestsOf(submitter.value, rows, typed);
    for (const button of buttons) button.disabled = true;
    for (const [name, [request, values]] of requests) {
      tell(`${done + refusals.length + 1} of ${requests.length} …`);
      try {
        undo.unshift(...undoOf(request, values, await ask(request, values)));
        done += 1;
      } catch (error) {
        refusals.push(`${name}: ${error.message}`);
        if (!error.problem) break; // no server answers
      }
    }
    if (done) {
      form.reset();
      form.querySelector("[data-count]").textContent = "0 selected";
      tellDone(told(submitter.value, rows, done, typed), undo);
      await refresh();
    }
    if (refusals.length) throw new Error(refusals.join("\n"));
  } catch (error) {
    alert.textContent = error.message;
    alert.hidden = false;
  } finally {
    for (const button of buttons) button.disabled = false;
  }
}

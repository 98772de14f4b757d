// A model of a table: one row as a form.

import { clearAnswer, FIELDS, showAnswer } from "./answer.js";
import { $, element, number, tell } from "./dom.js";
import { ask, latest } from "./service.js";

const MOST = 60;
const NEVER_SEEN = "a value that was never seen";

let model = null;

export function showForm(chosen) {
  model = chosen;
  $("pictures").hidden = true;
  if (model.columns.length > MOST) {
    $("fields").replaceChildren(
      element("p", {}, `The model has ${model.columns.length} columns: too many for a form. Give it a table.`),
    );
    clearAnswer("Give it a table.");
    return;
  }
  $("fields").replaceChildren(...model.columns.map(field));
  poke().catch(tell);
}

function field(column, i) {
  const id = `field-${i}`;
  const boolean = column.kind === "boolean";
  const input = column.levels.length || boolean ? choice(column, id) : entry(column, id);
  input.dataset.column = column.name;
  const parts = [element("label", { for: id }, column.name), input];
  const hint = element("p", { id: `${id}-hint`, class: "quiet" }, seen(column));
  input.setAttribute("aria-describedby", hint.id);
  if (column.kind === "numeric" && column.highest > column.lowest) parts.push(slider(column, input));
  return element("div", { class: "field" }, ...parts, hint);
}

function choice(column, id) {
  const boolean = column.kind === "boolean";
  const levels = boolean ? ["false", "true"] : column.levels;
  const usual = boolean ? levels[Number(column.usual)] : column.usual;
  const options = levels.map((level) => element("option", { selected: level === usual }, level));
  options.push(element("option", { value: "" }, "no value"));
  if (!boolean) options.push(element("option", {}, NEVER_SEEN));
  return element("select", { id }, ...options);
}

function entry(column, id) {
  const numeric = column.kind === "numeric";
  return element("input", {
    id,
    type: numeric ? "number" : "text",
    step: numeric ? "any" : undefined,
    value: column.usual ?? "",
  });
}

// Goes half of the seen range beyond either end.
function slider(column, input) {
  const beyond = (column.highest - column.lowest) / 2;
  const [min, max] = [column.lowest - beyond, column.highest + beyond];
  const made = element("input", {
    type: "range", min, max, step: "any", value: column.usual, "aria-label": `${column.name}, slider`,
  });
  made.addEventListener("input", () => (input.value = Number(Number(made.value).toPrecision(4))));
  input.addEventListener("input", () => (made.value = input.value));
  return made;
}

function seen(column) {
  if (column.levels.length) return `seen: ${column.levels.length} values; empty is no value`;
  if (column.kind === "numeric" && column.lowest !== null) return `seen: ${number(column.lowest)} to ${number(column.highest)}; empty is no value`;
  return { date: "a date as in the table of the fit", boolean: "true or false" }[column.kind] ?? "a number";
}

const poke = latest(async () => {
  const cells = Object.fromEntries(
    Array.from($("fields").querySelectorAll("[data-column]"), (input) => [input.dataset.column, valueOf(input)]),
  );
  const of = model;
  const asked = { model: of.name, rows: [cells], fields: [...FIELDS, "reason"] };
  const answer = (await ask("v1/predict", asked)).answers[0];
  if (model !== of) return;
  showAnswer(of, answer);
  const reasons = answer.reason ? answer.reason.split("; ") : [];
  $("reasons").replaceChildren(...reasons.map((text) => element("li", {}, text)));
  $("why").hidden = reasons.length === 0;
  tell(null);
});

function valueOf(input) {
  if (input.value === "") return null;
  return input.type === "number" ? Number(input.value) : input.value;
}

$("form").addEventListener("input", () => poke().catch(tell));
$("form").addEventListener("submit", (event) => event.preventDefault());

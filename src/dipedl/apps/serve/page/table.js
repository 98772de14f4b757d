// A table of rows: answered, flagged, sorted, taken home.

import { download, parseCsv, toCsv } from "./csv.js";
import { $, element, number, percent, takeFiles, tell } from "./dom.js";
import { ask } from "./service.js";
import { describe } from "./terms.js";

const FIELDS = ["label", "probabilities", "vacuity", "p_value", "flagged", "reason"];
const CELLS_AT_ONCE = 50_000;
const ON_A_PAGE = 50;

let model = null;
let table = { names: [], lines: [] };
let sorted = { by: 0, down: false };
let first = 0;

export function showTable(chosen) {
  model = chosen;
  $("answered").hidden = true;
  $("progress").textContent = "";
}

async function read(file) {
  tell(null);
  $("answered").hidden = true;
  const { names, rows } = parseCsv(await file.text());
  const odd = rows.findIndex((cells) => cells.length !== names.length);
  if (odd >= 0) throw new Error(`Row ${odd + 1} of ${file.name} has ${rows[odd].length} cells, and the header ${names.length}`);
  if (!rows.length) throw new Error(`${file.name} has no row below its header`);
  const { answers, refused } = await answered(names, rows);
  table = made(names, rows, answers);
  [sorted, first] = [{ by: 0, down: false }, 0];
  const flagged = answers.filter((one) => one.flagged).length;
  $("progress").textContent =
    `${count(answers.length, "row")} answered, ${flagged} flagged, ${refused.length} refused.`;
  showRefused(refused);
  showHead();
  showRows();
  $("answered").hidden = false;
}

const count = (n, what) => `${n.toLocaleString("en")} ${what}${n === 1 ? "" : "s"}`;

// Asks in parts, smaller ones where the service wants that.
async function answered(columns, rows) {
  const found = { answers: [], refused: [] };
  let size = Math.max(1, Math.min(1000, Math.floor(CELLS_AT_ONCE / columns.length)));
  for (let start = 0; start < rows.length; ) {
    $("progress").textContent = `${start.toLocaleString("en")} of ${count(rows.length, "row")} ...`;
    const matrix = rows.slice(start, start + size).map((cells) => cells.map((text) => text.trim() || null));
    const part = await partOf({ model: model.name, columns, matrix, fields: FIELDS });
    if (part === null && size > 1) {
      size = Math.ceil(size / 2);
      continue;
    }
    for (const one of part.answers) found.answers.push({ ...one, row: one.row + start });
    for (const one of part.refused) found.refused.push({ ...one, row: one.row + start });
    start += matrix.length;
  }
  return found;
}

// Answers; null if there were too many rows at once.
async function partOf(asked) {
  try {
    return await ask("v1/predict", asked);
  } catch (error) {
    if (error.status === 413 && asked.matrix.length > 1) return null;
    // No row could be read: that is no reason to keep the others from their answers.
    if (error.status === 422 && error.refused?.length) return { answers: [], refused: error.refused };
    throw error;
  }
}

// Columns that are shown, and those that are only downloaded.
function made(names, rows, answers) {
  const own = ["Row", "Flagged", "Label", "Probability", "Vacuity", "p-value", "Reason"];
  const lines = answers.map((one) => ({
    cells: [
      one.row, one.flagged, one.label, one.probabilities[one.label], one.vacuity, one.p_value, one.reason,
      ...rows[one.row - 1],
    ],
    probabilities: model.classes.map((name) => one.probabilities[name]),
  }));
  return { names: [...own, ...names], lines };
}

const SHOWN = {
  1: { class: "flagged", text: (on) => (on ? "flagged" : "") },
  3: { class: "number", text: percent },
  4: { class: "number", text: number },
  5: { class: "number", text: number },
  6: { class: "reason", text: String },
};
const MEANING = { 1: "flagged", 2: "label", 3: "probability", 4: "vacuity", 5: "p_value", 6: "reason" };

function showHead() {
  const heads = table.names.map((name, j) => {
    const button = element("button", { type: "button" }, name);
    if (MEANING[j]) describe(button, MEANING[j]);
    button.addEventListener("click", () => sortBy(j));
    return element("th", { scope: "col", class: SHOWN[j]?.class === "number" && "number" }, button);
  });
  $("rows").tHead.replaceChildren(element("tr", {}, ...heads));
}

function sortBy(j) {
  sorted = { by: j, down: sorted.by === j && !sorted.down };
  const values = table.lines.map((line) => line.cells[j]);
  const numeric = values.every((value) => typeof value !== "string" || value === "" || !isNaN(value));
  const key = numeric ? (value) => (value === "" ? Infinity : Number(value)) : String;
  const order = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
  table.lines.sort((a, b) => (sorted.down ? -1 : 1) * order(key(a.cells[j]), key(b.cells[j])));
  first = 0;
  showRows();
}

function showRows() {
  const some = table.lines.filter((line) => !$("only-flagged").checked || line.cells[1]);
  const shown = some.slice(first, first + ON_A_PAGE);
  $("rows").tBodies[0].replaceChildren(...shown.map(lineOf));
  Array.from($("rows").tHead.rows[0].cells).forEach((head, j) => {
    const direction = sorted.down ? "descending" : "ascending";
    j === sorted.by ? head.setAttribute("aria-sort", direction) : head.removeAttribute("aria-sort");
  });
  const last = first + shown.length;
  $("shown").textContent = shown.length ? `${first + 1} to ${last} of ${count(some.length, "row")}` : "No row";
  $("pages").hidden = some.length <= ON_A_PAGE;
  $("back").disabled = first === 0;
  $("on").disabled = last >= some.length;
}

function lineOf({ cells }) {
  const shown = cells.map((value, j) => {
    const of = SHOWN[j] ?? { text: String };
    const cell = element("td", { class: of.class }, of.text(value));
    if (MEANING[j]) cell.dataset.term = MEANING[j];
    return cell;
  });
  return element("tr", { class: cells[1] && "flagged" }, ...shown);
}

function showRefused(refused) {
  const box = $("refused");
  box.hidden = refused.length === 0;
  box.querySelector("summary").textContent = `${count(refused.length, "row")} refused`;
  const told = refused.slice(0, 100).map((one) => element("li", {}, `Row ${one.row}${one.column && `, ${one.column}`}: ${one.reason}`));
  box.querySelector("ul").replaceChildren(...told);
}

function page(step) {
  first = Math.max(0, first + step);
  showRows();
}

$("back").addEventListener("click", () => page(-ON_A_PAGE));
$("on").addEventListener("click", () => page(ON_A_PAGE));
$("only-flagged").addEventListener("change", () => page(-first));
$("sample").addEventListener("click", () => {
  const usual = model.columns.map((column) => column.usual);
  download(`${model.name}.csv`, toCsv(model.columns.map((column) => column.name), [usual]));
});
$("download").addEventListener("click", () => {
  const names = [...table.names, ...model.classes.map((name) => `p_${name}`)];
  const rows = table.lines.map((line) => [...line.cells, ...line.probabilities]);
  download("answers.csv", toCsv(names, rows));
});
takeFiles($("drop"), $("csv"), (file) => read(file).catch((error) => {
  $("progress").textContent = "";
  tell(error);
}));

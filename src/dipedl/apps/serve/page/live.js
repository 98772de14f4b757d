// The monitor of the rows that the service answers.

import { fact, showFacts } from "./answer.js";
import { $, element, number, percent, tell } from "./dom.js";
import { picturesOf } from "./draw.js";
import { ask } from "./service.js";

const EVERY = 2000;
const SENT = 100;
const TESTS = { p_values: "p-values", uncertainty: "uncertainty", flagged: "flagged rows" };

let model = null;
let timer = 0;

export async function showLive(chosen, visible) {
  clearInterval(timer);
  model = chosen;
  if (!visible) return;
  timer = setInterval(() => look().catch(tell), EVERY);
  await showSending();
  await look();
}

async function look() {
  const { models } = await ask("v1/drift");
  const told = models.find((one) => one.model === model.name);
  const { report, windows, problem } = told;
  $("alarm").classList.toggle("flagged", report?.alarm === true);
  $("alarm").textContent = problem ?? verdict(report, told.window_rows);
  showFacts($("stream"), report ? facts(report) : []);
  $("windows").tBodies[0].replaceChildren(...windows.toReversed().map(windowRow));
  tell(null);
}

function verdict(report, rows) {
  if (!report) return `Nothing to say yet: it begins with 50 rows; a window has ${rows}.`;
  if (!report.alarm) return "No alarm: the rows are like those that it knows.";
  return `Alarm, by ${report.alarms.map((name) => TESTS[name]).join(", ")}: the rows have changed.`;
}

function facts(report) {
  const tests = Object.entries(TESTS).map(([name, title]) => {
    const note = `alarm at ${number(report.limits[name])}`;
    return fact("nats", `Evidence, ${title}`, number(report.evidence[name]), { note });
  });
  const found = [fact("rows_seen", "Rows", number(report.rows)), ...tests];
  const guess = report.estimated_accuracy;
  if (guess) found.push(fact("estimated", "Estimated accuracy", percent(guess.value)));
  return found;
}

function windowRow(one) {
  const { changed, differs } = one;
  const columns = changed.slice(0, 5).map(([name, psi]) => `${name} (${number(psi)})`);
  if (changed.length > 5) columns.push(`${changed.length - 5} more columns`);
  const said = [...(differs ? ["p-values"] : []), ...columns].join(", ") || "nothing";
  const cells = [percent(one.flagged), number(one.uncertainty), number(one.distance)];
  return element(
    "tr",
    {},
    element("th", { scope: "row" }, `${number(one.first)} to ${number(one.last)}`),
    ...cells.map((text) => element("td", { class: "number" }, text)),
    element("td", { class: differs || changed.length ? "flagged" : undefined }, said),
  );
}

// Of a model with pictures, buttons that send rows of one kind.
async function showSending() {
  if (!model.pictures) return $("send").replaceChildren();
  const { examples } = await picturesOf(model);
  $("send").replaceChildren(...Object.entries(examples).map(([title, images]) => {
    const button = element("button", { type: "button" }, `Send ${SENT} ${title}`);
    let first = 0;
    button.addEventListener("click", () => {
      const some = images.slice(first, first + SENT);
      first = (first + SENT) % images.length;
      send(some).catch(tell);
    });
    return button;
  }));
}

async function send(images) {
  const matrix = images.map((image) => Array.from(image, (ink) => ink / 255));
  await ask("v1/predict", { model: model.name, matrix, fields: ["label"] });
  await look();
}

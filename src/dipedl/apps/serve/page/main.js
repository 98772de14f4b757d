// The page: its models, its tabs.

import { clearAnswer } from "./answer.js";
import { $, element, tell } from "./dom.js";
import { showDrawing } from "./draw.js";
import { showForm } from "./form.js";
import { showLive } from "./live.js";
import { ask, setToken } from "./service.js";
import { showTable } from "./table.js";
import { startTerms } from "./terms.js";

const TABS = ["try", "table", "live"];

let models = [];

async function start() {
  tell(null);
  try {
    ({ models } = await ask("v1/models"));
  } catch (error) {
    if (error.status === 401) askForToken();
    else tell(error);
    return;
  }
  $("token").hidden = true;
  $("main").hidden = false;
  $("model").replaceChildren(...models.map(({ name }) => element("option", { value: name }, name)));
  $("choice").hidden = models.length === 1;
  await choose(models[0].name);
}

function askForToken() {
  $("token").hidden = false;
  $("token-text").focus();
}

async function choose(name) {
  const model = models.find((one) => one.name === name);
  clearAnswer("Nothing asked yet.");
  tell(null);
  $("drawing").hidden = $("gallery").hidden = !model.pictures;
  $("form").hidden = model.pictures;
  $("tab-table").hidden = model.pictures;
  if (model.pictures && shown() === "table") select("try");
  showTable(model);
  await (model.pictures ? showDrawing(model) : showForm(model));
  await showLive(model, shown() === "live");
}

const shown = () => TABS.find((name) => $(`tab-${name}`).ariaSelected === "true");

function select(name) {
  for (const one of TABS) {
    $(`tab-${one}`).setAttribute("aria-selected", one === name);
    $(`tab-${one}`).tabIndex = one === name ? 0 : -1;
    $(one).hidden = one !== name;
  }
  const model = models.find((one) => one.name === $("model").value);
  showLive(model, name === "live").catch(tell);
}

function startTabs() {
  for (const name of TABS) $(`tab-${name}`).addEventListener("click", () => select(name));
  document.querySelector("[role=tablist]").addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const there = TABS.filter((name) => !$(`tab-${name}`).hidden);
    const next = there[(there.indexOf(shown()) + step + there.length) % there.length];
    select(next);
    $(`tab-${next}`).focus();
  });
}

$("model").addEventListener("change", () => choose($("model").value).catch(tell));
$("token").addEventListener("submit", (event) => {
  event.preventDefault();
  setToken($("token-text").value.trim());
  start();
});
startTerms();
startTabs();
start();

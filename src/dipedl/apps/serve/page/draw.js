// A model of pixels: draw a row, and see why it is answered so.

import { clearAnswer, FIELDS, showAnswer } from "./answer.js";
import { $, element, number, takeFiles, tell } from "./dom.js";
import { makePad } from "./pad.js";
import { drawImage, imagesOf, rowOf } from "./pixels.js";
import { ask, latest } from "./service.js";

// Milliseconds without a stroke after which reasons are asked for.
const PAUSE = 300;
const NEAREST = 5;
const SHOWN = 7;
const EMPTY = "Draw something.";

let model = null;
let pictures = null;
let row = null;
let timer = 0;

const pad = makePad($("pad"), $("cursor"), (text) => ($("pen").textContent = text), drawn);

function drawn() {
  row = rowOf(pad.ink(), pictures);
  answerRow();
}

export async function showDrawing(chosen) {
  model = chosen;
  pictures = await picturesOf(model);
  $("pictures").hidden = false;
  $("reasons").replaceChildren();
  $("examples").replaceChildren(...Object.entries(pictures.examples).flatMap(exampleButtons));
  pad.clear();
}

const kept = new Map();

// The images beside a model, decoded once.
export async function picturesOf({ name, version }) {
  const key = `${name} ${version}`;
  if (!kept.has(key)) {
    const found = await ask(`v1/models/${encodeURIComponent(name)}/pictures`);
    const size = found.width * found.height;
    found.images = imagesOf(found.images, size);
    for (const [title, text] of Object.entries(found.examples)) {
      found.examples[title] = imagesOf(text, size);
    }
    kept.set(key, found);
  }
  return kept.get(key);
}

function exampleButtons([title, images]) {
  const buttons = images.slice(0, SHOWN).map((image, i) => {
    const shown = picture(image);
    const button = element("button", { type: "button", "aria-label": `${title}, example ${i + 1}` }, shown);
    button.addEventListener("click", () => {
      pad.paint(shown);
      row = Array.from(image, (ink) => ink / 255);
      answerRow();
    });
    return button;
  });
  return [element("h4", {}, title), ...buttons];
}

function picture(image) {
  const canvas = element("canvas", { class: "picture" });
  drawImage(canvas, image, pictures);
  return canvas;
}

const poke = latest(async () => {
  const [asked, of] = [row, model];
  if (asked === null) {
    clearAnswer(EMPTY);
    return;
  }
  const found = await ask("v1/predict", { model: of.name, matrix: [asked], fields: FIELDS });
  if (row !== null && model === of) showAnswer(of, found.answers[0]);
});

function answerRow() {
  clearTimeout(timer);
  tell(null);
  poke().catch(tell);
  if (row === null) return;
  drawImage($("heat"), row.map((ink) => 255 * ink), pictures);
  timer = setTimeout(() => explain().catch(tell), PAUSE);
}

async function explain() {
  const asked = row;
  const { cards } = await ask("v1/explain", { model: model.name, matrix: [asked], top: 100 });
  if (row !== asked) return;
  const parts = cards[0].parts;
  drawImage($("heat"), asked.map((ink) => 255 * ink), pictures, heatOf(parts));
  const near = parts.find((part) => part.kind === "neighbours");
  $("nearest").replaceChildren(...(near?.neighbours ?? []).slice(0, NEAREST).map(neighbour));
  $("why").hidden = false;
}

function neighbour({ row: i, distance }) {
  const label = pictures.labels[i];
  return element("div", {}, picture(pictures.images[i]), element("div", {}, label, element("br"), number(distance)));
}

// What each pixel adds to the squared distance, beyond the 1 that is usual: 0 to 1.
function heatOf(parts) {
  const heat = new Float32Array(pictures.width * pictures.height);
  const gaussian = parts.find((part) => part.kind === "gaussian");
  for (const { column, contribution } of gaussian?.features ?? []) {
    heat[column] = Math.min(1, Math.max(0, (contribution - 1) / 20));
  }
  return heat;
}

async function open(file) {
  try {
    pad.paint(await createImageBitmap(file));
    drawn();
  } catch {
    tell(new Error(`${file.name} is no image that this browser can read`));
  }
}

$("clear").addEventListener("click", pad.clear);
takeFiles($("drawing"), $("image"), open);

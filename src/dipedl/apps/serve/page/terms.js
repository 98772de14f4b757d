// What each number means, shown while the pointer or the focus is on it.

import { $, element } from "./dom.js";

const TERMS = {
  probability: "How likely the class is. The less evidence there is, the nearer it is to the prior: what was known before any training.",
  concentration: "The parameters of the answer's Dirichlet distribution: the prior, plus evidence times the classifier's own probability. Read them as numbers of training examples for each class. The thin line in the bar is one standard deviation to each side.",
  evidence: "How many training examples the answer is worth. There is much of it where training data is dense, and none far away from it.",
  vacuity: "The share of the answer that does not come from evidence. Near 0: much like what it learned from. 1: it knows nothing about this.",
  p_value: "The share of examples kept apart from training that are at least as unusual as this one. Usual rows have any value from 0 to 1 equally often; small ones are rare.",
  flagged: "A row is flagged if its p-value is at most the rate of false alarms: so often a usual row is flagged too.",
  label: "The class with the highest probability.",
  reason: "Why a row is flagged: the columns that are most unusual, or what was never seen.",
  heat: "The drawing as the model gets it: centred, and as large as the training images. Red pixels add most to the distance from the images that it learned from.",
  nearest: "The training images that are nearest by the model's own distance, with their class and distance. A smaller distance is more alike.",
  rows_seen: "Rows since the model was loaded. They are counted 50 at a time.",
  nats: "Evidence against “nothing has changed”, in nats: how much a bet against it has won, as a logarithm. On rows without a change it ever reaches the alarm with a chance of 1 % at most, over all three tests and all times.",
  estimated: "The accuracy that the model expects of itself on these rows, without their true classes. Right only if its confidence is as well calibrated here as it was on the rows kept apart.",
  flagged_share: "The share of flagged rows in the window.",
  vacuity_mean: "The mean vacuity of the window.",
  distance: "Between the p-values of the window and those of usual rows: the largest difference of their shares (Kolmogorov-Smirnov), from 0 to 1.",
  changed: "What differs from usual rows: p-values, or columns with their population stability index (below 0.1 a change is small, above 0.25 large). One of a hundred such names is false, on average.",
};

// A name that says what it means.
export function term(name, text) {
  return describe(element("button", { type: "button", class: "term" }, text), name);
}

export function describe(target, name) {
  const id = `term-${name}`;
  if (!$(id)) document.body.append(element("p", { id, hidden: true }, TERMS[name]));
  target.dataset.term = name;
  target.setAttribute("aria-describedby", id);
  return target;
}

let current = null;
let dismissed = null;

function show(target) {
  const tip = $("tip");
  current = target;
  tip.hidden = !target;
  if (!target) return;
  tip.textContent = TERMS[target.dataset.term];
  const at = target.getBoundingClientRect();
  const { width, height } = tip.getBoundingClientRect();
  const below = at.bottom + 6 + height < innerHeight;
  tip.style.left = `${Math.max(8, Math.min(at.left, document.documentElement.clientWidth - width - 8))}px`;
  tip.style.top = `${below ? at.bottom + 6 : Math.max(8, at.top - height - 6)}px`;
}

// What is pointed at, or else what has the focus.
const termAt = (event) =>
  event.target.closest?.("[data-term]") ?? document.activeElement.closest("[data-term]");

// Escape hides a text until another one was shown, or its own was asked for again.
function pointed(event) {
  const target = termAt(event);
  if (target && target === dismissed) return;
  dismissed = null;
  show(target);
}

function asked(event) {
  dismissed = null;
  show(termAt(event));
}

function dismiss() {
  dismissed = current ?? dismissed;
  show(null);
}

export function startTerms() {
  for (const place of document.querySelectorAll("span[data-term]")) {
    place.replaceWith(term(place.dataset.term, place.textContent));
  }
  document.addEventListener("pointerover", pointed);
  for (const kind of ["focusin", "click"]) document.addEventListener(kind, asked);
  document.addEventListener("focusout", () => show(null));
  document.addEventListener("scroll", () => show(current), true);
  document.addEventListener("keydown", (event) => event.key === "Escape" && dismiss());
}

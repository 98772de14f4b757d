// The answer to one row: what it says, how sure it is, and of what.

import { $, element, number, percent } from "./dom.js";
import { term } from "./terms.js";

const MOST = 12;

export const FIELDS = ["label", "probabilities", "vacuity", "p_value", "flagged"];

export function clearAnswer(text) {
  $("verdict").textContent = text;
  $("verdict").classList.remove("flagged");
  $("facts").replaceChildren();
  $("classes").tBodies[0].replaceChildren();
  $("classes").hidden = true;
  $("why").hidden = true;
}

export function showAnswer(model, answer) {
  const flagged = answer.flagged;
  const said = flagged
    ? `It does not know: this is unlike what it learned from. If it must choose: ${answer.label}.`
    : `It says ${answer.label}.`;
  if ($("verdict").textContent !== said) $("verdict").textContent = said;
  $("verdict").classList.toggle("flagged", flagged);
  // The mean of a Dirichlet is alpha / sum, and the vacuity is the prior's sum / sum.
  const sum = model.prior / answer.vacuity;
  showFacts($("facts"), [
    fact("vacuity", "Vacuity", number(answer.vacuity), { share: answer.vacuity }),
    fact("p_value", "p-value", number(answer.p_value), { share: answer.p_value }),
    fact("evidence", "Evidence", number(sum - model.prior)),
    fact("flagged", "Flagged", flagged ? "yes" : "no", { note: `at p ≤ ${number(model.false_alarm_rate)}` }),
  ]);
  const all = Object.entries(answer.probabilities);
  const shown = all.length > MOST ? all.sort((a, b) => b[1] - a[1]).slice(0, MOST) : all;
  $("classes").tBodies[0].replaceChildren(...shown.map(([name, p]) => classRow(name, p, sum)));
  $("classes").caption.textContent =
    shown.length < all.length ? `The likeliest ${MOST} of ${all.length} classes` : "Classes";
  $("classes").hidden = false;
}

// A number with its name; a share has a bar too, and a note stands below.
export function fact(name, title, text, { share, note } = {}) {
  const value = element("dd", {}, text);
  if (share !== undefined) value.append(element("div", { class: "bar" }, bar(share)));
  const box = element("div", {}, element("dt", {}, term(name, title)), value);
  if (note !== undefined) box.append(element("dd", { class: "quiet" }, note));
  box.dataset.term = name;
  return box;
}

// New numbers in place of the old ones; the focus stays where it was.
export function showFacts(box, facts) {
  if (facts.map((one) => one.textContent).join("") === box.textContent) return;
  const focused = Array.from(box.querySelectorAll(".term")).indexOf(document.activeElement);
  box.replaceChildren(...facts);
  box.querySelectorAll(".term")[focused]?.focus();
}

function bar(share) {
  const made = element("i");
  made.style.width = `${100 * share}%`;
  return made;
}

function classRow(name, p, sum) {
  const spread = Math.sqrt((p * (1 - p)) / (sum + 1));
  const line = element("b");
  const low = Math.max(0, p - spread);
  line.style.left = `${100 * low}%`;
  line.style.width = `${100 * (Math.min(1, p + spread) - low)}%`;
  const numbers = [percent(p), number(p * sum)].map((text, i) => {
    const cell = element("td", { class: "number" }, text);
    cell.dataset.term = ["probability", "concentration"][i];
    return cell;
  });
  return element(
    "tr",
    {},
    element("th", { scope: "row" }, name),
    element("td", {}, element("div", { class: "bar" }, bar(p), line)),
    ...numbers,
  );
}

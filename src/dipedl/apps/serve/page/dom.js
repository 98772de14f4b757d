// Elements, numbers and trouble.

export const $ = (id) => document.getElementById(id);

// An element with attributes and children; texts are never read as HTML.
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== false) made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children);
  return made;
}

export function number(x) {
  if (x === null || x === undefined) return "";
  if (x !== 0 && Math.abs(x) < 0.001) return x.toExponential(0);
  return Math.abs(x) < 100 ? String(Number(x.toPrecision(3))) : Math.round(x).toLocaleString("en");
}

export function percent(x) {
  return x > 0.999 && x < 1 ? "> 99.9 %" : `${(100 * x).toFixed(1)} %`;
}

export function tell(error) {
  $("trouble").hidden = !error;
  $("trouble").textContent = error ? `${error.message}.` : "";
}

// Takes what is dropped on an element, or chosen in its input.
export function takeFiles(element, input, take) {
  const over = (on) => (event) => {
    event.preventDefault();
    element.classList.toggle("over", on);
  };
  element.addEventListener("dragover", over(true));
  element.addEventListener("dragleave", over(false));
  element.addEventListener("drop", (event) => {
    over(false)(event);
    if (event.dataTransfer.files.length) take(event.dataTransfer.files[0]);
  });
  input.addEventListener("change", () => {
    if (input.files.length) take(input.files[0]);
    input.value = "";
  });
}

"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const el = (id) => document.getElementById(id);
const narrow = () => window.innerWidth < 600;
const kinds = Object.values(data.kinds);
let state = {}, shown = [], receipts = null;

function node(tag, attributes = {}, ...children) {
  const svg = ["svg", "g", "use", "line", "text", "title"].includes(tag);
  const made = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}
const mark = (kind) => node("svg", { class: `mark-${kind}`, viewBox: "-8 -8 16 16", "aria-label": kinds[kind], role: "img" }, node("use", { href: `#shape-${kind}` }));
const decimals = (column) => (/^(aurc|augrc)/.test(column.key) ? 3 : column.group === "Cost" ? 1 : 4);
function text(value, column) {
  if (value === null || value === undefined) return "";
  if (column.key === "forward_passes") return String(Math.round(value));
  if (column.key === "price") return `${(100 * value).toFixed(1).replace(/^-0.0$/, "0.0")} %`;
  return value.toFixed(column.key === "n_parameters" ? 2 : decimals(column));
}

/* ---- what is shown: kept in the address */
const suiteOf = (key) => data.suites.find((one) => `${one.suite}/${one.profile}` === key) || data.suites[0];
const suite = () => suiteOf(state.suite);
function groupsOf(one) {
  return [...new Set(one.columns.map((column) => column.group))];
}
function defaults(one) {
  const groups = groupsOf(one);
  const means = groups.filter((group) => /^(near|far) OOD/.test(group));
  const sets = means.length ? means : groups.slice(0, 1);
  const known = groups.find((group) => group.startsWith("Known"));
  const auroc = one.columns.find((column) => column.key.startsWith("auroc"));
  return { groups: [...sets, ...(known ? [known] : [])], sort: auroc ? auroc.key : one.columns[0].key, down: true };
}
function readAddress() {
  const asked = new URLSearchParams(location.hash.slice(1));
  const one = suiteOf(asked.get("suite"));
  const usual = defaults(one), groups = groupsOf(one);
  const keys = one.columns.map((column) => column.key);
  const sort = ["title", "seeds", ...keys].includes(asked.get("sort")) ? asked.get("sort") : usual.sort;
  const chosen = asked.has("groups") ? asked.get("groups").split("|").filter((group) => groups.includes(group)) : usual.groups;
  const ood = keys.find((key) => key.startsWith("auroc")) || keys[0];
  const accuracy = keys.find((key) => key === "brier_id") || keys[0];
  state = {
    suite: `${one.suite}/${one.profile}`,
    place: asked.get("place") || "",
    search: asked.get("search") || "",
    kinds: asked.has("kinds") ? asked.get("kinds").split("").map(Number) : kinds.map((_, i) => i),
    groups: chosen,
    sort,
    down: asked.has("down") ? asked.get("down") === "1" : usual.down,
    x: keys.includes(asked.get("x")) ? asked.get("x") : accuracy,
    y: keys.includes(asked.get("y")) ? asked.get("y") : ood,
  };
}
function writeAddress() {
  const address = new URLSearchParams({
    suite: state.suite, sort: state.sort, down: state.down ? 1 : 0, kinds: state.kinds.join(""), groups: state.groups.join("|"), x: state.x, y: state.y,
  });
  if (state.place) address.set("place", state.place);
  if (state.search) address.set("search", state.search);
  history.replaceState(null, "", `#${address}`);
}

/* ---- lines */
function lines() {
  const one = suite();
  let all = one.lines;
  if (one.crossed && !state.place) all = meansOverPlaces(one);
  else if (one.crossed) all = all.filter((line) => line.p === state.place);
  const words = state.search.toLowerCase();
  return all.filter((line) => state.kinds.includes(line.k) && (line.t + " " + line.m).toLowerCase().includes(words));
}
function meansOverPlaces(one) {
  const methods = new Map();
  for (const line of one.lines) methods.set(line.m, [...(methods.get(line.m) || []), line]);
  return [...methods.values()].map((of) => ({
    ...of[0],
    of,
    v: one.columns.map((_, i) => {
      const there = of.map((line) => line.v[i]).filter((value) => value !== null);
      return there.length ? there.reduce((sum, value) => sum + value, 0) / there.length : null;
    }),
    d: one.columns.map(() => null),
  }));
}
function sorted(all) {
  const one = suite();
  const i = one.columns.findIndex((column) => column.key === state.sort);
  const value = (line) => (state.sort === "title" ? line.t.toLowerCase() : state.sort === "seeds" ? count(line) : line.v[i]);
  const sign = state.down ? -1 : 1;
  return [...all].sort((a, b) => {
    const [x, y] = [value(a), value(b)];
    if (x === null || y === null) return (x === null) - (y === null);
    return x < y ? -sign : x > y ? sign : 0;
  });
}
const count = (line) => (line.of ? line.of.length : line.s);

const line_count = (all) => Math.max(0, ...all.map(count));

/* ---- table */
function head(key, title, better, edge) {
  const order = state.sort === key ? (state.down ? "descending" : "ascending") : null;
  const sort = () => {
    state.down = state.sort === key ? !state.down : key === "title" ? false : better !== false;
    state.sort = key;
    draw();
  };
  return node("th", { scope: "col", "aria-sort": order, class: edge ? "edge" : null }, node("button", { type: "button", onclick: sort }, title));
}
function drawTable() {
  const one = suite(), all = sorted(lines());
  const columns = one.columns.map((column, i) => ({ ...column, i })).filter((column) => state.groups.includes(column.group));
  const first = columns.map((column, j) => j === 0 || columns[j - 1].group !== column.group);
  const groups = state.groups.length ? groupsOf(one).filter((group) => state.groups.includes(group)) : [];
  const top = node("tr", {}, node("th", { colspan: 2 }), ...groups.map((group) => node("th", { colspan: columns.filter((column) => column.group === group).length, scope: "colgroup" }, node("span", {}, group))));
  const second = node("tr", {}, head("title", "method", false), head("seeds", one.crossed && !state.place ? "lines" : "seeds", true),
    ...columns.map((column, j) => head(column.key, `${column.title} ${column.up ? "↑" : "↓"}`, column.up, first[j])));
  document.querySelector("table.methods thead").replaceChildren(top, second);
  /* a mean over fewer lines is one over other rows: it stands back, and is no best */
  const most = line_count(all);
  const best = columns.map((column) => {
    const there = all.filter((line) => !line.of || count(line) === most).map((line) => line.v[column.i]).filter((value) => value !== null);
    return column.group === "Cost" || there.length < 2 ? null : column.up ? Math.max(...there) : Math.min(...there);
  });
  document.querySelector("table.methods tbody").replaceChildren(...all.map((line) =>
    node("tr", { class: line.of && count(line) < most ? "few" : null },
      node("th", { scope: "row" }, node("button", { type: "button", onclick: () => openReceipt(line) }, mark(line.k), line.t)),
      node("td", {}, String(count(line))),
      ...columns.map((column, j) => {
        const value = line.v[column.i], sd = line.d[column.i];
        const is_best = !(line.of && count(line) < most) && value !== null && best[j] !== null && text(value, column) === text(best[j], column);
        return node("td", { class: [is_best ? "best" : "", first[j] ? "edge" : ""].join(" ").trim() || null }, text(value, column), sd === null ? null : node("small", {}, `±${text(sd, column)}`));
      }))));
  shown = all;
  const over = one.crossed && !state.place ? " Each is a mean over the lines that the method has; those in grey have fewer than others. Choose a data set to compare on the same rows." : "";
  el("said").textContent = `${all.length} methods.${over} ${one.note}`;
}

/* ---- plot */
function ticks(low, high) {
  const step = 10 ** Math.floor(Math.log10((high - low) / 4 || 1));
  const wide = [1, 2, 5, 10].map((of) => of * step).find((of) => (high - low) / of <= 6);
  const found = [];
  for (let tick = Math.ceil(low / wide) * wide; tick <= high + 1e-12; tick += wide) found.push(tick);
  return found.map((tick) => [tick, tick.toFixed(Math.max(0, -Math.floor(Math.log10(wide) + 1e-9)))]);
}
function drawPlot() {
  const one = suite();
  const [xi, yi] = [state.x, state.y].map((key) => one.columns.findIndex((column) => column.key === key));
  const points = shown.filter((line) => line.v[xi] !== null && line.v[yi] !== null);
  const plot = el("plot"), parts = [];
  const width = narrow() ? 400 : 720;
  plot.setAttribute("viewBox", `0 0 ${width} 440`);
  const box = { left: narrow() ? 46 : 70, right: width - 20, top: 26, bottom: 384 };
  if (!points.length) {
    plot.replaceChildren(node("text", { x: width / 2, y: 200, "text-anchor": "middle" }, "No method has both."));
    return;
  }
  const range = (i) => {
    const values = points.map((line) => line.v[i]);
    const [low, high] = [Math.min(...values), Math.max(...values)];
    const room = (high - low || Math.abs(high) || 1) * 0.06;
    return [low - room, high + room];
  };
  const [xr, yr] = [range(xi), range(yi)];
  const px = (value) => box.left + ((value - xr[0]) / (xr[1] - xr[0])) * (box.right - box.left);
  const py = (value) => box.bottom - ((value - yr[0]) / (yr[1] - yr[0])) * (box.bottom - box.top);
  for (const [tick, label] of ticks(...xr)) {
    parts.push(node("line", { x1: px(tick), x2: px(tick), y1: box.top, y2: box.bottom }), node("text", { x: px(tick), y: box.bottom + 20, "text-anchor": "middle" }, label));
  }
  for (const [tick, label] of ticks(...yr)) {
    parts.push(node("line", { x1: box.left, x2: box.right, y1: py(tick), y2: py(tick) }), node("text", { x: box.left - 8, y: py(tick) + 4, "text-anchor": "end" }, label));
  }
  const name = (i) => { const column = one.columns[i]; return `${column.title}${/^(near|far) OOD/.test(column.group) ? `, ${column.group.split(":")[0]}` : ""} ${column.up ? "→ better" : "← better"}`; };
  parts.push(node("text", { x: (box.left + box.right) / 2, y: box.bottom + 46, "text-anchor": "middle" }, name(xi)));
  const say = (line) => { el("pointed").textContent = `${line.t}: ${one.columns[xi].title} ${text(line.v[xi], one.columns[xi])}, ${one.columns[yi].title} ${text(line.v[yi], one.columns[yi])}`; };
  for (const line of points) {
    const open = () => openReceipt(line);
    parts.push(node("g", {
      class: `point mark-${line.k}`, transform: `translate(${px(line.v[xi]).toFixed(1)} ${py(line.v[yi]).toFixed(1)})`, tabindex: 0, role: "button", "aria-label": line.t,
      onclick: open, onkeydown: (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); open(); } },
      onmouseenter: () => say(line), onfocus: () => say(line),
    }, node("use", { href: `#shape-${line.k}` }), node("title", {}, line.t)));
  }
  const sign = (i) => (one.columns[i].up ? 1 : -1);
  const ends = new Set([xi, yi].map((i) => points.reduce((a, b) => (sign(i) * b.v[i] > sign(i) * a.v[i] ? b : a))));
  for (const line of ends) {
    const x = Math.min(box.right - 4 * line.t.length, Math.max(box.left + 4 * line.t.length, px(line.v[xi])));
    parts.push(node("text", { class: "name", x, y: py(line.v[yi]) - 11, "text-anchor": "middle" }, line.t));
  }
  plot.replaceChildren(...parts);
}

/* ---- receipts, unpacked when one is opened first */
async function unpack() {
  const packed = Uint8Array.from(atob(el("receipts").textContent), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}
async function openReceipt(line) {
  const body = el("receipt-body"), dialog = el("receipt"), one = suite();
  const title = node("h2", { id: "receipt-title" }, line.t);
  body.replaceChildren(title, node("p", {}, "Unpacking."));
  if (!dialog.open) dialog.showModal();
  if (line.of) {
    const i = one.columns.findIndex((column) => column.key === state.sort);
    const items = line.of.map((each) => node("li", {}, node("button", { type: "button", onclick: () => openReceipt(each) }, each.p), i < 0 || each.v[i] === null ? "" : ` ${text(each.v[i], one.columns[i])}`));
    body.replaceChildren(title, node("p", { class: "note" }, `${one.title}. Choose a line${i < 0 ? "" : `; the number is ${one.columns[i].title}`}.`), node("ul", { class: "places" }, ...items));
    return;
  }
  receipts = receipts || (await unpack());
  const of = receipts[line.r];
  const row = (...cells) => node("tr", {}, ...cells.map((cell) => node("td", {}, String(cell))));
  const heads = node("tr", {}, ...["seed", "made", "commit", "machine", "training, s", "CPU s"].map((cell) => node("th", {}, cell)));
  body.replaceChildren(
    title,
    node("p", { class: "note" }, `${one.title}${line.p ? `; ${line.p}` : ""}; ${kinds[line.k]}; configuration ${of.hash}${of.chosen.length ? `; chosen: ${of.chosen.join(", ")}` : ""}`),
    node("h3", {}, "Make it"), node("pre", {}, node("code", {}, of.run)),
    ...(of.verify ? [node("h3", {}, "Make the published row again, and compare"), node("pre", {}, node("code", {}, of.verify))] : []),
    node("h3", {}, "Receipt"),
    node("div", { class: "scroll" }, node("table", {}, node("thead", {}, heads), node("tbody", {}, ...of.rows.map((each) => row(each.seed, each.time.slice(0, 16).replace("T", " "), each.commit || "", each.machine, each.train?.toFixed(1) ?? "", each.cpu?.toFixed(1) ?? ""))))),
    node("p", { class: "note" }, Object.entries(of.versions).map(([name, version]) => `${name} ${version}`).join(", ")),
    node("h3", {}, "Numbers"),
    node("p", { class: "note" }, one.columns.map((column, i) => (line.v[i] === null ? null : `${column.title}${column.key.includes("/") ? ` (${column.group.split(":")[0]})` : ""} ${text(line.v[i], column)}`)).filter(Boolean).join("; ")),
    node("h3", {}, "Settings"), node("pre", {}, node("code", {}, JSON.stringify(of.config, null, 1))),
  );
}

/* ---- controls */
function fill(select, options, value) {
  select.replaceChildren(...options.map(([key, title]) => node("option", { value: key }, title)));
  select.value = value;
}
function drawControls() {
  const one = suite();
  el("suite").value = state.suite;
  el("search").value = state.search;
  const places = [...new Set(one.lines.map((line) => line.p))].filter(Boolean);
  if (!places.includes(state.place)) state.place = "";
  el("place-field").hidden = !one.crossed;
  el("place-field").style.display = one.crossed ? "" : "none";
  fill(el("place"), [["", `all ${places.length}, in the mean`], ...places.map((place) => [place, place])], state.place);
  for (const box of document.querySelectorAll("[name=kind]")) box.checked = state.kinds.includes(Number(box.value));
  el("groups").replaceChildren(...groupsOf(one).map((group) => node("label", {}, node("input", {
    type: "checkbox", value: group, ...(state.groups.includes(group) ? { checked: "" } : {}),
    onchange: (event) => {
      state.groups = event.target.checked ? [...state.groups, group] : state.groups.filter((other) => other !== group);
      draw();
    },
  }), group)));
  const options = one.columns.map((column) => [column.key, `${column.title} (${column.group.split(":")[0]})`]);
  fill(el("x"), options, state.x);
  fill(el("y"), options, state.y);
}
function draw() {
  drawTable();
  drawPlot();
  writeAddress();
}
function start() {
  readAddress();
  drawControls();
  draw();
}
el("controls").addEventListener("submit", (event) => event.preventDefault());
el("suite").addEventListener("change", (event) => { location.hash = new URLSearchParams({ suite: event.target.value }); });
el("place").addEventListener("change", (event) => { state.place = event.target.value; draw(); });
el("search").addEventListener("input", (event) => { state.search = event.target.value; draw(); });
for (const box of document.querySelectorAll("[name=kind]")) {
  box.addEventListener("change", () => {
    state.kinds = [...document.querySelectorAll("[name=kind]:checked")].map((one) => Number(one.value));
    draw();
  });
}
for (const axis of ["x", "y"]) el(axis).addEventListener("change", (event) => { state[axis] = event.target.value; draw(); });
el("receipt").addEventListener("click", (event) => { if (event.target === el("receipt")) el("receipt").close(); });
window.addEventListener("hashchange", start);
window.addEventListener("resize", drawPlot);
el("folded").open = !narrow();
start();

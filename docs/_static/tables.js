// A click on the head of a column sorts its table; a second click turns the order around.
document.querySelectorAll("table.table, article table").forEach((table) => {
  const body = table.tBodies[0];
  const heads = table.tHead ? [...table.tHead.rows[0].cells] : [];
  if (!body || body.rows.length < 3 || table.classList.contains("autosummary")) return;
  const value = (row, column) => {
    const text = row.cells[column] ? row.cells[column].textContent.trim() : "";
    const number = Number.parseFloat(text.replace(/^[^\d.+-]+/, "").replace(/(\d),(?=\d{3})/g, "$1"));
    return [text === "" ? 1 : 0, Number.isNaN(number) ? Infinity : number, text];
  };
  const order = (a, b) =>
    a[1] === b[1] || (Number.isNaN(a[1] - b[1])) ? a[2].localeCompare(b[2]) : a[1] - b[1];
  const sort = (column, down) => {
    const rows = [...body.rows].map((row) => [value(row, column), row]);
    rows.sort(([a], [b]) => a[0] - b[0] || (down ? -order(a, b) : order(a, b)));
    body.append(...rows.map(([, row]) => row));
    heads.forEach((head, i) =>
      head.setAttribute("aria-sort", i !== column ? "none" : down ? "descending" : "ascending"));
  };
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "sort";
    button.title = "Sort by this column";
    button.append(...head.childNodes);
    button.addEventListener("click", () => sort(column, head.getAttribute("aria-sort") === "ascending"));
    head.append(button);
  });
});

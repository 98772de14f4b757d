// A click on the head of a column sorts its table by it; a second click turns the order around.
const numberIn = (text) => Number.parseFloat(text.replace(/^[^\d.+-]+/, "").replace(/(\d),(?=\d{3})/g, "$1"));

function compare(a, b) {
  const [x, y] = [numberIn(a), numberIn(b)];
  if (Number.isNaN(x) || Number.isNaN(y) || x === y) return a.localeCompare(b);
  return x - y;
}

function sortable(table) {
  const heads = [...table.tHead.rows[0].cells];
  const body = table.tBodies[0];
  const text = (row, column) => row.cells[column]?.textContent.trim() ?? "";
  const sort = (column) => {
    const down = heads[column].getAttribute("aria-sort") === "ascending";
    const rows = [...body.rows].sort((a, b) => compare(text(a, column), text(b, column)));
    const filled = rows.filter((row) => text(row, column));
    // Empty cells stay below
    body.append(...(down ? filled.reverse() : filled), ...rows.filter((row) => !text(row, column)));
    heads.forEach((head) => head.setAttribute("aria-sort", "none"));
    heads[column].setAttribute("aria-sort", down ? "descending" : "ascending");
  };
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "sort";
    button.title = "Sort by this column";
    button.append(...head.childNodes);
    button.addEventListener("click", () => sort(column));
    head.append(button);
  });
}

document.querySelectorAll("article table").forEach((table) => {
  if (!location.pathname.includes("/reference/")) return;
  if (table.tHead && table.tBodies[0]?.rows.length > 3) sortable(table);
});

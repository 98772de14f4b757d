// CSV in and out.

// Names and rows of cells; the delimiter is the one that the first line has most of.
export function parseCsv(text) {
  const plain = text.replace(/^\uFEFF/, "");
  const first = plain.split(/\r?\n/, 1)[0];
  const count = (sign) => first.split(sign).length;
  const delimiter = [",", ";", "\t"].reduce((best, sign) => (count(sign) > count(best) ? sign : best));
  const [names = [], ...rows] = linesOf(plain, delimiter);
  return { names: names.map((name) => name.trim()), rows };
}

function linesOf(text, delimiter) {
  const lines = [];
  let [cells, cell, quoted] = [[], "", false];
  const endLine = () => {
    cells.push(cell);
    if (cells.length > 1 || cell !== "") lines.push(cells);
    [cells, cell] = [[], ""];
  };
  for (let i = 0; i < text.length; i++) {
    const sign = text[i];
    if (quoted) {
      if (sign !== '"') cell += sign;
      else if (text[i + 1] === '"') cell += text[++i];
      else quoted = false;
    } else if (sign === '"' && cell === "") quoted = true;
    else if (sign === delimiter) [cell] = ["", cells.push(cell)];
    else if (sign === "\n") endLine();
    else if (sign !== "\r") cell += sign;
  }
  endLine();
  return lines;
}

export function toCsv(names, rows) {
  return [names, ...rows].map((cells) => cells.map(cellText).join(",")).join("\r\n") + "\r\n";
}

// No text is a formula to a spreadsheet.
function cellText(value) {
  if (value === null || value === undefined) return "";
  const text = String(value);
  const safe = typeof value === "string" && /^\s*[=+\-@]/.test(text) && isNaN(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

export function download(name, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}

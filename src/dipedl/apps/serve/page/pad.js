// A canvas to draw on with mouse, finger, pen or keys; its opacity is the ink.

const SIZE = 280;
const INK = 24;
const STEP = 20;
// The least contrast of an image that has ink.
const LEAST = 0.2;
const MOVES = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

export function makePad(canvas, cursor, say, changed) {
  const pen = canvas.getContext("2d", { willReadFrequently: true });
  Object.assign(pen, { lineWidth: INK, lineCap: "round", lineJoin: "round" });
  const centre = { x: SIZE / 2, y: SIZE / 2 };
  let at = centre;
  let down = false;

  function line(to) {
    pen.beginPath();
    pen.moveTo(at.x, at.y);
    pen.lineTo(to.x, to.y);
    pen.stroke();
    at = to;
    changed();
  }

  function place(event) {
    const box = canvas.getBoundingClientRect();
    const scale = SIZE / canvas.clientWidth;
    return {
      x: (event.clientX - box.left - canvas.clientLeft) * scale,
      y: (event.clientY - box.top - canvas.clientTop) * scale,
    };
  }

  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    cursor.hidden = true;
    down = false;
    at = place(event);
    line(at);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!event.buttons) return;
    for (const one of event.getCoalescedEvents?.() ?? [event]) line(place(one));
  });

  canvas.addEventListener("keydown", (event) => {
    if (event.key in MOVES) {
      const [right, below] = MOVES[event.key];
      const to = { x: inside(at.x + STEP * right), y: inside(at.y + STEP * below) };
      down ? line(to) : (at = to);
    } else if (event.key === " ") {
      down = !down;
      if (down) line(at);
    } else if (event.key === "Delete" || event.key === "Backspace") {
      clear();
    } else return;
    event.preventDefault();
    point();
  });
  canvas.addEventListener("focus", () => canvas.matches(":focus-visible") && point());
  canvas.addEventListener("blur", () => {
    cursor.hidden = true;
    down = false;
    say("");
  });

  function point() {
    cursor.hidden = false;
    cursor.style.left = `${(100 * at.x) / SIZE}%`;
    cursor.style.top = `${(100 * at.y) / SIZE}%`;
    cursor.classList.toggle("down", down);
    const [row, column] = [at.y, at.x].map((x) => Math.round(x / STEP));
    say(`Pen ${down ? "down" : "up"}, row ${row}, column ${column} of ${SIZE / STEP}`);
  }

  function clear() {
    pen.clearRect(0, 0, SIZE, SIZE);
    at = centre;
    changed();
  }

  return { clear, ink: () => inkOf(pen), paint: (image) => paint(pen, image) };
}

const inside = (x) => Math.min(SIZE - STEP, Math.max(STEP, x));

function inkOf(pen) {
  const { data, width, height } = pen.getImageData(0, 0, SIZE, SIZE);
  return { width, height, ink: Float32Array.from({ length: width * height }, (_, i) => data[4 * i + 3] / 255) };
}

// Draws a bitmap or canvas as ink: what differs from its edge, the ground.
function paint(pen, picture) {
  const scale = SIZE / Math.max(picture.width, picture.height);
  const [w, h] = [picture.width * scale, picture.height * scale];
  const [left, top] = [(SIZE - w) / 2, (SIZE - h) / 2];
  pen.clearRect(0, 0, SIZE, SIZE);
  pen.drawImage(picture, left, top, w, h);
  const image = pen.getImageData(0, 0, SIZE, SIZE);
  const light = Float32Array.from({ length: SIZE * SIZE }, (_, i) => brightness(image.data, i));
  // Without the outermost pixels, which are partly paper.
  const [x0, y0, x1, y1] = [left + 1, top + 1, left + w - 1, top + h - 1];
  const within = (i) => i % SIZE >= x0 && i % SIZE < x1 && i / SIZE >= y0 && Math.floor(i / SIZE) < y1;
  const ground = median(edge(light, [x0, y0, x1, y1]));
  const ink = light.map((value, i) => (within(i) ? Math.abs(value - ground) : 0));
  const most = Math.max(LEAST, ink.reduce((a, b) => Math.max(a, b), 0));
  for (let i = 0; i < ink.length; i++) {
    const share = ink[i] / most;
    image.data.set([0, 0, 0, share < 0.15 ? 0 : Math.round(255 * share)], 4 * i);
  }
  pen.putImageData(image, 0, 0);
}

// From 0, black, to 1; what is transparent is white.
function brightness(data, i) {
  const [r, g, b, a] = data.subarray(4 * i, 4 * i + 4);
  return 1 - (1 - (0.299 * r + 0.587 * g + 0.114 * b) / 255) * (a / 255);
}

function edge(light, box) {
  const [x0, y0, x1, y1] = [Math.ceil(box[0]), Math.ceil(box[1]), Math.ceil(box[2]) - 1, Math.ceil(box[3]) - 1];
  const found = [];
  for (let x = x0; x <= x1; x++) found.push(light[y0 * SIZE + x], light[y1 * SIZE + x]);
  for (let y = y0; y <= y1; y++) found.push(light[y * SIZE + x0], light[y * SIZE + x1]);
  return found;
}

const median = (values) => values.sort((a, b) => a - b)[values.length >> 1] ?? 1;

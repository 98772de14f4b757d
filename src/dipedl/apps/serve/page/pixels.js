// Between drawings and the rows of a model.

// Training digits are 20 of 28 pixels large, and centred by the mean place of their ink.
const SHARE = 20 / 28;
// A dot is not blown up to a blob.
const SMALLEST = 100;

// The row of a drawing, width * height numbers in [0, 1]; null if there is no ink.
export function rowOf({ ink, width, height }, to) {
  const box = { left: width, right: -1, top: height, bottom: -1, x: 0, y: 0, sum: 0 };
  each(ink, width, (x, y, amount) => {
    box.left = Math.min(box.left, x);
    box.right = Math.max(box.right, x);
    box.top = Math.min(box.top, y);
    box.bottom = Math.max(box.bottom, y);
    box.x += amount * x;
    box.y += amount * y;
    box.sum += amount;
  });
  if (box.sum === 0) return null;
  const size = Math.max(SMALLEST, box.right - box.left + 1, box.bottom - box.top + 1);
  const scale = (SHARE * to.width) / size;
  const row = new Float32Array(to.width * to.height);
  each(ink, width, (x, y, amount) => {
    const across = Math.floor((x - box.x / box.sum) * scale + to.width / 2);
    const down = Math.floor((y - box.y / box.sum) * scale + to.height / 2);
    if (across >= 0 && across < to.width && down >= 0 && down < to.height) {
      row[down * to.width + across] += amount * scale * scale;
    }
  });
  return Array.from(row, (value) => Math.round(1000 * Math.min(1, value)) / 1000);
}

function each(ink, width, work) {
  for (let i = 0; i < ink.length; i++) {
    if (ink[i] > 0.05) work(i % width, Math.floor(i / width), ink[i]);
  }
}

// The images in a text of base64, one Uint8Array each.
export function imagesOf(text, size) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return Array.from({ length: bytes.length / size }, (_, i) => bytes.subarray(i * size, (i + 1) * size));
}

// Shows ink (n,) in [0, 255] on a canvas, black on white; red where `heat` is 1.
export function drawImage(canvas, image, { width, height }, heat = null) {
  Object.assign(canvas, { width, height });
  const pen = canvas.getContext("2d");
  const pixels = pen.createImageData(width, height);
  for (let i = 0; i < width * height; i++) {
    const [light, warm] = [255 - image[i], heat ? heat[i] : 0];
    const mix = [220, 30, 30].map((red) => light + (red - light) * 0.85 * warm);
    pixels.data.set([...mix, 255], 4 * i);
  }
  pen.putImageData(pixels, 0, 0);
}

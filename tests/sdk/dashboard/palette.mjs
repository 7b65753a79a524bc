// Makes pictures of pages small: a PNG of few colours has one byte for each pixel.
import { deflateSync, inflateSync } from "node:zlib";

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);

// Undoes the filter of each row: none, left, above, average, or Paeth's.
function unfilter(bytes, width, height, size) {
  const stride = width * size;
  const pixels = Buffer.alloc(stride * height);
  for (let row = 0; row < height; row += 1) {
    const kind = bytes[row * (stride + 1)];
    for (let at = 0; at < stride; at += 1) {
      const left = at < size ? 0 : pixels[row * stride + at - size];
      const above = row === 0 ? 0 : pixels[(row - 1) * stride + at];
      const corner = at < size || row === 0 ? 0 : pixels[(row - 1) * stride + at - size];
      const guess = left + above - corner;
      const [a, b, c] = [left, above, corner].map((value) => Math.abs(guess - value));
      const paeth = a <= b && a <= c ? left : b <= c ? above : corner;
      const add = [0, left, above, (left + above) >> 1, paeth][kind];
      pixels[row * stride + at] = bytes[row * (stride + 1) + 1 + at] + add;
    }
  }
  return pixels;
}

function checksum(bytes) {
  let sum = 0xffffffff;
  for (const byte of bytes) {
    sum ^= byte;
    for (let bit = 0; bit < 8; bit += 1) sum = (sum >>> 1) ^ (sum & 1 ? 0xedb88320 : 0);
  }
  return (sum ^ 0xffffffff) >>> 0;
}

function chunk(type, data) {
  const head = Buffer.alloc(8);
  head.writeUInt32BE(data.length);
  head.write(type, 4, "latin1");
  const tail = Buffer.alloc(4);
  tail.writeUInt32BE(checksum(Buffer.concat([head.subarray(4), data])));
  return Buffer.concat([head, data, tail]);
}

// Returns the PNG `picture`, of 8 bits a channel, with at most 256 colours.
export function reduce(picture) {
  const [width, height] = [picture.readUInt32BE(16), picture.readUInt32BE(20)];
  const size = picture[25] === 6 ? 4 : 3;
  const parts = [];
  for (let at = 8; at < picture.length; at += 12 + picture.readUInt32BE(at)) {
    if (picture.toString("latin1", at + 4, at + 8) === "IDAT") parts.push(picture.subarray(at + 8, at + 8 + picture.readUInt32BE(at)));
  }
  const pixels = unfilter(inflateSync(Buffer.concat(parts)), width, height, size);
  for (let bits = 0; ; bits += 1) {
    const colours = new Map();
    const rows = Buffer.alloc((width + 1) * height);
    for (let at = 0; at < width * height && colours.size <= 256; at += 1) {
      const [red, green, blue] = pixels.subarray(at * size, at * size + 3);
      const key = ((red >> bits) << 16) | ((green >> bits) << 8) | (blue >> bits);
      if (!colours.has(key)) colours.set(key, { number: colours.size, red, green, blue });
      rows[at + 1 + Math.floor(at / width)] = colours.get(key).number;
    }
    if (colours.size > 256) continue;
    const head = Buffer.from(picture.subarray(16, 29));
    head[9] = 3;
    const palette = Buffer.from([...colours.values()].flatMap(({ red, green, blue }) => [red, green, blue]));
    return Buffer.concat([SIGNATURE, chunk("IHDR", head), chunk("PLTE", palette), chunk("IDAT", deflateSync(rows, { level: 9 })), chunk("IEND", Buffer.alloc(0))]);
  }
}

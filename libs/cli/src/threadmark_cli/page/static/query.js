// Names and texts as they stand in an address. Unlike URLSearchParams, it keeps lone surrogates, which an id may have:
// each as the three bytes that UTF-8 would have for it.

const LONE = /([\ud800-\udfff])/u;
const LONE_BYTES = /(%ed%[ab][0-9a-f]%[89ab][0-9a-f])/i;

/** Returns { a: "b c" } as "a=b%20c". Null and undefined are left out. */
export function toQuery(texts) {
  return Object.entries(texts)
    .filter(([, text]) => text !== null && text !== undefined)
    .map(([name, text]) => `${encodeURIComponent(name)}=${encoded(String(text))}`)
    .join("&");
}

/** Returns "a=b%20c" as { a: "b c" }, whatever it has. */
export function fromQuery(query) {
  const pairs = query.split("&").filter(Boolean);
  return Object.fromEntries(
    pairs.map((pair) => {
      const [name, ...rest] = pair.split("=");
      return [decoded(name), decoded(rest.join("="))];
    }),
  );
}

function encoded(text) {
  return text
    .split(LONE)
    .map((piece, index) => (index % 2 ? surrogateBytes(piece.charCodeAt(0)) : encodeURIComponent(piece)))
    .join("");
}

function decoded(text) {
  return text
    .split(LONE_BYTES)
    .map((piece, index) => (index % 2 ? surrogate(piece) : new URLSearchParams(`text=${piece}`).get("text")))
    .join("");
}

function surrogateBytes(code) {
  const bytes = [0xe0 | (code >> 12), 0x80 | ((code >> 6) & 0x3f), 0x80 | (code & 0x3f)];
  return bytes.map((byte) => `%${byte.toString(16)}`).join("");
}

function surrogate(bytes) {
  const [first, second, third] = bytes.slice(1).split("%").map((byte) => parseInt(byte, 16));
  return String.fromCharCode(((first & 0xf) << 12) | ((second & 0x3f) << 6) | (third & 0x3f));
}

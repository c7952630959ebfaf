// Makes elements. All content enters the page here, as text nodes and attributes: no stored text can
// become markup.

const SVG = "http://www.w3.org/2000/svg";

/** Returns an element: `el("p.note", { title: "why" }, "text", child, null)`. `on...` attributes are listeners. */
export function el(name, attributes = {}, ...children) {
  const [tag, ...classes] = name.split(".");
  return filled(document.createElement(tag), classes, attributes, children);
}

/** Like `el`, for a drawing. */
export function svg(name, attributes = {}, ...children) {
  const [tag, ...classes] = name.split(".");
  return filled(document.createElementNS(SVG, tag), classes, attributes, children);
}

function filled(element, classes, attributes, children) {
  if (classes.length) element.classList.add(...classes);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Returns a drawing that is not read out: its meaning must stand next to it, or be the label of its button. */
export function icon(name) {
  return svg("svg.icon", { viewBox: "0 0 16 16", "aria-hidden": "true" }, svg("path", { d: ICONS[name] }));
}

const ICONS = {
  branch:
    "M5 3v10M5 9c0-3 6-1 6-4V4M3.5 3a1.5 1.5 0 1 0 3 0a1.5 1.5 0 1 0-3 0M9.5 3a1.5 1.5 0 1 0 3 0a1.5 1.5 0 1 0-3 0",
  code: "M5.5 4.5L2 8l3.5 3.5M10.5 4.5L14 8l-3.5 3.5",
  compare: "M3 3.5h4v9H3zM9 3.5h4v9H9z",
  copy: "M5.5 5.5h7v7h-7zM3.5 10.5v-7h7",
  jump: "M3 8h9M8.5 4.5L12 8l-3.5 3.5",
  restore: "M3 8a5 5 0 1 0 1.6-3.7M3 3v3h3",
  since: "M3 8h10M3 5v6M8 6.5a1.5 1.5 0 1 0 0 3a1.5 1.5 0 1 0 0-3",
};

/** Returns a button with an icon and a name. */
export function button(name, { icon: drawing, label, onclick, ...attributes } = {}) {
  return el(
    "button",
    { type: "button", onclick, "aria-label": label, ...attributes },
    drawing && icon(drawing),
    name,
  );
}

/** Whether the keys that are typed belong to this element. */
export function isTyping(element) {
  return element instanceof HTMLElement && element.matches("input:not([type=radio]), textarea, select");
}

// Elements, numbers with units, and the state of a section. No text becomes markup: all goes through textContent.
const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value);
  }
  for (const child of children) if (child !== null) node.append(child);
  return node;
}
const html = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

const short = (value, digits = 4) => String(Number(value.toPrecision(digits)));
function scaled(value, units) {
  for (const [name, unit] of units) if (value >= unit) return `${short(value / unit)} ${name}`;
  const [name, unit] = units[units.length - 1];
  return `${short(value / unit)} ${name}`;
}
const showTime = (s) => scaled(s, [["s", 1], ["ms", 1e-3], ["us", 1e-6], ["ns", 1e-9]]);
const showSize = (b) => scaled(b, [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10], ["B", 1]]);
const showRate = (r) => `${short(r / 1e9)} GB/s`;
const showShare = (share) => (share === 0 ? "nothing" : `${short(share * 100, 3)} % of the vector`);

// What is chosen in a section; whoever draws is told of every change.
function makeState(values) {
  const told = [];
  return {
    ...values,
    follow(draw) { told.push(draw); draw(values); },
    set(changes) {
      Object.assign(values, changes);
      Object.assign(this, changes);
      for (const draw of told) draw(values, changes);
    },
  };
}

function choice(label, options, chosen, change) {
  const select = html("select", { onchange: (event) => change(event.target.value) });
  for (const [value, text] of options) select.append(html("option", { value, selected: String(value) === String(chosen) }, text));
  return { select, label: html("label", {}, label, select) };
}

function slider(label, most, change) {
  const input = html("input", { type: "range", min: 0, max: most, value: 0, step: 1, oninput: (event) => change(Number(event.target.value)) });
  return { input, label: html("label", {}, label, input) };
}

const button = (text, press, more) => html("button", { type: "button", onclick: press, ...more }, text);
const picture = (width, height, title) => svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title });

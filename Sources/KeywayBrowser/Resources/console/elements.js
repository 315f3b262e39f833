// Elements without markup: what a model holds becomes text, never HTML.

/**
 * An element. `attributes` are set as attributes, but for functions, which listen to the event of that name, and
 * `true` and `false`, which set an empty attribute or none. Children are nodes and texts; null and undefined are none.
 */
export function element(name, attributes = {}, ...children) {
  const node = document.createElement(name)
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === 'function') node.addEventListener(key, value)
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(key, value === true ? '' : value)
  }
  node.append(...children.flat().filter(child => child !== null && child !== undefined))
  return node
}

/** An element of SVG. */
export function drawing(name, attributes = {}, ...children) {
  const node = document.createElementNS('http://www.w3.org/2000/svg', name)
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value)
  node.append(...children)
  return node
}

/** Sets a node's text if it differs, so that selections and screen readers are not disturbed. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text
}

let labels = 0

/** A control with its label in front of it, as one element. */
export function labelled(text, control, attributes = {}) {
  control.id ||= `control-${labels += 1}`
  return element('div', { class: 'field', ...attributes }, element('label', { for: control.id }, text), control)
}

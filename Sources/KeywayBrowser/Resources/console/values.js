/**
 * A value as text: what a cell shows, and what its input begins with. Null is no text. A whole number that a browser
 * may have rounded is marked, unless it is that of a `key` whose numbers are no more exact anywhere.
 */
export function textOf(value, key) {
  if (value === null || value === undefined) return ''
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return isExact(value, key) ? text : `≈ ${text}`
}

/** True if a value is the server's: whole numbers beyond 2⁵³ are rounded. */
export function isExact(value, key) {
  if (typeof value === 'number') return !Number.isInteger(value) || Number.isSafeInteger(value) || isDouble(key)
  return value === null || typeof value !== 'object' || Object.values(value).every(part => isExact(part))
}

const isDouble = key => Boolean(key?.types.includes('number'))

/** A value as a table shows it: a collection is its size. */
export function summaryOf(value, key) {
  if (key?.isCollection && Array.isArray(value)) return `${value.length} of ${key.memberName}`
  return textOf(value, key)
}

/**
 * The value that a text stands for. The server validates it, except for what would not reach the server as it was
 * typed. An empty text is null if the key may be null.
 */
export function valueOf(text, key) {
  const types = key.isCollection ? key.itemTypes : key.types
  const target = key.isCollection ? key.toMany : key.toOne
  const isText = types.includes('string') && !target && !key.isDate
  if (text === '' && key.isOptional && !key.isCollection) return null
  if (text === '' && !isText) throw new Error(`${key.name} is required.`)
  if (types.length === 0) return readJSON(text)
  if (types.includes('boolean') && (text === 'true' || text === 'false')) return text === 'true'
  if (types.includes('integer')) return readNumber(text, `${key.name} must be a whole number, such as 12 or -3`)
  if (types.includes('number')) return readNumber(text, `${key.name} must be a number, such as 12, -0.5 or 3e8`)
  if (target && !text.includes('/')) throw new Error(`${key.name} must be a reference: write ${target}/${text}.`)
  return text
}

/** What JSON takes as a number, in the range of one. */
function readNumber(text, kind) {
  const trimmed = text.trim()
  if (!/^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(trimmed)) throw new Error(`${kind}, not '${trimmed}'.`)
  checkNumber(trimmed)
  return Number(trimmed)
}

function checkNumber(text) {
  if (!Number.isFinite(Number(text))) throw new Error(`${text} is larger than a number can be; the largest is 1.8e308.`)
  if (/^-?\d+$/.test(text) && !Number.isSafeInteger(Number(text))) {
    throw new Error(`${text} is beyond 2⁵³, more than a browser can hold exactly.`)
  }
}

/** JSON, unless something of it would be lost: a number's digits, or the first of two members of one name. */
function readJSON(text) {
  const value = JSON.parse(text)
  const open = []
  let name
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"|[{}:]|-?\d[\d.eE+-]*/g)) {
    if (token === '{') open.push(new Set())
    else if (token === '}') open.pop()
    else if (token[0] === '"') name = token
    else if (token !== ':') checkNumber(token)
    else {
      const member = JSON.parse(name)
      if (open.at(-1).has(member)) throw new Error(`The member ${name} occurs twice in one object of this JSON.`)
      open.at(-1).add(member)
    }
  }
  return value
}

/** True if a text is a reference. */
export function isReference(value) {
  return typeof value === 'string' && /^[A-Za-z_][A-Za-z0-9_]*\/[A-Za-z0-9._~-]{1,128}$/.test(value)
}

/** The address at which the console shows an object. */
export function addressOf(reference) {
  return `#/objects/${reference.split('/').map(encodeURIComponent).join('/')}`
}

/** A time of day, to the millisecond. */
export function timeOf(date) {
  return date.toISOString().slice(11, 23)
}

/** A value as text: what a cell shows, and what its input begins with. Null is no text. */
export function textOf(value) {
  if (value === null || value === undefined) return ''
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** A value as a table shows it: a collection is its size. */
export function summaryOf(value, key) {
  if (key?.isCollection && Array.isArray(value)) return `${value.length} of ${key.memberName}`
  return textOf(value)
}

/**
 * The value that a text stands for. It is the server that judges it: what is no number goes to it as text, so that the
 * problem says what the key wants. No text is null where the key may be null.
 */
export function valueOf(text, key) {
  return parse(text, key.isCollection ? key.itemTypes : key.types, key.isOptional && !key.isCollection)
}

function parse(text, types, isOptional) {
  if (text === '' && isOptional) return null
  if (types.length === 0) return JSON.parse(text)
  if (types.includes('boolean') && (text === 'true' || text === 'false')) return text === 'true'
  if (types.includes('number') || types.includes('integer')) {
    const number = Number(text)
    if (text.trim() === '' || !Number.isFinite(number)) return text
    if (/^\s*-?\d+\s*$/.test(text) && !Number.isSafeInteger(number)) {
      throw new Error(`${text.trim()} is beyond what a browser can hold exactly`)
    }
    return number
  }
  return text
}

/** Whether a text is a reference. */
export function isReference(value) {
  return typeof value === 'string' && /^[A-Za-z_][A-Za-z0-9_]*\/[A-Za-z0-9._~-]{1,128}$/.test(value)
}

/** Where the console shows an object. */
export function addressOf(reference) {
  return `#/objects/${reference.split('/').map(encodeURIComponent).join('/')}`
}

/** A time of day, to the millisecond. */
export function timeOf(date) {
  return date.toISOString().slice(11, 23)
}

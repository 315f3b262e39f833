import { element } from './elements.js'
import { isExact, textOf, valueOf } from './values.js'

let lists = 0

/** The number of retries of a write while other keys of its object change. */
const tries = 10

/**
 * Makes the content of a cell an input, until Enter writes it or Escape discards it. The write depends on the value at
 * the beginning: if another client has changed that, the first Enter only reports it.
 *
 * `begin` is `{cell, keyway, reference, key, value, problems}`; `end` is called once the cell is to show a value again.
 */
export function edit({ cell, keyway, reference, key, value, problems }, end) {
  if (!isExact(value, key)) {
    problems.show(new Error(`${key.name} has a whole number beyond 2⁵³, which a browser cannot show exactly. `
      + 'Another client can change it, such as keyway set.'))
    return
  }
  const input = makeInput(key, {
    class: 'editor', 'aria-label': `${key.name} of ${reference}`, 'aria-busy': 'true',
    inputmode: key.types.includes('number') || key.types.includes('integer') ? 'decimal' : null,
  })
  const before = [...cell.childNodes]
  cell.replaceChildren(input, ...choices(key, input))
  cell.classList.add('editing')
  // The initial value, its text in the input, and the value that the user has seen last.
  let first
  let begun
  let seen
  const begin = value => {
    first = seen = value
    input.value = textOf(value, key)
    begun = input.value
    input.select()
  }
  const isSeen = present => JSON.stringify(present) === JSON.stringify(seen)
  begin(value)
  input.focus()
  const read = () => keyway.get(reference, key.name).then(
    async present => ({ present, ifMatch: await keyway.etag(reference, key.name) })).catch(error => ({ error }))
  let state = read()
  state.then(({ present, error }) => {
    input.removeAttribute('aria-busy')
    if (!error && input.value === begun && !isSeen(present) && isExact(present, key)) begin(present)
  })
  let isOver = false
  let isRefused = false

  function close() {
    if (isOver) return
    isOver = true
    cell.classList.remove('editing')
    cell.replaceChildren(...before)
    if (isRefused) problems.clear()
    end()
  }

  /** The text as it was typed, with the line breaks of the value. */
  function wanted() {
    if (input.value === begun) return first
    const isOfCRLF = typeof first === 'string' && first.includes('\r\n')
    return valueOf(isOfCRLF ? input.value.replaceAll('\n', '\r\n') : input.value, key)
  }

  async function set(value) {
    for (let count = 1; ; count += 1) {
      const { present, ifMatch, error } = await state
      if (error) {
        state = read()
        throw error
      }
      if (!isSeen(present)) {
        seen = present
        const now = present === null ? 'null' : textOf(present, key) || 'an empty text'
        throw new Error(`Another client has changed ${key.name}; it is now ${now}. `
          + 'Press Enter again to overwrite it, or Escape to keep it.')
      }
      try {
        return await keyway.set(reference, key.name, value, { ifMatch })
      } catch (problem) {
        // The tag is that of the whole object: another key may have changed.
        if (problem.status !== 412) throw problem
        state = read()
        if (count === tries) throw problem
      }
    }
  }

  async function write() {
    if (input.readOnly) return
    input.readOnly = true
    const hasSucceeded = await problems.attempt(() => set(wanted()))
    input.readOnly = false
    isRefused = !hasSucceeded
    if (!hasSucceeded) return
    const hadFocus = document.activeElement === input
    close()
    if (hadFocus) cell.focus()
  }

  input.addEventListener('keydown', event => {
    event.stopPropagation()
    if (event.key === 'Enter' && !event.shiftKey) {
      event.preventDefault()
      write()
    } else if (event.key === 'Escape') {
      event.preventDefault()
      close()
      cell.focus()
    }
  })
  for (const name of ['click', 'dblclick', 'pointerdown']) {
    input.addEventListener(name, event => event.stopPropagation())
  }
  // Going elsewhere writes nothing, and loses nothing that was typed.
  input.addEventListener('blur', event => {
    if (!input.readOnly && event.relatedTarget && input.value === begun) close()
  })
}

/** An input for a value of the key, with several lines if it may have them. */
export function makeInput(key, attributes) {
  const common = { autocomplete: 'off', spellcheck: 'false', ...attributes }
  return key.hasLines ? element('textarea', { rows: '1', ...common }) : element('input', { type: 'text', ...common })
}

/** The possible values of the key, for the input to offer. */
function choices(key, input) {
  if (!key.choices) return []
  const id = `choices-${lists += 1}`
  input.setAttribute('list', id)
  return [element('datalist', { id }, key.choices.map(choice => element('option', { value: textOf(choice) })))]
}

import { element } from './elements.js'
import { textOf, valueOf } from './values.js'

let lists = 0

/**
 * Makes the content of a cell an input, until Enter writes it or Escape does not. What is written is judged by the state
 * that was there when it began (`If-Match`).
 *
 * `begin` is `{cell, keyway, reference, key, value, problems}`; `end` is called once the cell is to show a value again.
 */
export function edit({ cell, keyway, reference, key, value, problems }, end) {
  const input = element('input', {
    class: 'editor', 'aria-label': `${key.name} of ${reference}`, value: textOf(value), autocomplete: 'off',
    spellcheck: 'false', 'aria-busy': 'true', inputmode: key.types.includes('number') || key.types.includes('integer') ? 'decimal' : null,
  })
  const before = [...cell.childNodes]
  cell.replaceChildren(input, ...choices(key, input))
  cell.classList.add('editing')
  input.focus()
  input.select()
  // The tag is that of the key path alone: what happens to other keys of the object is no conflict.
  const tag = keyway.get(reference, key.name).then(
    async present => ({ present, ifMatch: await keyway.etag(reference, key.name) })).catch(error => ({ error }))
  tag.then(({ present, error }) => {
    input.removeAttribute('aria-busy')
    if (error || input.value !== textOf(value) || textOf(present) === textOf(value)) return
    input.value = textOf(present)
    input.select()
  })
  let isOver = false

  function close() {
    if (isOver) return
    isOver = true
    cell.classList.remove('editing')
    cell.replaceChildren(...before)
    end()
  }

  async function write() {
    if (input.readOnly) return
    input.readOnly = true
    const hasSucceeded = await problems.attempt(async () => {
      const wanted = valueOf(input.value, key)
      const { ifMatch, error } = await tag
      if (error) throw error
      await keyway.set(reference, key.name, wanted, { ifMatch })
    })
    input.readOnly = false
    if (!hasSucceeded) return
    const hadFocus = document.activeElement === input
    close()
    if (hadFocus) cell.focus()
  }

  input.addEventListener('keydown', event => {
    event.stopPropagation()
    if (event.key === 'Enter') {
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
  // Going elsewhere without Enter writes nothing.
  input.addEventListener('blur', event => { if (!input.readOnly && event.relatedTarget) close() })
}

/** What the key can be, for the input to offer. */
function choices(key, input) {
  if (!key.choices) return []
  const id = `choices-${lists += 1}`
  input.setAttribute('list', id)
  return [element('datalist', { id }, key.choices.map(choice => element('option', { value: textOf(choice) })))]
}

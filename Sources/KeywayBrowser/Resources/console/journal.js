import { element, setText } from './elements.js'
import { ProblemLine, ask } from './problem.js'
import { addressOf, isReference, textOf } from './values.js'

/** The number of earlier transactions shown, and the maximum number of transactions. */
const [before, limit] = [50, 500]

/** The journal as it grows: the committed transactions, the newest first. */
export class JournalView {
  #source = null
  #isOver = false

  constructor() {
    this.title = 'Journal'
    this.problems = new ProblemLine()
    this.state = element('p', { class: 'count', role: 'status' })
    this.log = element('tbody')
    this.node = element('div', { class: 'view fills' },
      element('div', { class: 'headline' }, element('h1', { tabindex: '-1' }, 'Journal'), this.state),
      this.problems.node,
      element('div', { class: 'scroller', tabindex: '0', role: 'region', 'aria-label': 'Transactions, the newest first' },
        element('table', { class: 'events', 'aria-label': 'Transactions' },
          element('thead', {}, element('tr', {},
            element('th', { scope: 'col' }, 'Revision'), element('th', { scope: 'col' }, 'Time'),
            element('th', { scope: 'col', class: 'minor' }, 'Writer'), element('th', { scope: 'col' }, 'Operations'))),
          this.log)))
    this.#begin()
  }

  end() {
    this.#isOver = true
    this.#source?.close()
  }

  #begin() {
    return this.problems.attempt(async () => {
      const status = await (await ask('/v1/status')).json()
      const first = Math.max(0, status.revision - before, status.store?.journal?.base ?? 0)
      if (this.#isOver) return
      this.#source = new EventSource(`/v1/journal?since=${status.epoch}-${first}`)
      this.#source.addEventListener('open', () => {
        this.problems.clear()
        setText(this.state, 'following')
      })
      this.#source.addEventListener('transaction', event => this.#add(JSON.parse(event.data)))
      this.#source.addEventListener('reset', () => this.log.replaceChildren())
      this.#source.addEventListener('error', () => {
        setText(this.state, this.#source.readyState === EventSource.CLOSED ? 'refused' : 'waiting for the server')
      })
    })
  }

  #add({ revision, time, writer, operations }) {
    const shown = operations.slice(0, 20).map(operation => element('li', {}, ...describe(operation)))
    if (operations.length > shown.length) shown.push(element('li', {}, `and ${operations.length - shown.length} more`))
    this.log.prepend(element('tr', {},
      element('td', {}, String(revision)),
      element('td', { class: 'time' }, element('span', { class: 'minor' }, time.slice(0, 10)), ' ', time.slice(11, 19)),
      element('td', { class: 'minor' }, writer ?? ''),
      element('td', { class: 'data' }, element('ul', {}, shown))))
    while (this.log.children.length > limit) this.log.lastChild.remove()
  }
}

/** An operation in words, its object as a link. */
function describe({ op, object, entity, ...operands }) {
  const rest = Object.entries(operands).map(([name, operand]) => ` ${name} ${textOf(operand)}`.slice(0, 200))
  const place = isReference(object) ? element('a', { href: addressOf(object) }, object) : object ?? entity ?? ''
  return [`${op} `, place, ...rest]
}

import { edit } from './editor.js'
import { element, setText } from './elements.js'
import { flash } from './grid.js'
import { Members } from './members.js'
import { ProblemLine } from './problem.js'
import { addressOf, isReference, textOf } from './values.js'

/** An object with all its keys, live. */
export class ObjectView {
  #cell
  #timer
  #return = null
  #isOver = false
  #values = {}
  #rows = new Map()

  constructor(context, { reference, entity }) {
    Object.assign(this, { keyway: context.keyway, reference, entity })
    this.title = reference
    this.problems = new ProblemLine()
    this.state = element('p', { class: 'count', role: 'status' })
    // There is something to delete once it is shown.
    this.remove = element('button',
      { type: 'button', class: 'danger', hidden: true, click: () => this.confirmation.showModal() }, 'Delete')
    this.confirmation = this.#makeConfirmation()
    this.body = element('tbody')
    this.node = element('div', { class: 'view' },
      element('div', { class: 'headline' },
        element('h1', { tabindex: '-1' }, reference), this.state,
        element('a', { class: 'button', href: `#/objects/${entity.name}` }, `All ${entity.name}`), this.remove),
      this.problems.node,
      element('table', { class: 'keys', 'aria-label': `Keys of ${reference}` },
        element('thead', {}, element('tr', {},
          ['Key', 'Value', 'Type'].map(name => element('th', { scope: 'col' }, name)))),
        this.body),
      this.confirmation)
    this.#cell = this.keyway.cell(update => this.#hear(update))
    this.#begin()
  }

  end() {
    this.#isOver = true
    this.#cell.end()
    this.#return?.end()
    clearTimeout(this.#timer)
  }

  /** A GET returns the keys that this identity may read: a rule may hide some. */
  async #begin() {
    await this.problems.attempt(async () => {
      const object = await this.keyway.get(this.reference).catch(problem => {
        if (problem.status === 404) this.#awaitReturn()
        throw problem
      })
      this.node.classList.remove('gone')
      this.#rows.clear()
      this.#values = {}
      const keys = this.entity.keys.filter(key => Object.hasOwn(object, key.name))
      this.body.replaceChildren(...keys.map(key => this.#makeRow(key)))
      this.#show(object)
      this.#showRevision(object)
      this.remove.hidden = false
      this.#cell.bind(this.reference, keys.map(key => key.name))
    })
  }

  #hear(update) {
    // A deletion before the observation has the same result.
    if (update.gone || update.problem?.code === 'unknown-object') {
      setText(this.state, 'deleted')
      this.node.classList.add('gone')
      this.remove.hidden = true
      this.#awaitReturn()
    } else if (update.problem) {
      this.problems.show(update.problem)
    } else {
      this.#show(update.values)
      this.readRevision()
    }
  }

  /** An observation ends with its object; a query notifies when an object of that reference exists again. */
  #awaitReturn() {
    if (this.#isOver) return
    this.#return?.end()
    const query = { entity: this.entity.name, filter: `this == "${this.reference}"`, limit: 1 }
    const found = this.keyway.query(query, () => {
      if (found.count === 0) return
      found.end()
      this.#begin()
    })
    this.#return = found
  }

  #showRevision(object) {
    if (!this.node.classList.contains('gone')) setText(this.state, `revision ${object['@revision']}`)
  }

  /** Reads the object's own revision soon: a commit's may be that of another object that it is computed from. */
  readRevision() {
    this.#timer ??= setTimeout(async () => {
      this.#timer = null
      await this.keyway.get(this.reference).then(object => this.#showRevision(object)).catch(() => {})
    }, 100)
  }

  #show(values) {
    for (const [name, row] of this.#rows) {
      if (!Object.hasOwn(values, name)) continue
      const isFirst = !Object.hasOwn(this.#values, name)
      const isSame = JSON.stringify(this.#values[name]) === JSON.stringify(values[name])
      if (!isFirst && isSame) continue
      this.#values[name] = values[name]
      row.show(values[name])
      if (!isFirst) flash(row.cell)
    }
  }

  #makeRow(key) {
    const cell = element('td', { class: 'value' })
    const name = element('th', { scope: 'row' }, key.name)
    const row = { cell, show: key.isCollection ? this.#collection(cell, key) : this.#single(cell, key) }
    this.#rows.set(key.name, row)
    return element('tr', {}, name, cell, element('td', { class: 'type' }, key.description))
  }

  #collection(cell, key) {
    const members = new Members(this, key)
    cell.append(members.node)
    return value => members.show(value ?? [])
  }

  #single(cell, key) {
    const show = value => { if (!cell.classList.contains('editing')) fill(cell, value, key) }
    if (key.isReadOnly) return show
    cell.tabIndex = 0
    const open = () => {
      if (cell.classList.contains('editing') || this.node.classList.contains('gone')) return
      const { keyway, reference, problems } = this
      edit({ cell, keyway, reference, key, value: this.#values[key.name], problems },
        () => {
          fill(cell, this.#values[key.name], key)
          this.readRevision()
        })
    }
    cell.addEventListener('dblclick', open)
    cell.addEventListener('keydown', event => {
      if (event.target !== cell || (event.key !== 'Enter' && event.key !== 'F2')) return
      event.preventDefault()
      open()
    })
    return show
  }

  #makeConfirmation() {
    const dialog = element('dialog', { 'aria-label': `Delete ${this.reference}` },
      element('p', {}, `Delete ${this.reference}? Its delete rules determine what is deleted with it.`),
      element('div', { class: 'buttons' },
        element('button', { type: 'button', click: () => dialog.close() }, 'Cancel'),
        element('button', { type: 'button', class: 'danger', click: () => this.#delete(dialog) }, 'Delete object')))
    return dialog
  }

  async #delete(dialog) {
    dialog.close()
    const ifMatch = await this.keyway.etag(this.reference).catch(() => undefined)
    const isDone = await this.problems.attempt(() => this.keyway.delete(this.reference, { ifMatch }).catch(problem => {
      // What rules say of this object is known now.
      this.remove.disabled = problem.code === 'forbidden'
      throw problem
    }))
    if (isDone) location.hash = `#/objects/${this.entity.name}`
  }
}

function fill(cell, value, key) {
  if (isReference(value)) cell.replaceChildren(element('a', { href: addressOf(value) }, value))
  else if (value === null || value === undefined) cell.replaceChildren(element('span', { class: 'null' }, 'null'))
  else setText(cell, textOf(value, key))
}

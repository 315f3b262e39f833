import { element, labelled, setText } from './elements.js'
import { Grid } from './grid.js'
import { ProblemLine } from './problem.js'

/** The maximum number of rows of a table: a filter finds the others. */
const limit = 10_000

/**
 * The objects of an entity as a live table. Filter, order, sections and columns are in the address, so that it can be
 * saved and Back undoes them.
 */
export class EntityView {
  #query = null
  #isNarrowed = false

  constructor(context, { entity, parameters }) {
    this.keyway = context.keyway
    this.context = context
    this.entity = entity
    this.problems = new ProblemLine()
    this.title = entity.name
    this.#read(parameters)
    this.count = element('p', { class: 'count', role: 'status' })
    this.grid = new Grid(this, name => this.#sortBy(name))
    this.node = element('div', { class: 'view fills' },
      element('div', { class: 'headline' },
        element('h1', { tabindex: '-1' }, entity.name), this.count,
        element('a', { class: 'button', href: `#/new/${entity.name}` }, `New ${entity.name}`)),
      this.#makeControls(), this.problems.node, this.grid.node)
    this.#begin()
  }

  end() { this.#query?.end() }

  /** The same view with other parameters; it keeps its query. */
  update(parameters) {
    this.#read(parameters)
    this.#isNarrowed = false
    this.#show()
  }

  #show() {
    this.filter.value = this.state.filter
    this.section.value = this.state.section
    for (const box of this.columns.querySelectorAll('input')) box.checked = this.state.columns.includes(box.value)
    this.grid.setColumns(this.state.columns, this.state.sort)
    this.#query.change(this.#wanted)
  }

  #read(parameters) {
    const known = name => this.entity.key(name) !== undefined
    const columns = parameters.get('columns')?.split(',').filter(known)
    this.state = {
      filter: parameters.get('filter') ?? '', sort: parameters.get('sort') ?? '',
      section: parameters.get('section') ?? '', columns: columns?.length ? columns : this.entity.columns,
    }
  }

  get #wanted() {
    const { filter, sort, section, columns } = this.state
    return {
      entity: this.entity.name, filter: filter || null, sort: sort || null, section: section || null,
      keys: columns, limit,
    }
  }

  #makeControls() {
    this.filter = element('input', {
      type: 'text', value: this.state.filter, spellcheck: 'false', autocomplete: 'off', autocapitalize: 'off',
      placeholder: 'a condition in CEL, applied by Enter',
      keydown: event => { if (event.key === 'Enter') this.#apply({ filter: this.filter.value.trim() }) },
    })
    this.section = element('select', { change: () => this.#apply({ section: this.section.value }) },
      element('option', { value: '' }, 'none'),
      this.entity.columns.map(name => element('option', { value: name }, name)))
    this.section.value = this.state.section
    this.columns = element('fieldset', {}, element('legend', {}, 'Columns of the table'),
      this.entity.keys.map(key => element('label', {},
        element('input', {
          type: 'checkbox', value: key.name, change: () => this.#chooseColumns(),
          checked: this.state.columns.includes(key.name),
        }), key.name)))
    return element('div', { class: 'controls' },
      labelled('Filter', this.filter, { class: 'field wide' }), labelled('Sections', this.section),
      this.#makeChooser())
  }

  /** The choice of columns, which closes without the focus, or by Escape. */
  #makeChooser() {
    const summary = element('summary', {}, 'Columns')
    const chooser = element('details', {
      class: 'columns',
      focusout: event => { if (event.relatedTarget && !chooser.contains(event.relatedTarget)) chooser.open = false },
      keydown: event => {
        if (event.key !== 'Escape' || !chooser.open) return
        chooser.open = false
        summary.focus()
      },
    }, summary, this.columns)
    return chooser
  }

  #chooseColumns() {
    const columns = [...this.columns.querySelectorAll('input:checked')].map(box => box.value)
    if (columns.length > 0) this.#apply({ columns })
  }

  #sortBy(name) {
    // Ascending, then descending, then in the server's order.
    const next = { [name]: `-${name}`, [`-${name}`]: '' }
    this.#apply({ sort: next[this.state.sort] ?? name })
  }

  /** Goes to the address of the changed state, which comes back by `update`; the same state again is asked again. */
  #apply(changes) {
    const state = { ...this.state, ...changes }
    const parameters = new URLSearchParams()
    for (const name of ['filter', 'sort', 'section']) if (state[name]) parameters.set(name, state[name])
    if (String(state.columns) !== String(this.entity.columns)) parameters.set('columns', state.columns.join(','))
    const text = parameters.toString()
    const address = `#/objects/${this.entity.name}${text && `?${text}`}`
    if (location.hash === address) this.update(parameters)
    else location.hash = address
  }

  /** Leaves out the columns of keys that may not be read: a row shows those that may. */
  async #narrow() {
    this.#isNarrowed = true
    const [row] = await this.keyway.list({ entity: this.entity.name, limit: 1 }).catch(() => [])
    const columns = this.state.columns.filter(name => !row || Object.hasOwn(row, name))
    if (columns.length === 0 || columns.length === this.state.columns.length) return
    this.state.columns = columns
    this.#show()
  }

  #begin() {
    this.grid.setColumns(this.state.columns, this.state.sort)
    this.#query = this.keyway.query(this.#wanted, event => this.#hear(event))
  }

  #hear(event) {
    if (event.problem) {
      this.problems.show(event.problem)
      // The previous rows are not the result of this.
      this.grid.show([])
      setText(this.count, '')
      if (event.problem.code === 'forbidden' && !this.#isNarrowed) this.#narrow()
      return
    }
    if (event.type === 'results') this.problems.clear()
    const { rows, sections, count, total } = this.#query
    this.grid.show(rows, this.state.section ? sections : undefined)
    const all = total ?? count
    setText(this.count, count < all ? `the first ${count} of ${all}` : `${count} ${count === 1 ? 'object' : 'objects'}`)
  }
}

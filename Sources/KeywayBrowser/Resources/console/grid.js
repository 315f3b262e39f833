import { edit } from './editor.js'
import { element, setText } from './elements.js'
import { addressOf, summaryOf, textOf } from './values.js'
import { RowWindow } from './window.js'

const marks = { ascending: 'ascending', descending: 'descending' }

/**
 * The rows of a live query as a grid that is used by keyboard: arrows go from cell to cell, Enter edits. `view` gives
 * `keyway`, `schema`, `entity` and `problems`; `sort(key)` is called with the key of a header that was clicked.
 */
export class Grid {
  #columns = []
  #active = { id: null, column: 0 }

  constructor(view, sort) {
    this.view = view
    this.sort = sort
    this.head = element('tr')
    this.body = element('tbody')
    this.table = element('table', { role: 'grid', 'aria-label': `Objects of ${view.entity.name}` },
      element('thead', {}, this.head), this.body)
    const frame = element('div', { class: 'frame' }, this.table)
    this.node = element('div', { class: 'scroller' }, frame)
    this.window = new RowWindow({
      scroller: this.node, frame, body: this.body, id: item => item['@ref'] ?? `section ${JSON.stringify(item.name)}`,
      make: item => (item['@ref'] ? this.#makeRow(item) : this.#makeSection()),
      update: (row, item, index) => this.#update(row, item, index), drawn: () => this.#letTabIn(),
    })
    this.table.addEventListener('keydown', event => this.#press(event))
    this.table.addEventListener('dblclick', event => this.#open(event.target.closest('td')))
    this.table.addEventListener('focusin', event => this.#note(event.target.closest('td')))
  }

  /** Shows these keys as columns, sorted by `sort`, a key with a `-` in front where it descends. */
  setColumns(names, sort) {
    const areOther = String(names) !== String(this.#columns)
    this.#columns = names
    const of = name => (sort === name ? marks.ascending : sort === `-${name}` ? marks.descending : 'none')
    this.head.replaceChildren(
      element('th', { scope: 'col' }, 'Object'),
      ...names.map(name => element('th', { scope: 'col', 'aria-sort': of(name) },
        element('button', { type: 'button', click: () => this.sort(name) }, name))))
    this.#active.column = Math.min(this.#active.column, names.length)
    if (areOther) this.window.remake()
  }

  show(rows, sections) {
    this.window.show(sections ? sectioned(rows, sections) : rows)
  }

  #makeRow(item) {
    const row = element('tr', { 'data-ref': item['@ref'] })
    const cells = ['@ref', ...this.#columns].map(() => element('td', { tabindex: '-1' }))
    cells[0].append(element('a', { href: addressOf(item['@ref']), tabindex: '-1' }, item['@ref']))
    row.append(...cells)
    return row
  }

  #makeSection() {
    return element('tr', { class: 'section' },
      element('th', { scope: 'rowgroup', colspan: String(this.#columns.length + 1) }))
  }

  #update(row, item, index) {
    row.setAttribute('aria-rowindex', String(index + 2))
    if (!item['@ref']) {
      setText(row.firstChild, `${textOf(item.name) || 'none'} (${item.count})`)
      return
    }
    const wasShown = row.item
    for (const [place, cell] of [...row.cells].entries()) {
      if (this.#active.id === item['@ref'] && place === this.#active.column) cell.tabIndex = 0
      if (place === 0 || wasShown === item) continue
      const name = this.#columns[place - 1]
      const key = this.view.entity.key(name)
      const text = summaryOf(item[name], key)
      if (key && (key.isReadOnly || key.isCollection)) cell.setAttribute('aria-readonly', 'true')
      if (wasShown && text === summaryOf(wasShown[name], key)) continue
      if (!cell.classList.contains('editing')) fill(cell, text, key)
      if (wasShown) flash(cell)
    }
    row.item = item
  }

  // The keyboard

  /** Tab leads to the cell that had the focus last, or, where that is not in sight, to the first row that is. */
  #letTabIn() {
    const open = [...this.body.querySelectorAll('td[tabindex="0"]')]
    const first = this.body.querySelector('tr[data-ref]')
    if (open.length === 0 && first) first.cells[this.#active.column].tabIndex = 0
    if (open.length > 1) open.find(cell => cell.parentNode.dataset.ref !== this.#active.id).tabIndex = -1
  }

  #note(cell) {
    if (!cell || !cell.parentNode.dataset.ref) return
    for (const open of this.body.querySelectorAll('td[tabindex="0"]')) open.tabIndex = -1
    this.#active = { id: cell.parentNode.dataset.ref, column: cell.cellIndex }
    cell.tabIndex = 0
  }

  #press(event) {
    const cell = event.target.closest('td')
    if (!cell || event.altKey || event.metaKey) return
    if (event.key === 'Enter' || event.key === 'F2') {
      if (event.target !== cell) return
      event.preventDefault()
      this.#open(cell)
      return
    }
    const step = this.#stepOf(event)
    if (!step) return
    event.preventDefault()
    this.#move(cell, ...step)
  }

  /** The number of rows and columns by which a key moves. */
  #stepOf({ key, ctrlKey }) {
    const page = Math.max(1, Math.floor(this.node.clientHeight / 32) - 2)
    const far = Number.MAX_SAFE_INTEGER
    return {
      ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1], PageDown: [page, 0],
      PageUp: [-page, 0], Home: ctrlKey ? [-far, -far] : [0, -far], End: ctrlKey ? [far, far] : [0, far],
    }[key]
  }

  #move(cell, down, right) {
    const { items } = this.window
    const from = items.findIndex(item => item['@ref'] === cell.parentNode.dataset.ref)
    const column = Math.max(0, Math.min(this.#columns.length, cell.cellIndex + right))
    let to = Math.max(0, Math.min(items.length - 1, from + down))
    // Headings of sections are not rows of the model.
    const step = down < 0 ? -1 : 1
    while (items[to] && !items[to]['@ref']) to += step
    if (!items[to]) return
    this.window.reveal(to)
    const row = this.window.row(items[to]['@ref'])
    row?.cells[column].focus()
  }

  // Editing

  #open(cell) {
    const item = cell?.parentNode.item
    if (!item || cell.classList.contains('editing')) return
    const name = this.#columns[cell.cellIndex - 1]
    const key = this.view.entity.key(name)
    if (cell.cellIndex === 0 || key?.isCollection) location.hash = addressOf(item['@ref'])
    if (!key || key.isReadOnly || key.isCollection) return
    const { keyway, problems } = this.view
    edit({ cell, keyway, reference: item['@ref'], key, value: item[name], problems }, () => {
      // Shows what came meanwhile.
      fill(cell, summaryOf(cell.parentNode?.item?.[name], key), key)
    })
  }
}

function fill(cell, text, key) {
  if (key?.toOne && text !== '') {
    cell.replaceChildren(element('a', { href: addressOf(text), tabindex: '-1' }, text))
  } else {
    setText(cell, text)
  }
}

/** Highlights a changed value. */
export function flash(node) {
  node.classList.remove('changed')
  void node.offsetWidth
  node.classList.add('changed')
}

/** Rows with the headings of their sections in front of them. */
function sectioned(rows, sections) {
  const items = []
  let place = 0
  for (const section of sections) {
    items.push(section, ...rows.slice(place, place + section.count))
    place += section.count
  }
  return items
}

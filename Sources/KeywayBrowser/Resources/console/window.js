/** The height of every row in pixels, as in the style sheet. */
export const rowHeight = 32
const margin = 8

/**
 * Shows a few of many rows: those in sight and some around them. Empty space above and below the table, padding of
 * `frame`, stands for the others, so that the bar scrolls as far as if all were there.
 *
 * `items` are what the rows are made of. `make(item)` makes an element and `update(element, item, index)` brings it up to
 * date; `id(item)` names it, and elements are kept by that name, with their focus and whatever is typed in them.
 * `drawn()` is called when all that is in sight is up to date.
 */
export class RowWindow {
  #items = []
  #rows = new Map()
  #isDue = false

  constructor({ scroller, frame, body, make, update, id, drawn }) {
    Object.assign(this, { scroller, frame, body, make, update, id, drawn })
    scroller.addEventListener('scroll', () => this.#plan(), { passive: true })
    new ResizeObserver(() => this.#plan()).observe(scroller)
  }

  get items() { return this.#items }

  show(items) {
    this.#items = items
    this.#draw()
  }

  /** Makes all elements again. */
  remake() {
    for (const row of this.#rows.values()) row.remove()
    this.#rows = new Map()
    this.#draw()
  }

  /** The element of an item, if it is shown. */
  row(id) { return this.#rows.get(id) }

  /** Scrolls so that the item of that index is in sight, and shows it. */
  reveal(index) {
    const { scroller } = this
    const head = this.body.parentNode.tHead?.offsetHeight ?? 0
    const top = index * rowHeight
    if (top < scroller.scrollTop) scroller.scrollTop = top
    const bottom = top + rowHeight - (scroller.clientHeight - head)
    if (bottom > scroller.scrollTop) scroller.scrollTop = bottom
    this.#draw()
  }

  #plan() {
    if (this.#isDue) return
    this.#isDue = true
    requestAnimationFrame(() => {
      this.#isDue = false
      this.#draw()
    })
  }

  #draw() {
    const { scroller, frame, body } = this
    const count = this.#items.length
    const first = Math.max(0, Math.min(count, Math.floor(scroller.scrollTop / rowHeight) - margin))
    const end = Math.min(count, first + Math.ceil(scroller.clientHeight / rowHeight) + 2 * margin)
    const shown = new Map()
    for (let index = first; index < end; index += 1) {
      const item = this.#items[index]
      const id = this.id(item)
      const row = this.#rows.get(id) ?? this.make(item)
      this.#rows.delete(id)
      shown.set(id, row)
      this.update(row, item, index)
    }
    for (const row of this.#rows.values()) row.remove()
    this.#rows = shown
    this.#place(shown.values())
    frame.style.paddingTop = `${first * rowHeight}px`
    frame.style.paddingBottom = `${(count - end) * rowHeight}px`
    body.parentNode.setAttribute('aria-rowcount', String(count + 1))
    this.drawn()
  }

  /** Puts the rows in order. One that has to move for it keeps its focus. */
  #place(rows) {
    const focused = this.body.contains(document.activeElement) ? document.activeElement : null
    let place = this.body.firstChild
    for (const row of rows) {
      if (row === place) place = place.nextSibling
      else this.body.insertBefore(row, place)
    }
    if (focused?.isConnected && document.activeElement !== focused) focused.focus({ preventScroll: true })
  }
}

import { element, labelled, setText } from './elements.js'
import { ProblemLine } from './problem.js'
import { RawStream } from './sse.js'
import { timeOf } from './values.js'

/** The maximum number of events shown; older ones are removed. */
const limit = 500

/** Any URL as a stream: its events as they come, cut and resumed by buttons. */
export class StreamView {
  #stream = null
  #lastID = null
  #url = null
  #count = 0

  constructor(context, { parameters }) {
    this.title = 'Stream'
    this.problems = new ProblemLine()
    this.url = element('input', {
      type: 'text', spellcheck: 'false', autocomplete: 'off', autocapitalize: 'off',
      value: parameters.get('url') ?? (context.isAdmin ? '/v1/journal' : `/v1/objects/${[...context.schema.keys()][0]}`),
    })
    this.openButton = element('button', { class: 'primary' }, 'Open')
    this.cutButton = this.#button('Cut', () => this.#stream?.cut())
    this.resumeButton = this.#button('Resume', () => this.#begin(this.#lastID))
    this.state = element('p', { class: 'count', role: 'status' }, 'no stream')
    this.log = element('tbody')
    this.node = element('div', { class: 'view fills' },
      element('div', { class: 'headline' }, element('h1', { tabindex: '-1' }, 'Stream'), this.state),
      element('form', { class: 'controls', submit: event => this.#submit(event) },
        labelled('URL', this.url, { class: 'field wide' }),
        element('div', { class: 'buttons' }, this.openButton, this.cutButton, this.resumeButton,
          element('button', { type: 'button', click: () => this.log.replaceChildren() }, 'Clear'))),
      this.problems.node,
      element('div', { class: 'scroller', tabindex: '0', role: 'region', 'aria-label': 'Events, the newest first' },
        element('table', { class: 'events', 'aria-label': 'Events' },
          element('thead', {}, element('tr', {},
            element('th', { scope: 'col', class: 'minor' }, 'Time'),
            ['Event', 'Id', 'Data'].map(name => element('th', { scope: 'col' }, name)))),
          this.log)))
    this.#show('no stream')
  }

  end() { this.#stream?.cut() }

  #button(text, click) { return element('button', { type: 'button', click }, text) }

  #submit(event) {
    event.preventDefault()
    this.#lastID = null
    this.#count = 0
    this.log.replaceChildren()
    this.#url = this.url.value.trim()
    this.#begin(null)
  }

  #begin(lastID) {
    this.#stream?.cut()
    const isMine = () => this.#stream === stream
    const stream = new RawStream(this.#url, lastID, {
      opened: () => {
        if (!isMine()) return
        this.problems.clear()
        this.#show('open')
      },
      heard: event => { if (isMine()) this.#add(event) },
      ended: error => {
        if (!isMine()) return
        this.#stream = null
        if (error) this.problems.show(error)
        this.#show(this.#lastID ? `cut after ${this.#lastID}` : 'ended')
      },
    })
    this.#stream = stream
    this.#show(lastID ? `resuming after ${lastID}` : 'opening')
  }

  #add({ type, data, id }) {
    this.#count += 1
    if (id) this.#lastID = id
    this.log.prepend(element('tr', {},
      element('td', { class: 'time minor' }, timeOf(new Date())), element('td', {}, type), element('td', {}, id ?? ''),
      element('td', { class: 'data' }, data)))
    while (this.log.children.length > limit) this.log.lastChild.remove()
    this.#show('open')
  }

  #show(state) {
    setText(this.state, this.#count > 0 ? `${state}, ${this.#count} ${this.#count === 1 ? 'event' : 'events'}` : state)
    this.cutButton.disabled = !this.#stream
    this.resumeButton.disabled = Boolean(this.#stream) || !this.#lastID
  }
}

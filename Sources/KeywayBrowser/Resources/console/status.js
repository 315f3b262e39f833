import { element, setText } from './elements.js'
import { ProblemLine, ask } from './problem.js'
import { Sparkline } from './sparkline.js'

/** Seconds between two requests. */
const period = 2

/** What is drawn: a name, the counter or the value of a moment, and what its numbers are. */
const figures = [
  { name: 'Commits', unit: 'a second', rate: state => state.revision },
  { name: 'Requests', unit: 'a second', rate: (_, metrics) => metrics.get('keyway_requests_total') },
  { name: 'Notifications', unit: 'a second', rate: (_, metrics) => metrics.get('keyway_notifications_total') },
  { name: 'Streams', unit: 'open', value: state => state.streams },
  { name: 'Cells', unit: 'bound', value: state => state.cells },
  { name: 'Live queries', unit: 'different', value: state => state.queries },
  { name: 'Unsent', unit: 'bytes', value: state => state.pendingBytes },
  { name: 'Memory of clients', unit: 'bytes', value: state => state.memory?.bytes },
]

/** The server's state, with its rates as small pictures. */
export class StatusView {
  #timer
  #before = null
  #isOver = false

  constructor() {
    this.title = 'Status'
    this.problems = new ProblemLine()
    this.lines = figures.map(({ name, unit }) => new Sparkline(name, unit))
    this.facts = element('dl', { class: 'facts' })
    this.node = element('div', { class: 'view' },
      element('div', { class: 'headline' }, element('h1', { tabindex: '-1' }, 'Status')),
      this.problems.node,
      element('div', { class: 'figures' }, this.lines.map(line => line.node)),
      element('h2', {}, 'All values'), this.facts)
    this.#look()
  }

  end() {
    this.#isOver = true
    clearTimeout(this.#timer)
  }

  async #look() {
    // A hidden page sends no requests.
    if (document.visibilityState === 'visible') await this.problems.attempt(() => this.#read())
    if (!this.#isOver) this.#timer = setTimeout(() => this.#look(), period * 1000)
  }

  async #read() {
    const [status, text] = await Promise.all([
      ask('/v1/status').then(response => response.json()),
      ask('/metrics').then(response => response.text()),
    ])
    const metrics = sums(text)
    const now = performance.now() / 1000
    const values = figures.map(figure => (figure.rate ?? figure.value)(status, metrics))
    figures.forEach((figure, index) => {
      if (!figure.rate) this.lines[index].add(values[index])
      else if (this.#before) {
        this.lines[index].add((values[index] - this.#before.values[index]) / (now - this.#before.now))
      }
    })
    this.#before = { now, values }
    this.#showFacts(status)
  }

  #showFacts(status) {
    const facts = flat(status)
    if (this.facts.children.length !== 2 * facts.length) {
      this.facts.replaceChildren(...facts.flatMap(([name]) => [element('dt', {}, name), element('dd')]))
    }
    facts.forEach(([, value], index) => setText(this.facts.children[2 * index + 1], String(value)))
  }
}

/** Each metric's name with the sum over its labels (Prometheus' text format). */
function sums(text) {
  const sums = new Map()
  for (const line of text.split('\n')) {
    const match = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{.*\})? (\S+)/.exec(line)
    if (match) sums.set(match[1], (sums.get(match[1]) ?? 0) + Number(match[2]))
  }
  return sums
}

/** The members of an object with those of the objects in it, named by their paths. */
function flat(object, path = '') {
  return Object.entries(object).flatMap(([name, value]) => (
    value !== null && typeof value === 'object' ? flat(value, `${path}${name}.`) : [[path + name, value]]))
}

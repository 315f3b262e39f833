import { drawing, element, setText } from './elements.js'

const [width, height, samples] = [180, 40, 60]

/** The last values of a figure as a small picture, with the present one in words. */
export class Sparkline {
  #values = []

  constructor(name, unit) {
    Object.assign(this, { name, unit })
    this.line = drawing('polyline', { class: 'line' })
    this.picture = drawing('svg', {
      viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: 'none', role: 'img', 'aria-label': `${name}: no values yet`,
    }, this.line)
    this.now = element('span', { class: 'now' }, '–')
    this.node = element('div', { class: 'figure' },
      element('h2', {}, name), element('p', {}, this.now, ` ${unit}`), this.picture)
  }

  /** Adds a value, and removes the oldest. */
  add(value) {
    if (!Number.isFinite(value)) return
    this.#values.push(value)
    if (this.#values.length > samples) this.#values.shift()
    const most = Math.max(...this.#values)
    const step = width / (samples - 1)
    const from = width - (this.#values.length - 1) * step
    const points = this.#values.map((value, index) => {
      const y = height - 2 - (most === 0 ? 0 : (value / most) * (height - 4))
      return `${(from + index * step).toFixed(1)},${y.toFixed(1)}`
    })
    this.line.setAttribute('points', points.join(' '))
    setText(this.now, short(value))
    this.picture.setAttribute('aria-label', `${this.name}: now ${short(value)} ${this.unit}, at most ${short(most)}`)
  }
}

function short(value) {
  return new Intl.NumberFormat('en', { maximumSignificantDigits: 3, notation: 'compact' }).format(value)
}

import { element, setText } from './elements.js'

/** The entities with how many objects there are of each, live. */
export class EntityList {
  constructor({ keyway, schema }) {
    this.keyway = keyway
    this.node = element('ul', {}, [...schema.values()].map(entity => this.#item(entity)))
  }

  #item({ name, columns: keys }) {
    const count = element('span', { class: 'count' })
    let limit = 1
    const query = this.keyway.query({ entity: name, limit }, event => {
      if (event.problem) setText(count, '')
      else if (query.total !== undefined) setText(count, String(query.total))
      else if (limit === null) setText(count, String(query.count))
      // A server that does not tell totals is asked for all rows, with as little of each as can be.
      else query.change({ limit: limit = null, keys: keys.slice(0, 1) })
    })
    return element('li', {}, element('a', { href: `#/objects/${name}`, 'data-entity': name }, name, ' ', count))
  }

  /** Marks the entity that is shown. */
  mark(name) {
    for (const link of this.node.querySelectorAll('a')) {
      if (link.dataset.entity !== name) {
        link.removeAttribute('aria-current')
      } else {
        link.setAttribute('aria-current', 'page')
        link.scrollIntoView({ block: 'nearest', inline: 'center' })
      }
    }
  }
}

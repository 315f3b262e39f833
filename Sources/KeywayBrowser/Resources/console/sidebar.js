import { element, setText } from './elements.js'

/** The entities with the numbers of their objects, live. */
export class EntityList {
  constructor({ keyway, schema }) {
    this.keyway = keyway
    this.node = element('ul', {}, [...schema.keys()].map(name => this.#item(name)))
  }

  #item(name) {
    const count = element('span', { class: 'count' })
    const query = this.keyway.query({ entity: name, limit: 1 }, ({ problem }) => {
      setText(count, problem ? '' : String(query.total))
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

import { element, labelled } from './elements.js'
import { addressOf, isExact, isReference, textOf, valueOf } from './values.js'

/** The number of members shown before more are requested. */
const shownAtFirst = 100

/** The members of a to-many: followed, added, removed and, if they are ordered, moved. */
export class Members {
  #members = []
  #limit = shownAtFirst

  constructor(view, key) {
    Object.assign(this, { view, key })
    this.list = element(key.isOrdered ? 'ol' : 'ul', { class: 'members', 'aria-label': `${key.name} of ${view.reference}` })
    this.more = element('button', { type: 'button', hidden: true, click: () => this.#showMore() })
    this.node = element('div', {}, this.list, this.more)
    if (!key.isReadOnly) this.node.append(this.#makeForm())
  }

  show(members) {
    this.#members = members
    const focused = document.activeElement
    const place = this.list.contains(focused) ? [focused.closest('li').dataset.member, focused.textContent] : null
    this.list.replaceChildren(...members.slice(0, this.#limit).map((member, index) => this.#item(member, index)))
    this.more.hidden = members.length <= this.#limit
    this.more.textContent = `Show all ${members.length}`
    if (place) this.#focus(...place)
  }

  #focus(member, text) {
    const item = [...this.list.children].find(child => child.dataset.member === member) ?? this.list.firstChild
    const controls = [...(item ?? this.node).querySelectorAll('a, button:not([disabled]), input')]
    const wanted = controls.find(control => control.textContent === text) ?? controls[0]
    wanted?.focus()
  }

  #showMore() {
    this.#limit = Infinity
    this.show(this.#members)
  }

  #item(member, index) {
    const text = textOf(member)
    const isLink = this.key.toMany && isReference(member)
    const item = element('li', { 'data-member': JSON.stringify(member) },
      isLink ? element('a', { href: addressOf(member) }, text) : element('span', {}, text))
    if (this.key.isReadOnly || !this.#members.every(member => isExact(member))) return item
    const name = this.key.name
    const button = (sign, label, work, disabled = false) => element('button',
      { type: 'button', 'aria-label': label, title: label, disabled, click: () => this.view.problems.attempt(work) }, sign)
    if (this.key.isOrdered) {
      item.append(
        button('↑', `Move ${text} up in ${name}`, () => this.#move(member, -1), index === 0),
        button('↓', `Move ${text} down in ${name}`, () => this.#move(member, 1), index === this.#members.length - 1))
    }
    item.append(button('×', `Remove ${text} from ${name}`, () => this.#change('remove', member)))
    return item
  }

  #makeForm() {
    const input = element('input', {
      type: 'text', autocomplete: 'off', spellcheck: 'false', placeholder: this.key.toMany ? `${this.key.toMany}/…` : '',
    })
    return element('form', {
      class: 'add',
      submit: async event => {
        event.preventDefault()
        const isDone = await this.view.problems.attempt(() => this.#change('insert', valueOf(input.value, this.key)))
        if (isDone) input.value = ''
      },
    }, labelled(`Add to ${this.key.name}`, input), element('button', {}, 'Add'))
  }

  #change(op, member) {
    const operation = { op, object: this.view.reference, keyPath: this.key.name, value: [member] }
    return this.view.keyway.transact([operation])
  }

  /** The whole in the new order, unless another client has changed it meanwhile. */
  async #move(member, step) {
    const { keyway, reference } = this.view
    const members = await keyway.get(reference, this.key.name)
    const ifMatch = await keyway.etag(reference, this.key.name)
    const from = members.findIndex(other => JSON.stringify(other) === JSON.stringify(member))
    const to = from + step
    if (from < 0 || to < 0 || to >= members.length) return
    members.splice(to, 0, ...members.splice(from, 1))
    await keyway.set(reference, this.key.name, members, { ifMatch })
    this.view.readRevision()
  }
}

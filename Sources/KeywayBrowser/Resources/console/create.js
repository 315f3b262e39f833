import { makeInput } from './editor.js'
import { element, labelled } from './elements.js'
import { ProblemLine } from './problem.js'
import { addressOf, textOf, valueOf } from './values.js'

/** A form for a new object: what is left empty gets its default. */
export class CreateView {
  constructor(context, { entity }) {
    Object.assign(this, { keyway: context.keyway, entity })
    this.title = `New ${entity.name}`
    this.problems = new ProblemLine()
    this.id = element('input', { type: 'text', autocomplete: 'off', spellcheck: 'false' })
    this.inputs = entity.keys.filter(key => !key.isReadOnly && !key.isCollection).map(key => [key, inputFor(key)])
    this.node = element('div', { class: 'view' },
      element('div', { class: 'headline' }, element('h1', { tabindex: '-1' }, this.title)),
      this.problems.node,
      element('form', { class: 'create', submit: event => this.#submit(event) },
        this.inputs.map(([key, input]) => labelled(key.isRequired ? `${key.name} (required)` : key.name, input)),
        labelled('Id (assigned by the server if empty)', this.id),
        element('div', { class: 'buttons' },
          element('a', { class: 'button', href: `#/objects/${entity.name}` }, 'Cancel'),
          element('button', { class: 'primary' }, 'Create'))))
  }

  end() {}

  #submit(event) {
    event.preventDefault()
    return this.problems.attempt(async () => {
      const value = {}
      for (const [key, input] of this.inputs) if (input.value !== '') value[key.name] = valueOf(input.value, key)
      const place = this.id.value === '' ? { entity: this.entity.name } : { object: `${this.entity.name}/${this.id.value}` }
      const { results } = await this.keyway.transact([{ op: 'create', ...place, value }])
      location.hash = addressOf(results[0].object)
    })
  }
}

function inputFor(key) {
  // The server decides what is missing: it knows the defaults, and the keys that a rule allows to be set.
  if (key.choices) {
    return element('select', {}, element('option', { value: '' }, ''),
      key.choices.map(choice => element('option', {}, textOf(choice))))
  }
  return makeInput(key, {
    placeholder: key.toOne ? `${key.toOne}/…` : key.description, 'aria-required': key.isRequired ? 'true' : null,
    keydown: event => {
      if (event.key !== 'Enter' || event.shiftKey) return
      event.preventDefault()
      event.target.form.requestSubmit()
    },
  })
}

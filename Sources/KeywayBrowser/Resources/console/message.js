import { element } from './elements.js'
import { ProblemLine } from './problem.js'

/** A view that only says something, an error or a text, and where to go from there: `links` are texts by address. */
export class MessageView {
  constructor(title, error, text, links = {}) {
    this.title = title
    const problems = new ProblemLine()
    if (error) problems.show(error)
    this.node = element('div', { class: 'view' },
      element('div', { class: 'headline' }, element('h1', { tabindex: '-1' }, title)),
      problems.node, text && element('p', {}, text),
      element('p', {}, Object.entries(links).map(([href, name]) => element('a', { class: 'button', href }, name))))
  }

  end() {}
}

import { element, labelled } from './elements.js'
import { ProblemLine, ask } from './problem.js'

/** The identity of the console: `{identity, expires}`, or a problem if the session is no longer valid. */
export async function readSession() {
  try {
    return await (await ask('/v1/session')).json()
  } catch (problem) {
    return { identity: null, problem }
  }
}

/** The parts that the console's identity may see. The server decides that by its settings, so it is asked. */
export async function readRights() {
  const may = url => ask(url, { method: 'HEAD' }).then(() => true, () => false)
  const [isAdmin, mayReadStatus] = await Promise.all(['/v1/access/revocations', '/v1/status'].map(may))
  return { isAdmin, mayReadStatus }
}

/** Ends the session, here and at the server. */
export async function signOut() {
  await ask('/v1/session', { method: 'DELETE' })
}

/** Signing in: a token becomes a cookie that no script can read. The token is not stored. */
export class SessionView {
  constructor(context, _, problem) {
    this.title = 'Sign in'
    this.context = context
    this.problems = new ProblemLine()
    if (problem) this.problems.show(problem)
    this.token = element('input', { type: 'password', autocomplete: 'off', spellcheck: 'false' })
    this.node = element('div', { class: 'view' },
      element('div', { class: 'headline' }, element('h1', { tabindex: '-1' }, 'Sign in')),
      element('p', {}, 'A token identifies you. ', element('code', {}, 'keyway token'), ' creates one for development.'),
      this.problems.node,
      element('form', { class: 'create', submit: event => this.#submit(event) },
        labelled('Token', this.token),
        element('div', { class: 'buttons' }, element('button', { class: 'primary' }, 'Sign in'))))
  }

  end() {}

  #submit(event) {
    event.preventDefault()
    return this.problems.attempt(async () => {
      const headers = { Authorization: `Bearer ${this.token.value.trim()}` }
      await ask('/v1/session', { method: 'POST', headers })
      this.token.value = ''
      this.context.restart('#/')
    })
  }
}

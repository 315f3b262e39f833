import { element } from './elements.js'

/** What went wrong last, as text, until the next success. */
export class ProblemLine {
  constructor() {
    this.node = element('p', { class: 'problem', role: 'alert', hidden: true })
  }

  /** Shows an error: a problem's detail, or the message of anything else. */
  show(error) {
    this.node.textContent = error.detail || error.message || String(error)
    this.node.hidden = false
  }

  /** The next success. */
  clear() {
    if (this.node.hidden) return
    this.node.textContent = ''
    this.node.hidden = true
  }

  /** Carries out what may fail: whether it succeeded. */
  async attempt(work) {
    try {
      await work()
      this.clear()
      return true
    } catch (error) {
      this.show(error)
      return false
    }
  }
}

/** Asks the server. Throws what an answer that is no success says, and in plain words that there was none. */
export async function ask(url, options) {
  const response = await fetch(url, options).catch(cause => {
    throw new Error(navigator.onLine ? 'The server cannot be reached.' : 'This device is offline.', { cause })
  })
  if (response.ok) return response
  let problem = {}
  try {
    problem = await response.json()
  } catch {
    // No problem document: the status has to do.
  }
  throw Object.assign(new Error(problem.detail || problem.title || `the answer is ${response.status}`), problem)
}

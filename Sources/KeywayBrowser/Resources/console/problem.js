import { element } from './elements.js'

/** The last error as text, until the next success. */
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

  /** Runs an action that may fail. Returns true if it succeeded. */
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

/** Sends a request to the server. Throws the problem of an error response, or that there was no response. */
export async function ask(url, options) {
  const response = await fetch(url, options).catch(cause => {
    throw new Error(navigator.onLine ? 'The server cannot be reached.' : 'This device is offline.', { cause })
  })
  if (response.ok) return response
  let problem = {}
  try {
    problem = await response.json()
  } catch {
    // Without a problem document, the status has to suffice.
  }
  throw Object.assign(new Error(problem.detail || problem.title || `the status is ${response.status}`), problem)
}

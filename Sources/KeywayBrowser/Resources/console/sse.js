import { EventStreamParser } from '/keyway.js'
import { ask } from './problem.js'

/**
 * Any URL of the server as a stream, without automatic reconnection, which a debugger has to show.
 *
 * `heard(event)` gets `{type, data, id}` of each event, and `ended(error)` is called once, without an error if the
 * server or `cut()` ended the stream.
 */
export class RawStream {
  #abort = new AbortController()

  constructor(url, lastID, { opened, heard, ended }) {
    Object.assign(this, { opened, heard, ended })
    this.#read(url, lastID)
  }

  cut() { this.#abort.abort() }

  async #read(url, lastID) {
    const headers = { Accept: 'text/event-stream', ...(lastID && { 'Last-Event-ID': lastID }) }
    try {
      const response = await ask(url, { headers, signal: this.#abort.signal, cache: 'no-store' })
      const type = response.headers.get('Content-Type') ?? ''
      if (!type.startsWith('text/event-stream')) throw new Error(`not an event stream: ${type || 'no content type'}`)
      this.opened()
      const parser = new EventStreamParser()
      const reader = response.body.getReader()
      for (let next = await reader.read(); !next.done; next = await reader.read()) {
        for (const event of parser.push(next.value)) this.heard(event)
      }
      this.ended()
    } catch (error) {
      this.ended(this.#abort.signal.aborted ? undefined : error)
    }
  }
}

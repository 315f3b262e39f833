import assert from 'node:assert/strict'
import test from 'node:test'
import { EventStreamParser } from './keyway.mjs'
import { randomNumbers } from './modelserver.mjs'

const seed = Number(process.env.KEYWAY_SEED ?? Date.now() % 1e9)
const rounds = Number(process.env.KEYWAY_ROUNDS ?? 1)

/** What WHATWG HTML §9.2.6 says of a whole stream, line by line. */
function eventsOf(text) {
  const events = []
  let [data, type, id] = ['', '', undefined]
  const lines = text.replace(/^\uFEFF/, '').split(/\r\n|\n|\r/)
  lines.pop()
  for (const line of lines) {
    const colon = line.indexOf(':')
    let [field, value] = colon < 0 ? [line, ''] : [line.substring(0, colon), line.substring(colon + 1)]
    if (value.charAt(0) === ' ') value = value.substring(1)
    if (line.length === 0) {
      if (data !== '') events.push({ type: type || 'message', data: data.substring(0, data.length - 1), id })
      ;[data, type, id] = ['', '', undefined]
    } else if (field === 'data') data += value + '\n'
    else if (field === 'event') type = value
    else if (field === 'id' && !value.includes('\0')) id = value
  }
  return events
}

test(`Streams are read as the standard says, however their bytes are split (seed ${seed})`, () => {
  const random = randomNumbers(seed)
  const pieces = ['data', 'event', 'id', 'retry', ':', ':', ' ', ' ', 'x', 'é', '€', '😀', '\0', '\uFEFF', '{"a":1}',
    '\n', '\n', '\r', '\r\n', '\n\n', 'data: a', 'id: k-1', 'event: change\n']
  for (let round = 0; round < 2000 * rounds; round++) {
    let text = random.chance(0.3) ? '\uFEFF' : ''
    for (let n = random.below(40); n > 0; n--) text += random.pick(pieces)
    const bytes = new TextEncoder().encode(text)
    const parser = new EventStreamParser()
    const events = []
    for (let start = 0; start < bytes.length; ) {
      const end = Math.min(bytes.length, start + 1 + random.below(random.chance(0.5) ? 3 : 60))
      events.push(...parser.push(bytes.subarray(start, end)))
      start = end
    }
    // A CR at the very end of a stream may be the half of a CRLF: either way it ends its line.
    assert.deepEqual(events.map(({ type, data, id }) => ({ type, data, id })), eventsOf(text), JSON.stringify(text))
  }
})

// What a page of the browser tests does with the client: shows items in cells, observes some, and lists two queries. It
// keeps what each callback was told, for the test to hold against what was committed.
export function begin(Keyway, { cells, observations, queries }) {
  const keyway = new Keyway()
  const page = { keyway, cells: {}, observations: {}, queries: [], resets: [], mistakes: [] }
  keyway.addEventListener('reset', ({ reason }) => {
    page.resets.push(reason)
    for (const heard of Object.values(page.observations)) heard.push({ reset: reason })
  })
  page.show = (name, object) => {
    const slot = (page.cells[name] ??= {})
    // The same binding again changes nothing, and nothing is told of it.
    if (slot.object === object) return
    slot.object = object
    slot.values = undefined
    slot.cell ??= keyway.cell(update => {
      if (update.object !== slot.object) page.mistakes.push(`${name} is told of ${update.object}, not ${slot.object}`)
      slot.values = update.gone ? null : update.values
    })
    slot.cell.bind(object, ['value', 'group'])
  }
  page.hide = (name, isHidden) => { page.cells[name].cell.visible = !isHidden }
  for (const [name, object] of Object.entries(cells)) page.show(name, object)
  for (const object of observations) {
    const heard = (page.observations[object] = [])
    keyway.observe(object, ['value'], ({ revision, new: value, initial, gone, pending, problem }) =>
      heard.push({ revision, value, initial, gone, pending, problem: problem?.detail }))
  }
  for (const query of queries) page.queries.push(keyway.query(query, () => {}))
  page.state = () => ({
    state: keyway.state,
    mistakes: page.mistakes,
    resets: page.resets,
    observations: page.observations,
    cells: Object.entries(page.cells).filter(([, { cell }]) => cell.visible)
      .map(([, { object, values }]) => [object, values]),
    queries: page.queries.map(({ rows, sections, count }) => ({ rows, sections, count })),
  })
  globalThis.page = page
}

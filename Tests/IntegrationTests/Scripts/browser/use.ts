// What a page may write, and what not: checked against keyway.d.ts by the compiler alone.
import { Keyway, KeywayProblem, type QueryEvent } from './keyway.js'

const keyway = new Keyway({ url: 'http://127.0.0.1:8080', token: async () => 'a.b.c' })
new Keyway()

export async function requests(): Promise<void> {
  const account = await keyway.get('Account/1')
  const ref: string = account['@ref']
  const name = await keyway.get('Account/1', 'owner.lastName')
  if (typeof name === 'string') name.toUpperCase()
  await keyway.set(ref, 'balance', 120, { ifMatch: keyway.etag(ref, 'balance') })
  await keyway.patch(ref, { balance: 1 }, { lifetime: 60 })
  const rows = await keyway.list({ entity: 'Employee', sort: '-salary', section: 'department.name', limit: 20 })
  rows.map(row => row['@ref']).concat(`${rows.total} of ${rows.sections?.[0].name}`)
  // @ts-expect-error a list names its entity
  await keyway.list({ sort: '-salary' })
  const made = await keyway.create('Person', { lastName: 'Hopper' })
  await keyway.delete(made['@ref'])
  const { revision } = await keyway.transact([{ op: 'set', object: ref, keyPath: 'balance', value: 1 }])
  revision.toFixed()
  try {
    // @ts-expect-error a function is no JSON
    await keyway.set(ref, 'balance', () => 1)
  } catch (error) {
    if (error instanceof KeywayProblem) console.log(error.status, error.code, error.keyPath)
  }
}

export function observing(): void {
  const plain = keyway.observe('Account/1', ['balance'], change => {
    if (change.problem) return console.log(change.problem.detail)
    if (change.gone) return console.log(change.object)
    console.log(change.kind, change.new, change.pending)
  })
  keyway.observe('Account/1', null, { options: ['old', 'new'], context: { row: 1 } }, change => {
    if (!change.problem) change.context.row.toFixed()
  })
  plain.end()
  const cell = keyway.cell(update => { if (update.values) console.log(update.values['price'], update.gone) })
  cell.bind('Quote/AAPL', ['price'])
  cell.visible = false
  cell.bind(null)
  cell.end()
  const told = (event: QueryEvent) => {
    if (event.type === 'content') for (const change of event.changes) if (change.type === 'insert') change.newIndex
    if (event.type === 'results') event.objects.map(row => row['@ref'])
  }
  const query = keyway.query({ entity: 'Employee', sort: '-salary', limit: 50 }, told)
  query.change({ sort: null })
  query.rows.map(row => row['@revision'] + 1)
  // @ts-expect-error rows are the client's
  query.rows.push(1)
  // @ts-expect-error a query names its entity
  keyway.query({ filter: 'true' }, told)
  // @ts-expect-error there is no such option
  keyway.observe('Account/1', ['balance'], { options: ['after'] }, () => {})
  keyway.addEventListener('reset', ({ reason }) => console.log(reason === 'epoch'))
  if (keyway.state === 'live') keyway.close()
}

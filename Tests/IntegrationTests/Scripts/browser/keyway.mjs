// The client as the tests import it: node takes a file named .js for another kind of module. KEYWAY_MODULE names
// another copy, to see that the tests find what is wrong with it.
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'

const own = new URL('../../../../Sources/KeywayBrowser/Resources/keyway.js', import.meta.url)
const folder = mkdtempSync(tmpdir() + '/keyway-')
copyFileSync(process.env.KEYWAY_MODULE || own, folder + '/keyway.mjs')
const module = await import(folder + '/keyway.mjs')
rmSync(folder, { recursive: true })

export const { Desk, EventStreamParser, Keyway, KeywayProblem, Line, applyContent } = module

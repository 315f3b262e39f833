import { ask } from './problem.js'

/** A key of an entity, as described by `/v1/entities`. */
class Key {
  constructor(name, property, isRequired) {
    this.name = name
    this.types = [property.type ?? []].flat()
    this.toOne = property['keyway:toOne']
    this.toMany = property['keyway:toMany']
    this.isCollection = this.types.includes('array') && property['keyway:ordered'] !== undefined
    this.isOrdered = property['keyway:ordered'] === true
    this.computed = property['keyway:computed']
    this.isReadOnly = property.readOnly === true
    this.isRequired = isRequired
    this.choices = property.enum?.filter(value => value !== null)
      ?? (this.types.includes('boolean') ? [true, false] : undefined)
    this.itemTypes = [property.items?.type ?? []].flat()
    this.isDate = property['keyway:type'] === 'date'
  }

  get isOptional() { return this.types.includes('null') || this.types.length === 0 }

  /** True if a value may have several lines: a text, or JSON. */
  get hasLines() {
    return !this.choices && !this.toOne && !this.isDate && (this.types.includes('string') || this.types.length === 0)
  }

  /** The kind of its values, in a few words. */
  get description() {
    const kind = this.toOne ?? (this.isCollection ? `${this.isOrdered ? 'list' : 'set'} of ${this.memberName}`
      : this.isDate ? 'date' : this.types.filter(type => type !== 'null').join(' or ') || 'json')
    return this.computed === undefined ? kind : `${kind}, computed: ${this.computed}`
  }

  get memberName() { return this.toMany ?? (this.itemTypes.join(' or ') || 'json') }
}

/** An entity and its keys. */
class Entity {
  constructor(name, definition) {
    this.name = name
    this.keys = Object.entries(definition.properties)
      .filter(([key]) => !key.startsWith('@'))
      .map(([key, property]) => new Key(key, property, definition.required.includes(key)))
    this.parent = definition['keyway:extends']
  }

  key(name) { return this.keys.find(key => key.name === name) }

  /** The default columns of a table: all keys but collections. */
  get columns() { return this.keys.filter(key => !key.isCollection).map(key => key.name) }
}

/** The entities of the server, by name in the order of the schema. */
export async function readSchema() {
  const response = await ask('/v1/entities', { headers: { Accept: 'application/json' } })
  const { $defs: definitions } = await response.json()
  return new Map(Object.entries(definitions).map(([name, definition]) => [name, new Entity(name, definition)]))
}

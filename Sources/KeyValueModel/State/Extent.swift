/// An entity's own objects, without those of its subclasses.
struct Extent: Sendable {
  /// The objects.
  var objects = RecordTree()
  /// How often an object came or went.
  var version: UInt64 = 0
  /// The indexes, as `Entity.indexedKeys` lists their keys.
  var indexes: [ValueIndex]
}

import KeyValueModel
import TestKit

extension Reference {
  /// The object of an entity whose id is this number.
  static func numbered(_ entity: String, _ number: Int) throws -> Reference {
    guard let reference = Reference(entity: entity, id: String(number)) else {
      throw LoopbackError("\(entity)/\(number) is no reference")
    }
    return reference
  }
}

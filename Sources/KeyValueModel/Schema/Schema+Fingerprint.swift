import Crypto
import Support
import Yams

extension Schema {
  /// Stands for what a schema file says, apart from comments and layout: two texts with the same fingerprint declare
  /// the same in the same order. 16 hexadecimal digits of SHA-256 (FIPS 180-4) of the YAML tree; of the text itself,
  /// where that is no YAML.
  package static func fingerprint(ofYAML text: String) -> String {
    var hash = SHA256()
    if let root = try? Yams.compose(yaml: text) {
      hash.update(root)
    } else {
      hash.update(text, kind: "t")
    }
    return hash.finalize().prefix(8).hexadecimal
  }
}

extension SHA256 {
  /// Takes a node so that no two different trees give the same bytes: kinds, numbers and lengths stand before contents.
  /// The order of a mapping counts, because that of the declarations does.
  fileprivate mutating func update(_ node: Node) {
    switch node {
    case .scalar(let scalar):
      // 8 and "8" are different values of the same text.
      update(node.tag.rawValueText, kind: "s")
      update(scalar.string, kind: "s")
    case .sequence(let nodes):
      update("\(nodes.count)", kind: "l")
      for node in nodes { update(node) }
    case .mapping(let pairs):
      update("\(pairs.count)", kind: "m")
      for (key, value) in pairs {
        update(key)
        update(value)
      }
    case .alias(let alias):
      update("\(alias.anchor)", kind: "a")
    }
  }

  fileprivate mutating func update(_ text: String, kind: String) {
    update(Array("\(kind)\(text.utf8.count):\(text)".utf8))
  }
}

extension Tag {
  /// The name as text: `tag:yaml.org,2002:int`.
  fileprivate var rawValueText: String { description }
}

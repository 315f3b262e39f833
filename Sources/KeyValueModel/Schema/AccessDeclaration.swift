import Yams

/// Rules as the file declares them, before anything is looked up.
struct AccessDeclaration {
  /// The rules of one key.
  struct KeyRules {
    let name: Located<String>
    var read: LocatedText?
    var update: LocatedText?
    var inverse: LocatedText?
  }

  var actions: [AccessRules.Action: LocatedText] = [:]
  var keys: [KeyRules] = []
}

extension SchemaReader {
  /// Reads `access:` of an entity, or of the file, which has no keys.
  mutating func readAccess(_ node: Node, ofEntity: Bool) -> AccessDeclaration {
    var access = AccessDeclaration()
    guard let words = mapping(node, "'access'") else { return access }
    let actions = AccessRules.Action.allCases.map(\.rawValue)
    for (word, value) in words {
      if let action = word.string.flatMap(AccessRules.Action.init) {
        access.actions[action] = text(value, "'\(action.rawValue)'")
      } else if ofEntity, word.string == "keys" {
        guard let keys = mapping(value, "'keys'") else { continue }
        for (name, rules) in keys { readKeyRules(name, rules).map { access.keys.append($0) } }
      } else {
        let list = (actions + (ofEntity ? ["keys"] : [])).joined(separator: ", ")
        report(word, "'\(word.string ?? "?")' is not a word of access; it has \(list)")
      }
    }
    return access
  }

  private mutating func readKeyRules(_ name: Node, _ node: Node) -> AccessDeclaration.KeyRules? {
    guard let text = string(name, "the name of a key"), let words = mapping(node, "the access of '\(text.content)'")
    else { return nil }
    var rules = AccessDeclaration.KeyRules(name: text)
    for (word, value) in words {
      switch word.string {
      case "read": rules.read = self.text(value, "'read'")
      case "update": rules.update = self.text(value, "'update'")
      case "inverse": rules.inverse = self.text(value, "'inverse'")
      default:
        report(word, "'\(word.string ?? "?")' is not a word of a key's access; it has read, update and inverse")
      }
    }
    return rules
  }
}

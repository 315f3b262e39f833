extension Dictionary {
  /// Takes an element out of a key's set, and the key where that was its last. True where the key is gone by that.
  @discardableResult
  mutating func remove<Element>(_ element: Element, from key: Key) -> Bool where Value == Set<Element> {
    self[key]?.remove(element)
    guard self[key]?.isEmpty == true else { return false }
    self[key] = nil
    return true
  }

  /// The same for small sets.
  @discardableResult
  mutating func remove<Element>(_ element: Element, from key: Key) -> Bool where Value == SmallSet<Element> {
    self[key]?.remove(element)
    guard self[key]?.isEmpty == true else { return false }
    self[key] = nil
    return true
  }
}

extension String {
  /// The text, or where it has more Unicode scalars than so many, its beginning and its end with what is left out
  /// between them: what is wrong stands at either.
  func shortened(to length: Int) -> String {
    // No scalar has fewer bytes than one, so a short text is found without looking at it.
    guard utf8.count > length, unicodeScalars.count > length else { return self }
    let left = unicodeScalars.count - length
    let note = " …(\(left) characters left out)… "
    let end = length / 3
    return String(unicodeScalars.prefix(length - end)) + note + String(unicodeScalars.suffix(end))
  }
}

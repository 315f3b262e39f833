import KeyValueModel

/// What stands for a viewer where an answer is kept that was made for it: a digest of the claims that the read rules
/// use. Those of one mark may read the same.
struct ViewerMark: Hashable, Sendable {
  /// How many bytes it has.
  static let byteCount = HalfDigest.byteCount

  private let digest: HalfDigest

  /// The mark of a viewer.
  init(of viewer: Viewer) {
    var bytes: [UInt8] = []
    // No claims are another thing than none that the rules use.
    if let claims = viewer.claims { Value.object(claims).appendJSON(to: &bytes) }
    digest = HalfDigest(of: bytes)
  }

  /// A mark that was written down; nil where there are more or fewer bytes.
  init?(bytes: some Collection<UInt8>) {
    guard let digest = HalfDigest(bytes: bytes) else { return nil }
    self.digest = digest
  }

  /// Adds its bytes to others.
  func append(to bytes: inout [UInt8]) { digest.append(to: &bytes) }
}

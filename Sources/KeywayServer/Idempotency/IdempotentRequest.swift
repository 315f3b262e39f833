/// A request that is to apply once, however often it is sent.
struct IdempotentRequest: Sendable {
  /// What the client calls it.
  let key: IdempotencyKey
  /// What it is, so that its response is never given to another request with the same key.
  let fingerprint: RequestFingerprint
  /// For whom its response is made; nil for those who are asked no rule.
  var viewer: ViewerMark?
}

/// A socket on its way to the hub thread that will own and close it.
final class Takeover: Sendable {
  let descriptor: Int32
  let isChunked: Bool
  let head: [UInt8]
  let admission: Admission

  init(descriptor: Int32, isChunked: Bool, head: [UInt8], admission: Admission) {
    self.descriptor = descriptor
    self.isChunked = isChunked
    self.head = head
    self.admission = admission
  }
}

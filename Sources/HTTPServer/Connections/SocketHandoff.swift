/// A socket on its way to the hub thread that will own and close it.
final class SocketHandoff: Sendable {
  let descriptor: Int32
  let isChunked: Bool
  let head: [UInt8]
  let slot: ConnectionSlot
  let access: AccessEntry?

  init(descriptor: Int32, isChunked: Bool, head: [UInt8], slot: ConnectionSlot, access: AccessEntry?) {
    self.descriptor = descriptor
    self.isChunked = isChunked
    self.head = head
    self.slot = slot
    self.access = access
  }
}

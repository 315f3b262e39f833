/// What a hub thread is told of a stream that it is to have.
struct HubOpening: Sendable {
  let id: StreamID
  /// Who reads it.
  let client: ClientAddress
  /// The text of whole events, sent before anything that is posted.
  let prelude: EventBytes
  /// Whose events it gets besides its own.
  let channel: ChannelID?
  /// What becomes of it when its reader is too slow.
  let overflow: OverflowPolicy
  /// What the prelude covers.
  var beginning = StreamBeginning.posted
  /// What the ledger has for the prelude.
  var reservation: MemoryReservation?
}

import Dispatch
import HTTPServer
import KeyValueModel
import Store
import Support

/// Followers who are behind. The hub asks for what each has missed, once it has sent what came before.
extension JournalFeed {
  /// Sends a stream that lags what it has missed, in its turn.
  func catchUp(_ id: StreamID) {
    catchUps.async { self.sendNextPiece(to: id) }
  }

  /// Tells a stream the next piece of what it has missed, or that there is nothing.
  private func sendNextPiece(to id: StreamID) {
    guard let (delivered, front, recent) = state.withLock({ nextPiece(for: id, &$0) }) else { return }
    do throws(JournalError) {
      var text = encoder.text(limit: .max)
      var last = delivered
      if let recent {
        for event in recent { text.write { event.appendText(to: &$0) } }
        last += Revision(recent.count)
      } else {
        let records = try journal.records(
          after: delivered, through: front, limit: Self.batchRecords, bytes: Self.pieceBytes)
        for record in records {
          try encoder.appendTransaction(record, to: &text)
          last = record.revision
        }
      }
      post(text.event(at: .commit(last)) ?? EventBytes([]), to: id, from: delivered, upTo: last)
    } catch {
      giveUp(error, on: id, at: delivered)
    }
  }

  /// Where a stream is and how far it can go on, with the events where they are still known as they were sent. Nil
  /// where there is nothing to send: then it goes on with the others, or waits for them.
  private func nextPiece(
    for id: StreamID, _ state: inout State
  ) -> (delivered: Revision, front: Revision, recent: [EventBytes]?)? {
    guard let delivered = state.table.revisionToGoOnFrom(id) else { return nil }
    let front = state.table.front
    guard delivered < front else {
      post(EventBytes([], position: StreamPosition.commit(delivered).rawValue), to: id, upTo: delivered, &state)
      return nil
    }
    return (delivered, front, state.tail.events(after: delivered, bytes: Self.pieceBytes))
  }

  private func post(_ piece: EventBytes, to id: StreamID, from delivered: Revision, upTo last: Revision) {
    state.withLock { state in
      guard state.table.revisionToGoOnFrom(id) == delivered else { return }
      post(piece, to: id, upTo: last, &state)
    }
  }

  private func post(_ piece: EventBytes, to id: StreamID, upTo last: Revision, _ state: inout State) {
    let isWithOthers = state.table.move(id, to: last)
    hub.post([.catchUp(id, piece, isLast: isWithOthers)], position: nil)
  }

  /// What a stream has missed cannot be read.
  private func giveUp(_ error: JournalError, on id: StreamID, at delivered: Revision) {
    state.withLock { state in
      guard state.table.revisionToGoOnFrom(id) == delivered else { return }
      guard error.isLasting else { return hub.post([.endStream(id, encoder.closingEvent(.shutdown))], position: nil) }
      let front = state.table.front
      let reset = encoder.reset(.compacted, at: front, position: StreamPosition.commit(front).rawValue)
      post(reset, to: id, upTo: front, &state)
    }
  }
}

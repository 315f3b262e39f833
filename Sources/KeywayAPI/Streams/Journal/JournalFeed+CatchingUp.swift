import Dispatch
import HTTPServer
import Journal
import KeyValueModel
import Locking

/// Followers who are behind. The hub asks for what each has missed, once it has sent what came before.
extension JournalFeed {
  /// Sends a stream that lags what it has missed, in its turn.
  func catchUpLater(_ id: StreamID) {
    catchUps.async { self.catchUp(id) }
  }

  /// Tells a stream the next piece of what it has missed, or that there is nothing.
  private func catchUp(_ id: StreamID) {
    guard let (told, front, recent) = state.withLock({ nextPiece(for: id, &$0) }) else { return }
    do throws(JournalError) {
      var bytes: [UInt8] = []
      var last = told
      if let recent {
        for event in recent { bytes.append(contentsOf: event.text) }
        last += Revision(recent.count)
      } else {
        let records = try journal.records(
          after: told, through: front, limit: Self.batchRecords, bytes: Self.pieceBytes)
        for record in records {
          try encoder.appendTransaction(record, to: &bytes)
          last = record.revision
        }
      }
      post(EventBytes(bytes, position: StreamPosition.commit(last).rawValue), to: id, from: told, upTo: last)
    } catch {
      giveUp(error, on: id, at: told)
    }
  }

  /// Where a stream is and how far it can be told, with the events where they are still known as they were told. Nil
  /// where there is nothing to be told: then it goes on with the others, or is to wait for them.
  private func nextPiece(
    for id: StreamID, _ state: inout State
  ) -> (told: Revision, front: Revision, recent: [EventBytes]?)? {
    guard let told = state.table.revisionToGoOnFrom(id) else { return nil }
    let front = state.table.front
    guard told < front else {
      post(EventBytes([], position: StreamPosition.commit(told).rawValue), to: id, upTo: told, &state)
      return nil
    }
    return (told, front, state.tail.events(after: told, bytes: Self.pieceBytes))
  }

  private func post(_ piece: EventBytes, to id: StreamID, from told: Revision, upTo last: Revision) {
    state.withLock { state in
      guard state.table.revisionToGoOnFrom(id) == told else { return }
      post(piece, to: id, upTo: last, &state)
    }
  }

  private func post(_ piece: EventBytes, to id: StreamID, upTo last: Revision, _ state: inout State) {
    let isWithOthers = state.table.move(id, to: last)
    hub.post([.catchUp(id, piece, isLast: isWithOthers)], position: nil)
  }

  /// What a stream has missed cannot be read.
  private func giveUp(_ error: JournalError, on id: StreamID, at told: Revision) {
    state.withLock { state in
      guard state.table.revisionToGoOnFrom(id) == told else { return }
      guard error.isLasting else { return hub.post([.endStream(id, encoder.closingEvent(.shutdown))], position: nil) }
      let front = state.table.front
      let reset = encoder.reset(.compacted, at: front, position: StreamPosition.commit(front).rawValue)
      post(reset, to: id, upTo: front, &state)
    }
  }
}

/// The limits of one request.
package struct RequestLimits: Sendable {
  /// The most operations of a JSON Patch. `patch.operations`.
  package var patchOperations = 1000
  /// The most operations of one transaction, objects that are made in place included. `transactions.operations`.
  package var transactionOperations = 10_000
  /// The most objects that one response may have in the place of references, or members that it may read of a second
  /// to-many behind the first: the ways that lead to each count, and they multiply. `answer.objects`.
  package var answerObjects = 100_000
  /// The most bytes of one response. `answer.bytes`.
  package var answerBytes = 64 << 20
  /// The most steps that one request may take to read what it asks for: see `ReadingWork`. `request.steps`.
  package var steps = 20_000_000
  /// Threads for requests that take long; 0 means one for each core, and at least two. `requests.threads`.
  package var threads = 0
  /// The most requests that wait for one of these threads. `requests.waiting`.
  package var waiting = 1024
  /// The same of one client. `requests.waitingPerClient`.
  package var waitingPerClient = 256
  /// The most transactions of one response of the journal. `journal.records`.
  package var journalRecords = 10_000
  /// The most bytes of one response of the journal, where that is more than one transaction. `journal.bytes`.
  package var journalBytes = 16 * 1024 * 1024

  /// The defaults.
  package init() {}
}

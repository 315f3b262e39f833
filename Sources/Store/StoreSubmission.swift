import KeyValueModel
import Support

/// A write that waits for the writer.
struct StoreSubmission: Sendable {
  let transaction: Transaction
  let client: Int
  let limits: TransactionLimits
  let attachment: Store.Attachment?
  let precedent: Store.Precedent?
  let giveBack: Store.GivingBack?
  /// Called on the writer just before the transaction is applied.
  let willBegin: (@Sendable () -> Void)?
  let conclude: Store.Conclusion
  /// Since it was handed over.
  let watch = Stopwatch()
}

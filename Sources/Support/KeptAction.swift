/// A closure that is kept under a lock.
///
/// `Locked` is generic, and a closure that is its value itself is converted whenever it is looked at, and converted
/// back into another one that calls the first: after a million looks a call goes through two million closures. In a
/// struct it stays what it is.
package struct KeptAction<Argument, Result>: Sendable {
  private let body: @Sendable (Argument) -> Result

  /// Keeps a closure.
  package init(_ body: @escaping @Sendable (Argument) -> Result) { self.body = body }

  /// Calls it.
  package func callAsFunction(_ argument: Argument) -> Result { body(argument) }
}

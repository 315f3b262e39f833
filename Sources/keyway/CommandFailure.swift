/// Why a command ends with status 1, as the text that it writes to standard error.
struct CommandFailure: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) {
    self.description = description
  }
}

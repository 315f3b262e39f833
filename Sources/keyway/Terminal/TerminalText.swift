import Support

/// Makes text safe for a terminal: no character controls the terminal, and the text has the expected width.
///
/// The threat: any writer to the server chooses the values, and a control character in one, a bare C1 or an escape
/// sequence, would move the cursor, change colours or make the terminal send input as if the user had typed it.
enum TerminalText {
  /// The maximum number of scalars of a text. No terminal shows more in a cell.
  private static let maximumScalars = 4096

  /// Returns the beginning of a text with visible characters in place of invisible ones: control pictures for ASCII
  /// controls, and � for other controls, for line separators and for marks that change the direction of writing.
  /// Joiners, which are harmless but make the width depend on the terminal, are removed. A combining mark at the
  /// beginning gets a base character, since it would otherwise combine with what precedes the text.
  static func clean(_ text: String, maximumScalars: Int = maximumScalars) -> String {
    var result = String.UnicodeScalarView()
    if let first = text.unicodeScalars.first, isMark(first) { result.append("\u{25CC}") }
    for scalar in text.unicodeScalars.prefix(maximumScalars) {
      switch scalar.value {
      case _ where !isCommand(scalar): result.append(scalar)
      case 0x00...0x1F: result.append(picture(0x2400 + scalar.value))
      case 0x7F: result.append(picture(0x2421))
      case 0x200C...0x200D: break
      default: result.append("\u{FFFD}")
      }
    }
    return String(result)
  }

  /// Returns the text with an escape, such as `\u001b`, in place of each control character except line feeds and tabs.
  /// JSON remains JSON for the same value, since only its strings have such characters.
  static func escaped(_ text: String) -> String {
    var result = ""
    for scalar in text.unicodeScalars {
      guard isCommand(scalar), scalar != "\n", scalar != "\t" else {
        result.unicodeScalars.append(scalar)
        continue
      }
      for unit in String(scalar).utf16 { result += "\\u" + unit.padded(to: 4, radix: 16) }
    }
    return result
  }

  /// Returns true if a terminal may interpret the character instead of showing it.
  private static func isCommand(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator: true
    default: false
    }
  }

  private static func isMark(_ scalar: Unicode.Scalar) -> Bool {
    scalar.properties.isGraphemeExtend || scalar.properties.generalCategory == .spacingMark
      || scalar.properties.isEmojiModifier
  }

  private static func picture(_ value: UInt32) -> Unicode.Scalar { Unicode.Scalar(value) ?? "\u{FFFD}" }

  static func width(_ text: String) -> Int {
    text.reduce(0) { $0 + width($1) }
  }

  /// Returns a clean text in exactly this number of columns: padded, or truncated with an ellipsis.
  static func fitted(_ text: String, columns: Int, isRightAligned: Bool = false) -> String {
    guard columns > 0 else { return "" }
    var result = ""
    var used = 0
    let isWhole = width(text) <= columns
    for character in text {
      let width = width(character)
      if used + width > (isWhole ? columns : columns - 1) { break }
      result.append(character)
      used += width
    }
    if !isWhole {
      result += "…"
      used += 1
    }
    let padding = String(repeating: " ", count: columns - used)
    return isRightAligned ? padding + result : result + padding
  }

  /// Returns the number of columns of a character: two for wide East Asian characters and emoji, none for a mark that
  /// stands alone.
  private static func width(_ character: Character) -> Int {
    guard let first = character.unicodeScalars.first else { return 0 }
    switch first.properties.generalCategory {
    case .nonspacingMark, .enclosingMark: return 0
    default: break
    }
    if first.isASCII, character.unicodeScalars.count == 1 { return 1 }
    let isDrawnAsEmoji = first.properties.isEmoji && !first.isASCII && character.unicodeScalars.contains("\u{FE0F}")
    let isEmoji = first.properties.isEmojiPresentation || isDrawnAsEmoji
    return isEmoji || wide.contains { $0.contains(first.value) } ? 2 : 1
  }

  /// The blocks of wide or full-width characters (Unicode Standard Annex #11), approximately.
  private static let wide: [ClosedRange<UInt32>] = [
    0x1100...0x115F, 0x2E80...0x303E, 0x3041...0xA4CF, 0xA960...0xA97F, 0xAC00...0xD7A3, 0xF900...0xFAFF,
    0xFE30...0xFE6F, 0xFF01...0xFF60, 0xFFE0...0xFFE6, 0x1B000...0x1B2FF, 0x1F1E6...0x1F1FF, 0x20000...0x3FFFD,
  ]
}

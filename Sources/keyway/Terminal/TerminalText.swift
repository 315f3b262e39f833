import Support

/// Text that a terminal can show: nothing in it commands the terminal, and it is as wide as it should be.
///
/// The threat: any writer to the server chooses the values, and a control character in one, a bare C1 or an escape
/// sequence, would move the cursor, change colours or make the terminal send input as if the user had typed it.
enum TerminalText {
  /// How many scalars of a text are looked at; no terminal shows more of a cell.
  private static let maximumScalars = 4096

  /// The beginning of a text with a visible character in place of each that is none: control pictures for the controls
  /// of ASCII, � for other controls, for line separators and for marks that turn the direction of writing.
  /// The joiners, which are harmless but make the width depend on the terminal, are left out; a mark at the beginning
  /// gets something to stand on, or it would stand on what is before the text.
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

  /// The text with an escape, such as `\u001b`, in place of each character that commands a terminal, but for line feeds
  /// and tabs. JSON is still JSON for the same value, since only its strings have such characters.
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

  /// Whether a terminal may do something else than show the character.
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

  /// A clean text in exactly so many columns: padded, or cut with an ellipsis.
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

  /// How many columns a character takes: two for East Asian wide ones and emoji, none for a mark that stands alone.
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

  /// The blocks whose characters are wide or full-width (Unicode Standard Annex #11), coarsely.
  private static let wide: [ClosedRange<UInt32>] = [
    0x1100...0x115F, 0x2E80...0x303E, 0x3041...0xA4CF, 0xA960...0xA97F, 0xAC00...0xD7A3, 0xF900...0xFAFF,
    0xFE30...0xFE6F, 0xFF01...0xFF60, 0xFFE0...0xFFE6, 0x1B000...0x1B2FF, 0x1F1E6...0x1F1FF, 0x20000...0x3FFFD,
  ]
}

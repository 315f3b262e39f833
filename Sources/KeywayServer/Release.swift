/// Which release of Keyway this is.
package enum Release {
  /// The version (semver.org), as `/v1/status` and `keyway --version` tell it.
  package static let version = "0.1.0"
}

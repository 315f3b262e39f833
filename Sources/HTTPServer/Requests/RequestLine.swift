/// The parts of the request line that libmicrohttpd gives with every call; valid during the call.
struct RequestLine {
  let method: UnsafePointer<CChar>
  let version: UnsafePointer<CChar>?
}

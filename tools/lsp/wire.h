// The base protocol: messages in a stream of bytes, each after a header with its length.
//
//   Content-Length: 52\r\n\r\n{"jsonrpc":"2.0", … }
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "tools/lsp/protocol/json.h"

namespace mscclc::lsp {

/// Bytes of a header, and of a message, at most.
inline constexpr size_t kMaxHeader = 4096, kMaxMessage = size_t{64} << 20;

/// Takes a stream apart. After an error nothing can be known of what follows.
class Wire {
 public:
  enum class Got { nothing, message, broken };

  void feed(std::string_view bytes) { bytes_ += bytes; }
  /// The next message that is there as a whole.
  Got next(std::string& body);
  /// Why it is broken.
  const std::string& error() const { return error_; }

 private:
  Got broken(std::string why);
  bool read_header(std::string_view header);

  std::string bytes_;
  size_t begin_ = 0;  ///< of what has not been handed out
  std::string error_;
  bool in_body_ = false;
  size_t length_ = 0;  ///< of the body
};

/// A message with its header.
std::string framed(const Json& message);

}  // namespace mscclc::lsp

// What the page asks the compiler: one JSON object.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/support/result.h"

namespace mscclc::playground {

enum class Ask : uint8_t {
  library,  ///< the programs that are built in, and the machines
  program   ///< all about one program
};

struct Request {
  Ask ask = Ask::program;
  std::string name = "program.mscl";  ///< of the program, for messages
  std::string text;
  std::vector<std::pair<std::string, std::string>> parameters;
  uint64_t bytes = 1 << 20;  ///< of a message, for the timeline
  std::string machine;       ///< one that is built in; "": the smallest that fits
};

/// Reads a request:
///
///   {"ask": "program", "text": "program ring …", "name": "ring.mscl", "parameters": "R=8 I=2",
///    "bytes": "1M", "machine": "8xH100"}
///
/// All but "ask" may be left out. An error is a sentence for the person at the page.
Result<Request> read_request(std::string_view json);

}  // namespace mscclc::playground

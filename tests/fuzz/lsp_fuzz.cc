// Fuzzes the language server. The first byte says what comes: 'w', the bytes of a stream, fed whole
// and in pieces; else messages, one a line, after an 'initialize'. Whatever it is, each request
// gets one answer, and what is published lies in the document.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "tools/lsp/server.h"
#include "tools/lsp/wire.h"

namespace {

using namespace mscclc::lsp;

/// Fails loudly: the fuzzer reports an abort as a crash.
void require(bool condition) {
  if (!condition) std::abort();
}

std::vector<std::string> messages_of(std::string_view bytes, size_t piece) {
  Wire wire;
  std::vector<std::string> all;
  for (size_t at = 0; at < bytes.size(); at += piece) {
    wire.feed(bytes.substr(at, piece));
    std::string message;
    while (wire.next(message) == Wire::Got::message) all.push_back(message);
  }
  return all;
}

/// What has an id gets an answer, unless it is an answer itself, or a cancellation.
bool is_request(const Json& message) {
  if (!message.is_object() || !message.contains("id")) return false;
  const Json& id = message["id"];
  if (!id.is_string() && !id.is_number_integer()) return false;
  const auto method = text_of(message, "method");
  if (method) return *method != "$/cancelRequest";
  return !message.contains("result") && !message.contains("error");
}

class Session {
 public:
  Session()
      : server_({.read_file = {}, .settings = {}, .most_ops = 500, .patch_seconds = 0.002},
                [this](const Json& message) { sent(message); }) {
    take(R"({"id":0,"method":"initialize","params":{}})");
  }

  void take(const std::string& message) {
    if (is_request(Json::parse(message, nullptr, false))) ++requests_;
    server_.take(message);
  }
  void run() {
    while (server_.step(now_)) {
    }
    now_ += std::chrono::seconds(1);
    while (server_.due()) server_.check_due(now_);
    require(requests_ == answers_);
  }

 private:
  void sent(const Json& message) {
    require(message["jsonrpc"] == "2.0");
    if (!message.contains("method")) {
      if (!message["id"].is_null()) ++answers_;
      return;
    }
    if (message["method"] != "textDocument/publishDiagnostics") return;
    for (const Json& one : message["params"]["diagnostics"]) {
      const auto range = range_of(one["range"]);
      require(range.has_value());
      require(
          range->start.line < range->end.line ||
          (range->start.line == range->end.line && range->start.character <= range->end.character));
    }
  }

  Server server_;
  Clock::time_point now_;
  size_t requests_ = 0, answers_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  Session session;
  if (data[0] == 'w') {
    const auto messages = messages_of(bytes, bytes.size() + 1);
    require(messages == messages_of(bytes, 7));
    for (const std::string& message : messages) session.take(message);
    session.run();
    return 0;
  }
  for (size_t at = 0; at < bytes.size();) {
    const size_t end = std::min(bytes.find('\n', at), bytes.size());
    session.take(std::string(bytes.substr(at, end - at)));
    session.run();
    at = end + 1;
  }
  return 0;
}

// A client of 'mscclc lsp': starts the command and speaks with it over pipes.
#pragma once

#include <sys/types.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace mscclc::testing {

class LspClient {
 public:
  using Json = nlohmann::json;

  /// Starts the command.
  explicit LspClient(const std::string& mscclc);
  /// Ends it, if it has not ended.
  ~LspClient();
  LspClient(const LspClient&) = delete;
  LspClient& operator=(const LspClient&) = delete;

  /// The answer: an object with "result" or "error". What comes before it is kept.
  Json request(const std::string& method, const Json& params);
  void notify(const std::string& method, const Json& params);
  /// The next notification of this method, or what has been kept; null if the stream ends.
  Json wait_for(const std::string& method);
  /// Writes bytes as they are.
  void write(const std::string& bytes);
  /// A message with its header.
  static std::string framed(const Json& message);
  /// Closes its input and waits; the exit code, or 128 + the signal that ended it.
  int end();

 private:
  Json read();
  bool read_more();

  pid_t child_ = -1;
  int to_ = -1, from_ = -1;
  std::string bytes_;
  std::vector<Json> kept_;
  int last_id_ = 0;
};

}  // namespace mscclc::testing

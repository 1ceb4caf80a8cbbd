// The language server without its streams: takes messages, answers them, and publishes what is
// wrong with each open document, a moment after it has changed.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "tools/lsp/language/document.h"
#include "tools/lsp/protocol/json.h"

namespace mscclc::lsp {

using Clock = std::chrono::steady_clock;

/// How long a document must stay as it is before it is checked.
inline constexpr std::chrono::milliseconds kPatience{150};

/// The command that a code action asks for: its argument is a document's URI.
inline constexpr const char* kFindPatch = "mscclc.findPatch";

// The protocol's numbers of errors.
enum ErrorCode {
  kParseError = -32700,
  kInvalidRequest = -32600,
  kMethodNotFound = -32601,
  kInvalidParams = -32602,
  kNotInitialized = -32002,
  kInternalError = -32603,
  kRequestFailed = -32803,
  kRequestCancelled = -32800,
};

struct Error {
  ErrorCode code;
  std::string message;
};
using Reply = std::variant<Json, Error>;

class Server {
 public:
  /// `surroundings`: with files that are imported and not open. `send`: takes what goes to the
  /// editor.
  Server(Surroundings surroundings, std::function<void(const Json&)> send);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Queues a message, or cancels one that is queued.
  void take(const std::string& message);
  /// Handles the first message of the queue. False: there is none.
  bool step(Clock::time_point now);
  /// When the next document is to be checked, if any is.
  std::optional<Clock::time_point> due() const;
  /// Checks one of the documents that are due by then.
  void check_due(Clock::time_point now);
  /// Set once the process is to end.
  std::optional<int> exit_code() const { return exit_code_; }
  /// Reports that nothing can be read any more.
  void broken(const std::string& why);
  size_t queued_bytes() const { return queued_bytes_; }

 private:
  struct Queued {
    Json message;
    size_t bytes;
    bool cancelled = false;
  };
  enum class State { starting, running, shut_down };
  using Request = Reply (Server::*)(const Json& params);
  using Notification = void (Server::*)(const Json& params);
  struct RequestRow {
    const char* method;
    Request handler;
  };
  struct NotificationRow {
    const char* method;
    Notification handler;
  };
  static const RequestRow kRequests[];
  static const NotificationRow kNotifications[];

  // ---- messages ----
  void handle(const Json& message, bool cancelled);
  /// Does `what`; false: there is not enough memory, and documents forget what they know.
  bool within_memory(const std::function<void()>& what);
  Reply request(const std::string& method, const Json& params, bool cancelled);
  void notification(const std::string& method, const Json& params);
  void answer(const Json& id, Reply reply);
  void notify(const char* method, Json params);
  void log(const std::string& message);
  void cancel(const Json& params);

  // ---- the life of the server ----
  Reply initialize(const Json& params);
  Reply shut_down(const Json& params);
  void set_parameters(const Json& settings);

  // ---- documents ----
  void opened(const Json& params);
  void changed(const Json& params);
  void closed(const Json& params);
  void configured(const Json& params);
  void files_changed(const Json& params);
  void check_soon(const std::string& uri, Clock::time_point when);
  void check_importers(const std::string& uri);
  void check_all();
  void publish(Document& document);
  /// Brings what the editor shows up to date before something is answered from it.
  void check_now(Document& document);

  // ---- features ----
  /// The open document that `params` names, or an error.
  std::variant<Document*, Error> document_of(const Json& params);
  template <class F>
  Reply at_position(const Json& params, F feature);
  template <class F>
  Reply of_document(const Json& params, F feature);
  Reply hover(const Json& params);
  Reply completion(const Json& params);
  Reply definition(const Json& params);
  Reply references(const Json& params);
  Reply highlights(const Json& params);
  Reply symbols(const Json& params);
  Reply prepare_rename(const Json& params);
  Reply rename(const Json& params);
  Reply formatting(const Json& params);
  Reply hints(const Json& params);
  Reply code_actions(const Json& params);
  Reply execute(const Json& params);
  void apply_patch(Document& document);

  const std::function<void(const Json&)> send_;
  Surroundings surroundings_;
  std::map<std::string, std::unique_ptr<Document>> documents_;  ///< by URI
  std::map<std::string, Clock::time_point> due_;                ///< by URI
  std::deque<Queued> queue_;
  size_t queued_bytes_ = 0;
  State state_ = State::starting;
  bool has_versioned_edits_ = false;  ///< the editor takes edits of a version of a document
  uint64_t sent_requests_ = 0;
  Clock::time_point now_;
  std::optional<int> exit_code_;
};

}  // namespace mscclc::lsp

// The frame of the server: messages, requests, and the server's life. What is done with documents
// is in server_documents.cc.
#include "tools/lsp/server.h"

#include <fmt/format.h>

#include <new>
#include <utility>

#include "ir/diagnostics/printable.h"
#include "tools/lsp/protocol/uri.h"

namespace mscclc::lsp {
namespace {

constexpr int kWarningMessage = 2;  // the protocol's number
constexpr int kIncrementalChanges = 2;

constexpr const char* kNoMemory = "takes more memory than there is";

bool is_id(const Json& id) { return id.is_string() || id.is_number_integer(); }

}  // namespace

const Server::RequestRow Server::kRequests[] = {
    {"shutdown", &Server::shut_down},
    {"textDocument/hover", &Server::hover},
    {"textDocument/completion", &Server::completion},
    {"textDocument/definition", &Server::definition},
    {"textDocument/references", &Server::references},
    {"textDocument/documentHighlight", &Server::highlights},
    {"textDocument/documentSymbol", &Server::symbols},
    {"textDocument/prepareRename", &Server::prepare_rename},
    {"textDocument/rename", &Server::rename},
    {"textDocument/formatting", &Server::formatting},
    {"textDocument/inlayHint", &Server::hints},
    {"textDocument/codeAction", &Server::code_actions},
    {"workspace/executeCommand", &Server::execute},
};

const Server::NotificationRow Server::kNotifications[] = {
    {"textDocument/didOpen", &Server::opened},
    {"textDocument/didChange", &Server::changed},
    {"textDocument/didClose", &Server::closed},
    {"workspace/didChangeConfiguration", &Server::configured},
    {"workspace/didChangeWatchedFiles", &Server::files_changed},
};

Server::Server(Surroundings surroundings, std::function<void(const Json&)> send)
    : send_(std::move(send)), surroundings_(std::move(surroundings)) {
  surroundings_.read_file = [this, disk = std::move(surroundings_.read_file)](
                                const std::string& path) -> std::optional<std::string> {
    for (const auto& [uri, document] : documents_) {
      if (document->path() == path) return document->text();
    }
    return disk ? disk(path) : std::nullopt;
  };
}

// ---- messages --------------------------------------------------------------------------------

void Server::take(const std::string& text) {
  Json message = Json::parse(text, nullptr, false);
  if (message.is_discarded()) {
    return answer(nullptr, Error{kParseError, "the message is not JSON in UTF-8"});
  }
  if (text_of(message, "method") == "$/cancelRequest") return cancel(member(message, "params"));
  queued_bytes_ += text.size();
  queue_.push_back({std::move(message), text.size()});
}

void Server::cancel(const Json& params) {
  const Json& id = member(params, "id");
  if (!is_id(id)) return;
  for (Queued& queued : queue_) {
    if (member(queued.message, "id") == id) queued.cancelled = true;
  }
}

bool Server::step(Clock::time_point now) {
  if (queue_.empty()) return false;
  now_ = now;
  const Queued first = std::move(queue_.front());
  queue_.pop_front();
  queued_bytes_ -= first.bytes;
  handle(first.message, first.cancelled);
  return true;
}

void Server::handle(const Json& message, bool cancelled) {
  const Json& id = member(message, "id");
  const auto method = text_of(message, "method");
  const bool wants_answer = message.is_object() && message.contains("id");
  if (!method) {
    const bool is_answer = is_id(id) && (message.contains("result") || message.contains("error"));
    if (!is_answer) answer(is_id(id) ? id : Json(nullptr), Error{kInvalidRequest, "no method"});
    return;
  }
  const Json& params = member(message, "params");
  if (!wants_answer) {
    if (!within_memory([&] { notification(*method, params); })) {
      log(fmt::format("{} {}", mscclc::quoted(*method), kNoMemory));
    }
    return;
  }
  if (!is_id(id)) return answer(nullptr, Error{kInvalidRequest, "an id is a number or a text"});
  Reply reply = Error{kInternalError, fmt::format("{} {}", mscclc::quoted(*method), kNoMemory)};
  (void)within_memory([&] { reply = request(*method, params, cancelled); });
  answer(id, std::move(reply));
}

bool Server::within_memory(const std::function<void()>& what) {
  try {
    what();
    return true;
  } catch (const std::bad_alloc&) {
    for (const auto& [uri, document] : documents_) document->forget();
    return false;
  }
}

Reply Server::request(const std::string& method, const Json& params, bool cancelled) {
  if (cancelled) return Error{kRequestCancelled, "cancelled"};
  if (state_ == State::shut_down) return Error{kInvalidRequest, "the server is shut down"};
  if (method == "initialize") return initialize(params);
  if (state_ == State::starting) return Error{kNotInitialized, "'initialize' must come first"};
  for (const RequestRow& row : kRequests) {
    if (method == row.method) return (this->*row.handler)(params);
  }
  return Error{kMethodNotFound, fmt::format("unknown method {}", mscclc::quoted(method))};
}

void Server::notification(const std::string& method, const Json& params) {
  if (method == "exit") {
    exit_code_ = state_ == State::shut_down ? 0 : 1;
    return;
  }
  if (state_ != State::running) return;
  for (const NotificationRow& row : kNotifications) {
    if (method == row.method) return (this->*row.handler)(params);
  }
}

void Server::answer(const Json& id, Reply reply) {
  Json out = {{"jsonrpc", "2.0"}, {"id", id}};
  if (const Error* error = std::get_if<Error>(&reply)) {
    out["error"] = {{"code", error->code}, {"message", error->message}};
  } else {
    out["result"] = std::move(std::get<Json>(reply));
  }
  send_(out);
}

void Server::notify(const char* method, Json params) {
  send_({{"jsonrpc", "2.0"}, {"method", method}, {"params", std::move(params)}});
}

void Server::log(const std::string& message) {
  notify("window/logMessage", {{"type", kWarningMessage}, {"message", message}});
}

void Server::broken(const std::string& why) {
  answer(nullptr, Error{kParseError, why});
  exit_code_ = 1;
}

// ---- the life of the server ------------------------------------------------------------------

Reply Server::initialize(const Json& params) {
  if (state_ != State::starting) return Error{kInvalidRequest, "'initialize' came before"};
  state_ = State::running;
  const Json& workspace = member(member(params, "capabilities"), "workspace");
  has_versioned_edits_ = member(member(workspace, "workspaceEdit"), "documentChanges") == true;
  set_parameters(member(params, "initializationOptions"));
  const Json capabilities = {
      {"positionEncoding", "utf-16"},
      {"textDocumentSync", {{"openClose", true}, {"change", kIncrementalChanges}}},
      {"hoverProvider", true},
      {"completionProvider", {{"triggerCharacters", {"."}}}},
      {"definitionProvider", true},
      {"referencesProvider", true},
      {"documentHighlightProvider", true},
      {"documentSymbolProvider", true},
      {"renameProvider", {{"prepareProvider", true}}},
      {"documentFormattingProvider", true},
      {"inlayHintProvider", true},
      {"codeActionProvider", {{"codeActionKinds", {"quickfix"}}}},
      {"executeCommandProvider", {{"commands", {kFindPatch}}}},
  };
  return Json{{"capabilities", capabilities}, {"serverInfo", {{"name", "mscclc"}}}};
}

Reply Server::shut_down(const Json&) {
  state_ = State::shut_down;
  due_.clear();
  return Json(nullptr);
}

/// {"defines": {"R": 4, "F": "LL128"}}; what is neither a number, a text nor a boolean is reported.
void Server::set_parameters(const Json& settings) {
  const Json& defines = member(settings, "defines");
  if (defines.is_null()) return;
  if (!defines.is_object()) return log("'defines' must be an object: {\"R\": 4}");
  surroundings_.settings.clear();
  for (const auto& [name, value] : defines.items()) {
    if (value.is_string()) {
      surroundings_.settings[name] = value.get<std::string>();
    } else if (value.is_number_integer() || value.is_boolean()) {
      surroundings_.settings[name] = to_text(value);
    } else {
      log(fmt::format("'defines': {} must be a number, a text or a boolean", mscclc::quoted(name)));
    }
  }
}

void Server::configured(const Json& params) {
  const Json& settings = member(params, "settings");
  const Json& ours = member(settings, "mscclc");
  set_parameters(ours.is_null() ? settings : ours);
  check_all();
}

}  // namespace mscclc::lsp

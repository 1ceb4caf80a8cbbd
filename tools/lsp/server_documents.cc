// What the server does with documents: their changes, checks of them, and requests about them.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ir/diagnostics/printable.h"
#include "tools/lsp/features/completion.h"
#include "tools/lsp/features/diagnostics.h"
#include "tools/lsp/features/edit.h"
#include "tools/lsp/features/hints.h"
#include "tools/lsp/features/hover.h"
#include "tools/lsp/features/navigate.h"
#include "tools/lsp/server.h"

namespace mscclc::lsp {
namespace {

constexpr int kInfoMessage = 3;  // the protocol's number

bool may_import(const Document& document) {
  return document.text().find("import") != std::string::npos;
}

/// True if one of the diagnostics that a code action is asked for is an error of ours.
bool has_error(const Json& diagnostics) {
  return diagnostics.is_array() && std::ranges::any_of(diagnostics, [](const Json& one) {
           return text_of(one, "source") == "mscclc" && member(one, "severity") == 1;
         });
}

}  // namespace

// ---- changes ---------------------------------------------------------------------------------

void Server::opened(const Json& params) {
  const Json& document = member(params, "textDocument");
  const auto uri = text_of(document, "uri"), text = text_of(document, "text");
  if (!uri || !text) return log("didOpen without uri or text");
  auto made = std::make_unique<Document>(*uri, *text, surroundings_);
  if (const auto version = number_of(document, "version", INT32_MAX)) made->version = *version;
  documents_[*uri] = std::move(made);
  check_soon(*uri, now_);
  check_importers(*uri);
}

void Server::changed(const Json& params) {
  const Json& named = member(params, "textDocument");
  const auto uri = text_of(named, "uri");
  const auto found = documents_.find(uri.value_or(""));
  if (found == documents_.end()) return log("didChange of a document that is not open");
  Document& document = *found->second;
  const Json& changes = member(params, "contentChanges");
  if (!changes.is_array()) return log("didChange without contentChanges");
  for (const Json& change : changes) {
    const auto text = text_of(change, "text");
    const Json& range = member(change, "range");
    const auto place = range_of(range);
    if (!text || (!range.is_null() && !place)) {
      log("a change without a text, or with a range that is none");
    } else if (!place) {
      document.replace(*text);
    } else if (!document.replace(*place, *text)) {
      log("a change whose range ends before it begins");
    }
  }
  if (const auto version = number_of(named, "version", INT32_MAX)) document.version = *version;
  check_soon(*uri, now_ + kPatience);
  check_importers(*uri);
}

void Server::closed(const Json& params) {
  const auto uri = text_of(member(params, "textDocument"), "uri");
  if (!uri || documents_.erase(*uri) == 0) return log("didClose of a document that is not open");
  due_.erase(*uri);
  notify("textDocument/publishDiagnostics", {{"uri", *uri}, {"diagnostics", Json::array()}});
  check_importers(*uri);
}

void Server::files_changed(const Json&) { check_importers(""); }

// ---- checks ----------------------------------------------------------------------------------

void Server::check_soon(const std::string& uri, Clock::time_point when) { due_[uri] = when; }

/// Other documents than this one may import it.
void Server::check_importers(const std::string& uri) {
  for (const auto& [other, document] : documents_) {
    if (other == uri || !may_import(*document)) continue;
    document->forget();
    check_soon(other, now_ + kPatience);
  }
}

void Server::check_all() {
  for (const auto& [uri, document] : documents_) {
    document->forget();
    check_soon(uri, now_);
  }
}

std::optional<Clock::time_point> Server::due() const {
  const auto first = std::ranges::min_element(due_, {}, [](const auto& row) { return row.second; });
  if (first == due_.end()) return std::nullopt;
  return first->second;
}

void Server::check_due(Clock::time_point now) {
  now_ = now;
  const auto first = std::ranges::min_element(due_, {}, [](const auto& row) { return row.second; });
  if (first == due_.end() || first->second > now) return;
  const std::string uri = first->first;
  if (!within_memory([&] { publish(*documents_.at(uri)); })) {
    log(fmt::format("{} takes more memory to check than there is", mscclc::quoted(uri)));
  }
}

void Server::publish(Document& document) {
  due_.erase(document.uri());
  Json params = {{"uri", document.uri()}, {"diagnostics", diagnostics_of(document)}};
  if (document.version) params["version"] = *document.version;
  notify("textDocument/publishDiagnostics", std::move(params));
}

void Server::check_now(Document& document) {
  if (due_.contains(document.uri())) publish(document);
}

// ---- requests --------------------------------------------------------------------------------

std::variant<Document*, Error> Server::document_of(const Json& params) {
  const auto uri = text_of(member(params, "textDocument"), "uri");
  const auto found = documents_.find(uri.value_or(""));
  if (found == documents_.end()) {
    return Error{kInvalidParams,
                 fmt::format("no open document {}", mscclc::quoted(uri.value_or("")))};
  }
  return found->second.get();
}

template <class F>
Reply Server::of_document(const Json& params, F feature) {
  const auto document = document_of(params);
  if (const Error* error = std::get_if<Error>(&document)) return *error;
  return feature(*std::get<Document*>(document));
}

template <class F>
Reply Server::at_position(const Json& params, F feature) {
  return of_document(params, [&](Document& document) -> Reply {
    const auto position = position_of(member(params, "position"));
    if (!position) return Error{kInvalidParams, "no position"};
    return feature(document, *position);
  });
}

Reply Server::hover(const Json& params) {
  return at_position(params, [](Document& d, const Position& p) { return lsp::hover(d, p); });
}

Reply Server::completion(const Json& params) {
  return at_position(params, [](Document& d, const Position& p) { return lsp::completion(d, p); });
}

Reply Server::definition(const Json& params) {
  return at_position(params, [](Document& d, const Position& p) { return lsp::definition(d, p); });
}

Reply Server::references(const Json& params) {
  const bool all = member(member(params, "context"), "includeDeclaration") == true;
  return at_position(params,
                     [&](Document& d, const Position& p) { return lsp::references(d, p, all); });
}

Reply Server::highlights(const Json& params) {
  return at_position(params, [](Document& d, const Position& p) { return lsp::highlights(d, p); });
}

Reply Server::symbols(const Json& params) {
  return of_document(params, [](Document& d) { return lsp::symbols(d); });
}

Reply Server::prepare_rename(const Json& params) {
  return at_position(params,
                     [](Document& d, const Position& p) { return lsp::prepare_rename(d, p); });
}

Reply Server::rename(const Json& params) {
  return at_position(params, [&](Document& d, const Position& p) -> Reply {
    const auto name = text_of(params, "newName");
    if (!name) return Error{kInvalidParams, "no newName"};
    Renamed renamed = lsp::rename(d, p, *name);
    if (!renamed.error.empty()) return Error{kRequestFailed, renamed.error};
    return std::move(renamed.edit);
  });
}

Reply Server::formatting(const Json& params) {
  return of_document(params, [](Document& d) { return lsp::formatting(d); });
}

Reply Server::hints(const Json& params) {
  return of_document(params, [&](Document& d) -> Reply {
    const auto range = range_of(member(params, "range"));
    if (!range) return Error{kInvalidParams, "no range"};
    check_now(d);
    return lsp::hints(d, *range);
  });
}

/// The search takes a while, so it begins only when someone asks for it.
Reply Server::code_actions(const Json& params) {
  return of_document(params, [&](Document& d) {
    Json actions = Json::array();
    const Json& errors = member(member(params, "context"), "diagnostics");
    if (has_error(errors)) {
      const char* title = "Look for a change after which the program is proved";
      actions.push_back(
          {{"title", title},
           {"kind", "quickfix"},
           {"command", {{"title", title}, {"command", kFindPatch}, {"arguments", {d.uri()}}}}});
    }
    return actions;
  });
}

Reply Server::execute(const Json& params) {
  if (text_of(params, "command") != kFindPatch) {
    return Error{kInvalidParams, fmt::format("the only command is '{}'", kFindPatch)};
  }
  const Json& arguments = member(params, "arguments");
  const bool one = arguments.is_array() && arguments.size() == 1 && arguments[0].is_string();
  const auto found = documents_.find(one ? arguments[0].get<std::string>() : "");
  if (found == documents_.end()) return Error{kInvalidParams, "its argument is an open document"};
  apply_patch(*found->second);
  return Json(nullptr);
}

/// Hands a patch to the editor, or says that there is none.
void Server::apply_patch(Document& document) {
  const FoundPatch patch = find_patch(document);
  if (patch.edits.is_null()) {
    return notify("window/showMessage", {{"type", kInfoMessage}, {"message", patch.title}});
  }
  Json edit;
  if (has_versioned_edits_ && document.version) {
    edit["documentChanges"] =
        Json::array({{{"textDocument", {{"uri", document.uri()}, {"version", *document.version}}},
                      {"edits", patch.edits}}});
  } else {
    edit["changes"] = {{document.uri(), patch.edits}};
  }
  send_({{"jsonrpc", "2.0"},
         {"id", fmt::format("mscclc-{}", ++sent_requests_)},
         {"method", "workspace/applyEdit"},
         {"params", {{"label", patch.title}, {"edit", edit}}}});
}

}  // namespace mscclc::lsp

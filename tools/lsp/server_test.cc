#include "tools/lsp/server.h"

#include <catch2/catch.hpp>
#include <new>
#include <vector>

using namespace mscclc::lsp;

namespace {

const std::string kUri = "file:///a.mscl";
const std::string kWrong = "collective allgather(ranks: 2)\nrank r in 0..2 { copy output <- x }\n";
const std::string kFine = "collective allgather(ranks: 1)\nrank 0 { copy output <- input }\n";

/// A server, what it has sent, and a clock that is set by hand.
class Session {
 public:
  explicit Session(bool initialized = true, ReadFile read_file = {})
      : server({.read_file = std::move(read_file), .settings = {}},
               [this](const Json& message) { sent.push_back(message); }) {
    if (!initialized) return;
    request("initialize", {{"capabilities", Json::object()}});
    notify("initialized", Json::object());
  }
  void take(const Json& message) { server.take(to_text(message)); }
  void run() {
    while (server.step(now)) {
    }
  }
  void queue_request(int id, const std::string& method, const Json& params) {
    take({{"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", params}});
  }
  void notify(const std::string& method, const Json& params) {
    take({{"jsonrpc", "2.0"}, {"method", method}, {"params", params}});
    run();
  }
  /// The answer, an object with "result" or "error".
  Json request(const std::string& method, const Json& params) {
    queue_request(++last_id_, method, params);
    run();
    return answer(last_id_);
  }
  Json answer(const Json& id) const {
    for (const Json& message : sent) {
      if (!message.contains("method") && message["id"] == id) return message;
    }
    return nullptr;
  }
  int error_of(const std::string& method, const Json& params) {
    const Json got = request(method, params);
    return got.contains("error") ? got["error"]["code"].get<int>() : 0;
  }
  /// Messages of a method, oldest first.
  std::vector<Json> all(const std::string& method) const {
    std::vector<Json> found;
    for (const Json& message : sent) {
      if (text_of(message, "method") == method) found.push_back(message["params"]);
    }
    return found;
  }
  void open(const std::string& text, const std::string& uri = kUri) {
    notify("textDocument/didOpen",
           {{"textDocument", {{"uri", uri}, {"text", text}, {"version", 1}}}});
  }
  void change(const Json& changes, int version = 2) {
    notify("textDocument/didChange",
           {{"textDocument", {{"uri", kUri}, {"version", version}}}, {"contentChanges", changes}});
  }
  /// Lets time go by, and checks what is due.
  void pass(std::chrono::milliseconds time) {
    now += time;
    while (server.due() && *server.due() <= now) server.check_due(now);
  }

  std::vector<Json> sent;
  Clock::time_point now;
  Server server;

 private:
  int last_id_ = 100;
};

Json at(uint32_t line, uint32_t character) {
  return {{"textDocument", {{"uri", kUri}}},
          {"position", {{"line", line}, {"character", character}}}};
}

constexpr std::chrono::milliseconds kNone{0};

}  // namespace

TEST_CASE("server: what takes more memory than there is gets an error, and the server goes on") {
  bool has_memory = false;
  Session s(true, [&](const std::string&) -> std::optional<std::string> {
    if (!has_memory) throw std::bad_alloc();
    return std::nullopt;
  });
  s.open("import \"b.mscl\"\n" + kFine);
  s.open(kFine, "file:///fine.mscl");
  s.pass(kPatience);
  const Json at = {{"textDocument", {{"uri", kUri}}},
                   {"position", {{"line", 1}, {"character", 3}}}};
  for (const char* method : {"hover", "documentSymbol", "definition"}) {
    INFO(method);
    CHECK(s.error_of(std::string("textDocument/") + method, at) == kInternalError);
  }
  const Json fine = {{"textDocument", {{"uri", "file:///fine.mscl"}}}};
  CHECK(s.error_of("textDocument/documentSymbol", fine) == 0);
  has_memory = true;
  CHECK(s.error_of("textDocument/documentSymbol", at) == 0);
  CHECK_FALSE(s.server.exit_code());
}

TEST_CASE("server: what it can do, and how it ends") {
  Session session(false);
  const Json answer = session.request("initialize", {{"capabilities", Json::object()}});
  const Json& can = answer["result"]["capabilities"];
  CHECK(can["positionEncoding"] == "utf-16");
  for (const char* provider :
       {"hoverProvider", "completionProvider", "definitionProvider", "referencesProvider",
        "renameProvider", "documentFormattingProvider", "inlayHintProvider", "codeActionProvider",
        "documentSymbolProvider", "executeCommandProvider"}) {
    INFO(provider);
    CHECK(can.contains(provider));
  }
  CHECK(session.error_of("initialize", Json::object()) == kInvalidRequest);
  CHECK(session.request("shutdown", nullptr)["result"].is_null());
  CHECK(session.error_of("textDocument/hover", at(0, 0)) == kInvalidRequest);
  CHECK_FALSE(session.server.exit_code());
  session.notify("exit", nullptr);
  CHECK(session.server.exit_code() == 0);
}

TEST_CASE("server: an end without 'shutdown' is a failure") {
  Session session;
  session.notify("exit", nullptr);
  CHECK(session.server.exit_code() == 1);
}

TEST_CASE("server: nothing is answered before 'initialize'") {
  Session session(false);
  CHECK(session.error_of("textDocument/hover", at(0, 0)) == kNotInitialized);
  session.open(kWrong);
  CHECK_FALSE(session.server.due());
}

TEST_CASE("server: a document is checked when it is opened, and a moment after a change") {
  Session session;
  session.open(kWrong);
  session.pass(kNone);
  auto published = session.all("textDocument/publishDiagnostics");
  REQUIRE(published.size() == 1);
  CHECK(published[0]["version"] == 1);
  CHECK(published[0]["diagnostics"][0]["code"] == "unknown-name");
  session.change(Json::array({{{"text", kFine}}}));
  session.pass(kPatience / 2);
  CHECK(session.all("textDocument/publishDiagnostics").size() == 1);
  session.change(Json::array({{{"text", kFine + "\n"}}}), 3);
  session.pass(kPatience / 2);  // the change has put it off
  CHECK(session.all("textDocument/publishDiagnostics").size() == 1);
  session.pass(kPatience);
  published = session.all("textDocument/publishDiagnostics");
  REQUIRE(published.size() == 2);
  CHECK(published[1]["version"] == 3);
  CHECK(published[1]["diagnostics"].empty());
  session.notify("textDocument/didClose", {{"textDocument", {{"uri", kUri}}}});
  CHECK(session.all("textDocument/publishDiagnostics").size() == 3);
  CHECK(session.error_of("textDocument/hover", at(0, 0)) == kInvalidParams);
}

TEST_CASE("server: several edits of one change come one after another") {
  Session session;
  session.open("let a = 1\n");
  const auto edit = [](uint32_t line, uint32_t begin, uint32_t end, const char* text) -> Json {
    return {{"range",
             {{"start", {{"line", line}, {"character", begin}}},
              {"end", {{"line", line}, {"character", end}}}}},
            {"text", text}};
  };
  session.change({edit(0, 4, 5, "bb"), edit(0, 9, 10, "bb")});
  const Json answer = session.request("textDocument/hover", at(0, 4));
  CHECK(answer["result"]["contents"]["value"] == "value `bb`\n```mscl\nlet bb = bb\n```");
}

TEST_CASE("server: hostile edits are refused or go to the end, and the server stays") {
  Session session;
  session.open("let a = 1\n");
  const Json far = {{"line", 4000000000u}, {"character", 4000000000u}};
  session.change(
      Json::array({{{"range", {{"start", far}, {"end", far}}}, {"text", "let b = a\n"}}}));
  CHECK(session.request("textDocument/hover", at(1, 4))["result"].is_object());
  const Json backwards = {{"start", {{"line", 1}, {"character", 0}}},
                          {"end", {{"line", 0}, {"character", 0}}}};
  const Json wrong[] = {
      Json::array({{{"range", backwards}, {"text", ""}}}),
      Json::array({{{"range", 7}, {"text", ""}}}),
      Json::array({{{"range", {{"start", {{"line", -1}, {"character", 0}}}}}, {"text", ""}}}),
      Json::array({{{"text", 7}}}),
      Json::array({nullptr}),
      Json(7),
  };
  size_t logged = session.all("window/logMessage").size();
  for (const Json& changes : wrong) {
    session.change(changes);
    CHECK(session.all("window/logMessage").size() == ++logged);
  }
  CHECK(session.request("textDocument/hover", at(1, 4))["result"].is_object());
}

TEST_CASE("server: requests with wrong types, unknown methods and what is no message") {
  Session session;
  session.open(kFine);
  CHECK(session.error_of("no/such", nullptr) == kMethodNotFound);
  for (const char* method :
       {"textDocument/hover", "textDocument/completion", "textDocument/definition",
        "textDocument/references", "textDocument/documentHighlight", "textDocument/rename",
        "textDocument/prepareRename", "textDocument/inlayHint", "workspace/executeCommand",
        "textDocument/formatting", "textDocument/documentSymbol", "textDocument/codeAction"}) {
    INFO(method);
    for (const Json& params : {Json(nullptr), Json(7), Json::array({1}), Json{{"textDocument", 7}},
                               Json{{"textDocument", {{"uri", 7}}}}}) {
      CHECK(session.error_of(method, params) == kInvalidParams);
    }
  }
  Json no_name = at(0, 0);
  CHECK(session.error_of("textDocument/rename", no_name) == kInvalidParams);
  for (const char* text : {"{", "", "\xff", "nul", "{\"a\":\"\\ud800\"}"}) {
    const size_t before = session.sent.size();
    session.server.take(text);
    session.run();
    REQUIRE(session.sent.size() == before + 1);
    CHECK(session.sent.back()["error"]["code"] == kParseError);
  }
  for (const char* text : {"[]", "7", "{}", "{\"id\":1}", "{\"id\":{},\"method\":\"shutdown\"}",
                           "{\"id\":1.5,\"method\":\"shutdown\"}", "{\"method\":7,\"id\":1}"}) {
    INFO(text);
    session.server.take(text);
    session.run();
    CHECK(session.sent.back()["error"]["code"] == kInvalidRequest);
  }
  std::string deep(100000, '[');
  session.server.take(deep + std::string(100000, ']'));
  session.run();
  CHECK(session.sent.back()["error"]["code"] == kInvalidRequest);
  const size_t before = session.sent.size();
  session.notify("$/unknown", nullptr);
  session.take({{"id", "mscclc-1"}, {"result", {{"applied", true}}}});
  session.run();
  CHECK(session.sent.size() == before);
}

TEST_CASE("server: a request that is cancelled before it begins is not done") {
  Session session;
  session.open(kFine);
  session.queue_request(1, "textDocument/documentSymbol", {{"textDocument", {{"uri", kUri}}}});
  session.queue_request(2, "textDocument/documentSymbol", {{"textDocument", {{"uri", kUri}}}});
  session.take({{"method", "$/cancelRequest"}, {"params", {{"id", 2}}}});
  session.take({{"method", "$/cancelRequest"}, {"params", {{"id", 77}}}});
  session.take({{"method", "$/cancelRequest"}, {"params", 7}});
  session.run();
  CHECK(session.answer(1).contains("result"));
  CHECK(session.answer(2)["error"]["code"] == kRequestCancelled);
}

TEST_CASE("server: an open document is what others import, saved or not") {
  const ReadFile disk = [](const std::string&) { return std::string("let n = 1\n"); };
  Session session(true, disk);
  session.open("import \"lib.mscl\"\nlet a = n\n");
  session.pass(kNone);
  CHECK(session.all("textDocument/publishDiagnostics").back()["diagnostics"].empty());
  session.open("let other = 1\n", "file:///lib.mscl");
  session.pass(kPatience);
  bool reported = false;
  for (const Json& one : session.all("textDocument/publishDiagnostics")) {
    reported = reported || (one["uri"] == kUri && !one["diagnostics"].empty());
  }
  CHECK(reported);
}

TEST_CASE("server: parameters of the editor's settings") {
  Session session;
  session.open(
      "param R = 2\ncollective allgather(ranks: R)\nrank r in 0..R { copy output[r] <- input }\n");
  session.pass(kNone);
  CHECK(session.all("textDocument/publishDiagnostics").back()["diagnostics"].size() == 1);
  session.notify("workspace/didChangeConfiguration",
                 {{"settings", {{"mscclc", {{"defines", {{"R", 1}, {"Q", 1}}}}}}}});
  session.pass(kNone);
  CHECK(session.all("textDocument/publishDiagnostics").back()["diagnostics"].empty());
  session.notify("workspace/didChangeConfiguration",
                 {{"settings", {{"mscclc", {{"defines", {{"R", {1}}}}}}}}});
  CHECK(session.all("window/logMessage").size() == 1);
}

TEST_CASE("server: a patch is looked for when it is asked for, and handed to the editor") {
  Session session;
  session.open(kWrong);
  const Json asked = {{"textDocument", {{"uri", kUri}}},
                      {"context", {{"diagnostics", {{{"source", "mscclc"}, {"severity", 1}}}}}}};
  const Json actions = session.request("textDocument/codeAction", asked)["result"];
  REQUIRE(actions.size() == 1);
  CHECK(session.request("workspace/executeCommand", actions[0]["command"])["result"].is_null());
  const auto edits = session.all("workspace/applyEdit");
  const auto said = session.all("window/showMessage");
  CHECK(edits.size() + said.size() == 1);
  Json nothing = asked;
  nothing["context"]["diagnostics"] = Json::array();
  CHECK(session.request("textDocument/codeAction", nothing)["result"].empty());
  CHECK(session.error_of("workspace/executeCommand", {{"command", "rm"}}) == kInvalidParams);
  CHECK(session.error_of("workspace/executeCommand",
                         {{"command", kFindPatch}, {"arguments", {7}}}) == kInvalidParams);
}

TEST_CASE("server: hints are of the present text, which is checked first") {
  Session session;
  session.open(kFine);
  const Json params = {
      {"textDocument", {{"uri", kUri}}},
      {"range",
       {{"start", {{"line", 0}, {"character", 0}}}, {"end", {{"line", 9}, {"character", 0}}}}}};
  const Json hints = session.request("textDocument/inlayHint", params)["result"];
  REQUIRE(hints.size() == 1);
  CHECK(hints[0]["label"] == "tb 0");
  CHECK(session.all("textDocument/publishDiagnostics").size() == 1);
}

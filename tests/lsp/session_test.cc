// An editor's sessions with the real command, over pipes.
#include <catch2/catch.hpp>
#include <filesystem>

#include "ir/support/read_file.h"
#include "tests/lsp/client.h"

using namespace mscclc;
using mscclc::testing::LspClient;
using Json = nlohmann::json;

namespace {

const std::string kCommand = "tools/mscclc";
const std::string kUri = "file:///work/program.mscl";

class Editor {
 public:
  Editor() : client(kCommand) {
    client.request("initialize", {{"capabilities", Json::object()}});
    client.notify("initialized", Json::object());
  }
  /// Opens a program; the diagnostics of it.
  Json open(const std::string& text) {
    text_ = text;
    client.notify("textDocument/didOpen",
                  {{"textDocument",
                    {{"uri", kUri}, {"languageId", "mscl"}, {"version", 1}, {"text", text}}}});
    return published();
  }
  Json published() { return client.wait_for("textDocument/publishDiagnostics")["diagnostics"]; }
  /// The result of a request at the first place of `needle`.
  Json ask(const std::string& method, const std::string& needle, Json more = Json::object()) {
    const size_t at = text_.find(needle);
    REQUIRE(at != std::string::npos);
    const auto line = std::count(text_.begin(), text_.begin() + static_cast<long>(at), '\n');
    const size_t begin = text_.rfind('\n', at) + 1;
    more["textDocument"] = {{"uri", kUri}};
    more["position"] = {{"line", line}, {"character", at - begin}};
    return client.request(method, more)["result"];
  }
  int leave() {
    client.request("shutdown", nullptr);
    client.notify("exit", nullptr);
    return client.end();
  }

  LspClient client;

 private:
  std::string text_;
};

}  // namespace

TEST_CASE("session: a program is opened, broken, fixed and renamed") {
  Editor editor;
  const std::string program = read_file("plans/allreduce_2shot_packets.mscl").value();
  CHECK(editor.open(program).empty());
  CHECK(
      editor.ask("textDocument/hover", "put_packets")["contents"]["value"].get<std::string>().find(
          "write chunks as packets") != std::string::npos);
  CHECK(editor.ask("textDocument/definition", "others {").size() == 1);
  CHECK(!editor.ask("textDocument/completion", "put_packets").empty());
  const Json renamed = editor.ask("textDocument/rename", "others =", {{"newName", "peers"}});
  CHECK(renamed["changes"][kUri].size() > 2);

  const Json start = {{"line", 0}, {"character", 0}};
  editor.client.notify(
      "textDocument/didChange",
      {{"textDocument", {{"uri", kUri}, {"version", 2}}},
       {"contentChanges", {{{"range", {{"start", start}, {"end", start}}}, {"text", "rank {"}}}}});
  CHECK(!editor.published().empty());
  editor.client.notify("textDocument/didChange", {{"textDocument", {{"uri", kUri}, {"version", 3}}},
                                                  {"contentChanges", {{{"text", program}}}}});
  CHECK(editor.published().empty());
  CHECK(editor.leave() == 0);
}

TEST_CASE("session: a patch is found and applied") {
  Editor editor;
  const std::string program =
      "param R = 4\ncollective allgather(ranks: R)\nrank r in 0..R {\n"
      "  let others = 0..R except r\n  buffer s[others]\n"
      "  channel ch[p in others] = memory(p)\n"
      "  for p in others { put ch[p].s[r] <- input ; signal ch[p] }\n"
      "  copy output[r] <- input\n  for p in others { wait ch[p] }\n"
      "  for p in others { copy output[p] <- s[p] }\n}\n";
  const Json diagnostics = editor.open(program);
  REQUIRE(diagnostics.size() == 1);
  CHECK(diagnostics[0]["relatedInformation"].size() == 2);
  const Json actions = editor.client.request(
      "textDocument/codeAction", {{"textDocument", {{"uri", kUri}}},
                                  {"range", diagnostics[0]["range"]},
                                  {"context", {{"diagnostics", diagnostics}}}})["result"];
  REQUIRE(actions.size() == 1);
  CHECK(
      editor.client.request("workspace/executeCommand", actions[0]["command"])["result"].is_null());
  const Json patch = editor.client.wait_for("workspace/applyEdit");
  CHECK(patch["label"].get<std::string>().find("copies: 2") != std::string::npos);
  CHECK(patch["edit"]["changes"][kUri].size() == 1);
  CHECK(editor.leave() == 0);
}

TEST_CASE("session: every program of the library is without mistakes, and has hints and symbols") {
  Editor editor;
  size_t programs = 0;
  for (const auto& entry : std::filesystem::directory_iterator("plans")) {
    if (entry.path().extension() != ".mscl") continue;
    INFO(entry.path());
    CHECK(editor.open(read_file(entry.path()).value()).empty());
    CHECK(!editor.ask("textDocument/documentSymbol", "rank").empty());
    const Json all = {{"start", {{"line", 0}, {"character", 0}}},
                      {"end", {{"line", 1000}, {"character", 0}}}};
    CHECK(editor.ask("textDocument/inlayHint", "rank", {{"range", all}}).is_array());
    CHECK(editor.ask("textDocument/formatting", "rank").empty());
    editor.client.notify("textDocument/didClose", {{"textDocument", {{"uri", kUri}}}});
    CHECK(editor.published().empty());
    ++programs;
  }
  CHECK(programs > 50);
  CHECK(editor.leave() == 0);
}

TEST_CASE("session: broken streams end the command with 1") {
  for (const char* bytes : {"", "Content-Length: 99999999999\r\n\r\n", "\r\n\r\n",
                            "garbage:\r\n\r\n", "Content-Length: 5\r\n\r\n{"}) {
    INFO(bytes);
    LspClient client(kCommand);
    client.write(bytes);
    CHECK(client.end() == 1);
  }
}

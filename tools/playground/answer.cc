#include "tools/playground/answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "compiler/compile.h"
#include "compiler/fix/fix.h"
#include "executor/cost/explanation.h"
#include "executor/cost/machines.h"
#include "ir/print/print.h"
#include "passes/prove/prove.h"
#include "plans/format/embedded_library.h"
#include "tools/draw/html.h"
#include "tools/draw/layout.h"
#include "tools/io/json_text.h"
#include "tools/playground/request.h"
#include "tools/report/summary.h"
#include "tools/timeline/page.h"
#include "tools/timeline/predicted.h"

namespace mscclc::playground {
namespace {

constexpr std::string_view kEnding = ".mscl";
/// More take longer, and more memory, than a page should.
constexpr uint64_t kMaxOps = 1'000'000;

std::optional<std::string> read_library_file(const std::string& path) {
  const auto files = embedded_library();
  const auto found = std::ranges::find(files, path, &LibraryFile::name);
  return found == files.end() ? std::nullopt : std::optional(std::string(found->text));
}

/// The first line of a program, which says what it is: "# Ring AllReduce …".
std::string about(std::string_view text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  return std::string(line.starts_with("# ") ? line.substr(2) : "");
}

void put_library(const Sink& sink) {
  std::string programs, machines;
  for (const LibraryFile& file : embedded_library()) {
    if (!file.name.ends_with(kEnding)) continue;
    const std::string_view name = file.name.substr(0, file.name.size() - kEnding.size());
    programs += fmt::format("{}{{\"name\":{},\"about\":{},\"text\":{}}}",
                            programs.empty() ? "" : ",", json_quoted(std::string(name)),
                            json_quoted(about(file.text)), json_quoted(std::string(file.text)));
  }
  for (const Machine& machine : builtin_machines()) {
    machines += (machines.empty() ? "" : ",") + json_quoted(machine.name);
  }
  sink(fmt::format(R"({{"part":"library","programs":[{}],"machines":[{}]}})", programs, machines));
}

/// All about one program.
class Answer {
 public:
  Answer(const Request& request, const Sink& sink) : request_(request), sink_(sink) {
    front_.read_file = read_library_file;
    front_.defines = request.parameters;
    front_.max_ops = kMaxOps;
  }

  void put() {
    const FileId file = sources_.add(request_.name, request_.text);
    std::optional<Program> program = compile(sources_, file, front_, {}, diagnostics_);
    std::optional<Proof> proof;
    if (program && program->split) {
      proof = prove(*program, diagnostics_, {.try_copies = true});
      if (!proof->proved) proof.reset();
    }
    put_diagnostics();
    put_verdict(proof);
    if (program) {
      put_picture(*program, proof);
      if (proof) put_timeline(*program);
      put_text("ir", print_ir(*program));
    }
    if (diagnostics_.has_errors()) put_patch();
  }

 private:
  /// A part with a text, or with another key.
  void put_text(std::string_view part, const std::string& text, std::string_view key = "text") {
    sink_(fmt::format(R"({{"part":"{}","{}":{}}})", part, key, json_quoted(text)));
  }

  void put_diagnostics() {
    std::string list = render_json(diagnostics_, sources_);  // a line each
    while (list.ends_with('\n')) list.pop_back();
    std::ranges::replace(list, '\n', ',');
    sink_(fmt::format(R"({{"part":"diagnostics","list":[{}]}})", list));
  }

  void put_verdict(const std::optional<Proof>& proof) {
    const std::string text = proof ? "proved: " + summarize(*proof) : "refused";
    sink_(fmt::format(R"({{"part":"verdict","proved":{},"text":{}}})", proof.has_value(),
                      json_quoted(text)));
  }

  void put_picture(const Program& program, const std::optional<Proof>& proof) {
    draw::DrawOptions options;
    options.proved = proof ? "proved: " + summarize(*proof) : "NOT PROVED";
    if (proof) options.between_calls = between_calls_text(proof->between_calls);
    const auto picture = draw::lay_out(program, options);
    if (picture) {
      put_text("picture", draw::html_of(*picture), "html");
    } else {
      put_text("picture", picture.error().text(), "message");
    }
  }

  void put_timeline(const Program& program) {
    Diagnostics why;
    const auto machine = cost::machine_for(program, request_.machine, why);
    if (!machine) return put_text("timeline", message_of(why), "message");
    const Call call = cost::call_of(program, request_.bytes, Dtype::f32);
    const auto explained = cost::explain(program, call, *machine, why);
    const auto predicted =
        explained ? timeline::predict(program, call, *machine, why) : std::nullopt;
    if (!predicted) return put_text("timeline", message_of(why), "message");
    const timeline::CallFacts facts{program, timeline::title_of(program, call)};
    const std::string html =
        timeline::timeline_page(facts, {timeline::predicted_trace(*predicted, *machine)});
    sink_(fmt::format(R"({{"part":"timeline","html":{},"text":{}}})", json_quoted(html),
                      json_quoted(explanation_text(*explained))));
  }

  void put_patch() {
    const FixResult fix = find_fix(request_.name, request_.text, front_, {});
    if (fix.text.empty()) return;
    sink_(fmt::format(R"({{"part":"patch","title":{},"text":{}}})", json_quoted(fix.title),
                      json_quoted(fix.text)));
  }

  const Request& request_;
  const Sink& sink_;
  FrontEndOptions front_;
  Sources sources_;
  Diagnostics diagnostics_;
};

}  // namespace

void answer(std::string_view request, const Sink& sink) {
  const auto read = read_request(request);
  if (!read) {
    return sink(
        fmt::format(R"({{"part":"error","message":{}}})", json_quoted(read.error().text())));
  }
  if (read->ask == Ask::library) {
    put_library(sink);
  } else {
    Answer(*read, sink).put();
  }
  sink(R"({"part":"end"})");
}

}  // namespace mscclc::playground

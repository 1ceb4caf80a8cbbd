#include "tools/commands/programs/draw_plan.h"

#include <algorithm>
#include <array>

#include "compiler/proof_gate.h"
#include "tools/draw/dot.h"
#include "tools/draw/html.h"
#include "tools/draw/layout.h"
#include "tools/draw/svg.h"
#include "tools/io/files.h"
#include "tools/report/summary.h"

namespace mscclc {
namespace {

struct Writer {
  std::string_view emit;
  std::string (*write)(const draw::Picture& picture);
};

constexpr std::array kWriters = {
    Writer{"svg", [](const draw::Picture& picture) { return draw::svg_of(picture); }},
    Writer{"html", [](const draw::Picture& picture) { return draw::html_of(picture); }},
    Writer{"dot", [](const draw::Picture& picture) { return draw::dot_of(picture); }},
};

/// What the picture says of the proof. One that is no plan yet, or wrong, is drawn all the same.
void add_proof(const Program& program, draw::DrawOptions& options) {
  if (!program.split) {
    options.proved = "NOT PROVED: the passes that make it a plan have not run";
    return;
  }
  ProofGate gate{.try_copies = true};
  Diagnostics why;
  if (!gate.pass(program, why) || !gate.proof) {
    options.proved = "NOT PROVED: 'mscclc verify' says why";
    return;
  }
  options.proved = "proved: " + summarize(*gate.proof);
  options.between_calls = between_calls_text(gate.proof->between_calls);
}

}  // namespace

void add_picture_options(CommandLine& line, CLI::App& app, PictureOptions& options) {
  line.takes_text(app.add_option("--rank", options.ranks,
                                 "svg, html, dot: these ranks, separated by commas (default: all, "
                                 "or one of those that do the same)")
                      ->type_name("LIST")
                      ->delimiter(',')
                      ->allow_extra_args(false));
  line.takes_text(app.add_option("--tb", options.blocks,
                                 "svg, html, dot: these thread blocks, separated by commas")
                      ->type_name("LIST")
                      ->delimiter(',')
                      ->allow_extra_args(false));
  line.takes_text(app.add_option("--chunk", options.chunk,
                                 "svg, html, dot: only what touches this chunk: 'inbox[2]', or 3 "
                                 "for that of input and output")
                      ->type_name("CHUNK"));
}

bool is_picture(const std::string& emit) {
  return std::ranges::any_of(kWriters, [&](const Writer& writer) { return writer.emit == emit; });
}

int draw_plan(const std::string& emit, const PictureOptions& options, const std::string& output,
              Input& input) {
  draw::DrawOptions draw{options.ranks, options.blocks, options.chunk, "", ""};
  add_proof(input.program, draw);
  const auto picture = draw::lay_out(input.program, draw);
  if (!picture) return Input::usage(picture.error());
  const auto writer =
      std::ranges::find_if(kWriters, [&](const Writer& each) { return each.emit == emit; });
  return Input::code_of(write_file(output, writer->write(*picture)));
}

}  // namespace mscclc

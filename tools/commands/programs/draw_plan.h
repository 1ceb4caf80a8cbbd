// Pictures of plans: what 'mscclc compile --emit=svg|html|dot' does.
#pragma once

#include <string>
#include <vector>

#include "tools/io/command_line.h"
#include "tools/io/input.h"

namespace mscclc {

/// What a picture shows; empty: all.
struct PictureOptions {
  std::vector<uint32_t> ranks, blocks;
  std::string chunk;
  bool picks() const { return !ranks.empty() || !blocks.empty() || !chunk.empty(); }
};

/// Declares --rank, --tb and --chunk.
void add_picture_options(CommandLine& line, CLI::App& app, PictureOptions& options);

/// Is this word of --emit a picture?
bool is_picture(const std::string& emit);

/// Writes the picture of `input`'s program; a plan that is not proved is drawn, too, and says so.
int draw_plan(const std::string& emit, const PictureOptions& options, const std::string& output,
              Input& input);

}  // namespace mscclc

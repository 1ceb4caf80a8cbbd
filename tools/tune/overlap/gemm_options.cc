// Shapes of GEMMs as options say them.
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <charconv>
#include <set>

#include "tools/tune/overlap/tune_gemms.h"

namespace mscclc::tune {
namespace {

struct Layer {
  uint64_t k;
  std::vector<uint64_t> n;
};

/// Takes a number off the front of a text. False: there is none.
bool take_number(std::string_view& text, uint64_t& number) {
  const auto [after, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  text.remove_prefix(static_cast<size_t>(after - text.data()));
  return error == std::errc();
}

/// "K:N" or "K:N,N"
Result<Layer> parse_layer(const std::string& given) {
  std::string_view text = given;
  Layer layer{};
  bool right = take_number(text, layer.k) && text.starts_with(':');
  while (right && !text.empty()) {
    text.remove_prefix(1);
    right = take_number(text, layer.n.emplace_back()) && (text.empty() || text.front() == ',');
  }
  if (right) return layer;
  return Error{fmt::format(
      "--layer must be K:N, or K:N,N with the columns of each B, such as 3584:8192; it is '{}'",
      given)};
}

Result<std::vector<Layer>> layers_of(const GemmOptions& options) {
  std::vector<Layer> layers;
  if ((options.k == 0) != options.n.empty()) return Error{"--k and --n belong together"};
  if (options.k != 0) layers.push_back({options.k, options.n});
  for (const std::string& text : options.layers) {
    auto layer = parse_layer(text);
    if (!layer) return layer.error();
    layers.push_back(*std::move(layer));
  }
  return layers;
}

}  // namespace

std::vector<const CLI::Option*> add_gemm_options(CommandLine& line, CLI::App& app,
                                                 GemmOptions& options) {
  return {line.takes_number<uint64_t>(
              app.add_option("--m", options.m,
                             "of GEMMs that overlap: rows of a rank's GEMM, several numbers "
                             "separated by commas; others in between get what both have")
                  ->type_name("LIST")
                  ->delimiter(',')
                  ->allow_extra_args(false)),
          line.takes_number<uint64_t>(
              app.add_option("--k", options.k, "the same: what it adds up over")->type_name("N")),
          line.takes_number<uint64_t>(
              app.add_option("--n", options.n, "the same: columns of each B, separated by commas")
                  ->type_name("N")
                  ->delimiter(',')
                  ->allow_extra_args(false)),
          line.takes_text(app.add_option("--layer", options.layers,
                                         "the same: K:N, --k and --n of a layer; may be repeated")
                              ->type_name("LAYER")
                              ->allow_extra_args(false))};
}

Result<std::vector<OverlapConfig>> shapes_of(const GemmTuning& tuning, OverlapKind kind) {
  const auto layers = layers_of(tuning.shapes);
  if (!layers) return layers.error();
  if (tuning.shapes.m.empty() || layers->empty()) {
    return Error{fmt::format("{} needs --m, and --k with --n, or --layer K:N", name(kind))};
  }
  const Dtype out = info(tuning.dtype).bytes == 1 ? Dtype::bf16 : tuning.dtype;
  const std::set<uint64_t> rows(tuning.shapes.m.begin(), tuning.shapes.m.end());
  std::vector<OverlapConfig> shapes;
  for (const Layer& layer : *layers) {
    for (const uint64_t m : rows) {
      shapes.push_back({.kind = kind,
                        .m = m,
                        .k = layer.k,
                        .n = layer.n,
                        .b_transposed = true,
                        .a_dtype = tuning.dtype,
                        .b_dtype = tuning.dtype,
                        .out_dtype = out,
                        .order = tuning.order});
    }
  }
  return shapes;
}

}  // namespace mscclc::tune

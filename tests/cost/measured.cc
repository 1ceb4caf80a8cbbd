#include "tests/cost/measured.h"

#include <sstream>
#include <stdexcept>

#include "compiler/compile.h"
#include "ir/support/read_file.h"

namespace mscclc::testing {
namespace {

std::vector<std::vector<std::string>> read_table(const std::filesystem::path& csv, size_t columns) {
  const std::optional<std::string> text = read_file(csv.string());
  if (!text) throw std::runtime_error("cannot read " + csv.string());
  std::istringstream lines(*text);
  std::vector<std::vector<std::string>> rows;
  std::string line;
  std::getline(lines, line);  // the names of the columns
  while (std::getline(lines, line)) {
    std::vector<std::string>& row = rows.emplace_back();
    std::istringstream cells(line);
    for (std::string cell; std::getline(cells, cell, ',');) row.push_back(cell);
    if (row.size() != columns) throw std::runtime_error("not a row: " + line);
  }
  return rows;
}

FrontEndOptions parameters_of(const std::string& text) {
  FrontEndOptions options;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const size_t at = word.find('=');
    options.defines.emplace_back(word.substr(0, at), word.substr(at + 1));
  }
  return options;
}

}  // namespace

std::vector<MeasuredCall> read_measured(const std::filesystem::path& csv) {
  std::vector<MeasuredCall> calls;
  for (const auto& row : read_table(csv, 6)) {
    calls.push_back({row[0], row[1], row[3], std::stoull(row[2]), std::stod(row[4])});
  }
  return calls;
}

std::vector<MeasuredPair> read_pairs(const std::filesystem::path& csv) {
  std::vector<MeasuredPair> pairs;
  for (const auto& row : read_table(csv, 8)) {
    const uint64_t bytes = std::stoull(row[2]);
    pairs.push_back({{row[0], row[1], row[3], bytes, std::stod(row[4])},
                     {row[0], row[1], row[5], bytes, std::stod(row[6])}});
  }
  return pairs;
}

std::vector<MeasuredProbe> read_probes(const std::filesystem::path& csv) {
  std::vector<MeasuredProbe> probes;
  for (const auto& row : read_table(csv, 4)) {
    probes.push_back({row[0], std::stoull(row[1]), std::stod(row[2]), std::stod(row[3])});
  }
  return probes;
}

MeasuredPlan::MeasuredPlan(const std::filesystem::path& plans, const std::string& program) {
  const size_t colon = program.find(':');
  const std::string file = (plans / (program.substr(0, colon) + ".mscl")).string();
  std::optional<std::string> text = read_file(file);
  if (!text) throw std::runtime_error("cannot read " + file);
  Sources sources;
  Diagnostics diagnostics;
  const FileId id = sources.add(file, *std::move(text));
  std::optional<Program> compiled =
      compile(sources, id, parameters_of(program.substr(colon + 1)), {}, diagnostics);
  if (!compiled) throw std::runtime_error(program + ": " + render_text(diagnostics, sources));
  program_ = std::make_unique<Program>(*std::move(compiled));
  model_ = std::make_unique<cost::Model>(*program_);
}

double MeasuredPlan::predict(uint64_t bytes, const Machine& machine) {
  return timeline(bytes, machine).back_to_back_ns / 1e3;
}

cost::Timeline MeasuredPlan::timeline(uint64_t bytes, const Machine& machine) {
  Diagnostics diagnostics;
  const Call call = cost::call_of(*program_, bytes, Dtype::f32);
  auto timeline = model_->predict(call, machine, diagnostics);
  if (!timeline) throw std::runtime_error(render_text(diagnostics, Sources{}));
  return *std::move(timeline);
}

}  // namespace mscclc::testing

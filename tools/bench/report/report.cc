#include "tools/bench/report/report.h"

#include <fmt/format.h>

#include <filesystem>

#include "tools/bench/report/cliffs.h"
#include "tools/bench/report/plot.h"
#include "tools/bench/report/table.h"
#include "tools/io/files.h"

namespace mscclc::bench {
namespace {

bool write_plots(const Record& record, const std::string& folder, std::string& text) {
  std::error_code code;
  std::filesystem::create_directories(folder, code);
  const auto plots = plots_of(record.results, record.machine);
  for (const auto& [name, document] : plots) {
    const auto written = write_file((std::filesystem::path(folder) / name).string(), document);
    if (written) continue;
    text += fmt::format("# {}\n", written.error().text());
    return false;
  }
  text += fmt::format("# {} plots in {}\n", plots.size(), folder);
  return true;
}

bool look_for_cliffs(const Record& record, std::string& text) {
  const auto cliffs = find_cliffs(record.results);
  const size_t steps = count_steps(record.results);
  for (const Cliff& cliff : cliffs) text += "# cliff: " + cliff_text(cliff);
  text += fmt::format("# {} cliffs in {} steps from a size to the next\n", cliffs.size(), steps);
  return cliffs.empty() && steps > 0;
}

}  // namespace

std::string tables_text(const Record& record, bool best) {
  std::string text;
  for (const auto& [key, sizes] : tables_of(record.results)) {
    text += fmt::format("#\n# {}, {}\n{}", table_name(key), record.machine, bench_header());
    for (const auto& [bytes, results] : sizes) text += bench_rows(results, best);
    text += bench_footer(sizes);
  }
  return text;
}

bool report(const Record& record, const Options& options, std::string& text) {
  const auto wrong = std::ranges::count_if(record.results, &Result::is_wrong);
  if (wrong > 0) text += fmt::format("# {} results are wrong\n", wrong);
  bool good = record.left_out.empty() && wrong == 0;
  if (!record.left_out.empty()) text += fmt::format("# {} left out:\n", record.left_out.size());
  for (const LeftOut& l : record.left_out) {
    text += fmt::format("#   {}{}{}: {}\n", l.collective, l.collective.empty() ? "" : ", ", l.who,
                        l.why.substr(0, l.why.find('\n')));
  }
  if (!options.svg.empty()) good &= write_plots(record, options.svg, text);
  if (options.cliffs) good &= look_for_cliffs(record, text);
  return good;
}

}  // namespace mscclc::bench

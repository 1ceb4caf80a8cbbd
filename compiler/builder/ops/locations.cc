#include "compiler/builder/ops/locations.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>

namespace mscclc {

void Locations::at_call(std::initializer_list<std::pair<std::string_view, int64_t>> variables,
                        const char* file, uint32_t line) {
  Program& p = draft_.program;
  Site site{0, line, 1, {}};
  std::vector<int64_t> values;
  std::string context;
  for (const auto& [name, value] : variables) {
    site.variables.push_back(p.intern(name));
    values.push_back(value);
    fmt::format_to(std::back_inserter(context), "{}{} = {}", context.empty() ? "" : ", ", name,
                   value);
  }
  reports_.set_call(file, line, std::move(context));
  site.file = static_cast<FileId>(std::ranges::find(p.files, file) - p.files.begin());
  if (site.file == p.files.size()) p.files.emplace_back(file);
  at_site(site_id(std::move(site)), p.append(values));
}

uint32_t Locations::site_id(Site site) {
  std::vector<uint32_t> key = {site.file, site.line, site.column};
  key.insert(key.end(), site.variables.begin(), site.variables.end());
  const auto next = static_cast<uint32_t>(draft_.program.sites.size());
  const auto [it, added] = sites_.try_emplace(std::move(key), next);
  if (added) draft_.program.sites.push_back(std::move(site));
  return it->second;
}

}  // namespace mscclc

#include "tests/structure/links.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <regex>
#include <sstream>

namespace mscclc::structure {
namespace {

/// The lines of a page that are text; those of code are empty, so that numbers of lines stay.
std::vector<std::string> text_lines(const std::string& page) {
  std::vector<std::string> lines;
  std::istringstream in(page);
  bool code = false;
  for (std::string line; std::getline(in, line);) {
    const bool fence = line.starts_with("```");
    if (fence) code = !code;
    lines.push_back(fence || code ? "" : line);
  }
  return lines;
}

std::string name_of(const std::string& heading) {
  static const std::regex link(R"(\[([^\]]*)\]\([^)]*\))");
  std::string name;
  for (const char c : std::regex_replace(heading, link, "$1")) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == ' ') {
      name += '-';
    } else if (std::isalnum(byte) || c == '-' || c == '_' || byte >= 0x80) {
      name += static_cast<char>(std::tolower(byte));
    }
  }
  return name;
}

/// What the links of a line name: "b.md#end", "#end", "../a.cc".
std::vector<std::string> targets(const std::string& line) {
  static const std::regex code("`[^`]*`"), link(R"(\]\(([^()\s]+)\))");
  const std::string text = std::regex_replace(line, code, "");
  std::vector<std::string> found;
  for (std::sregex_iterator it(text.begin(), text.end(), link), end; it != end; ++it) {
    found.push_back((*it)[1]);
  }
  return found;
}

/// Why a link of the page `from` leads nowhere; empty if it leads somewhere.
std::string wrong_with(const std::string& target, const std::string& from,
                       const std::map<std::string, std::string>& pages,
                       const std::function<bool(const std::string&)>& exists) {
  if (target.find("://") != std::string::npos) return "";
  const size_t hash = std::min(target.find('#'), target.size());
  std::filesystem::path file = from;
  if (hash > 0) file = (file.parent_path() / target.substr(0, hash)).lexically_normal();
  const auto page = pages.find(file.string());
  if (page == pages.end()) return exists(file.string()) ? "" : "no such file";
  if (hash == target.size()) return "";
  const std::vector<std::string> names = heading_names(page->second);
  return std::ranges::count(names, target.substr(hash + 1)) > 0 ? "" : "no such heading";
}

}  // namespace

std::vector<std::string> heading_names(const std::string& page) {
  std::vector<std::string> names;
  std::map<std::string, int> seen;
  for (const std::string& line : text_lines(page)) {
    const size_t depth = line.find_first_not_of('#');
    if (depth == 0 || depth == std::string::npos || line[depth] != ' ') continue;
    const std::string name = name_of(line.substr(depth + 1));
    const int before = seen[name]++;
    names.push_back(before == 0 ? name : name + "-" + std::to_string(before));
  }
  return names;
}

std::vector<std::string> broken_links(const std::map<std::string, std::string>& pages,
                                      const std::function<bool(const std::string&)>& exists) {
  std::vector<std::string> broken;
  for (const auto& [path, page] : pages) {
    const std::vector<std::string> lines = text_lines(page);
    for (size_t at = 0; at < lines.size(); ++at) {
      for (const std::string& target : targets(lines[at])) {
        const std::string wrong = wrong_with(target, path, pages, exists);
        if (wrong.empty()) continue;
        broken.push_back(path + ":" + std::to_string(at + 1) + ": " + target + ": " + wrong);
      }
    }
  }
  return broken;
}

}  // namespace mscclc::structure

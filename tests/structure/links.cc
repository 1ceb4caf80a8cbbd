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

/// A word in code of a line of text, and where it stands.
struct CodeWord {
  std::string text, place;
};

std::vector<CodeWord> code_words(const std::map<std::string, std::string>& pages) {
  static const std::regex code("`([^`]+)`");
  std::vector<CodeWord> words;
  for (const auto& [path, page] : pages) {
    const std::vector<std::string> lines = text_lines(page);
    for (size_t at = 0; at < lines.size(); ++at) {
      for (std::sregex_iterator it(lines[at].begin(), lines[at].end(), code), end; it != end;
           ++it) {
        words.push_back({(*it)[1], path + ":" + std::to_string(at + 1) + ": "});
      }
    }
  }
  return words;
}

/// Does some name of the set begin so?
bool any_begins(const std::set<std::string>& names, const std::string& begin) {
  const auto first = names.lower_bound(begin);
  return first != names.end() && first->starts_with(begin);
}

bool has_word(const std::string& text, const std::string& word) {
  const auto in_word = [&text](size_t at) {
    return at < text.size() &&
           (std::isalnum(static_cast<unsigned char>(text[at])) != 0 || text[at] == '_');
  };
  for (size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) {
    if ((at == 0 || !in_word(at - 1)) && !in_word(at + word.size())) return true;
  }
  return false;
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

std::vector<std::string> missing_files(const std::map<std::string, std::string>& pages,
                                       const std::set<std::string>& files) {
  static const std::regex path(R"((\w+/)[\w./-]*)"), source(R"(\w+\.(bzl|cc|cu|cuh|def|h))");
  std::set<std::string> names;
  for (const std::string& file : files) names.insert(std::filesystem::path(file).filename());
  std::vector<std::string> missing;
  for (const auto& [text, place] : code_words(pages)) {
    std::smatch parts;
    bool there = true;
    if (std::regex_match(text, source)) {
      there = names.contains(text) || text.starts_with("x.") || text.starts_with("x_");
    } else if (std::regex_match(text, parts, path) && any_begins(files, parts[1])) {
      const std::string name = text.ends_with('/') ? text.substr(0, text.size() - 1) : text;
      there =
          files.contains(name) || any_begins(files, name + "/") || any_begins(files, name + ".");
    }
    if (!there) missing.push_back(place + text + ": no such file");
  }
  return missing;
}

std::vector<std::string> missing_members(const std::map<std::string, std::string>& pages,
                                         const std::map<std::string, std::string>& sources) {
  static const std::regex member(R"(\b([A-Za-z]\w*)::([a-z]\w*))");
  std::vector<std::string> missing;
  for (const auto& [text, place] : code_words(pages)) {
    for (std::sregex_iterator it(text.begin(), text.end(), member), end; it != end; ++it) {
      const std::string type = (*it)[1], name = (*it)[2];
      const bool there = std::ranges::any_of(sources, [&](const auto& one) {
        return has_word(one.second, name) && has_word(one.second, type);
      });
      if (!there) missing.push_back(place + type + "::" + name + ": no such member");
    }
  }
  return missing;
}

}  // namespace mscclc::structure

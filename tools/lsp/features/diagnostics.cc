#include "tools/lsp/features/diagnostics.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "tools/lsp/features/word.h"
#include "tools/lsp/protocol/uri.h"

namespace mscclc::lsp {
namespace {

enum SeverityNumber { kError = 1, kWarning = 2 };
constexpr int kUnnecessary = 1;  // a tag: editors fade it out
constexpr size_t kMax = 200;     // diagnostics of a document

/// Places of one compilation in its files.
class Places {
 public:
  Places(const Document& document, const Sources& sources)
      : document_(document), sources_(sources) {}

  struct Found {
    FileId file;
    Range range;
  };
  /// Nothing if there is no place, or it is in no file that is known.
  std::optional<Found> find(const Span& span, const std::string& file) {
    const auto id = file_of(span, file);
    if (!id) return std::nullopt;
    const std::string& text = sources_.file(*id).text;
    const Lines& lines = lines_of(*id);
    const bool bytes_known = file.empty() && (span.begin != 0 || span.line == 1) &&
                             span.begin <= span.end && span.end <= text.size();
    size_t begin = bytes_known ? span.begin : lines.byte_of(span.line, span.column);
    size_t end = bytes_known ? span.end : begin + (span.end - std::min(span.begin, span.end));
    end = std::min(end, text.size());
    if (end == begin) {
      while (end < text.size() && is_word_character(text[end])) ++end;
    }
    return Found{*id, lines.range(begin, end)};
  }
  std::string uri_of(FileId id) const {
    return id == 0 ? document_.uri() : uri_of_path(sources_.file(id).name);
  }

 private:
  std::optional<FileId> file_of(const Span& span, const std::string& file) const {
    if (!span.valid()) return std::nullopt;
    FileId id = span.file;
    if (!file.empty()) {
      for (id = 0; id < sources_.size() && sources_.file(id).name != file;) ++id;
    }
    // Of the texts of -D there is no file.
    if (id >= sources_.size() || sources_.file(id).name.starts_with("-D ")) return std::nullopt;
    return id;
  }
  const Lines& lines_of(FileId id) {
    const auto known = lines_.find(id);
    return known != lines_.end() ? known->second
                                 : lines_.emplace(id, Lines(sources_.file(id).text)).first->second;
  }

  const Document& document_;
  const Sources& sources_;
  std::map<FileId, Lines> lines_;
};

/// Diagnostics of one set of parameters.
class Writer {
 public:
  Writer(const Document& document, const Checked& checked, const ParameterSet& set)
      : places_(document, checked.sources),
        whole_line_{{static_cast<uint32_t>(set.line), 0},
                    document.lines().position(
                        document.lines().byte({static_cast<uint32_t>(set.line), UINT32_MAX}))} {}

  Json write(const Diagnostic& d) {
    Json out = {{"severity", d.severity == Severity::error ? kError : kWarning},
                {"source", "mscclc"},
                {"code", d.code}};
    std::string message = d.message;
    Json related = Json::array();
    Range range = whole_line_;
    const auto place = places_.find(d.span, d.file);
    if (place && place->file == 0) range = place->range;
    if (place && place->file != 0) add(related, *place, d.message);
    for (const Note& note : d.notes) {
      const auto where = places_.find(note.span, note.file);
      if (where) {
        add(related, *where, note.text);
      } else {
        message += "\nnote: " + note.text;
      }
    }
    if (d.missing) add_ends(related, *d.missing);
    out["range"] = to_json(range);
    out["message"] = message;
    if (!related.empty()) out["relatedInformation"] = related;
    if (d.code == "unused") out["tags"] = {kUnnecessary};
    return out;
  }

 private:
  void add(Json& related, const Places::Found& place, const std::string& message) {
    const Json location = {{"uri", places_.uri_of(place.file)}, {"range", to_json(place.range)}};
    const bool known =
        std::ranges::any_of(related, [&](const Json& one) { return one["location"] == location; });
    if (!known) related.push_back({{"location", location}, {"message", message}});
  }
  /// Both ends of what is not ordered, where notes do not have them.
  void add_ends(Json& related, const MissingEdge& missing) {
    for (const EdgeEnd* end : {&missing.first, &missing.second}) {
      const auto place = places_.find(end->span, end->file);
      if (place) add(related, *place, fmt::format("'{}' {} it", end->op, end->does));
    }
  }

  Places places_;
  const Range whole_line_;
};

void add_all(Json& out, const Document& document, const Checked& checked, const ParameterSet& set,
             const std::string& with) {
  Writer writer(document, checked, set);
  for (const Diagnostic& d : checked.diagnostics.all()) {
    if (out.size() >= kMax) return;
    Json one = writer.write(d);
    const bool known = std::ranges::any_of(out, [&](const Json& other) {
      return other["range"] == one["range"] && other["code"] == one["code"];
    });
    if (known) continue;
    if (!with.empty()) one["message"] = one["message"].get<std::string>() + "\nnote: with " + with;
    out.push_back(std::move(one));
  }
}

}  // namespace

Json diagnostics_of(Document& document) {
  Json out = Json::array();
  const std::vector<ParameterSet> sets = document.parameter_sets();
  add_all(out, document, document.checked(), sets[0],
          sets.size() > 1 ? text_of(sets[0].defines) : "");
  for (size_t i = 1; i < std::min(sets.size(), kMaxSets); ++i) {
    add_all(out, document, document.checked_with(sets[i]), sets[i], text_of(sets[i].defines));
  }
  if (sets.size() > kMaxSets) {
    Checked left_out;
    left_out.diagnostics.warning(
        "unused", {}, fmt::format("only the first {} lines of parameters are checked", kMaxSets));
    add_all(out, document, left_out, sets[kMaxSets], "");
  }
  return out;
}

}  // namespace mscclc::lsp

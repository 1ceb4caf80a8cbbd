#include "compiler/builder/draft/reports.h"

#include <map>
#include <utility>

namespace mscclc {

/// Places for C++ programs: what set_call() was last given.
class BuildReports::CallOrigin : public Origin {
 public:
  explicit CallOrigin(Sources* sources) : sources_(sources) {}
  Span span(Mark) override { return span_; }
  std::string_view text(Mark) override { return {}; }
  void add_context(Diagnostic& d) override {
    if (!context_.empty()) d.notes.push_back({"when " + context_, d.span});
  }
  void set(const char* file, uint32_t line, std::string context) {
    context_ = std::move(context);
    if (sources_ == nullptr) return;
    const auto [it, added] = files_.try_emplace(file, 0);
    if (added) it->second = sources_->add(file, "");
    span_ = {it->second, 0, 0, line, 1};
  }

 private:
  Sources* sources_;
  std::map<std::string, FileId> files_;
  std::string context_;
  Span span_;
};

BuildReports::BuildReports(Diagnostics& diagnostics, Origin* origin, Sources* sources)
    : diagnostics_(diagnostics),
      own_origin_(origin == nullptr ? std::make_unique<CallOrigin>(sources) : nullptr),
      origin_(origin == nullptr ? own_origin_.get() : origin) {}

BuildReports::~BuildReports() = default;

Diagnostic& BuildReports::fail(std::string code, Mark mark, std::string message) {
  failed_ = true;
  Diagnostic& d = diagnostics_.error(std::move(code), origin_->span(mark), std::move(message));
  origin_->add_context(d);
  return d;
}

Diagnostic& BuildReports::warn(std::string code, Mark mark, std::string message) {
  Diagnostic& d = diagnostics_.warning(std::move(code), origin_->span(mark), std::move(message));
  origin_->add_context(d);
  return d;
}

void BuildReports::note(Diagnostic& d, Mark mark, std::string text) {
  d.notes.push_back({std::move(text), origin_->span(mark)});
}

void BuildReports::set_call(const char* file, uint32_t line, std::string context) {
  if (own_origin_) own_origin_->set(file, line, std::move(context));
}

}  // namespace mscclc

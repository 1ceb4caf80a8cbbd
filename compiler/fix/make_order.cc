// What orders ops: signals and waits, syncs, semaphores, flushes, and the order of statements.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "compiler/fix/makers.h"

namespace mscclc::fix {
namespace {

bool is_declaration(std::string_view word) {
  static constexpr std::string_view kWords[] = {"buffer", "channel", "semaphore"};
  return std::ranges::find(kWords, word) != std::end(kWords);
}

/// The statements beside which a new one may stand: those of the blocks around the error.
std::vector<uint32_t> places(const Case& c) {
  std::vector<uint32_t> found;
  for (const uint32_t s : c.neighbours()) {
    if (!is_declaration(c.outline().keyword(c.outline().statements()[s]))) found.push_back(s);
  }
  return found;
}

bool is_last(const Case& c, uint32_t statement) {
  return c.outline().block_of(statement).back() == statement;
}

/// Puts it before every statement, and after the last of each block.
void insert_at_all(Case& c, const std::string& text) {
  for (const uint32_t s : places(c)) {
    if (is_last(c, s)) c.insert_after(s, text);
    c.insert_before(s, text);
  }
}

/// The channels that ops at the error name, with their partners; all, if there are none.
std::vector<std::string> channels_at_error(const Case& c) {
  std::vector<std::string> names;
  const auto add = [&](const std::string& name) {
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  };
  for (const uint32_t s : c.anchors()) {
    const Statement& statement = c.outline().statements()[s];
    for (uint32_t w = statement.first; w < statement.head; ++w) {
      const Declared* channel = c.scope().channel(c.word(w));
      if (channel == nullptr) continue;
      add(channel->partner);
      add(channel->name);
    }
  }
  for (const Declared& channel : c.scope().channels()) add(channel.name);
  return names;
}

/// How the channel is named where all its ends are used, then where one is.
std::vector<std::string> operands_of(const Case& c, const std::string& channel) {
  std::vector<std::string> found;
  for (const std::string& operand : c.scope().channel_operands()) {
    const bool of_it = operand.starts_with(channel) &&
                       (operand.size() == channel.size() || operand[channel.size()] == '[');
    if (of_it) found.push_back(operand);
  }
  std::ranges::stable_sort(found, [](const std::string& a, const std::string& b) {
    return a.find(" for ") != std::string::npos && b.find(" for ") == std::string::npos;
  });
  return found;
}

/// Which of the two ops is more likely to be missing: the one that the error does not name.
std::array<std::string, 2> by_likelihood(const Case& c) {
  const auto& missing = c.error().missing;
  const bool waits = missing && missing->second.does == "waits";
  if (waits || (missing && missing->second.does == "acquires")) return {"signal ", "wait "};
  return {"wait ", "signal "};
}

}  // namespace

void add_signals(Case& c) {
  const std::vector<std::string> channels = channels_at_error(c);
  for (const char* relaxed : {"", " relaxed"}) {
    for (const std::string& channel : channels) {
      for (const std::string& operand : operands_of(c, channel)) {
        for (const std::string& op : by_likelihood(c)) insert_at_all(c, op + operand + relaxed);
      }
    }
  }
}

void add_syncs(Case& c) {
  insert_at_all(c, "sync");
  for (const std::string& channel : channels_at_error(c)) {
    for (const std::string& operand : operands_of(c, channel)) {
      insert_at_all(c, "flush " + operand);
    }
  }
  for (const Declared& semaphore : c.scope().semaphores()) {
    insert_at_all(c, "release " + semaphore.operand);
    insert_at_all(c, "acquire " + semaphore.operand);
  }
}

void change_relaxed(Case& c) {
  for (const uint32_t i : c.all()) {
    const Statement& s = c.outline().statements()[i];
    const std::string_view op = c.outline().keyword(s);
    if (op != "signal" && op != "wait") continue;
    if (c.word(s.head - 1) == "relaxed") {
      const auto& words = c.outline().words();
      c.add("leave out 'relaxed'", {{0, words[s.head - 2].end, words[s.head - 1].end, ""}});
    } else {
      c.put_after(s.head - 1, " relaxed");
    }
  }
}

void reorder(Case& c) {
  const auto& statements = c.outline().statements();
  const std::vector<uint32_t> all = places(c);
  for (const size_t distance : {1, 2, 3}) {
    for (const uint32_t first : all) {
      const std::vector<uint32_t> block = c.outline().block_of(first);
      const size_t at = std::ranges::find(block, first) - block.begin();
      if (at + distance >= block.size()) continue;
      const Statement &a = statements[first], &b = statements[block[at + distance]];
      const std::string a_text(c.outline().text(a)), b_text(c.outline().text(b));
      c.add("swap '" + std::string(c.outline().head_text(a)) + "' and '" +
                std::string(c.outline().head_text(b)) + "'",
            {{0, c.outline().begin(a), c.outline().end(a), b_text},
             {0, c.outline().begin(b), c.outline().end(b), a_text}});
      if (distance == 1) continue;
      // Moves the first one after the other, and the other before the first one.
      const size_t begin = c.outline().begin(a), end = c.outline().end(b);
      const Statement& next = statements[block[at + 1]];
      const Statement& previous = statements[block[at + distance - 1]];
      const auto between = [&](size_t from, size_t to) {
        return c.outline().text().substr(from, to - from);
      };
      // What is between statements, comments too, stays in the text once.
      const std::string first_gap = between(c.outline().end(a), c.outline().begin(next));
      const std::string middle = between(c.outline().begin(next), c.outline().end(previous));
      const std::string last_gap = between(c.outline().end(previous), c.outline().begin(b));
      const auto edit = [&](const std::string& text) {
        return std::vector<TextEdit>{{0, uint32_t(begin), uint32_t(end), text}};
      };
      c.add("move '" + std::string(c.outline().head_text(a)) + "' down",
            edit(middle + last_gap + b_text + first_gap + a_text));
      c.add("move '" + std::string(c.outline().head_text(b)) + "' up",
            edit(b_text + last_gap + a_text + first_gap + middle));
    }
  }
}

/// If what is not known is declared in the same block, it may stand too late.
void move_declarations(Case& c) {
  const uint32_t at = c.at() == kNothing ? kNothing : c.outline().word_at(c.at());
  if (at == kNothing) return;
  for (const uint32_t s : c.neighbours()) {
    const Statement& statement = c.outline().statements()[s];
    if (c.outline().keyword(statement) != "let") continue;
    for (uint32_t w = statement.first; w + 1 < statement.head; ++w) {
      const bool declares = c.word(w) == c.word(at) && c.kind(w + 1) == Tok::assign;
      if (declares) return reorder(c);
    }
  }
}

void erase_repeated(Case& c) {
  const auto& statements = c.outline().statements();
  for (const uint32_t s : places(c)) {
    for (const uint32_t other : c.outline().block_of(s)) {
      if (other < s && c.outline().text(statements[other]) == c.outline().text(statements[s])) {
        c.erase(s);
      }
    }
  }
}

void erase_statements(Case& c) {
  for (const uint32_t s : places(c)) {
    const Statement& statement = c.outline().statements()[s];
    if (!statement.block) c.erase(s);
  }
}

}  // namespace mscclc::fix

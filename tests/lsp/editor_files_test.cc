// The syntax files of tools/editors have the words of the language's tables, and no others.
#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>

#include "compiler/ast/symbols.h"
#include "compiler/resolve/options.h"
#include "ir/contract/collectives.h"
#include "ir/ops/ops.h"
#include "ir/rows/external.h"
#include "ir/support/read_file.h"

namespace mscclc {
namespace {

using WordSet = std::set<std::string>;

// ---- the tables ------------------------------------------------------------------------------

WordSet ops() {
  WordSet all;
  for (const OpInfo& op : op_table()) all.emplace(op.name);
  return all;
}

WordSet keywords() {
  return {
#define KEYWORD(word) #word,
#define FUNCTION(word)
#include "ir/ops/words.def"
  };
}

WordSet functions() {
  return {
#define KEYWORD(word)
#define FUNCTION(word) #word,
#include "ir/ops/words.def"
  };
}

WordSet collectives() {
  WordSet all = {
#define COLLECTIVE(name, ...) #name,
#include "ir/contract/collectives.def"
#undef COLLECTIVE
  };
  all.erase("none");
  return all;
}

/// Words that are values: of options, and constants.
WordSet values() {
  return {
#define FORMAT(name, ...) #name,
#include "ir/ops/formats.def"
#undef FORMAT
#define DTYPE(name, ...) #name,
#include "ir/ops/dtypes.def"
#undef DTYPE
#define ORDER(name, summary) #name,
#include "ir/contract/orders.def"
#undef ORDER
  };
}

WordSet options() {
  WordSet all;
  const auto add = [&](const char* word) {
    for (int of = 0; of <= static_cast<int>(OptionsOf::ir_op); ++of) {
      if (is_option(static_cast<OptionsOf>(of), word)) all.insert(word);
    }
  };
#define WELL_KNOWN(word) add(#word);
#include "compiler/ast/words.def"
#undef WELL_KNOWN
  return all;
}

/// Of row functions and externals; words of other tables stand there.
WordSet row_words() {
  WordSet all = {
      "external", "mean", "round", "chain", "once",
#define ROW_OP(name, ...) #name,
#define ROW_REDUCTION(name, ...) #name,
#define ROW_TYPE(name, ...) #name,
#define ROW_KIND(name, ...) #name,
#include "ir/rows/row_words.def"
#undef ROW_OP
#undef ROW_REDUCTION
#undef ROW_TYPE
#undef ROW_KIND
  };
  for (const rows::Use use : {rows::Use::out, rows::Use::inout}) all.emplace(rows::name_of(use));
  for (const rows::Holding holding : {rows::Holding::local, rows::Holding::sharded}) {
    all.emplace(rows::name_of(holding));
  }
  const WordSet known[] = {functions(), options(), values()};
  for (const WordSet& words : known) {
    for (const std::string& word : words) all.erase(word);
  }
  return all;
}

// ---- the files -------------------------------------------------------------------------------

WordSet split(const std::string& text, const char* separator) {
  const std::regex between(separator);
  WordSet all(std::sregex_token_iterator(text.begin(), text.end(), between, -1), {});
  all.erase("");
  return all;
}

/// The words of all rules of this name in the grammar for VS Code.
WordSet text_mate_words(const std::string& name) {
  const auto grammar = nlohmann::json::parse(
      read_file("tools/editors/vscode/syntaxes/mscl.tmLanguage.json").value());
  WordSet all;
  const std::regex alternatives(R"(\\b\(\?:([\w|]+)\)\\b.*)");
  const auto add = [&](const nlohmann::json& rule) {
    std::smatch found;
    const std::string match = rule.value("match", "");
    if (rule.value("name", "") == name && std::regex_match(match, found, alternatives)) {
      all.merge(split(found[1], R"(\|)"));
    }
  };
  for (const auto& rule : grammar["repository"]) {
    add(rule);
    if (!rule.contains("patterns")) continue;
    for (const auto& one : rule["patterns"]) add(one);
  }
  return all;
}

WordSet vim_words(const std::string& group) {
  WordSet all;
  std::istringstream lines(read_file("tools/editors/vim/syntax/mscl.vim").value());
  const std::string begin = "syntax keyword " + group + " ";
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(begin)) all.merge(split(line.substr(begin.size()), " "));
  }
  return all;
}

WordSet tree_sitter_words(const std::string& list) {
  const std::string grammar = read_file("tools/editors/tree-sitter-mscl/grammar.js").value();
  const size_t begin = grammar.find("const " + list + " = [");
  REQUIRE(begin != std::string::npos);
  const std::string text = grammar.substr(begin, grammar.find("];", begin) - begin);
  WordSet all;
  const std::regex quoted("\"(\\w+)\"");
  for (std::sregex_iterator i(text.begin(), text.end(), quoted), end; i != end; ++i) {
    all.insert((*i)[1]);
  }
  return all;
}

WordSet sum(std::initializer_list<WordSet> sets) {
  WordSet all;
  for (WordSet set : sets) all.merge(set);
  return all;
}

void check_has(const WordSet& all, const WordSet& wanted) {
  for (const std::string& word : wanted) {
    INFO(word);
    CHECK(all.contains(word));
  }
}

}  // namespace

TEST_CASE("editors: VS Code knows the tables") {
  CHECK(text_mate_words("support.function.op.mscl") == ops());
  CHECK(text_mate_words("support.function.mscl") == functions());
  CHECK(sum({text_mate_words("keyword.control.mscl"), text_mate_words("keyword.operator.word.mscl"),
             text_mate_words("constant.language.mscl")}) == keywords());
  CHECK(text_mate_words("variable.parameter.mscl") == options());
  check_has(text_mate_words("support.constant.mscl"), values());
  CHECK(text_mate_words("storage.modifier.mscl") == row_words());
  const std::string grammar =
      read_file("tools/editors/vscode/syntaxes/mscl.tmLanguage.json").value();
  for (const std::string& kind : collectives()) CHECK(grammar.find(kind) != std::string::npos);
}

TEST_CASE("editors: Vim knows the tables") {
  CHECK(vim_words("msclOp") == ops());
  CHECK(vim_words("msclFunction") == functions());
  CHECK(sum({vim_words("msclKeyword"), vim_words("msclOperatorWord"), vim_words("msclBoolean")}) ==
        keywords());
  CHECK(vim_words("msclCollective") == collectives());
  check_has(vim_words("msclConstant"), values());
  CHECK(vim_words("msclRows") == row_words());
}

TEST_CASE("editors: tree-sitter knows the tables") {
  CHECK(tree_sitter_words("OPS") == ops());
  CHECK(tree_sitter_words("FUNCTIONS") == functions());
  const WordSet others = sum({tree_sitter_words("OPS"), tree_sitter_words("CONSTANTS"),
                              tree_sitter_words("COLLECTIVES"), tree_sitter_words("OPTIONS")});
  check_has(sum({tree_sitter_words("KEYWORDS"), tree_sitter_words("WORD_OPERATORS"),
                 tree_sitter_words("CONSTANTS")}),
            keywords());
  check_has(others, collectives());
  check_has(others, values());
  check_has(others, options());
  CHECK(tree_sitter_words("ROWS") == row_words());
}

TEST_CASE("editors: no word has two meanings for tree-sitter") {
  std::multiset<std::string> all;
  for (const char* list : {"OPS", "KEYWORDS", "WORD_OPERATORS", "FUNCTIONS", "CONSTANTS",
                           "COLLECTIVES", "OPTIONS", "ROWS"}) {
    for (const std::string& word : tree_sitter_words(list)) all.insert(word);
  }
  for (const std::string& word : all) {
    INFO(word);
    CHECK(all.count(word) == 1);
  }
}

TEST_CASE("editors: what VS Code reads is JSON, and names files that are there") {
  const auto package =
      nlohmann::json::parse(read_file("tools/editors/vscode/package.json").value());
  const std::string folder = "tools/editors/vscode/";
  const auto& contributes = package["contributes"];
  CHECK(read_file(folder + contributes["grammars"][0]["path"].get<std::string>()).has_value());
  const auto configuration =
      read_file(folder + contributes["languages"][0]["configuration"].get<std::string>());
  CHECK(nlohmann::json::parse(configuration.value()).contains("comments"));
  CHECK(read_file(folder + package["main"].get<std::string>()).has_value());
}

}  // namespace mscclc

// What trees come out of which texts. Expressions are compared in prefix notation.
#include "compiler/parser/parser.h"

#include <catch2/catch.hpp>
#include <memory>

using namespace mscclc;
using ast::Expr;
using ast::ExprKind;
using ast::StmtKind;

namespace {

/// A parsed text and what keeps it alive.
struct Parsed {
  Sources sources;
  std::unique_ptr<ast::Ast> ast;
  const ast::File* file = nullptr;

  explicit Parsed(std::string text) {
    const FileId id = sources.add("a.mscl", std::move(text));
    ast = std::make_unique<ast::Ast>(sources);
    Diagnostics diagnostics;
    file = parse_file(sources, id, *ast, diagnostics);
    INFO(render_text(diagnostics, sources));
    REQUIRE(file != nullptr);
  }
  template <class T>
  const T& item(size_t i) const {
    return file->items[i]->as<T>();
  }
  /// Statement `i` of the body of item 0.
  template <class T>
  const T& statement(size_t i) const {
    return item<ast::Placed>(0).body.statements[i]->as<T>();
  }
  std::string text(const Expr& e) const;
  std::string text(ast::Array<const Expr> list) const {
    std::string out;
    for (const Expr& e : list) out += (out.empty() ? "" : " ") + text(e);
    return out;
  }
  std::string text(ast::Array<const ast::Binder> binders) const {
    std::string out;
    for (const ast::Binder& b : binders) {
      if (!out.empty()) out += ", ";
      if (b.name.given()) out += std::string(ast->text(b.name)) + " in ";
      out += text(b.list);
      if (b.where != nullptr) out += " where " + text(*b.where);
    }
    return out;
  }
  std::string text(const ast::Option& o) const {
    return std::string(ast->text(o.name)) + (o.value.given() ? ":" + text(o.value) : "") +
           (o.open_end ? ".." : "");
  }
  std::string text(ast::Array<const ast::Option> options) const {
    std::string out;
    for (const ast::Option& o : options) out += (out.empty() ? "" : ", ") + text(o);
    return out;
  }
  std::string text(const ast::Operand& o) const {
    std::string out(ast->text(o.head));
    if (!o.index.empty()) out += "[" + text(o.index) + "]";
    if (o.member.given()) out += "." + std::string(ast->text(o.member));
    if (!o.member_index.empty()) out += "[" + text(o.member_index) + "]";
    if (o.binder != nullptr) {
      out += " for " + text(ast::Array<const ast::Binder>(o.binder, 1));
    }
    return out;
  }
  std::string text(ast::Array<const ast::Operand> operands) const {
    std::string out;
    for (const ast::Operand& o : operands) out += (out.empty() ? "" : ", ") + text(o);
    return out;
  }
  std::string source(ast::TextRange place) const { return std::string(ast->text(place)); }
};

std::string Parsed::text(const Expr& e) const {
  constexpr std::string_view kOps[] = {
      "or", "and", "==", "!=", "<", "<=", ">",  ">=", "in", "except", "..",
      "+",  "-",   "*",  "/",  "%", "**", "<<", ">>", "&",  "|",      "^"};
  switch (e.kind) {
    case ExprKind::none:
      return "none";
    case ExprKind::integer:
      return std::to_string(e.value);
    case ExprKind::boolean:
      return e.value != 0 ? "true" : "false";
    case ExprKind::name:
      return std::string(ast->text(e.name.id));
    case ExprKind::string:
      return '"' + std::string(*e.string) + '"';
    case ExprKind::call:
      return "(call " + text(e.children()) + ")";
    case ExprKind::index:
      return "(at " + text(e.children()) + ")";
    case ExprKind::list:
      return "[" + text(e.children()) + "]";
    case ExprKind::comprehension:
      return "[" + text(e.loop->element) + " for " + text(e.loop->binders) + "]";
    case ExprKind::conditional:
      return "(if " + text(e.children()) + ")";
    case ExprKind::negate:
      return "(neg " + text(e.children()) + ")";
    case ExprKind::not_:
      return "(not " + text(e.children()) + ")";
    case ExprKind::binary:
      break;
  }
  return "(" + std::string(kOps[static_cast<size_t>(e.op)]) + " " + text(e.children()) + ")";
}

std::string expr(const std::string& text) {
  const Parsed parsed("let x = " + text);
  return parsed.text(parsed.item<ast::Let>(0).definitions[0].value);
}

}  // namespace

TEST_CASE("precedence and associativity") {
  CHECK(expr("a or b and not c == d except e .. f + g * h") ==
        "(or a (and b (not (== c (except d (.. e (+ f (* g h))))))))");
  CHECK(expr("a * b + c .. d except e == f and g or h") ==
        "(or (and (== (except (.. (+ (* a b) c) d) e) f) g) h)");
  CHECK(expr("a in b + c and d") == "(and (in a (+ b c)) d)");
  CHECK(expr("a * b ** c") == "(* a (** b c))");
  CHECK(expr("2 ** -n % d") == "(% (** 2 (neg n)) d)");
  CHECK(expr("(-a) ** b") == "(** (neg a) b)");
  CHECK(expr("a - b - c") == "(- (- a b) c)");
  CHECK(expr("a / b * c % d") == "(% (* (/ a b) c) d)");
  CHECK(expr("a except b except c") == "(except (except a b) c)");
  CHECK(expr("a & b & c") == "(& (& a b) c)");
  CHECK(expr("(a & b) == 0") == "(== (& a b) 0)");
  CHECK(expr("1 << (a + 1)") == "(<< 1 (+ a 1))");
  CHECK(expr("not not a") == "(not (not a))");
  CHECK(expr("a and not b") == "(and a (not b))");
  CHECK(expr("0..R") == "(.. 0 R)");
}

TEST_CASE("words of the language are names where they are no keywords") {
  CHECK(expr("to + at - put[rank]") == "(- (+ to at) (at put rank))");
  CHECK(expr("min + min(max, 1)") == "(+ min (call min max 1))");
  const Parsed p(
      "rank group in buffer {\n"
      "  let let = 1\n"
      "  channel to = memory(to) to at[select] where at in let\n"
      "  put to.wait[launch] <- copy[signal], tb\n"
      "  signal sync relaxed\n"
      "}\n");
  const auto& channel = p.statement<ast::ChannelDecl>(1);
  CHECK(p.ast->text(channel.name) == "to");
  CHECK(p.ast->text(channel.other) == "at");
  REQUIRE(channel.where != nullptr);
  CHECK(p.text(*channel.where) == "(in at let)");
  CHECK(p.text(p.statement<ast::OpStmt>(2).operands) == "to.wait[launch], copy[signal], tb");
  CHECK(p.text(p.statement<ast::OpStmt>(3).options) == "relaxed");
}

TEST_CASE("functions with a body") {
  const Parsed p("let f(x) = {\n  let y = x + 1, z = y ; let w = z\n  y * w\n}, n = 3\n");
  const auto& definitions = p.item<ast::Let>(0).definitions;
  REQUIRE(definitions.size() == 2);
  REQUIRE(definitions[0].locals.size() == 3);
  CHECK(p.text(definitions[0].locals[0].value) == "(+ x 1)");
  CHECK(p.text(definitions[0].value) == "(* y w)");
  CHECK(p.ast->text(definitions[1].name) == "n");
}

TEST_CASE("'else' and 'then' may begin a line") {
  const Parsed p(
      "rank 0 {\n  if a { sync }\n  else if b { sync }\n\n  else { sync }\n"
      "  let n = if a\n    then 1\n    else 2\n}\n");
  CHECK(p.statement<ast::If>(0).arms.size() == 3);
  CHECK(p.text(p.statement<ast::Let>(1).definitions[0].value) == "(if a 1 2)");
}

TEST_CASE("dimensions with a name for their index") {
  const Parsed p("rank 0 { buffer s[t in 0..2 where c, kids(t), 3] copies: 2 }\n");
  const auto& buffer = p.statement<ast::BufferDecl>(0);
  CHECK(p.text(buffer.dims) == "t in (.. 0 2) where c, (call kids t), 3");
  CHECK(p.source(buffer.dims_place) == "[t in 0..2 where c, kids(t), 3]");
}

TEST_CASE("signs") {
  CHECK(expr("-5") == "-5");
  CHECK(expr("-9223372036854775808") == "-9223372036854775808");
  CHECK(expr("-a[0] * b") == "(* (neg (at a 0)) b)");
  CHECK(expr("a - -1") == "(- a -1)");
  CHECK(expr("-5 % 3") == "(% -5 3)");
  CHECK(expr("-(a)") == "(neg a)");
  CHECK(expr("-a & b") == "(& (neg a) b)");
}

TEST_CASE("primaries") {
  CHECK(expr("true") == "true");
  CHECK(expr("f()") == "(call f)");
  CHECK(expr("min(a, max(b, 1), len(c))") == "(call min a (call max b 1) (call len c))");
  CHECK(expr("a[0][1]") == "(at (at a 0) 1)");
  CHECK(expr("(0..4)[1]") == "(at (.. 0 4) 1)");
  CHECK(expr("[]") == "[]");
  CHECK(expr("[1, [2], a..b]") == "[1 [2] (.. a b)]");
  CHECK(expr("[x * y for x in 0..3, y in l where x != y]") ==
        "[(* x y) for x in (.. 0 3), y in l where (!= x y)]");
  CHECK(expr("if a then b else if c then d else e + 1") == "(if a b (if c d (+ e 1)))");
  CHECK(expr("(if a then b else c) + 1") == "(+ (if a b c) 1)");
}

TEST_CASE("places of expressions") {
  const Parsed p("let x = f(a[1], (b + c)) * -d");
  const Expr& e = p.item<ast::Let>(0).definitions[0].value;
  CHECK(p.source(e.place) == "f(a[1], (b + c)) * -d");
  CHECK(p.source(e.kids[0].place) == "f(a[1], (b + c))");
  CHECK(p.source(e.kids[0].kids[0].place) == "f");
  CHECK(p.source(e.kids[0].kids[1].place) == "a[1]");
  CHECK(p.source(e.kids[0].kids[2].place) == "(b + c)");
  CHECK(p.source(e.kids[1].place) == "-d");
}

TEST_CASE("header items") {
  const Parsed p(
      "language 1\n"
      "import \"stages.mscl\"\n"
      "param R = 8, counts = [1, 2]\n"
      "let half(s) = R >> (s + 1), none() = 1, n = 4\n"
      "require R > 1, \"two \\\"ranks\\\"\\n\"\n"
      "collective reduce(ranks: R, root: 0, inplace: either)\n"
      "select sizes: 1KiB..32KiB, nodes: 2.., dtypes: [f16], ops: [min, sum], tags: [a, \"b c\"]\n"
      "launch threads: 512, policy: blocked, fuse: false\n");
  CHECK(p.item<ast::Version>(0).number == 1);
  CHECK(p.item<ast::Import>(1).path == "stages.mscl");
  CHECK(p.source(p.item<ast::Import>(1).path_place) == "stages.mscl");
  const auto& params = p.item<ast::Let>(2);
  CHECK(params.kind == StmtKind::param);
  REQUIRE(params.definitions.size() == 2);
  CHECK(p.text(params.definitions[1].value) == "[1 2]");
  const auto& lets = p.item<ast::Let>(3).definitions;
  REQUIRE(lets.size() == 3);
  CHECK(lets[0].function);
  CHECK(p.ast->text(lets[0].parameters[0]) == "s");
  CHECK(lets[1].function);
  CHECK(lets[1].parameters.empty());
  CHECK_FALSE(lets[2].function);
  CHECK(p.item<ast::Require>(4).message == "two \"ranks\"\n");
  CHECK(p.ast->text(p.item<ast::Collective>(5).collective) == "reduce");
  CHECK(p.text(p.item<ast::Collective>(5).options) == "ranks:R, root:0, inplace:either");
  CHECK(p.text(p.item<ast::Options>(6).options) ==
        "sizes:(.. 1024 32768), nodes:2.., dtypes:[f16], ops:[min sum], tags:[a \"b c\"]");
  CHECK(p.text(p.item<ast::Options>(7).options) == "threads:512, policy:blocked, fuse:false");
}

TEST_CASE("open ranges") {
  const auto options = [](const std::string& text) {
    const Parsed p(text);
    return p.text(p.item<ast::Options>(0).options);
  };
  CHECK(options("select sizes: 1MiB..") == "sizes:1048576..");
  CHECK(options("select sizes: 1.., nodes: 2 * x ..\nlet a = 1") == "sizes:1.., nodes:(* 2 x)..");
  CHECK(options("select sizes: 1..; let a = 1") == "sizes:1..");
  CHECK(options("select sizes: 1..2, nodes: (1)..3") == "sizes:(.. 1 2), nodes:(.. 1 3)");
  const Parsed p("collective allreduce(ranks: 2,\n  chunks: 1..\n)");
  CHECK(p.text(p.item<ast::Collective>(0).options) == "ranks:2, chunks:1..");
}

TEST_CASE("the description is the comment right above 'program'") {
  const auto description = [](std::string text) {
    const Parsed p(std::move(text));
    return std::string(p.item<ast::ProgramItem>(p.file->items.size() - 1).description);
  };
  CHECK(description("program x") == "");
  CHECK(description("# a\n#\n#  b \r\n  # c\nprogram x") == "a\n\n b\nc");
  CHECK(description("# license\n\n# a\nprogram x") == "a");
  CHECK(description("# a\n\nprogram x") == "");
  CHECK(description("# a\nlanguage 1\n# b\nprogram x") == "b");
}

TEST_CASE("ensure") {
  const Parsed p(
      "ensure output[c] at q = reduce(input[c, 0] at p for p in 0..R) for q in 0..R, c in 0..B\n"
      "ensure output[0] at 1 = input[2] at 3\n"
      "ensure output[0] at 1 = reduce(input[2] at 3, input[4] at 5)\n");
  const auto& loops = p.item<ast::Ensure>(0);
  CHECK(loops.reduced);
  CHECK(p.ast->text(loops.left.buffer) == "output");
  CHECK(p.text(loops.left.rank) == "q");
  REQUIRE(loops.terms.size() == 1);
  CHECK(p.text(loops.terms[0].index) == "c 0");
  CHECK(p.text(loops.inner) == "p in (.. 0 R)");
  CHECK(p.text(loops.binders) == "q in (.. 0 R), c in (.. 0 B)");
  CHECK(p.source(loops.terms[0].place) == "input[c, 0] at p");
  CHECK_FALSE(p.item<ast::Ensure>(1).reduced);
  CHECK(p.item<ast::Ensure>(1).binders.empty());
  CHECK(p.item<ast::Ensure>(2).terms.size() == 2);
}

TEST_CASE("declarations") {
  const Parsed p(
      "rank r in 0..R {\n"
      "  buffer inbox[others, B] packets: LL16, copies: 2\n"
      "  channel ch[b in 0..B, p in others where p != r] = memory(p) to ch[b, r]\n"
      "  channel up[1, -3] = port(1)\n"
      "  channel sw = switch(0..R) to sw\n"
      "  semaphore a, b[i in 0..K] = 1, c[2] = x\n"
      "}");
  CHECK(p.text(ast::Array<const ast::Binder>(&p.item<ast::Placed>(0).at, 1)) == "r in (.. 0 R)");
  const auto& buffer = p.statement<ast::BufferDecl>(0);
  CHECK(p.text(buffer.dims) == "others, B");
  CHECK(p.text(buffer.options) == "packets:LL16, copies:2");
  const auto& ch = p.statement<ast::ChannelDecl>(1);
  CHECK(p.text(ch.keys) == "b in (.. 0 B), p in others where (!= p r)");
  CHECK(ch.channel.id == ast::w_memory);
  CHECK(p.text(ch.peer) == "p");
  CHECK(p.ast->text(ch.other) == "ch");
  CHECK(p.text(ch.other_keys) == "b r");
  CHECK(p.source(ch.other_place) == "ch[b, r]");
  const auto& up = p.statement<ast::ChannelDecl>(2);
  CHECK(p.text(up.keys) == "1, -3");
  CHECK_FALSE(up.other.given());
  CHECK(p.statement<ast::ChannelDecl>(3).channel.id == ast::w_switch);
  const auto& semaphores = p.statement<ast::Semaphores>(4).semaphores;
  REQUIRE(semaphores.size() == 3);
  CHECK_FALSE(semaphores[0].initial.given());
  CHECK(p.text(semaphores[1].keys) == "i in (.. 0 K)");
  CHECK(p.text(semaphores[1].initial) == "1");
  CHECK(p.source(semaphores[2].place) == "c[2] = x");
}

TEST_CASE("parser: ops") {
  const Parsed p(
      "rank 0 {\n"
      "  sync\n"
      "  put ch[p].inbox[r, b..c] <- input[b]\n"
      "  signal up[p] for p in others, down relaxed\n"
      "  reduce_packets a <- b, c[p] for p in 0..r, d op: min, part: [0, 2]\n"
      "  read_put_packets net[n].sums[node] for n in twins where n > 1 <- mine[0]\n"
      "  barrier 0..4\n"
      "}");
  const auto& sync = p.statement<ast::OpStmt>(0);
  CHECK(sync.op == OpKind::sync);
  CHECK(sync.operands.empty());
  CHECK_FALSE(sync.has_arrow);
  const auto& put = p.statement<ast::OpStmt>(1);
  CHECK(p.text(put.dsts()) == "ch[p].inbox[r (.. b c)]");
  CHECK(p.text(put.srcs()) == "input[b]");
  CHECK(p.source(put.place) == "put ch[p].inbox[r, b..c] <- input[b]");
  CHECK(p.source(put.keyword) == "put");
  const ast::Operand& dst = put.dsts()[0];
  CHECK(p.source(dst.place) == "ch[p].inbox[r, b..c]");
  CHECK(p.source({dst.place.begin, dst.head_end}) == "ch[p]");
  CHECK(p.source(p.ast->place(dst.member)) == "inbox");
  const auto& signal = p.statement<ast::OpStmt>(2);
  CHECK(p.text(signal.operands) == "up[p] for p in others, down");
  CHECK(signal.dst_count == 2);
  CHECK(p.text(signal.options) == "relaxed");
  const auto& reduce = p.statement<ast::OpStmt>(3);
  CHECK(p.text(reduce.srcs()) == "b, c[p] for p in (.. 0 r), d");
  CHECK(p.text(reduce.options) == "op:min, part:[0 2]");
  CHECK(p.source(reduce.options[1].place) == "part: [0, 2]");
  CHECK(p.text(p.statement<ast::OpStmt>(4).operands) ==
        "net[n].sums[node] for n in twins where (> n 1), mine[0]");
  CHECK(p.text(p.statement<ast::Barrier>(5).blocks) == "(.. 0 4)");
}

TEST_CASE("blocks") {
  const Parsed p(
      "rank 0 {\n"
      "  tb b in 0..B { sync ; sync }\n"
      "  tb 3 {} tb 4 { sync } sync\n"
      "  group 1..5 { copy a <- b }\n"
      "  for p in l, q in m where p < q { sync }\n"
      "  pipeline unit: 512KiB, chunks: 2 { sync }\n"
      "  if a { sync } else if b { sync } else { sync }\n"
      "  halve(ch, input, 3 + 4)\n"
      "}\n"
      "def halve(ch, from, n) { sync }\n");
  CHECK(p.text(ast::Array<const ast::Binder>(&p.statement<ast::Placed>(0).at, 1)) ==
        "b in (.. 0 B)");
  CHECK(p.statement<ast::Placed>(0).body.statements.size() == 2);
  CHECK(p.statement<ast::Placed>(1).body.statements.empty());
  CHECK_FALSE(p.statement<ast::Placed>(2).at.name.given());
  CHECK(p.statement<ast::Stmt>(3).kind == StmtKind::op);
  CHECK(p.text(p.statement<ast::Group>(4).blocks) == "(.. 1 5)");
  CHECK(p.text(p.statement<ast::For>(5).binders) == "p in l, q in m where (< p q)");
  CHECK(p.text(p.statement<ast::Pipeline>(6).options) == "unit:524288, chunks:2");
  const auto& arms = p.statement<ast::If>(7).arms;
  REQUIRE(arms.size() == 3);
  CHECK(p.text(arms[1].condition) == "b");
  CHECK_FALSE(arms[2].condition.given());
  CHECK(p.source(arms[2].body.place) == "{ sync }");
  CHECK(p.text(p.statement<ast::DefCall>(8).arguments) == "ch input (+ 3 4)");
  const auto& def = p.item<ast::Def>(1);
  CHECK(p.ast->text(def.name) == "halve");
  CHECK(def.parameters.size() == 3);
}

TEST_CASE("newlines inside brackets and after '{', ',', '<-', '=' and operators") {
  const Parsed p(
      "collective allreduce(\n  ranks\n:\n2\n)\n"
      "let a =\n  1 +\n  2 and\n  b,\n  c = [\n1\n,\n2\n]\n"
      "rank 0 {\n  put a[\n0\n].b <-\n    c,\n    d\n  sync\n}\n");
  CHECK(p.file->items.size() == 3);
  CHECK(p.item<ast::Placed>(2).body.statements.size() == 2);
}

TEST_CASE("parser: IR text") {
  const Parsed p(
      "ir 1 from \"ring.mscl\"\n"
      "program    \"a b\"\n"
      "launch     split: true\n"
      "rank 0 {\n"
      "  pipeline unit: 512KiB, loop: 2 {\n"
      "    put up[1].inbox[3..5] <- input[2..4] part: [0, 2]  @18:25(r=0, p=-1) @\"x.mscl\":4:5\n"
      "  }\n"
      "  barrier [0, 2]  @1:1(signal=-9223372036854775808)\n"
      "}");
  CHECK(p.file->is_ir);
  CHECK(p.item<ast::Version>(0).from == "ring.mscl");
  CHECK(p.ast->text(p.item<ast::ProgramItem>(1).name) == "a b");
  const auto& pipeline = p.item<ast::Placed>(3).body.statements[0]->as<ast::Pipeline>();
  CHECK(p.text(pipeline.options) == "unit:524288, loop:2");
  const auto& put = pipeline.body.statements[0]->as<ast::OpStmt>();
  REQUIRE(put.locations.size() == 2);
  CHECK(put.locations[0].line == 18);
  CHECK(put.locations[0].column == 25);
  REQUIRE(put.locations[0].values.size() == 2);
  CHECK(p.ast->text(put.locations[0].values[1].name) == "p");
  CHECK(put.locations[0].values[1].value == -1);
  CHECK(put.locations[1].file == "x.mscl");
  CHECK(put.locations[1].values.empty());
  const auto& barrier = p.item<ast::Placed>(3).body.statements[1]->as<ast::Barrier>();
  CHECK(barrier.locations[0].values[0].value == INT64_MIN);
}

TEST_CASE("several files share words and places") {
  Sources sources;
  const FileId first = sources.add("a.mscl", "let a = 1\nlet b = 2\n");
  const FileId second = sources.add("b.mscl", "\nlet b = 3");
  ast::Ast ast(sources);
  Diagnostics diagnostics;
  const ast::File* a = parse_file(sources, first, ast, diagnostics);
  const ast::File* b = parse_file(sources, second, ast, diagnostics);
  REQUIRE(a != nullptr);
  REQUIRE(b != nullptr);
  const ast::Name in_a = a->items[1]->as<ast::Let>().definitions[0].name;
  const ast::Name in_b = b->items[0]->as<ast::Let>().definitions[0].name;
  CHECK(in_a.id == in_b.id);
  CHECK(ast.span(in_a).file == first);
  CHECK(ast.span(in_a).line == 2);
  CHECK(ast.span(in_b).file == second);
  CHECK(ast.span(in_b).line == 2);
  CHECK(ast.span(in_b).column == 5);
  CHECK(ast.span(in_b).begin == 5);
  CHECK(ast.text(ast.place(in_b)) == "b");
}

TEST_CASE("a text of nothing") {
  CHECK(Parsed("").file->items.empty());
  CHECK(Parsed("# only a comment").file->items.empty());
  CHECK(Parsed("\n;;\n").file->items.empty());
}

# Turns the help of a command into a man page: awk -v name=mscclc-run -v version=0.1.0 -f THIS.
# The first line of a help says what the command does; then come sections, whose heads begin at the
# margin and end in a colon, and whose lines are indented.
function escaped(text) {
  gsub(/\\/, "\\e", text)
  gsub(/-/, "\\-", text)
  if (text ~ /^[.']/) text = "\\&" text
  return text
}
function section(title) {
  if (open) print ".fi"
  printf ".SH %s\n.nf\n", toupper(title)
  open = title
}
BEGIN {
  printf ".TH %s 1 \"\" \"mscclc %s\" \"mscclc\"\n", toupper(name), version
}
NR == 1 {
  sub(/^mscclc: /, "")
  printf ".SH NAME\n%s \\- %s\n", escaped(name), escaped($0)
  next
}
/^usage: / {
  section("synopsis")
  print escaped(substr($0, 8))
  next
}
/^[a-z ]+:$/ {
  section(substr($0, 1, length($0) - 1))
  next
}
/^$/ { next }
/^  [A-Z]/ && open == "synopsis" { section("arguments") }
{ print escaped($0) }
END { if (open) print ".fi" }

#!/usr/bin/env bash
# The pictures of docs/pictures: one a program of the library, over four ranks, and those of the tutorial's.
#   docs_pictures.sh MSCCLC             are they what MSCCLC draws, linked by docs/pictures/README.md, and small?
#   docs_pictures.sh MSCCLC --update    draws them anew, in the checkout
set -euo pipefail
mscclc=$(realpath "$1")
most_bytes=900000  # of all together

# What a program is drawn for. One instance shows chunks by their author's numbers.
options() {
  case $1 in
    *hier*) echo "-D world=4 -D gpus=2" ;;
    sendrecv_nodes) echo "" ;;
    *) echo "-D R=4" ;;
  esac
  if grep -qE '^param.*\bI = ' "plans/$1.mscl"; then echo "-D I=1"; fi
}

draw() {
  # shellcheck disable=SC2046  # options are words
  "$mscclc" compile "plans/$1.mscl" $(options "$1") --emit=svg
}

# A program that docs/tutorial.md shows.
draw_tutorial() {  # name
  sed -n "/^\`$1\.mscl\`:/,/^\`\`\`\$/p" "${BUILD_WORKSPACE_DIRECTORY:-.}/docs/tutorial.md" | sed '1,/^```mscl/d; /^```$/d' |
    "$mscclc" compile - -D B=2 --emit=svg
}

tutorial="fast"
programs=$(for file in plans/*.mscl; do basename "$file" .mscl; done)

if [[ ${2-} == --update ]]; then
  folder=$BUILD_WORKSPACE_DIRECTORY/docs/pictures
  mkdir -p "$folder"
  rm -f "$folder"/*.svg
  for program in $programs; do draw "$program" >"$folder/$program.svg"; done
  for program in $tutorial; do draw_tutorial "$program" >"$folder/tutorial_$program.svg"; done
  exit
fi

failed=0
complain() {
  echo "$1"
  failed=1
}
for program in $programs; do
  if ! draw "$program" | cmp -s - "docs/pictures/$program.svg"; then
    complain "docs/pictures/$program.svg differs: bazel run //tests/pictures:update"
  fi
  if ! grep -qF "]($program.svg)" docs/pictures/README.md; then
    complain "docs/pictures/README.md does not show $program.svg"
  fi
done
for program in $tutorial; do
  if ! draw_tutorial "$program" | cmp -s - "docs/pictures/tutorial_$program.svg"; then
    complain "docs/pictures/tutorial_$program.svg differs: bazel run //tests/pictures:update"
  fi
done
for file in docs/pictures/*.svg; do
  [[ $file != docs/pictures/tutorial_* ]] || continue
  if [[ ! -e plans/$(basename "$file" .svg).mscl ]]; then complain "$file is of no program"; fi
done
bytes=$(cat docs/pictures/*.svg | wc -c)
if ((bytes > most_bytes)); then complain "docs/pictures has $bytes bytes, more than $most_bytes"; fi
exit "$failed"

#!/usr/bin/env bash
# mscclc as git's driver, set up as docs/pictures.md says, in a repository that is thrown away:
#   git_diff_test.sh MSCCLC
set -euo pipefail
if ! command -v git >/dev/null; then
  echo "left out: no git"
  exit 0
fi
mscclc=$(realpath "$1")
page=$PWD/docs/pictures.md
ring=$PWD/plans/allreduce_ring.mscl
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/bin" "$scratch/repository"
ln -s "$mscclc" "$scratch/bin/mscclc"
export PATH=$scratch/bin:$PATH HOME=$scratch GIT_CONFIG_NOSYSTEM=1 GIT_PAGER=cat
cd "$scratch/repository"
git init -q .
git config user.name tester
git config user.email tester@localhost
# The lines of the page.
sed -n "/^git config diff\.mscclc/p; /^echo .*gitattributes\$/p" "$page" >set_up
[[ $(wc -l <set_up) == 2 ]] || { echo "$page does not set up a driver"; exit 1; }
# shellcheck source=/dev/null
source ./set_up
rm set_up

failed=0
shows() {  # what, command...: it exits with 0, and its output holds all lines of standard input
  local what=$1 out code=0
  shift
  out=$("$@" 2>&1) || code=$?
  if ((code != 0)); then
    echo "FAILED: $what: '$*' exits with $code: $out"
    failed=1
  fi
  while IFS= read -r line; do
    grep -qxF -- "$line" <<<"$out" && continue
    echo "FAILED: $what: '$*' does not print '$line': $out"
    failed=1
  done
}
commit() { git add -A && git commit -q -m "$1"; }

mscclc compile "$ring" -D R=4 -D I=1 -o changed.json
cp changed.json removed.json
cp changed.json renumbered.json
cp changed.json moved.json
cp changed.json ./-D
echo '-* diff=mscclc' >>.gitattributes
printf '{"a": 1}\n' >other.json
printf 'no JSON\n' >broken.json
commit "first"

shows "a plan that is new" git log -p --ext-diff -- changed.json <<'END'
--- /dev/null
+++ b/changed.json
END
mscclc compile "$ring" -D R=4 -D I=2 -o changed.json
shows "a plan that has changed" git diff -- changed.json <<'END'
--- a/changed.json
+++ b/changed.json
blocks:
END
cp changed.json ./-D
shows "a path like an option" git diff -- -D <<'END'
--- a/-D
+++ b/-D
blocks:
END
rm removed.json
shows "a plan that is gone" git diff -- removed.json <<'END'
--- a/removed.json
+++ /dev/null
END
mscclc compile "$ring" -D R=4 -D I=1 --emit=ir -o ring.ir
sed -E 's/\binbox\b/slots/g' ring.ir | mscclc compile - -o renumbered.json || failed=1
rm ring.ir
shows "names that have changed" git diff -- renumbered.json <<'END'
--- a/renumbered.json
+++ b/renumbered.json
no difference but in numbers, names, descriptions and layout
END
printf '{"a": 2}\n' >other.json
shows "other JSON" git diff -- other.json <<'END'
--- a/other.json
+++ b/other.json
-{"a": 1}
+{"a": 2}
END
printf 'nor this\n' >broken.json
shows "what is no JSON" git diff -- broken.json <<'END'
-no JSON
+nor this
END
chmod +x broken.json
git mv moved.json "with space.json"
cp renumbered.json "with space.json"
commit "second"
shows "a mode" git log -p -1 --ext-diff -- broken.json <<'END'
b/broken.json: mode 100755, was 100644
END
shows "a file that has moved" git log -p -1 -M10 --ext-diff -- moved.json "with space.json" <<'END'
--- a/moved.json
+++ b/with space.json
END
shows "all of it" git log -p --ext-diff --diff-filter=AMD <<'END'
+{"a": 2}
END

# Changed here, removed there: git has no two sides to show.
git checkout -q -b other HEAD
git rm -q other.json
commit "removed"
git checkout -q -
printf '{"a": 3}\n' >other.json
commit "changed"
git merge -q other >/dev/null 2>&1 && { echo "FAILED: no conflict"; failed=1; }
shows "what is not merged" git diff <<'END'
* not merged: other.json
END
exit "$failed"

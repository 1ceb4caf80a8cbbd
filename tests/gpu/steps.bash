# Steps of a script that runs on a machine with GPUs: each has a time limit, its output in a file, and its part
# of a summary. To be sourced; the caller sets
#
#   out      the folder of the files
#   summary  the text to read, in it
#   work     a folder for what is not kept
#   seconds  of a step, at most
#   deadline seconds of the script ($SECONDS) after which no step goes on, and none but the first begins; 0: none

passed=0 failed=() left_out=()
# step NAME CODES COMMAND…: runs it, keeps what it prints in OUT/NAME.txt, and shows it in the summary. CODES:
# exit codes that are fine, as in '0 3'.
step() {
  local name=$1 codes=$2 code=0 begun=$SECONDS limit=$seconds
  shift 2
  if ((deadline > 0)); then
    limit=$((deadline - SECONDS < seconds ? deadline - SECONDS : seconds))
    if ((limit <= 0 && passed + ${#failed[@]} == 0)); then limit=1; fi
    if ((limit <= 0)); then
      printf '\n## %s: left out, the time is up\n' "$name" >>"$summary"
      left_out+=("$name")
      return
    fi
  fi
  printf '\n## %s: %s\n' "$name" "${*##*/}" >>"$summary"
  if [[ $(type -t "$1") == function ]]; then
    "$@" >"$out/$name.txt" 2>"$work/err" || code=$?
  else
    timeout -k 10 "$limit" "$@" >"$out/$name.txt" 2>"$work/err" || code=$?
  fi
  cat "$out/$name.txt" >>"$summary"
  [[ ! -s $work/err ]] || sed 's/^/! /' "$work/err" | tee -a "$out/$name.txt" >>"$summary"
  printf '## %s: exit code %s after %s s\n' "$name" "$code" $((SECONDS - begun)) >>"$summary"
  if [[ " $codes " == *" $code "* ]]; then
    passed=$((passed + 1))
  else
    failed+=("$name")
  fi
}

# The last lines of the summary, which is shown; fails if a step has.
end_steps() {
  {
    if ((${#left_out[@]} > 0)); then printf '\nleft out: %s' "${left_out[*]}"; fi
    printf '\n%s steps passed, %s failed: %s\n' "$passed" "${#failed[@]}" "${failed[*]-}"
  } >>"$summary"
  cat "$summary"
  ((${#failed[@]} == 0))
}

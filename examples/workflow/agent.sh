#!/bin/sh
# An agent for trying workflows without one: its last argument is a sentence. /annotate 'FILE' adds a
# line to FILE, /repair makes the file repaired, and anything else fails.
for text; do :; done
[ -z "$NIXIE_LOG_FILE" ] || echo "asked: $text" >> "$NIXIE_LOG_FILE"
case $text in
/annotate*)
  file=${text#*\'}
  echo "// looked at" >> "${file%%\'*}"
  ;;
/repair*) touch repaired ;;
*) echo "this agent knows no such thing: $text" >&2; exit 1 ;;
esac

#!/bin/sh
# Sends one order. Its arguments are the amount and the carrier. The exit code says how it went: 65
# is a wrong order, which is not tried again; 69 is something down, which is.
case $1 in
*[!0-9]*) echo "error: amount '$1' is not a number" >&2; exit 65 ;;
esac
if [ "$2" = north ] && [ ! -e bin/first/repaired ]; then
	echo "error: carrier $2 refuses connections" >&2
	exit 69
fi
echo "$NIXIE_ITEM_ID: $1 sent by $2"

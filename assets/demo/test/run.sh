#!/bin/sh
# Runs every test/*_test.sh and prints TAP. Needs nothing but a POSIX shell.
set -u
cd "$(dirname "$0")/.." || exit 1
count=0
failed=0

# check NAME EXPECTED ACTUAL
check() {
    count=$((count + 1))
    if [ "$2" = "$3" ]; then
        echo "ok $count - $1"
    else
        failed=$((failed + 1))
        echo "not ok $count - $1"
        printf '%s\n' "expected: $2" "     got: $3" | sed 's/^/# /'
    fi
}

for file in test/*_test.sh; do
    NOTES_FILE=$(mktemp)
    export NOTES_FILE
    . "./$file"
    rm -f "$NOTES_FILE" "$NOTES_FILE.new"
done

echo "1..$count"
echo "# tests $count"
echo "# pass $((count - failed))"
echo "# fail $failed"
[ "$failed" -eq 0 ]

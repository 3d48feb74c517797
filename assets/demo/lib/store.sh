# The store: one line per note, "id TAB state TAB text".

notes_file() {
    echo "${NOTES_FILE:-$HOME/.pocket-notes}"
}

store_each() {
    file=$(notes_file)
    [ ! -f "$file" ] || cat "$file"
}

store_add() {
    text=$1
    if [ -z "$text" ]; then
        echo "notes: nothing to write down" >&2
        return 2
    fi
    file=$(notes_file)
    last=0
    [ ! -f "$file" ] || last=$(awk -F '\t' '$1 > max { max = $1 } END { print max + 0 }' "$file")
    id=$((last + 1))
    printf '%s\topen\t%s\n' "$id" "$text" >> "$file"
    echo "added $id"
}

store_done() {
    wanted=$1
    file=$(notes_file)
    if [ -z "$wanted" ] || ! store_each | grep -q "^$wanted	"; then
        echo "notes: no note ${wanted:-?}" >&2
        return 1
    fi
    awk -F '\t' -v OFS='\t' -v id="$wanted" '$1 == id { $2 = "done" } { print }' "$file" > "$file.new"
    mv "$file.new" "$file"
    echo "done $wanted"
}

# How a note looks in a list.

format_note() {
    mark=' '
    [ "$2" != done ] || mark=x
    printf '[%s] %s %s\n' "$mark" "$1" "$3"
}

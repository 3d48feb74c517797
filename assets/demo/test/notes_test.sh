# The commands, from the outside.
check "help names the commands" "usage: notes add TEXT...     write a note" "$(bin/notes help | head -n 1)"
check "an unknown command fails" 2 "$(bin/notes frob >/dev/null 2>&1; echo $?)"
check "a note gets the first id" "added 1" "$(bin/notes add buy milk)"
check "the next note gets the next id" "added 2" "$(bin/notes add call Ada)"
check "an empty note is refused" 2 "$(bin/notes add >/dev/null 2>&1; echo $?)"
check "list shows open notes" "[ ] 1 buy milk
[ ] 2 call Ada" "$(bin/notes list)"
check "done ticks a note off" "done 1" "$(bin/notes done 1)"
check "list hides what is done" "[ ] 2 call Ada" "$(bin/notes list)"
check "list --all shows it" "[x] 1 buy milk
[ ] 2 call Ada" "$(bin/notes list --all)"
check "a note that is not there can't be done" 1 "$(bin/notes done 9 >/dev/null 2>&1; echo $?)"

# Becomes the agent's program of one build: the one that is cached here, or else the one that comes
# down standard input when it is asked for. `build` and `machine` are set.
#
# The cache is a directory of this user that nobody else may enter; what others could have written
# there is thrown away. A program lies in BUILD-SUM/convoke, and is not run if its sum is another.
# It appears whole, under its name, and is never replaced, since another host may be running it.
#
# Each process takes a host longer than a hundred lines of this, so what a shell can do it does.
umask 077
new=
leave() {
	[ -z "$new" ] || rm -rf "$new"
	exit "$1"
}
fail() {
	echo "convoke: $1" >&2
	leave 127
}
# Who sends the program may be gone: what is said then raises SIGPIPE.
trap 'leave 129' HUP INT TERM PIPE
private() {
	[ -d "$1" ] && [ -O "$1" ] && [ ! -L "$1" ] || return
	case $(ls -ld "$1") in
	drwx--[-S]---*) ;;
	*) chmod 700 "$1" && rm -rf "$1"/*-*/convoke ;;
	esac
}
right() {
	[ -f "$1/convoke" ] && [ -x "$1/convoke" ] && [ "$(sha256sum <"$1/convoke")" = "${1##*-}  -" ]
}
discard() {
	[ ! -e "$1" ] || rm -rf "$1"
}
# Makes the directory `$new` in `$dir`, and in it a program to be written, or says why not. Empty,
# the program is one that does nothing, wherever programs may be executed; -x would not tell in all
# shells. Modes are said since a directory may have a default access list, which is asked no mask.
place() {
	[ ! -e "$dir" ] && mkdir -m 700 "$dir" "$new" 2>/dev/null || {
		[ -d "$dir" ] || mkdir -p -m 700 "$dir" || return
		private "$dir" || { echo "$dir is not a directory of this user" && return 1; }
		[ -d "$new" ] || mkdir -m 700 "$new" || return
	}
	true >"$new/convoke" && chmod 700 "$new/convoke" && "$new/convoke" </dev/null
}
{ IFS=- read -r id rest </proc/sys/kernel/random/uuid; } 2>/dev/null || id=$$
home=${XDG_CACHE_HOME:-${HOME:+$HOME/.cache}}
why=
for dir in ${home:+"$home/convoke"} ''; do
	dir=${dir:-${TMPDIR:-/tmp}/convoke-$(id -u)}
	if private "$dir"; then
		for entry in "$dir/$build"-*; do
			right "$entry" && exec "$entry/convoke" __agent
			discard "$entry"
		done
	fi
	new=$dir/part.$id
	words=$(place 2>&1) && break
	discard "$new"
	new=
	why="${why:+$why; }$words"
done
[ -n "$new" ] || fail "no place to keep the agent's program: $why"
{ read -r here </proc/sys/kernel/arch; } 2>/dev/null || here=$(uname -m)
[ "$here" = "$machine" ] || {
	echo "convoke: this machine is $here, and the agent's program is for $machine" >&2
	leave 126
}
# Neither its boot line, which comes again behind the program, nor the program itself may be taken
# from the stream by anything that reads ahead.
IFS= read -r boot
# It comes in pieces, each when it is asked for: sshd's time grows with the square of what waits in it.
left=1
while [ "$left" != 0 ]; do
	printf '\nCONVOKE-ASKS-1 program\n' >&3
	IFS=' ' read -r bytes left sum && head -c "$bytes" || fail "the agent's program was not stored"
done 3>&1 >"$new/convoke"
[ "$(sha256sum <"$new/convoke")" = "$sum  -" ] || fail "the agent's program came garbled, or not whole"
words=$("$new/convoke" --version 2>&1 </dev/null) || fail "the agent's program does not run here: $words"
entry=$dir/$build-$sum
if [ ! -e "$entry/convoke" ]; then
	mv "$new" "$entry" || [ -e "$entry/convoke" ] || fail "the agent's program was not stored"
	# If another came first after all, it lies within.
	[ -e "$new" ] || new=$entry/${new##*/}
fi
discard "$new"
# Of builds the latest four stay, and of transfers that were killed those of the last day.
set -- "$dir"/*-*
[ $# -le 4 ] || ls -td -- "$@" | sed 1,4d | while IFS= read -r old; do rm -rf "$old"; done
set -- "$dir"/part.*
[ ! -e "$1" ] || find "$dir" -name 'part.*' -prune -mtime +0 -exec rm -rf {} +
printf '\nCONVOKE-ASKS-1 boot\n'
exec "$entry/convoke" __agent

# Becomes the agent's program of one build: the one that is cached here, or else the one that comes
# down standard input when it is asked for. `build` and `machine` are set.
#
# The cache is a directory of this user that nobody else may enter; what others could have written
# there is thrown away. A program lies in BUILD-SUM/convoke, and is not run if its sum is another.
# It appears whole, under its name, and is never replaced, since another host may be running it.
umask 077
part=
leave() {
	[ -z "$part" ] || rm -f "$part"
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
	drwx------*) ;;
	*) chmod 700 "$1" && rm -rf "$1"/*-*/convoke ;;
	esac
}
right() {
	[ -f "$1/convoke" ] && [ -x "$1/convoke" ] && [ "$(sha256sum <"$1/convoke")" = "${1##*-}  -" ]
}
home=${XDG_CACHE_HOME:-${HOME:+$HOME/.cache}}
set -- ${home:+"$home/convoke"} "${TMPDIR:-/tmp}/convoke-$(id -u)"
for dir; do
	private "$dir" || continue
	for entry in "$dir/$build"-*; do
		right "$entry" && exec "$entry/convoke" __agent
		rm -rf "$entry/convoke"
	done
done
# Neither its boot line, which comes again behind the program, nor the program itself may be taken
# from the stream by anything that reads ahead.
IFS= read -r boot
[ "$(uname -m)" = "$machine" ] || {
	echo "convoke: this machine is $(uname -m), and the agent's program is for $machine" >&2
	leave 126
}
place() {
	trap 'leave 129' HUP INT TERM PIPE
	mkdir -p "$1" || return
	private "$1" || { echo "$1 is not a directory of this user" && return 1; }
	part=$(mktemp "$1/part.XXXXXX") && echo '#!/bin/sh' >"$part" && chmod 700 "$part" && "$part" &&
		echo "$part" && return
	rm -f "$part"
	return 1
}
why=
for dir; do
	part=$(place "$dir" 2>&1) && break
	why="${why:+$why; }$part"
	part=
done
[ -n "$part" ] || fail "no place to keep the agent's program: $why"
printf '\nCONVOKE-ASKS-1 program\n'
IFS=' ' read -r bytes sum && head -c "$bytes" >"$part" || fail "the agent's program was not stored"
[ "$(sha256sum <"$part")" = "$sum  -" ] || fail "the agent's program came garbled, or not whole"
said=$("$part" --version 2>&1 </dev/null) || fail "the agent's program does not run here: $said"
entry=$dir/$build-$sum
mkdir -p "$entry" && {
	ln "$part" "$entry/convoke" 2>/dev/null || [ -e "$entry/convoke" ] || mv "$part" "$entry/convoke"
} || fail "the agent's program was not stored"
rm -f "$part"
# Of builds the latest four stay, and of transfers that were killed those of the last day.
(cd "$dir" && {
	set -- *-*
	[ $# -le 4 ] || ls -td -- *-* | sed 1,4d | while IFS= read -r old; do rm -rf "$old"; done
	set -- part.*
	[ ! -e "$1" ] || find . -name 'part.*' -mtime +0 -exec rm -f {} +
}) >/dev/null 2>&1
printf '\nCONVOKE-ASKS-1 boot\n'
exec "$entry/convoke" __agent

# Removes the cached programs that no process of this user runs, and says which.
home=${XDG_CACHE_HOME:-${HOME:+$HOME/.cache}}
set -- ${home:+"$home/convoke"} "${TMPDIR:-/tmp}/convoke-$(id -u)"
for dir; do
	[ -d "$dir" ] && [ -O "$dir" ] && [ ! -L "$dir" ] || continue
	for entry in "$dir"/*-*; do
		[ -d "$entry" ] || continue
		for exe in /proc/[0-9]*/exe; do
			[ "$exe" -ef "$entry/convoke" ] && echo "kept $entry, which runs" && continue 2
		done
		rm -rf "$entry" && echo "removed $entry"
	done
	find "$dir" -name 'part.*' -prune -mtime +0 -exec rm -rf {} +
done

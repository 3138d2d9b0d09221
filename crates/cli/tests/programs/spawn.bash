#!/bin/bash
# Spawns over PMI-1, without MPI: `spawn.bash read HOST` has a task of its own read, on that host, what all of its parents
# have put; `spawn.bash echo HOST` spawns one that writes a line, and writes one itself; `spawn.bash many TIMES HOSTS` spawns one after
# another, and waits for a line behind the first and the last; `spawn.bash restless TIMES HOST MISBEHAVE` spawns some, each of
# which leaves a process that starts one program after another; `spawn.bash leave HOST MISBEHAVE` leaves what sleeps.

say() {
    printf '%s\n' "$1" >&"$PMI_FD"
    read -r answer <&"$PMI_FD"
}

# spawn HOST PROGRAM [WORD...]
spawn() {
    local host=$1 program=$2 words='' number=0 word
    shift 2
    for word in "$@"; do
        number=$((number + 1))
        words+="arg$number=$word"$'\n'
    done
    say "mcmd=spawn
nprocs=1
execname=$program
totspawns=1
spawnssofar=1
argcnt=$number
${words}preput_num=0
info_num=1
info_key_0=host
info_val_0=$host
endcmd"
    [[ $answer == 'cmd=spawn_result rc=0 '* ]] || echo "refused: $answer"
}

say 'cmd=init pmi_version=1 pmi_subversion=1'
case $1 in
read)
    say cmd=get_my_kvsname
    name=${answer#*kvsname=}
    name=${name% rc=0}
    say "cmd=put kvsname=$name key=card-$PMI_RANK value=of-rank-$PMI_RANK"
    say cmd=barrier_in
    [[ $PMI_RANK != 0 ]] || spawn "$2" "$0" child "$name" "$PMI_SIZE"
    ;;
child)
    for rank in $(seq 0 "$3"); do
        say "cmd=get kvsname=$2 key=card-$rank"
        echo "${answer#cmd=get_result }"
    done
    ;;
echo)
    spawn "$2" echo 'a child'
    echo 'a parent'
    ;;
many)
    spawn "$3" true
    echo first
    read -r _
    for _ in $(seq 2 "$2"); do
        spawn "$3" true
    done
    echo last
    read -r _
    ;;
restless)
    for _ in $(seq "$2"); do
        spawn "$3" "$4" daemon:restless:50000
    done
    echo last
    read -r _
    ;;
leave)
    "$3" daemon
    sleep 1000 &
    echo "$CONVOKE_JOB"
    spawn "$2" "$3" daemon say:left
    spawn "$2" env -u CONVOKE_JOB "$3" daemon say:left
    read -r _
    echo on
    ;;
esac
say cmd=finalize

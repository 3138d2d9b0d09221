/* The floor of PMI-1: one process serves all clients, and does nothing but read, look up and write.
 *
 * usage: pmi COUNT PROGRAM [ARGUMENT...]
 * Starts COUNT clients with a socket pair each, and knows what `pmi-client` asks for; requests are trusted.
 */
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <search.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

#define LINE_BYTES_MAX 2048

static int count, in_barrier, *clients;

static void reply(int fd, const char *text, size_t length)
{
	if (write(fd, text, length) != (ssize_t)length)
		err(1, "write");
}

#define REPLY(fd, text) reply(fd, text, sizeof text - 1)

/* The text after ` name=` or the start, up to the next space or, for the last field, the end. */
static char *field(char *line, const char *name, int last)
{
	char *value = strstr(line, name);
	if (!value)
		errx(1, "no field %s in %s", name, line);
	value += strlen(name);
	if (!last)
		value[strcspn(value, " ")] = 0;
	return value;
}

static void put(int fd, char *line)
{
	char *value = strdup(field(line, "value=", 1)), *key = strdup(field(line, "key=", 0));
	ENTRY entry = { .key = key, .data = value };
	if (!hsearch(entry, ENTER))
		errx(1, "table full");
	REPLY(fd, "cmd=put_result rc=0 msg=success\n");
}

static void get(int fd, char *line)
{
	char text[LINE_BYTES_MAX];
	ENTRY entry = { .key = field(line, "key=", 1) };
	ENTRY *found = hsearch(entry, FIND);
	if (!found)
		errx(1, "no key %s", entry.key);
	int length = snprintf(text, sizeof text, "cmd=get_result rc=0 msg=success value=%s\n", (char *)found->data);
	reply(fd, text, (size_t)length);
}

static void barrier(void)
{
	if (++in_barrier < count)
		return;
	in_barrier = 0;
	for (int i = 0; i < count; i++)
		REPLY(clients[i], "cmd=barrier_out\n");
}

static int starts(const char *line, const char *word)
{
	return strncmp(line, word, strlen(word)) == 0;
}

static void serve(int fd, char *line)
{
	if (starts(line, "cmd=put "))
		put(fd, line);
	else if (starts(line, "cmd=get "))
		get(fd, line);
	else if (starts(line, "cmd=barrier_in"))
		barrier();
	else if (starts(line, "cmd=init"))
		REPLY(fd, "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1\n");
	else if (starts(line, "cmd=get_maxes"))
		REPLY(fd, "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024\n");
	else if (starts(line, "cmd=get_my_kvsname"))
		REPLY(fd, "cmd=my_kvsname kvsname=floor\n");
	else if (starts(line, "cmd=finalize"))
		REPLY(fd, "cmd=finalize_ack rc=0\n");
	else
		errx(1, "unknown request %s", line);
}

/* Clients wait for each reply, so that a line comes whole, and alone. Returns whether the client is still there. */
static int read_request(int fd)
{
	char line[LINE_BYTES_MAX];
	ssize_t length = read(fd, line, sizeof line - 1);
	if (length <= 0) {
		close(fd);
		return 0;
	}
	line[length - 1] = 0;
	serve(fd, line);
	return 1;
}

static void start_client(int poller, int rank, char **argv)
{
	char number[32];
	int pair[2];
	pid_t pid;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		err(1, "socketpair");
	/* Only the client's end outlives an exec. */
	fcntl(pair[1], F_SETFD, 0);
	snprintf(number, sizeof number, "%d", pair[1]);
	setenv("PMI_FD", number, 1);
	snprintf(number, sizeof number, "%d", rank);
	setenv("PMI_RANK", number, 1);
	if (posix_spawn(&pid, argv[0], NULL, NULL, argv, environ) != 0)
		errx(1, "cannot spawn %s", argv[0]);
	close(pair[1]);
	clients[rank] = pair[0];
	struct epoll_event event = { .events = EPOLLIN, .data.fd = pair[0] };
	if (epoll_ctl(poller, EPOLL_CTL_ADD, pair[0], &event) < 0)
		err(1, "epoll_ctl");
}

int main(int argc, char **argv)
{
	struct epoll_event ready[256];
	int poller = epoll_create1(EPOLL_CLOEXEC);
	if (argc < 3)
		errx(2, "usage: pmi COUNT PROGRAM [ARGUMENT...]");
	count = atoi(argv[1]);
	clients = calloc((size_t)count, sizeof *clients);
	if (!hcreate((size_t)count * 8))
		err(1, "hcreate");
	setenv("PMI_SIZE", argv[1], 1);
	for (int rank = 0; rank < count; rank++)
		start_client(poller, rank, argv + 2);
	for (int left = count; left > 0;) {
		int events = epoll_wait(poller, ready, 256, -1);
		for (int i = 0; i < events; i++)
			left -= !read_request(ready[i].data.fd);
	}
	int failed = 0, status;
	while (wait(&status) > 0)
		failed |= status != 0;
	return failed;
}

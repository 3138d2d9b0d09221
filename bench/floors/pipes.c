/* The floor of carrying output: what every task writes to its pipe is read and written to standard output.
 *
 * usage: pipes COUNT PROGRAM [ARGUMENT...]
 * Lines may be torn: keeping them whole is the product's work.
 */
#include <err.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static char buffer[1 << 16];

static void start_task(int poller, int rank, char **argv)
{
	char number[32];
	posix_spawn_file_actions_t actions;
	int ends[2];
	pid_t pid;
	if (pipe(ends) < 0)
		err(1, "pipe");
	fcntl(ends[0], F_SETFD, FD_CLOEXEC);
	fcntl(ends[1], F_SETFD, FD_CLOEXEC);
	snprintf(number, sizeof number, "%d", rank);
	setenv("PMI_RANK", number, 1);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
	if (posix_spawn(&pid, argv[0], &actions, NULL, argv, environ) != 0)
		errx(1, "cannot spawn %s", argv[0]);
	posix_spawn_file_actions_destroy(&actions);
	close(ends[1]);
	struct epoll_event event = { .events = EPOLLIN, .data.fd = ends[0] };
	if (epoll_ctl(poller, EPOLL_CTL_ADD, ends[0], &event) < 0)
		err(1, "epoll_ctl");
}

/* Returns whether there may be more. */
static int relay(int fd)
{
	ssize_t length = read(fd, buffer, sizeof buffer), written = 0;
	if (length <= 0) {
		close(fd);
		return 0;
	}
	while (written < length) {
		ssize_t part = write(STDOUT_FILENO, buffer + written, (size_t)(length - written));
		if (part < 0)
			err(1, "write");
		written += part;
	}
	return 1;
}

int main(int argc, char **argv)
{
	struct epoll_event ready[64];
	int poller = epoll_create1(EPOLL_CLOEXEC);
	if (argc < 3)
		errx(2, "usage: pipes COUNT PROGRAM [ARGUMENT...]");
	int left = atoi(argv[1]);
	for (int rank = 0; rank < atoi(argv[1]); rank++)
		start_task(poller, rank, argv + 2);
	while (left > 0) {
		int events = epoll_wait(poller, ready, 64, -1);
		for (int i = 0; i < events; i++)
			left -= !relay(ready[i].data.fd);
	}
	while (wait(NULL) > 0)
		;
	return 0;
}

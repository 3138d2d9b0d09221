/* The floor of a launch: a tree of remote shells and of agents that do nothing.
 *
 * usage: tree PLAN INDEX PORT PROGRAM [ARGUMENT...]
 *
 * INDEX 0 is the root, which runs no program; the others connect to their parent's PORT first.
 * PLAN holds 32-bit numbers: for each agent, and once more for the end, where the list of its children
 * begins; then all lists. TREE_SHELL is the remote shell, its words separated by spaces.
 * No identities, no encryption, no keeper, no output that is carried: nothing that a product needs.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <err.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static const uint32_t *map_plan(const char *path)
{
	struct stat stat;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &stat) < 0)
		err(1, "%s", path);
	const void *plan = mmap(NULL, (size_t)stat.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (plan == MAP_FAILED)
		err(1, "mmap");
	close(fd);
	return plan;
}

static int tcp_socket(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		err(1, "socket");
	return fd;
}

static struct sockaddr_in loopback(uint16_t port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = port };
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return address;
}

static int listen_for_children(uint16_t *port)
{
	struct sockaddr_in address = loopback(0);
	socklen_t length = sizeof address;
	int fd = tcp_socket();
	if (bind(fd, (struct sockaddr *)&address, length) < 0 || listen(fd, 4096) < 0
	    || getsockname(fd, (struct sockaddr *)&address, &length) < 0)
		err(1, "listen");
	*port = ntohs(address.sin_port);
	return fd;
}

static void join_parent(uint16_t port)
{
	struct sockaddr_in address = loopback(htons(port));
	int fd = tcp_socket();
	if (connect(fd, (struct sockaddr *)&address, sizeof address) < 0 || write(fd, "j", 1) != 1)
		err(1, "join");
}

static void spawn(char **argv)
{
	pid_t pid;
	if (posix_spawn(&pid, argv[0], NULL, NULL, argv, environ) != 0)
		errx(1, "cannot spawn %s", argv[0]);
}

/* argv = words of the shell, host, command */
static void start_child(char *self, char **argv, uint32_t child, uint16_t port)
{
	char shell[4096], host[32], command[8192];
	char *words[64];
	int count = 0, length;

	snprintf(shell, sizeof shell, "%s", getenv("TREE_SHELL"));
	for (char *word = strtok(shell, " "); word && count < 60; word = strtok(NULL, " "))
		words[count++] = word;
	snprintf(host, sizeof host, "h%u", child);
	length = snprintf(command, sizeof command, "exec %s %s %u %u", self, argv[1], child, port);
	for (char **word = argv + 4; *word; word++)
		length += snprintf(command + length, sizeof command - (size_t)length, " %s", *word);
	words[count++] = host;
	words[count++] = command;
	words[count] = NULL;
	spawn(words);
}

int main(int argc, char **argv)
{
	if (argc < 5 || !getenv("TREE_SHELL"))
		errx(2, "usage: TREE_SHELL=... tree PLAN INDEX PORT PROGRAM [ARGUMENT...]");
	const uint32_t *plan = map_plan(argv[1]);
	uint32_t index = (uint32_t)atoi(argv[2]);
	uint16_t port = 0;
	int listener = -1, children = (int)(plan[index + 1] - plan[index]);

	if (index > 0)
		join_parent((uint16_t)atoi(argv[3]));
	if (children > 0)
		listener = listen_for_children(&port);
	for (uint32_t i = plan[index]; i < plan[index + 1]; i++)
		start_child(argv[0], argv, plan[i], port);
	if (index > 0)
		spawn(argv + 4);
	for (int joined = 0; joined < children; joined++) {
		char byte;
		int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (fd < 0 || read(fd, &byte, 1) != 1)
			err(1, "accept");
	}
	int failed = 0, status;
	while (wait(&status) > 0)
		failed |= status != 0;
	return failed;
}

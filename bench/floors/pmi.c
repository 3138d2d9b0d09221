/* The floor of PMI-1 and PMI-2: one process a host serves its clients, and does nothing but read, look up and write.
 *
 * usage: pmi HOSTS CLIENTS PROGRAM [ARGUMENT...]
 * A server for each host starts CLIENTS clients with a socket pair each, and knows what `pmi-client` asks for; requests
 * are trusted. In a barrier each sends what was put to the first, which sends everything to all: plain bytes over a
 * socket pair, with no shell, no tree and no encryption.
 */
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <search.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

#define LINE_BYTES_MAX 2048
#define FD_MAX 65536

static int hosts, count, in_barrier, *clients;

/* All clients of one run speak the same. */
static int speaks_pmi2;

/* By descriptor: bytes of a request that was looked at and waits for its reply. To take them before would wake the
 * client, which waits for no room but for the reply. */
static ssize_t seen[FD_MAX];

static void take_seen(int fd)
{
	char line[LINE_BYTES_MAX];
	if (seen[fd] > 0 && recv(fd, line, (size_t)seen[fd], 0) != seen[fd])
		err(1, "recv");
	seen[fd] = 0;
}

/* The other servers, in the first; the first, in the others. */
static int is_first, *peers, peer_count, servers_in_barrier;

/* What was put since the last barrier, as `key value` lines; in the first server also by the others. */
static char *cards;
static size_t cards_length, cards_size;

static void reply(int fd, const char *text, size_t length)
{
	if (write(fd, text, length) != (ssize_t)length)
		err(1, "write");
	take_seen(fd);
}

#define REPLY(fd, text) reply(fd, text, sizeof text - 1)

/* A frame of PMI-2. */
static void reply_frame(int fd, const char *body)
{
	char text[LINE_BYTES_MAX];
	int length = snprintf(text, sizeof text, "%-6zu%s", strlen(body), body);
	reply(fd, text, (size_t)length);
}

/* The text after `name=`, up to what ends a field. */
static char *field(char *line, const char *name)
{
	char *value = strstr(line, name);
	if (!value)
		errx(1, "no field %s in %s", name, line);
	value += strlen(name);
	value[strcspn(value, " ;")] = 0;
	return value;
}

/* Makes room for as many more bytes of cards. */
static char *reserve_cards(size_t more)
{
	if (cards_length + more > cards_size)
		cards = realloc(cards, cards_size = 2 * (cards_length + more));
	return cards + cards_length;
}

static void put(char *line)
{
	char *value = field(line, "value="), *key = field(line, "key=");
	size_t most = strlen(key) + strlen(value) + 3;
	cards_length += (size_t)snprintf(reserve_cards(most), most, "%s %s\n", key, value);
}

/* The value of a key, or none. */
static const char *get(char *line)
{
	ENTRY entry = { .key = field(line, "key=") };
	ENTRY *found = hsearch(entry, FIND);
	return found ? found->data : NULL;
}

static void send_cards(int fd)
{
	struct iovec parts[] = { { &cards_length, sizeof cards_length }, { cards, cards_length } };
	if (writev(fd, parts, 2) != (ssize_t)(sizeof cards_length + cards_length))
		err(1, "writev");
}

/* Returns whether the other server is still there. */
static int receive_cards(int fd)
{
	size_t length;
	ssize_t received = recv(fd, &length, sizeof length, MSG_WAITALL);
	if (received == 0) {
		close(fd);
		return 0;
	}
	if (received != sizeof length)
		err(1, "recv");
	/* To receive no bytes is to wait for some. */
	if (length > 0 && recv(fd, reserve_cards(length), length, MSG_WAITALL) != (ssize_t)length)
		err(1, "recv");
	cards_length += length;
	return 1;
}

static void release(void)
{
	char *text = memcpy(malloc(cards_length), cards, cards_length);
	for (char *at = text, *end = text + cards_length; at < end;) {
		char *value = memchr(at, ' ', (size_t)(end - at)), *last = memchr(value, '\n', (size_t)(end - value));
		*value = *last = 0;
		ENTRY entry = { .key = at, .data = value + 1 };
		if (!hsearch(entry, ENTER))
			errx(1, "table full");
		at = last + 1;
	}
	cards_length = 0;
	in_barrier = servers_in_barrier = 0;
	for (int i = 0; i < count; i++)
		if (speaks_pmi2)
			reply_frame(clients[i], "cmd=kvs-fence-response;rc=0;");
		else
			REPLY(clients[i], "cmd=barrier_out\n");
}

/* In the first server: all have entered. */
static void server_entered(void)
{
	if (++servers_in_barrier < hosts)
		return;
	for (int i = 0; i < peer_count; i++)
		send_cards(peers[i]);
	release();
}

static void barrier(void)
{
	if (++in_barrier < count)
		return;
	if (is_first)
		return server_entered();
	send_cards(peers[0]);
	cards_length = 0;
}

static int is_peer(int fd)
{
	for (int i = 0; i < peer_count; i++)
		if (peers[i] == fd)
			return 1;
	return 0;
}

static void serve_peer(int fd)
{
	if (!receive_cards(fd))
		return;
	if (is_first)
		server_entered();
	else
		release();
}

static int starts(const char *line, const char *word)
{
	return strncmp(line, word, strlen(word)) == 0;
}

static void serve(int fd, char *line)
{
	char text[LINE_BYTES_MAX];
	if (starts(line, "cmd=put ")) {
		put(line);
		REPLY(fd, "cmd=put_result rc=0 msg=success\n");
	} else if (starts(line, "cmd=get ")) {
		const char *value = get(line);
		if (!value)
			errx(1, "no value for %s", line);
		int length = snprintf(text, sizeof text, "cmd=get_result rc=0 msg=success value=%s\n", value);
		reply(fd, text, (size_t)length);
	} else if (starts(line, "cmd=barrier_in"))
		barrier();
	else if (starts(line, "cmd=init pmi_version=2"))
		REPLY(fd, "cmd=response_to_init rc=0 pmi_version=2 pmi_subversion=0\n");
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

static void serve_frame(int fd, char *body)
{
	char text[LINE_BYTES_MAX];
	speaks_pmi2 = 1;
	if (starts(body, "cmd=kvs-get;")) {
		const char *value = get(body);
		snprintf(text, sizeof text, "cmd=kvs-get-response;rc=0;found=%s;value=%s;", value ? "TRUE" : "FALSE",
			 value ? value : "");
		reply_frame(fd, text);
	} else if (starts(body, "cmd=kvs-put;")) {
		put(body);
		reply_frame(fd, "cmd=kvs-put-response;rc=0;");
	} else if (starts(body, "cmd=kvs-fence;"))
		barrier();
	else if (starts(body, "cmd=fullinit;"))
		reply_frame(fd, "cmd=fullinit-response;rc=0;");
	else if (starts(body, "cmd=job-getid;"))
		reply_frame(fd, "cmd=job-getid-response;rc=0;jobid=floor;");
	else if (starts(body, "cmd=finalize;"))
		reply_frame(fd, "cmd=finalize-response;rc=0;");
	else
		errx(1, "unknown request %s", body);
}

/* Clients wait for each reply, so that a message comes whole, and alone. Returns whether the client is still there. */
static int read_request(int fd)
{
	char line[LINE_BYTES_MAX];
	ssize_t length = recv(fd, line, sizeof line - 1, MSG_PEEK);
	if (length <= 0) {
		close(fd);
		return 0;
	}
	seen[fd] = length;
	if (starts(line, "cmd=")) {
		line[length - 1] = 0;
		serve(fd, line);
	} else {
		line[length] = 0;
		serve_frame(fd, line + 6);
	}
	return 1;
}

static void watch(int poller, int fd, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.fd = fd };
	if (epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event) < 0)
		err(1, "epoll_ctl");
}

static void start_client(int poller, int index, int rank, char **argv)
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
	if (pair[0] >= FD_MAX)
		errx(1, "too many descriptors");
	clients[index] = pair[0];
	watch(poller, pair[0], EPOLLIN | EPOLLET);
}

/* Forks the other servers. Returns which host this one is. */
static int start_servers(void)
{
	for (int host = 1; host < hosts; host++) {
		int pair[2];
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
			err(1, "socketpair");
		pid_t pid = fork();
		if (pid < 0)
			err(1, "fork");
		if (pid == 0) {
			while (peer_count > 0)
				close(peers[--peer_count]);
			close(pair[0]);
			peers[peer_count++] = pair[1];
			/* What a remote shell starts has a session, and with it a share of the processors, of its own. */
			setsid();
			return host;
		}
		close(pair[1]);
		peers[peer_count++] = pair[0];
	}
	is_first = 1;
	return 0;
}

int main(int argc, char **argv)
{
	struct epoll_event ready[256];
	char size[32];
	if (argc < 4)
		errx(2, "usage: pmi HOSTS CLIENTS PROGRAM [ARGUMENT...]");
	hosts = atoi(argv[1]);
	count = atoi(argv[2]);
	snprintf(size, sizeof size, "%d", hosts * count);
	setenv("PMI_SIZE", size, 1);
	clients = calloc((size_t)count, sizeof *clients);
	peers = calloc((size_t)hosts, sizeof *peers);
	int host = start_servers();
	int poller = epoll_create1(EPOLL_CLOEXEC);
	if (!hcreate((size_t)hosts * (size_t)count * 4))
		err(1, "hcreate");
	for (int i = 0; i < peer_count; i++)
		watch(poller, peers[i], EPOLLIN);
	for (int i = 0; i < count; i++)
		start_client(poller, i, host * count + i, argv + 3);
	for (int left = count; left > 0;) {
		int events = epoll_wait(poller, ready, 256, -1);
		for (int i = 0; i < events; i++) {
			if (is_peer(ready[i].data.fd))
				serve_peer(ready[i].data.fd);
			else
				left -= !read_request(ready[i].data.fd);
		}
	}
	int failed = 0, status;
	while (wait(&status) > 0)
		failed |= status != 0;
	return failed;
}

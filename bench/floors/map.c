/* The floor of a get-all through shared memory: as many processes as there are clients map one ready file and read
 * everybody's card in it.
 *
 * usage: map HOSTS CLIENTS
 * HOSTS times CLIENTS processes wait until all are there and are let go at once, map the file and compare each card.
 * Prints the time from there until the last is done, as `pmi-client` prints its longest.
 */
#define _GNU_SOURCE
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CARD_BYTES 64

static double seconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void card_of(int of, char card[CARD_BYTES + 1])
{
	snprintf(card, 9, "%08x", (unsigned)of);
	for (int i = 1; i < CARD_BYTES / 8; i++)
		memcpy(card + 8 * i, card, 8);
}

static void read_all(int file, int count)
{
	char *cards = mmap(NULL, (size_t)count * CARD_BYTES, PROT_READ, MAP_PRIVATE, file, 0);
	if (cards == MAP_FAILED)
		err(1, "mmap");
	for (int of = 0; of < count; of++) {
		char expected[CARD_BYTES + 1];
		card_of(of, expected);
		if (memcmp(cards + of * CARD_BYTES, expected, CARD_BYTES))
			errx(1, "the card of %d is another", of);
	}
}

/* Waits for a byte of a pipe, or for its other end to be closed. */
static void wait_for(int end)
{
	char byte;
	if (read(end, &byte, 1) < 0)
		err(1, "read");
}

static void tell(int end)
{
	if (write(end, "", 1) != 1)
		err(1, "write");
}

int main(int argc, char **argv)
{
	if (argc < 3)
		errx(2, "usage: map HOSTS CLIENTS");
	int count = atoi(argv[1]) * atoi(argv[2]);
	int file = memfd_create("cards", MFD_CLOEXEC);
	if (file < 0)
		err(1, "memfd_create");
	for (int of = 0; of < count; of++) {
		char card[CARD_BYTES + 1];
		card_of(of, card);
		if (write(file, card, CARD_BYTES) != CARD_BYTES)
			err(1, "write");
	}
	int here[2], go[2];
	if (pipe(here) || pipe(go))
		err(1, "pipe");
	for (int rank = 0; rank < count; rank++) {
		pid_t pid = fork();
		if (pid < 0)
			err(1, "fork");
		if (pid == 0) {
			close(go[1]);
			tell(here[1]);
			wait_for(go[0]);
			read_all(file, count);
			tell(here[1]);
			_exit(0);
		}
	}
	for (int rank = 0; rank < count; rank++)
		wait_for(here[0]);
	double start = seconds();
	close(go[1]);
	close(here[1]);
	for (int rank = 0; rank < count; rank++)
		wait_for(here[0]);
	double took = seconds() - start;
	for (int rank = 0; rank < count; rank++) {
		int status;
		if (wait(&status) < 0 || status)
			errx(1, "a process failed");
	}
	printf("max total_us=%.1f\n", 1e6 * took);
	return 0;
}

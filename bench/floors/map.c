/* The floor of a get-all through shared memory: as many processes as there are clients map one ready file and read
 * everybody's card in it.
 *
 * usage: map HOSTS CLIENTS
 * HOSTS times CLIENTS processes meet, wait for each other again, map the file and compare each card. Prints the longest
 * time of all from the meeting on, as `pmi-client` does.
 */
#define _GNU_SOURCE
#include <err.h>
#include <pthread.h>
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
	for (int i = 0; i < 8; i++)
		snprintf(card + 8 * i, 9, "%08x", (unsigned)of);
}

static void *shared(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		err(1, "mmap");
	return memory;
}

static double read_all(int file, int count, pthread_barrier_t *barrier)
{
	pthread_barrier_wait(barrier); /* all are there */
	double start = seconds();
	pthread_barrier_wait(barrier);
	char *cards = mmap(NULL, (size_t)count * CARD_BYTES, PROT_READ, MAP_PRIVATE, file, 0);
	if (cards == MAP_FAILED)
		err(1, "mmap");
	for (int of = 0; of < count; of++) {
		char expected[CARD_BYTES + 1];
		card_of(of, expected);
		if (memcmp(cards + of * CARD_BYTES, expected, CARD_BYTES))
			errx(1, "the card of %d is another", of);
	}
	return seconds() - start;
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
	pthread_barrier_t *barrier = shared(sizeof *barrier);
	double *took = shared((size_t)count * sizeof *took);
	pthread_barrierattr_t attributes;
	pthread_barrierattr_init(&attributes);
	pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(barrier, &attributes, (unsigned)count);
	for (int rank = 0; rank < count; rank++) {
		pid_t pid = fork();
		if (pid < 0)
			err(1, "fork");
		if (pid == 0) {
			took[rank] = read_all(file, count, barrier);
			_exit(0);
		}
	}
	double longest = 0;
	for (int rank = 0; rank < count; rank++) {
		int status;
		if (wait(&status) < 0 || status)
			errx(1, "a process failed");
	}
	for (int rank = 0; rank < count; rank++)
		longest = took[rank] > longest ? took[rank] : longest;
	printf("max total_us=%.1f\n", 1e6 * longest);
	return 0;
}

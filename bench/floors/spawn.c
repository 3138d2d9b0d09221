/* The floor of launching tasks on one node: posix_spawn in a loop, then wait for all.
 *
 * usage: spawn COUNT PROGRAM [ARGUMENT...]
 * Prints two times in microseconds: until the last spawn returned, and until all had ended.
 */
#include <err.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

extern char **environ;

static double microseconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

int main(int argc, char **argv)
{
	if (argc < 3)
		errx(2, "usage: spawn COUNT PROGRAM [ARGUMENT...]");
	double start = microseconds(), spawned;
	for (int i = 0; i < atoi(argv[1]); i++) {
		pid_t pid;
		if (posix_spawn(&pid, argv[2], NULL, NULL, argv + 2, environ) != 0)
			errx(1, "cannot spawn %s", argv[2]);
	}
	spawned = microseconds();
	while (wait(NULL) > 0)
		;
	printf("%.1f %.1f\n", spawned - start, microseconds() - start);
	return 0;
}

/* A task that says when it runs.
 *
 * usage: task stamp        prints the monotonic clock in nanoseconds
 *        task hold FIFO    prints `up`, and ends when nobody has the FIFO open for writing
 */
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct timespec now;
	char line[64] = "up\n";
	int fifo = -1;
	if (argc == 3 && strcmp(argv[1], "hold") == 0) {
		fifo = open(argv[2], O_RDONLY);
		if (fifo < 0)
			err(1, "%s", argv[2]);
	} else if (argc == 2 && strcmp(argv[1], "stamp") == 0) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		snprintf(line, sizeof line, "%lld%09ld\n", (long long)now.tv_sec, now.tv_nsec);
	} else {
		errx(2, "usage: task stamp | task hold FIFO");
	}
	if (write(STDOUT_FILENO, line, strlen(line)) < 0)
		err(1, "write");
	if (fifo >= 0 && read(fifo, line, sizeof line) < 0)
		err(1, "read");
	return 0;
}

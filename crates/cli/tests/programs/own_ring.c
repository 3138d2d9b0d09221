/* How PMIX_Ring is meant to be used (S4-09): every rank brings an address at which it listens, is told those of its two
 * neighbours alone, connects to them, and all cards go round the ring that these connections are. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <slurm/pmi2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CARD_BYTES 1000

struct card {
    int rank;
    char text[CARD_BYTES];
};

static int rank;

static void check(int is_well, const char *what)
{
    if (!is_well) {
        fprintf(stderr, "rank %d: %s\n", rank, what);
        exit(1);
    }
}

static struct card card_of(int of)
{
    struct card card = {.rank = of};
    memset(card.text, 'a' + of % 26, CARD_BYTES);
    return card;
}

/* Of an interface that other hosts reach, if there is one. */
static struct in_addr own_address(void)
{
    struct in_addr address = {htonl(INADDR_LOOPBACK)};
    struct ifaddrs *all, *one;
    check(!getifaddrs(&all), "interfaces");
    for (one = all; one; one = one->ifa_next)
        if (one->ifa_addr && one->ifa_addr->sa_family == AF_INET && !(one->ifa_flags & IFF_LOOPBACK))
            address = ((struct sockaddr_in *)one->ifa_addr)->sin_addr;
    freeifaddrs(all);
    return address;
}

static int listen_anywhere(char address[64])
{
    struct sockaddr_in own = {.sin_family = AF_INET};
    socklen_t bytes = sizeof own;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    check(listener >= 0 && !listen(listener, 2), "listen");
    check(!getsockname(listener, (struct sockaddr *)&own, &bytes), "address");
    sprintf(address, "%s %d", inet_ntoa(own_address()), ntohs(own.sin_port));
    return listener;
}

static int connect_to(const char *address)
{
    struct sockaddr_in other = {.sin_family = AF_INET};
    char host[64];
    int port, connection = socket(AF_INET, SOCK_STREAM, 0);
    check(sscanf(address, "%63s %d", host, &port) == 2 && inet_aton(host, &other.sin_addr), "a neighbour's address");
    other.sin_port = htons(port);
    check(connection >= 0 && !connect(connection, (struct sockaddr *)&other, sizeof other), "connect");
    return connection;
}

int main(void)
{
    int spawned, size, app, number, of_ring;
    char own[64], left[64], right[64], host[256];
    check(!PMI2_Init(&spawned, &size, &rank, &app), "init");
    int listener = listen_anywhere(own);
    check(!PMIX_Ring(own, &number, &of_ring, left, right, sizeof left) && of_ring == size, "ring");
    int to_right = connect_to(right), from_left = accept(listener, NULL, NULL);
    check(from_left >= 0, "accept");
    struct card card = card_of(rank);
    int *seen = calloc(size, sizeof *seen);
    seen[rank] = 1;
    for (int step = 1; step < size; step++) {
        check(write(to_right, &card, sizeof card) == sizeof card, "send to the right");
        check(recv(from_left, &card, sizeof card, MSG_WAITALL) == sizeof card, "receive from the left");
        check(card.rank >= 0 && card.rank < size && !seen[card.rank]++, "a card that came before");
        struct card expected = card_of(card.rank);
        check(!memcmp(&card, &expected, sizeof card), "a card is not what was sent");
    }
    check(!PMI2_Finalize(), "finalize");
    gethostname(host, sizeof host);
    printf("rank %d of %d on %s: all cards\n", rank, size, host);
    return 0;
}

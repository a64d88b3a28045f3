/* Which interfaces this process's connections to other ranks go by. MPI does not say; the kernel
 * does: sockets that this process holds, and are connected. */
#include "base/text.h"
#include "tools/train/check/check_facts.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <dirent.h>
#include <ifaddrs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Whether one of this process's descriptors is the socket of that number. */
static bool holds_socket(unsigned long inode) {
    char wanted[48], path[300], target[48];
    bool held = false;
    snprintf(wanted, sizeof wanted, "socket:[%lu]", inode);
    DIR *dir = opendir("/proc/self/fd");
    for (const struct dirent *e; dir && !held && (e = readdir(dir));) {
        snprintf(path, sizeof path, "/proc/self/fd/%s", e->d_name);
        const ssize_t length = readlink(path, target, sizeof target - 1);
        target[length > 0 ? length : 0] = '\0';
        held = strcmp(target, wanted) == 0;
    }
    if (dir) closedir(dir);
    return held;
}

static bool is_loopback(uint32_t address) {
    return ntohl(address) >> 24 == 127;
}

static void add_name(const struct ifaddrs *all, uint32_t address, char *list, size_t size) {
    for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
        if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET) continue;
        const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)i->ifa_addr;
        char spaced[80], name[80];
        if (in->sin_addr.s_addr != address) continue;
        snprintf(spaced, sizeof spaced, ", %s,", list);
        snprintf(name, sizeof name, ", %s,", i->ifa_name);
        if (!strstr(spaced, name)) bpt_list_add(list, size, i->ifa_name);
        return;
    }
}

/* Whether a port of this host is that of mpirun's server, which every process of Open MPI 5 speaks
 * TCP with: "NAME;tcp4://ADDRESS:PORT" in variables of the environment. */
static bool is_of_server(unsigned port) {
    static const char prefix[] = "PMIX_SERVER_URI";
    for (char **e = environ; *e; e++) {
        const char *before = strncmp(*e, prefix, sizeof prefix - 1) == 0 ? strrchr(*e, ':') : NULL;
        if (before && strtoul(before + 1, NULL, 10) == port) return true;
    }
    return false;
}

/* Lines of /proc/net/tcp: number, own address:port, other's, state (1: connected), ..., the tenth
 * word is the inode. An address is a number as it lies in memory; one of IPv6 that stands for one
 * of IPv4 ends with it. */
static void read_table(const char *path, const struct ifaddrs *all, char *list, size_t size) {
    char line[512], own[40], other[40];
    unsigned state, port;
    unsigned long inode;
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "%*d: %39[0-9A-F]:%*x %39[0-9A-F]:%x %x %*s %*s %*s %*s %*s %lu", own,
                   other, &port, &state, &inode) != 5)
            continue;
        const size_t length = strlen(own);
        if (state != 1 || length < 8) continue;
        if (strcmp(own, other) == 0 && is_of_server(port)) continue;
        const uint32_t address = (uint32_t)strtoul(own + length - 8, NULL, 16);
        if (!is_loopback(address) && holds_socket(inode)) add_name(all, address, list, size);
    }
    if (file) fclose(file);
}

void bpt_check_interfaces(char *list, size_t size) {
    struct ifaddrs *all = NULL;
    list[0] = '\0';
    if (getifaddrs(&all) != 0) return;
    read_table("/proc/self/net/tcp", all, list, size);
    read_table("/proc/self/net/tcp6", all, list, size);
    freeifaddrs(all);
}
